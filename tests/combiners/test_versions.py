"""Which versions go together, from the facts alone."""

from gpudoctor.combiners.versions import arch_supports, driver_conflicts, framework_builds, package_conflicts
from gpudoctor.combiners.visible import visible_devices
from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import DriverVersion
from gpudoctor.facts.framework import CudaError, FrameworkBuild, PythonPackage
from gpudoctor.facts.gpu import Gpu, GpuProduct
from gpudoctor.facts.host import EnvVar
from gpudoctor.facts.store import FactStore


def store(*facts: Fact) -> FactStore:
    found = FactStore(facts)
    found.add(list(framework_builds(found)))
    return found


def test_the_plain_wheel_is_too_new_and_another_build_of_it_fits() -> None:
    facts = store(PythonPackage(name="torch", version="2.11.0"), DriverVersion(version="570.86.10", cuda="12.8"))
    [conflict] = driver_conflicts(facts)
    assert (conflict.cuda, conflict.needed) == ("13.0", "580.65.06")
    assert "cu128" in conflict.advice


def test_minor_versions_run_on_older_drivers_of_the_major_version() -> None:
    facts = store(
        PythonPackage(name="torch", version="2.6.0", local="cu124"), DriverVersion(version="525.60.13", cuda="12.0")
    )
    assert list(driver_conflicts(facts)) == []


def test_before_cuda_11_the_minor_version_counts() -> None:
    facts = store(
        PythonPackage(name="torch", version="1.12.1", local="cu102"), DriverVersion(version="418.87.01", cuda="10.1")
    )
    assert [conflict.needed for conflict in driver_conflicts(facts)] == ["440.33"]


def test_the_number_in_pytorchs_message_stands_for_the_driver() -> None:
    error = CudaError(number=35, message="The NVIDIA driver on your system is too old (found version 11040).")
    [conflict] = driver_conflicts(store(PythonPackage(name="torch", version="2.5.1", local="cu121"), error))
    assert conflict.found == "a driver (CUDA 11.4)"


def test_a_cpu_build_has_no_quarrel_with_the_driver() -> None:
    facts = store(
        PythonPackage(name="torch", version="2.1.0"),
        FrameworkBuild(name="torch", cpu_only=True),
        DriverVersion(version="470.57.02", cuda="11.4"),
        GpuProduct(name="Tesla K80", compute_capability=3.7),
    )
    assert list(driver_conflicts(facts)) == []
    assert list(arch_supports(facts)) == []


def test_architectures() -> None:
    def supported(capability: float, local: str) -> bool:
        [found] = arch_supports(
            store(
                PythonPackage(name="torch", version="2.11.0", local=local),
                GpuProduct(name="x", compute_capability=capability),
            )
        )
        return found.supported

    assert supported(8.9, "cu128")  # runs 8.6 code
    assert supported(12.1, "cu128")
    assert not supported(7.0, "cu128")


def test_companions() -> None:
    def conflicts(torch: str, **others: str) -> list[tuple[str, str | None]]:
        packages = [PythonPackage(name=name, version=version) for name, version in {"torch": torch, **others}.items()]
        return [(found.part, found.needed) for found in package_conflicts(store(*packages))]

    assert conflicts("2.6.0", torchvision="0.21.0", torchaudio="2.6.0") == []
    assert conflicts("1.13.1", torchvision="0.14.1", torchaudio="0.13.1") == []
    assert conflicts("2.1.0", torchvision="0.15.2") == [("torchvision", "2.0")]
    assert conflicts("1.12.1", torchaudio="0.13.1") == [("torchaudio", "1.13")]


def test_two_versions_of_a_package_are_two_environments() -> None:
    packages = [PythonPackage(name="torch", version=version) for version in ("2.1.0", "2.6.0")]
    assert list(package_conflicts(store(*packages, PythonPackage(name="torchvision", version="0.15.2")))) == []


def test_wheels_of_two_cuda_versions() -> None:
    names = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cublas-cu12")
    [conflict] = package_conflicts(store(*(PythonPackage(name=name, version="9.1") for name in names)))
    assert {conflict.part, conflict.other} == {"nvidia-cudnn-cu11", "nvidia-cudnn-cu12"}


def test_visible_devices() -> None:
    def problem(setting: str) -> str | None:
        gpus = [Gpu(index=index, uuid=f"GPU-0000000{index}-1111-2222-3333-444444444444") for index in range(2)]
        found = list(visible_devices(FactStore([*gpus, EnvVar(name="CUDA_VISIBLE_DEVICES", setting=setting)])))
        return found[0].problem if found else None

    assert problem("0,1") is None
    assert problem("$GPUS") is None
    assert problem("GPU-00000001") is None
    assert "no GPU 2" in (problem("1,2") or "")
    assert "named twice" in (problem("0,0") or "")
    assert "GPU-9" in (problem("GPU-9") or "")
