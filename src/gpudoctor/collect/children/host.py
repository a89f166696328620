"""What the machine and this process are allowed: printed as the usual commands would print it, without running them."""

from __future__ import annotations

import os
import resource
import stat
import sys

# What decides how CUDA, NCCL and the frameworks behave; nothing else of the environment is read.
PREFIXES = (
    "CUDA_", "NVIDIA_", "NCCL_", "TORCH_", "PYTORCH_", "TF_", "XLA_", "JAX_", "HSA_", "UCX_", "OMPI_", "GLOO_", "SLURM_JOB",
    "SLURM_GPUS", "SLURM_STEP_GPUS", "KUBERNETES_SERVICE_HOST", "container",
)  # fmt: skip
NAMES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "CONDA_PREFIX", "VIRTUAL_ENV", "MASTER_ADDR", "OMP_NUM_THREADS")
SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")

_LIMITS = (
    ("core file size          (blocks, -c)", resource.RLIMIT_CORE, 512),
    ("max locked memory       (kbytes, -l)", resource.RLIMIT_MEMLOCK, 1024),
    ("open files                      (-n)", resource.RLIMIT_NOFILE, 1),
    ("stack size              (kbytes, -s)", resource.RLIMIT_STACK, 1024),
    ("max user processes              (-u)", resource.RLIMIT_NPROC, 1),
    ("virtual memory          (kbytes, -v)", resource.RLIMIT_AS, 1024),
)


def environment() -> None:
    """`env`, for the variables that matter here."""
    for name, value in sorted(os.environ.items()):
        if (name.startswith(PREFIXES) or name in NAMES) and not any(word in name for word in SECRET):
            print(f"{name}={value}")


def limits() -> None:
    """`ulimit -a`."""
    for label, number, unit in _LIMITS:
        soft, _ = resource.getrlimit(number)
        print(f"{label} {'unlimited' if soft == resource.RLIM_INFINITY else soft // unit}")


def file_systems() -> None:
    """`df -k` for the file systems that GPU work fills."""
    print("Filesystem     1K-blocks      Used Available Use% Mounted on")
    seen = set()
    for path in ("/", "/dev/shm", "/tmp", "/var", "/var/lib/docker", "/home", os.getcwd()):  # noqa: S108, PTH109
        try:
            device = os.stat(path).st_dev  # noqa: PTH116
            found = os.statvfs(path)
        except OSError:
            continue
        if device in seen or not found.f_blocks:
            continue
        seen.add(device)
        size, free, available = (n * found.f_frsize // 1024 for n in (found.f_blocks, found.f_bfree, found.f_bavail))
        used = size - free
        percent = -(-100 * used // max(1, used + available))
        name = "shm" if path == "/dev/shm" else "fs"  # noqa: S108
        print(f"{name:<14} {size:>9} {used:>9} {available:>9} {percent:>3}% {path}")


def device_nodes() -> None:
    """`ls -l` of the NVIDIA and RDMA device files."""
    for folder, prefix in (("/dev", "nvidia"), ("/dev/nvidia-caps", ""), ("/dev/infiniband", ""), ("/dev/dri", "")):
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}"
            try:
                status = os.stat(path)  # noqa: PTH116
            except OSError:
                continue
            if name.startswith(prefix) and stat.S_ISCHR(status.st_mode):
                major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
                mode = stat.filemode(status.st_mode)
                print(
                    f"{mode} 1 {_owner(status.st_uid)} {_group(status.st_gid)} {major}, {minor:>3} Jan  1 00:00 {path}"
                )


def _owner(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


PARTS = {"environment": environment, "limits": limits, "file_systems": file_systems, "device_nodes": device_nodes}


def main() -> None:
    """Print all parts; under another root they would describe the wrong machine."""
    root = sys.argv[sys.argv.index("--root") + 1] if "--root" in sys.argv else "/"
    if root != "/":
        return
    system = os.uname()
    print(f"{system.sysname} {system.nodename} {system.release} {system.version} {system.machine} GNU/Linux")
    for name, part in PARTS.items():
        print(f"\n# {name}")
        part()


if __name__ == "__main__":
    main()
