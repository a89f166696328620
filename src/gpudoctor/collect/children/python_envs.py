"""GPU packages of the Python environments on this machine, read from their metadata without importing anything."""

from __future__ import annotations

import glob
import os
import re
import sys
from pathlib import Path

PREFIXES = (
    "torch", "tensorflow", "tf-", "keras", "jax", "nvidia-", "cupy", "vllm", "onnxruntime", "bitsandbytes", "flash-attn", "xformers",
    "triton", "deepspeed", "apex", "transformer-engine", "accelerate", "sglang", "numba", "cuda-", "cuml", "cudf", "rmm", "llama-cpp",
    "ctranslate2", "tensorrt", "numpy", "horovod", "mpi4py", "lightning", "transformers", "pynvml",
)  # fmt: skip
_PLACES = (
    "/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages", "/usr/local/lib/python3*/dist-packages",
    "/usr/local/lib/python3*/site-packages", "/opt/*/lib/python3*/site-packages", "/opt/conda/envs/*/lib/python3*/site-packages",
    "/root/.local/lib/python3*/site-packages", "/home/*/.local/lib/python3*/site-packages",
    "/home/*/*conda*/envs/*/lib/python3*/site-packages", "/home/*/*conda*/lib/python3*/site-packages",
    "/root/*conda*/lib/python3*/site-packages", "/root/*conda*/envs/*/lib/python3*/site-packages",
)  # fmt: skip
MAX_ENVIRONMENTS = 40


def environments(root: str) -> list[Path]:
    """Return the site-packages folders below the root, the active environment's first."""
    found: list[str] = []
    if root == "/":
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if prefix := os.environ.get(variable):
                found += sorted(glob.glob(f"{prefix}/lib/python3*/site-packages"))
        found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    for place in _PLACES:
        found += sorted(glob.glob(root.rstrip("/") + place))
    return [Path(path) for path in dict.fromkeys(os.path.realpath(path) for path in found)][:MAX_ENVIRONMENTS]


def main() -> None:
    """Print `pip list` for each environment that holds one of the packages."""
    root = sys.argv[sys.argv.index("--root") + 1] if "--root" in sys.argv else "/"
    for folder in environments(root):
        try:
            names = [entry.name for entry in folder.iterdir()]
        except OSError:
            continue
        rows = sorted({row for row in map(_row, names) if row is not None})
        if rows:
            print(f"# environment {folder}")
            print(f"{'Package':<32} Version\n{'-' * 32} {'-' * 16}")
            for name, version in rows:
                print(f"{name:<32} {version}")
            print()


def _row(folder: str) -> tuple[str, str] | None:
    """Read `torch-2.5.1+cu121.dist-info`: the folder's name says it all, its files need not be opened."""
    found = re.fullmatch(r"(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info", folder)
    if found is None:
        return None
    name = found["name"].lower().replace("_", "-")
    return (name, found["version"]) if name.startswith(PREFIXES) else None


if __name__ == "__main__":
    main()
