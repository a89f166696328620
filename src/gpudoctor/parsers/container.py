"""Formats of container engines and of the NVIDIA container toolkit: command lines, errors, settings, specifications."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.base import Fact
from gpudoctor.facts.container import (
    CdiSpec,
    CgroupDevice,
    CloudInstance,
    Container,
    ContainerEngine,
    ContainerRun,
    HookError,
    ImagePackage,
)
from gpudoctor.facts.host import Config
from gpudoctor.parsers.base import Format, NotThisFormat, yaml_data
from gpudoctor.patterns.lazy import LazyRegex

# --- nvidia-container-cli and hooks -------------------------------------------------------------------------------

_CLI = LazyRegex(
    r"nvidia-container-cli(?:\.real)?: (?:(?P<category>[a-z]+(?: rpc| file)?) error: ?)?(?P<detail>[^\n]*)",
    re.IGNORECASE,
)
_DETAIL_END = LazyRegex(r"\\+n|\\+\"|\"|: unknown(?=[.\s\\]*(?:$|[^\sa-z.]))|, Known Sent")
# The first that fits decides; written in the library's own words.
_REASONS: tuple[tuple[str, LazyRegex], ...] = tuple(
    (reason, LazyRegex(pattern, re.IGNORECASE))
    for reason, pattern in (
        ("driver_not_loaded", r"driver not loaded"),
        ("library_mismatch", r"version mismatch"),
        ("library_missing", r"load library failed|cannot open shared object"),
        ("symbol", r"undefined symbol|symbol lookup"),
        ("imex", r"\bIMEX\b"),
        ("wsl", r"\bWSL\b|dxcore|no adapters were found"),
        ("unknown_device", r"unknown device|invalid device|device not found"),
        ("no_device", r"no cuda-capable device|no devices? (?:was |were )?found"),
        ("file_exists", r"file exists"),
        ("cgroup", r"device filter|bpf|cgroup|device rules?"),
        ("timeout", r"timed out|timeout"),
        ("ldcache", r"ldcache|ldconfig"),
        ("permission", r"operation not permitted|permission denied|insufficient permissions"),
        ("file_missing", r"no such file or directory|not a directory"),
        ("nvml", r"nvml error|cuda error|detection"),
    )
)
_MERGED_PATH = LazyRegex(r"/(?:merged|rootfs)?(?P<path>/(?:usr|lib|lib64|etc|dev|run|proc|bin|sbin|opt)/[^\s:]*)")


def container_cli(text: str) -> Iterator[HookError]:
    r"""An error of nvidia-container-cli, however deep an engine has quoted it.

    >>> line = r"stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.2\\n\""
    >>> fact = next(container_cli(line))
    >>> fact.reason, fact.message
    ('requirement', 'unsatisfied condition: cuda>=12.2')
    >>> next(container_cli("nvidia-container-cli: device error: 0:1: unknown device")).reason
    'unknown_device'
    >>> next(container_cli("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown")).reason
    'driver_not_loaded'
    """
    line = text.partition("\n")[0]
    found = _CLI.search(line)
    if not found:
        raise NotThisFormat
    category = (found["category"] or "").lower()
    if not category and not re.match(
        r"error|fail|unable|can(?:no|')t|could not|not supported", found["detail"], re.IGNORECASE
    ):
        raise NotThisFormat
    detail = _DETAIL_END.split(found["detail"], maxsplit=1)[0].strip().rstrip(".")
    reason = "requirement" if category == "requirement" else ""
    if not reason:
        whole = f"{category} {detail}"
        reason = next((name for name, pattern in _REASONS if pattern.search(whole)), "other")
    path = _MERGED_PATH.search(detail)
    yield HookError(reason=reason, category=category or None, message=detail[:300], path=path["path"] if path else None)


# --- command lines ------------------------------------------------------------------------------------------------

_RUN = LazyRegex(
    r"^(?:[^\n]{0,80}?[$#>%\u276f\u279c] +|[$#>%+]|\(\w+\) )?\s*(?P<sudo>sudo (?:-\w+ )*)?(?:[A-Z_]+=\S+ )*"
    r"(?P<engine>docker|nvidia-docker|podman|nerdctl|apptainer|singularity|enroot|ctr|udocker|shifter)(?P<options>(?: -[\w-]+(?:=\S*| [^\s-]\S*)?)*?)"
    r"(?: container| compose)? (?P<verb>run|create|exec|start|shell)\b(?P<rest>.*)"
)
_FLAGS = {
    "--rm", "-i", "-t", "-it", "-ti", "-d", "-dit", "-itd", "-id", "-td", "--privileged", "--init", "--read-only", "-P",
    "--detach", "--interactive", "--tty", "--no-healthcheck", "--oom-kill-disable", "--replace", "--nv", "--nvccli",
    "--rocm", "-e", "--cleanenv", "--contain", "-c", "--writable", "--containall", "-C", "--fakeroot", "--rw", "--root",
    "--publish-all", "--rmi", "--writable-tmpfs", "--net-host", "--net=host",
}  # fmt: skip
_VALUE_SHORT = {"docker", "nvidia-docker", "podman", "nerdctl"}  # engines where -e and -c take a value
_GPU_OPTION = LazyRegex(
    r"--gpus\b|--gpu\b|--runtime[= ]nvidia|nvidia\.com/gpu|--device[= ]\S*/dev/nvidia|--nv(?:ccli)?\b|/dev/nvidia0"
)


def run_command(text: str) -> Iterator[ContainerRun]:
    r"""A command line that starts a container, or a program in one; continued lines are joined.

    >>> run = next(run_command("$ sudo docker run --rm -e NVIDIA_DRIVER_CAPABILITIES=compute \\\n  --gpus all ubuntu nvidia-smi -L"))
    >>> run.gpus, run.image, run.program, run.capabilities, run.fresh
    (True, 'ubuntu', 'nvidia-smi -L', 'compute', True)
    >>> next(run_command("user@host:~$ docker exec -it web nvidia-smi")).fresh
    False
    """
    lines = text.split("\n")
    line = lines[0]
    for following in lines[1:30]:
        if not line.rstrip().endswith("\\"):
            break
        line = line.rstrip()[:-1] + " " + following.strip()
    found = _RUN.match(line[:4000])
    if not found:
        raise NotThisFormat
    engine, verb, rest = found["engine"], found["verb"], found["rest"].strip()
    if not rest or (engine == "enroot" and verb == "create"):
        raise NotThisFormat
    image, program = _image(engine, rest)
    if image is None or not re.match(r"[\w$./:{<\"'-]", image):
        raise NotThisFormat
    capabilities = re.search(r"NVIDIA_DRIVER_CAPABILITIES=[\"']?([\w,]+)", rest)
    runtime = re.search(r"--runtime[= ](\S+)", rest)
    yield ContainerRun(
        engine="docker" if engine == "nvidia-docker" else engine,
        gpus=engine in ("nvidia-docker", "enroot") or bool(_GPU_OPTION.search(rest)),
        cdi="nvidia.com/gpu" in rest,
        runtime=runtime[1] if runtime else None,
        image=image,
        program=program or None,
        capabilities=capabilities[1] if capabilities else None,
        privileged="--privileged" in rest,
        rootless=engine == "podman" and not found["sudo"] and "root@" not in line[: found.start("engine")],
        infiniband="/dev/infiniband" in rest or "--privileged" in rest,
        fresh=verb in ("run", "create"),
    )


def _image(engine: str, rest: str) -> tuple[str | None, str]:
    """Return the image and the program behind it: the first word that is no option nor an option's value."""
    try:
        words = shlex.split(rest)
    except ValueError:  # a quote is open
        words = rest.split()
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-"):
            return word, " ".join(words[index + 1 :])[:300]
        takes = "=" not in word and (word not in _FLAGS or (word in ("-e", "-c") and engine in _VALUE_SHORT))
        index += 2 if takes else 1
    return None, ""


_PODS_PROMPT = LazyRegex(r"^(?:\([^)]{1,40}\) ?)?(?:root|\w+)@(?P<id>[0-9a-f]{12})(?::|\s)")
_KUBE_EXEC = LazyRegex(r"(?:kubectl|oc|k9s|microk8s\.kubectl)\s(?:\S+\s){0,8}?exec\s")


# A line of /proc/self/cgroup, read inside the container.
_OWN_CGROUP = LazyRegex(r"\d+:[\w,=]*:/(kubepods|docker/|libpod|lxc)")
_CGROUP_ENGINES = {"kubepods": "kubernetes", "docker/": "docker", "libpod": "podman", "lxc": "lxc"}


def container_prompt(text: str) -> Iterator[Container]:
    """A shell prompt inside a container: Docker names the host by the container's short id.

    >>> next(container_prompt("root@3f9c1d2b7a60:/workspace# nvidia-smi")).id
    '3f9c1d2b7a60'
    """
    found = _PODS_PROMPT.match(text.partition("\n")[0])
    if not found or found["id"].isdigit():
        raise NotThisFormat
    yield Container(engine="docker", id=found["id"])


def container_sign(text: str) -> Iterator[Container]:
    """Lines that only a program inside a container, or its engine, prints.

    >>> next(container_sign("$ kubectl exec -it trainer-0 -- nvidia-smi")).engine
    'kubernetes'
    """
    line = text.partition("\n")[0]
    if _KUBE_EXEC.search(line):
        yield Container(engine="kubernetes")
    elif found := _OWN_CGROUP.match(line):
        yield Container(engine=_CGROUP_ENGINES[found[1]])
    elif "/.dockerenv" in line and "No such file" not in line:
        yield Container(engine="docker")
    elif line.startswith("/run/.containerenv"):
        yield Container(engine="podman")
    elif re.search(r"lxc\.(?:cgroup2?|mount|hook)\.?", line):
        yield Container(engine="lxc")
    else:
        raise NotThisFormat


# --- engines ------------------------------------------------------------------------------------------------------

_INFO = LazyRegex(r"^\s*(?P<key>[A-Z][\w ]+?):\s*(?P<value>.*)$")


def docker_info(text: str) -> Iterator[ContainerEngine]:
    r"""`docker info`, or any part of it from one of its known lines on.

    >>> info = next(docker_info(" Server Version: 24.0.7\n Cgroup Driver: systemd\n Cgroup Version: 2\n Runtimes: runc nvidia"))
    >>> info.version, info.nvidia_runtime, info.cgroup_version
    ('24.0.7', True, 2)
    """
    values: dict[str, str] = {}
    for line in text.split("\n"):
        found = _INFO.match(line)
        if found:
            values.setdefault(found["key"], found["value"].strip())
        elif not line.strip():
            break
    known = values.keys() & {"Server Version", "Default Runtime", "Runtimes", "Docker Root Dir", "Cgroup Driver"}
    if not known:
        raise NotThisFormat
    runtimes = values.get("Runtimes")
    root = values.get("Docker Root Dir", "")
    system = values.get("Operating System")
    version = re.match(r"[\d.]+", values.get("Server Version", ""))
    group = values.get("Cgroup Version", "")
    yield ContainerEngine(
        name="docker",
        version=version[0] if version else None,
        runtime=values.get("Default Runtime"),
        nvidia_runtime=None if runtimes is None else "nvidia" in runtimes.split(),
        context=values.get("Context"),
        desktop=None if system is None else "Docker Desktop" in system,
        snap=("/snap/" in root) if root else None,
        rootless=True
        if "/.local/share/docker" in root or "rootless" in text[:6000].split("\n\n", maxsplit=1)[0]
        else None,
        cgroup_driver=values.get("Cgroup Driver"),
        cgroup_version=int(group) if group.isdigit() else None,
    )


def docker_server(text: str) -> Iterator[ContainerEngine]:
    """The line of `docker version` or `docker context show` that says who answers.

    >>> next(docker_server("Server: Docker Desktop 4.25.0 (126437)")).desktop
    True
    """
    line = text.partition("\n")[0].strip()
    found = re.match(r"Server: Docker Desktop (?P<version>[\d.]+)", line)
    if not found:
        raise NotThisFormat
    yield ContainerEngine(name="docker", desktop=True, context="Docker Desktop " + found["version"].rstrip("."))


def docker_contexts(text: str) -> Iterator[ContainerEngine]:
    r"""`docker context ls`: the context with the star answers.

    >>> rows = "NAME   DESCRIPTION  DOCKER ENDPOINT  ERROR\ndefault  x  unix:///var/run/docker.sock\ndesktop-linux *  Docker Desktop  unix:///run/d.sock"
    >>> fact = next(docker_contexts(rows))
    >>> fact.context, fact.desktop
    ('desktop-linux', True)
    """
    lines = text.split("\n")
    if "DOCKER ENDPOINT" not in lines[0]:
        raise NotThisFormat
    for offset, line in enumerate(lines[1:], start=1):
        words = line.split()
        if len(words) < 2 or "://" not in line:
            return
        if words[1] == "*" or words[0].endswith("*"):
            name = words[0].rstrip("*")
            endpoint = next(word for word in words if "://" in word)
            yield ContainerEngine(
                at=offset,
                name="docker",
                context=name,
                desktop="desktop" in name or "/.docker/desktop/" in endpoint or "Docker Desktop" in line,
                rootless="rootless" in name or "/run/user/" in endpoint or None,
            )


_VERSIONS = (
    (LazyRegex(r"^Docker version (?P<version>[\d.]+)"), "docker"),
    (LazyRegex(r"^podman version (?P<version>[\d.]+)"), "podman"),
    (LazyRegex(r"NVIDIA Container Runtime(?: Hook)? version (?P<version>[\d.]+)"), "nvidia-container-toolkit"),
    (LazyRegex(r"NVIDIA Container Toolkit CLI version (?P<version>[\d.]+)"), "nvidia-container-toolkit"),
    (LazyRegex(r"\bcli-version: (?P<version>[\d.]+)"), "nvidia-container-toolkit"),
    (
        re.compile(
            r"\b(?P<name>nvidia-container-toolkit|libnvidia-container(?:-tools|1)?|nvidia-container-runtime|nvidia-docker2)"
            r"(?::\w+)?(?=\W)[ \t=/-]*(?:[^\w\n]{1,3}v?ersion[ :]+)?v?(?P<version>\d+\.\d+(?:\.\d+)?)"
        ),
        "",
    ),
)


def engine_version(text: str) -> Iterator[ContainerEngine]:
    """A line that names an engine or a package of the toolkit with its version.

    >>> fact = next(engine_version("ii  nvidia-container-toolkit  1.14.3-1  amd64  NVIDIA Container toolkit"))
    >>> fact.name, fact.version
    ('nvidia-container-toolkit', '1.14.3')
    """
    line = text.partition("\n")[0].strip()
    if line.startswith(("un ", "rc ")):
        raise NotThisFormat
    for pattern, name in _VERSIONS:
        if found := pattern.search(line):
            package = name or found["name"]
            if package.startswith("libnvidia-container"):
                package = "libnvidia-container"
            yield ContainerEngine(name=package, version=found["version"])
            return
    raise NotThisFormat


def podman_info(text: str) -> Iterator[ContainerEngine]:
    r"""The part of `podman info` that says whether it runs rootless.

    >>> next(podman_info("    rootless: true")).rootless
    True
    """
    found = re.match(r"\s*\"?rootless\"?: (true|false)", text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield ContainerEngine(name="podman", rootless=found[1] == "true")


# --- settings -----------------------------------------------------------------------------------------------------

_SETTING = LazyRegex(r"^(?:[\w./-]+\.toml:\s*)?(?P<key>[\w.-]+)\s*[=:]\s*(?P<value>\"[^\"]*\"|'[^']*'|[^#\n]+)")
_HEADER = LazyRegex(r"^\s*\[+(?P<name>[^\[\]]+)\]+\s*(?:#.*)?$")
_TOOLKIT_KEYS = (
    "no-cgroups", "accept-nvidia-visible-devices-envvar-when-unprivileged", "accept-nvidia-visible-devices-as-volume-mounts",
    "load-kmods", "skip-mode-detection", "disable-require", "allow-cuda-compat-libs-from-container", "ldconfig",
)  # fmt: skip


def toolkit_setting(text: str) -> Iterator[Config]:
    """A setting of /etc/nvidia-container-runtime/config.toml, also as grep prints it; comments are defaults, not settings.

    >>> next(toolkit_setting("no-cgroups = true")).setting
    'true'
    """
    found = _SETTING.match(text.partition("\n")[0].strip())
    if not found or found["key"] not in _TOOLKIT_KEYS:
        raise NotThisFormat
    yield Config(file="nvidia-container-runtime/config.toml", key=found["key"], setting=_plain(found["value"]))


def toolkit_mode(text: str) -> Iterator[Config]:
    r"""The runtime section of the same file.

    >>> next(toolkit_mode('[nvidia-container-runtime]\ndebug = "/dev/null"\nmode = "cdi"')).setting
    'cdi'
    """
    lines = text.split("\n")
    for offset, line in enumerate(lines[1:25], start=1):
        if _HEADER.match(line):
            return
        found = _SETTING.match(line.strip())
        if found and found["key"] == "mode":
            yield Config(
                at=offset, file="nvidia-container-runtime/config.toml", key="mode", setting=_plain(found["value"])
            )


def _plain(value: str) -> str:
    return value.strip().strip("\"'")


def containerd_config(text: str) -> Iterator[Config]:
    r"""The runtime part of containerd's config.toml: handlers, their options, the default.

    A key that stands there twice in different case counts as a conflict: containerd takes one of them.

    >>> toml = "[plugins.x.containerd.runtimes.nvidia.options]\n BinaryName = '/usr/bin/nvidia-container-runtime'\n binaryName = '/usr/bin/runc'"
    >>> [(c.key, c.setting) for c in containerd_config(toml)][-1]
    ('runtimes.nvidia.conflict', 'BinaryName = /usr/bin/nvidia-container-runtime, binaryName = /usr/bin/runc')
    """
    section = ""
    seen: dict[str, tuple[str, str]] = {}
    for offset, line in enumerate(text.split("\n")):
        stripped = line.strip()
        if header := _HEADER.match(line):
            parts = header["name"].replace('"', "").replace("'", "").strip().split(".runtimes.")
            section = f"runtimes.{parts[1]}" if len(parts) > 1 else ""
            seen = {}
            if section.count(".") == 1:
                yield _containerd(offset, section, "present")
            continue
        if not stripped or stripped.startswith("#"):
            continue
        found = _SETTING.match(stripped)
        if not found:
            if offset == 0:
                raise NotThisFormat
            return
        key, value = found["key"], _plain(found["value"])
        if key in ("default_runtime_name", "disabled_plugins", "enable_cdi", "imports"):
            yield _containerd(offset, key, value)
        elif section and key.lower() in ("binaryname", "runtime_type", "systemdcgroup"):
            name = {"binaryname": "BinaryName", "systemdcgroup": "SystemdCgroup"}.get(key.lower(), key)
            yield _containerd(offset, f"{section}.{name}", value)
            known = seen.setdefault(key.lower(), (key, value))
            if known != (key, value) and known[1] != value:
                handler = ".".join(section.split(".")[:2])
                yield _containerd(offset, f"{handler}.conflict", f"{known[0]} = {known[1]}, {key} = {value}")


def _containerd(offset: int, key: str, value: str) -> Config:
    return Config(at=offset, file="containerd/config.toml", key=key, setting=value)


def daemon_json(text: str) -> Iterator[Config]:
    r"""Docker's /etc/docker/daemon.json; where it is no valid JSON, the place of the first fault.

    >>> found = list(daemon_json('{\n "default-runtime": "nvidia",\n "runtimes": {"nvidia": {"path": "x"}}\n}'))
    >>> [(c.key, c.setting) for c in found]
    [('default-runtime', 'nvidia'), ('runtimes.nvidia.path', 'x')]
    >>> list(daemon_json('{\n "default-runtime": "nvidia"\n "runtimes": {}\n}'))[0].key
    'invalid'
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines[:12]) if line.strip().startswith("{")), None)
    if start is None:
        raise NotThisFormat
    depth = 0
    for end in range(start, len(lines)):
        depth += lines[end].count("{") - lines[end].count("}")
        if depth <= 0:
            break
    else:
        return  # cut off, so nothing can be said
    body = "\n".join(lines[start : end + 1])
    if '"runtimes"' not in body and '"default-runtime"' not in body and '"exec-opts"' not in body:
        raise NotThisFormat
    try:
        data, _ = json.JSONDecoder().raw_decode(body)
    except ValueError as error:
        yield Config(at=start, file="daemon.json", key="invalid", setting=str(error))
        return
    for key, value in _flat(data):
        name = key.rpartition(".")[2]
        offset = next((number for number in range(start, end + 1) if f'"{name}"' in lines[number]), start)
        yield Config(at=offset, file="daemon.json", key=key, setting=value)


def _flat(data: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and depth < 6:
        for key, value in data.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif isinstance(data, list):
        yield prefix, ", ".join(str(member) for member in data[:20])
    else:
        yield prefix, str(data).lower() if isinstance(data, bool) else str(data)


# --- images and compose -------------------------------------------------------------------------------------------

_FROM = LazyRegex(r"^FROM(?: --\S+)* [\w./:$\{\}@-]+", re.IGNORECASE)
_DRIVER_PACKAGE = LazyRegex(
    r"^(?:nvidia-driver(?:-\d+|-libs|-cuda)?[\w.-]*|nvidia-\d{3}[\w-]*|libnvidia-(?:compute|gl|encode|decode|cfg1|common|ml1?)\S*|cuda-drivers\S*"
    r"|nvidia-utils\S*|nvidia-headless\S*|nvidia-opencl-dev|libcuda1\S*|nvidia-cuda-toolkit|nvidia-smi|cuda(?:-\d+-\d+)?|nvidia-compute-utils\S*)$"
)


def build_file(text: str) -> Iterator[Fact]:
    r"""A Dockerfile: the driver packages that it installs and the NVIDIA variables that it sets.

    >>> facts = list(build_file("FROM ubuntu:22.04\nRUN apt-get update && apt-get install -y \\\n    nvidia-utils-535 curl\nENV NVIDIA_DRIVER_CAPABILITIES=compute"))
    >>> [(f.kind, f.value("name") or f.value("setting")) for f in facts]
    [('image_package', 'nvidia-utils-535'), ('config', 'compute')]
    """
    lines = text.split("\n")
    if not _FROM.match(lines[0]):
        raise NotThisFormat
    installing = continued = False
    for offset, line in enumerate(lines):
        stripped = line.strip()
        if not continued:
            installing = False
            if stripped and not re.match(r"[A-Z]+\b|#", stripped):
                return
        if "install" in line and re.search(r"\b(?:apt|apt-get|dnf|yum|zypper|apk|pacman)\b", line):
            installing = True
        if installing:
            for word in re.split(r"[\s=\\;&]+", stripped):
                if _DRIVER_PACKAGE.match(word):
                    yield ImagePackage(at=offset, name=word, driver=True)
        if found := re.match(r"ENV\s+(NVIDIA_\w+)[= ]\s*[\"']?([\w,=<>. ]+)", stripped):
            yield Config(at=offset, file="Dockerfile", key=f"env.{found[1]}", setting=found[2].strip())
        continued = stripped.endswith("\\") or (continued and stripped.startswith("#"))


def compose_file(text: str) -> Iterator[ContainerRun]:
    r"""The services of a compose file and whether they ask for GPUs.

    >>> [run.gpus for run in compose_file("services:\n  a:\n    image: x\n    runtime: nvidia\n  b:\n    image: y\n")]
    [True, False]
    """
    lines = text.split("\n")
    if not re.match(r"services:\s*(?:#.*)?$", lines[0]):
        raise NotThisFormat
    end = next(
        (
            number
            for number, line in enumerate(lines[1:], start=1)
            if line.strip() and not line.startswith((" ", "\t", "#")) and not re.match(r"[\w-]+:", line)
        ),
        len(lines),
    )
    data = yaml_data("\n".join(lines[:end]))
    services = data.get("services") if isinstance(data, dict) else None
    if not isinstance(services, dict):
        raise NotThisFormat
    for name, service in services.items():
        if not isinstance(service, dict):
            continue
        offset = next((number for number, line in enumerate(lines) if line.strip() == f"{name}:"), 0)
        shown = str(service)[:20_000]
        environment = re.search(r"NVIDIA_DRIVER_CAPABILITIES['\"]?\s*[=:]\s*['\"]?([\w,]+)", shown)
        devices = str(service.get("devices", ""))
        asks = str(service.get("deploy", ""))
        yield ContainerRun(
            at=offset,
            engine="docker",
            gpus="gpus" in service
            or service.get("runtime") == "nvidia"
            or ("reservations" in asks and ("nvidia" in asks or "gpu" in asks))
            or "nvidia" in devices,
            cdi="nvidia.com/gpu" in shown,
            runtime=str(service["runtime"]) if "runtime" in service else None,
            image=str(service.get("image") or name),
            program=str(service.get("command") or "") or None,
            capabilities=environment[1] if environment else None,
            privileged=service.get("privileged") is True,
            infiniband="/dev/infiniband" in devices or service.get("privileged") is True,
            fresh=True,
        )


def inspected(text: str) -> Iterator[ContainerRun]:
    r"""`docker inspect`: runtime and device requests of a container.

    >>> next(inspected('"HostConfig": {\n "Runtime": "runc",\n "DeviceRequests": null,\n "Privileged": false')).gpus
    False
    """
    head = text[:12_000]
    runtime = re.search(r"\"Runtime\": \"([^\"]*)\"", head)
    requests = re.search(r"\"DeviceRequests\": (null|\[\s*\]|\[)", head)
    if not runtime and not requests:
        raise NotThisFormat
    yield ContainerRun(
        engine="docker",
        gpus=bool(runtime and runtime[1] == "nvidia") or bool(requests and requests[1] == "["),
        runtime=runtime[1] if runtime else None,
        privileged='"Privileged": true' in head,
        infiniband="/dev/infiniband" in head or '"Privileged": true' in head,
        fresh=False,
    )


# --- CDI, cgroups, clouds -----------------------------------------------------------------------------------------

_CDI_LIBRARY = LazyRegex(r"\.so\.(\d{3}\.\d{2,3}(?:\.\d{2})?)\b|/firmware/nvidia/(\d{3}\.\d{2,3}(?:\.\d{2})?)/")


def cdi_spec(text: str) -> Iterator[CdiSpec]:
    r"""A CDI specification in YAML or JSON: its kind, and the driver version that its library paths name.

    >>> next(cdi_spec("cdiVersion: 0.5.0\ncontainerEdits:\n  mounts:\n  - hostPath: /usr/lib64/libcuda.so.550.54.15\nkind: nvidia.com/gpu")).driver_version
    '550.54.15'
    """
    if not re.match(r"\{?\s*\"?cdiVersion\"?:", text.lstrip()):
        raise NotThisFormat
    kind = re.search(r"\"?kind\"?: \"?([\w./-]+)", text)
    versions = Counter(first or second for first, second in _CDI_LIBRARY.findall(text))
    yield CdiSpec(
        name=kind[1] if kind else None,
        driver_version=versions.most_common(1)[0][0] if versions else None,
    )


def cdi_list(text: str) -> Iterator[CdiSpec]:
    """The count that `nvidia-ctk cdi list` prints.

    >>> next(cdi_list('INFO[0000] Found 0 CDI devices')).devices
    0
    """
    found = re.search(r"Found (\d+) CDI devices", text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield CdiSpec(devices=int(found[1]))


def cgroup_device(text: str) -> Iterator[CgroupDevice]:
    """An entry of a version 1 device list: NVIDIA's device files have major 195.

    >>> fact = next(cgroup_device("c 195:* m"))
    >>> fact.major, fact.minor, fact.access
    ('195', '*', 'm')
    """
    found = re.search(r"(?:^|[\s,])c (195):(\d+|\*) ([rwm]{1,3})\b", text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield CgroupDevice(major=found[1], minor=found[2], access=found[3])


_INSTANCE = LazyRegex(
    r"(?:instance-type|instance_type|InstanceType|machine[_-]?type|vmSize|instanceType)\"?\s*[=:]\s*\"?(?P<type>[A-Za-z][\w.-]+)"
)
_NEURON = LazyRegex(r"(?:inf|trn)\d\w*\.")
_NVIDIA_TYPES = LazyRegex(r"(?:p[2-6]\w*|g(?:[3-7]\w*))\.|Standard_N[CDVG]|(?:a2|a3|a4|g2)-|\w*gpu", re.IGNORECASE)
_PLAIN_TYPES = LazyRegex(
    r"(?:[tmcr]\d[\w-]*|x\d\w*|i\d\w*|d\d\w*|z1d|hpc\w*|dl[12]\w*|vt1)\.|(?:e2|n1|n2d?|c2d?|c3d?|t2d|m1)-"
    r"|Standard_[ABDEFLM]"
)


def cloud_instance(text: str) -> Iterator[CloudInstance]:
    """The instance type that a node's label, a template or a metadata answer names.

    >>> fact = next(cloud_instance("node.kubernetes.io/instance-type=inf2.xlarge"))
    >>> fact.type, fact.nvidia, fact.accelerator
    ('inf2.xlarge', False, 'AWS Neuron')
    >>> next(cloud_instance("beta.kubernetes.io/instance-type=p4d.24xlarge")).nvidia
    True
    """
    found = _INSTANCE.search(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    name = found["type"]
    if _NEURON.match(name):
        yield CloudInstance(type=name, nvidia=False, accelerator="AWS Neuron")
    elif name.startswith("g4ad"):
        yield CloudInstance(type=name, nvidia=False, accelerator="AMD GPU")
    elif _NVIDIA_TYPES.match(name):
        yield CloudInstance(type=name, nvidia=True)
    elif _PLAIN_TYPES.match(name):  # n1 of Google Cloud may carry attached GPUs
        yield CloudInstance(type=name, nvidia=None if name.startswith("n1-") else False)
    else:
        yield CloudInstance(type=name)


_ENGINES = ("docker", "podman", "nerdctl", "singularity", "apptainer", "enroot", "ctr", "udocker", "shifter")
FORMATS = (
    Format("nvidia-container-cli", ("nvidia-container-cli: ", "nvidia-container-cli.real: "), container_cli, lines=1),
    Format(
        "container command line",
        (
            *(f"{engine} {verb}" for engine in _ENGINES for verb in ("run ", "create ", "exec ", "start ", "shell ")),
            "docker container run ",
            "podman container run ",
        ),
        run_command,
        lines=30,
    ),
    Format("container prompt", ("root@", "jovyan@"), container_prompt, lines=1),
    Format(
        "container",
        (
            "kubectl ",
            ":/kubepods",
            ":/docker/",
            ":/libpod",
            ":/lxc",
            "/.dockerenv",
            "/run/.containerenv",
            "lxc.cgroup",
            "lxc.mount",
        ),
        container_sign,
        lines=1,
    ),
    Format(
        "docker info",
        ("Server Version:", "Default Runtime:", "Runtimes:", "Docker Root Dir:", "Cgroup Driver:"),
        docker_info,
        lines=90,
    ),
    Format("docker version", ("Server: Docker Desktop",), docker_server, lines=1),
    Format("docker context ls", ("DOCKER ENDPOINT",), docker_contexts, lines=30),
    Format(
        "container versions",
        (
            "Docker version ",
            "podman version ",
            "NVIDIA Container Runtime",
            "NVIDIA Container Toolkit CLI version",
            "cli-version: ",
            "nvidia-container-toolkit",
            "libnvidia-container",
            "nvidia-docker2",
        ),
        engine_version,
        lines=1,
    ),
    Format("podman info", ("rootless: ", '"rootless": '), podman_info, lines=1),
    Format("toolkit configuration", _TOOLKIT_KEYS, toolkit_setting, lines=1),
    Format("toolkit configuration, runtime", ("[nvidia-container-runtime]",), toolkit_mode, lines=25),
    Format(
        "containerd configuration",
        (".containerd.runtimes.", "default_runtime_name", "disabled_plugins"),
        containerd_config,
        lines=300,
    ),
    Format("daemon.json", ('"runtimes"', '"default-runtime"', '"exec-opts"'), daemon_json, lines=120, back=12),
    Format("Dockerfile", ("FROM ",), build_file, lines=300),
    Format("compose file", ("services:",), compose_file, lines=400),
    Format("docker inspect", ('"HostConfig": {',), inspected, lines=200),
    Format("CDI specification", ("cdiVersion",), cdi_spec, lines=600),
    Format("nvidia-ctk cdi list", (" CDI devices",), cdi_list, lines=1),
    Format("cgroup device list", ("c 195:",), cgroup_device, lines=1),
    Format(
        "instance type",
        ("instance-type", "instance_type", "InstanceType", "vmSize", "machine-type"),
        cloud_instance,
        lines=1,
    ),
)
