"""What a requirements file, a notebook or a set-up guide asks to install, and whether that can still work on a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpudoctor.preflight.model import Remark

_PIP = re.compile(
    r"\bpip3?(?:\.\d+)?\s+install\b(?P<rest>[^;&|#\n]*)|\bconda\s+install\b(?P<conda>[^;&|#\n]*)|\buv\s+(?:pip\s+install|add)\b(?P<uv>[^;&|#\n]*)"
)
_SPEC = re.compile(
    r"[\"']?(?P<name>[A-Za-z][A-Za-z0-9._-]*)(?P<extra>\[[^\]]*\])?\s*(?:(?P<op>==|~=|>=|<=|<|>|=)\s*(?P<version>[0-9][\w.+*-]*))?"
)
_OPTION_WITH_VALUE = (
    "-r",
    "-c",
    "-i",
    "-f",
    "-e",
    "-n",
    "-t",
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--requirement",
    "--channel",
    "--target",
    "--name",
    "--prefix",
)


def wanted(text: str, *, plain: bool) -> Iterator[tuple[str, str, str | None, int]]:
    """Yield (name, extra, pinned version, line). plain: each line is a requirement; else only install commands count.

    >>> list(wanted("sudo pip3 install -U tensorflow-gpu==2.4.0 numpy", plain=False))
    [('tensorflow-gpu', '', '2.4.0', 1), ('numpy', '', None, 1)]
    """
    for number, line in enumerate(text.split("\n"), start=1):
        commands = [next((part for part in found.groups() if part), "") for found in _PIP.finditer(line)]
        if commands:
            for command in commands:
                yield from ((*spec, number) for spec in _words(command))
        elif plain:
            stripped = line.split("#")[0].strip().lstrip("-").strip()
            if stripped and not stripped.endswith(":") and (found := _SPEC.match(stripped)):
                yield (*_spec(found), number)


def _words(command: str) -> Iterator[tuple[str, str, str | None]]:
    skip = False
    for word in command.split():
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in _OPTION_WITH_VALUE
        elif found := _SPEC.match(word):
            yield _spec(found)


def _spec(found: re.Match[str]) -> tuple[str, str, str | None]:
    name = found["name"].lower().replace("_", "-").rstrip(".-")
    pinned = found["version"] if found["op"] in ("==", "=") else None
    return name, (found["extra"] or "").strip("[]"), pinned


def check_requirements(
    name: str, specs: Iterable[tuple[str, str, str | None, int]], python: str | None = None
) -> Iterator[Remark]:
    """Say what no longer installs, what brings no GPU support, and what to write instead.

    >>> next(check_requirements("requirements.txt", [("tensorflow-gpu", "", None, 3)])).answer
    'no'
    """
    for package, extra, version, line in specs:
        where = f"{name}:{line}"
        number = _number(version)
        if package in ("tensorflow-gpu", "tf-nightly-gpu"):
            if number is None or number >= (2, 12):
                text = (
                    "tensorflow-gpu no longer installs: its last entry (2.12) only stops with a message. Since TensorFlow 2.1 the package "
                    "tensorflow holds the GPU support itself."
                )
            else:
                text = (
                    f"tensorflow-gpu {version} has been retired; it installs only with "
                    f"{'Python 3.7 or older' if number < (2, 2) else 'Python 3.10 or older'} and needs the CUDA of its time on the machine."
                )
            too_new = number is None or number >= (2, 12) or _newer(python, (3, 7) if number < (2, 2) else (3, 10))
            yield Remark(
                "no" if too_new else "advice",
                "requirements",
                text,
                where,
                ("pip install 'tensorflow[and-cuda]'   # 2.14 or newer, brings CUDA and cuDNN along",),
            )
        elif package in ("tensorflow", "tensorflow-cpu") and (package.endswith("cpu") or (number and number < (2, 0))):
            if package.endswith("cpu"):
                yield Remark(
                    "no",
                    "requirements",
                    "tensorflow-cpu has no GPU support.",
                    where,
                    ("pip install 'tensorflow[and-cuda]'",),
                )
            elif number and number < (1, 15):
                yield Remark(
                    "no",
                    "requirements",
                    f"tensorflow {version} has no GPU support in this package and installs only with Python 3.7 or older.",
                    where,
                    ("pip install 'tensorflow[and-cuda]'   # and port the program: tf_upgrade_v2 helps",),
                )
        elif package == "tensorflow" and "and-cuda" not in extra and (number is None or number >= (2, 14)):
            yield Remark(
                "advice",
                "requirements",
                "tensorflow without the extra and-cuda brings no CUDA libraries; it then needs fitting ones on the machine.",
                where,
                ("pip install 'tensorflow[and-cuda]'",),
            )
        elif package == "torch" and version and "+cpu" in version:
            yield Remark(
                "no",
                "requirements",
                f"torch {version} is a build without CUDA.",
                where,
                ("pip install torch   # the default Linux build has CUDA",),
            )
        elif package == "cpuonly":
            yield Remark(
                "no",
                "requirements",
                "cpuonly makes conda take PyTorch without CUDA.",
                where,
                ("# leave cpuonly out, name pytorch-cuda instead",),
            )
        elif package == "pytorch" and "conda" not in name and name.endswith(".txt"):
            yield Remark(
                "no",
                "requirements",
                "On PyPI the package is called torch; pytorch only stops with a message.",
                where,
                ("pip install torch",),
            )
        elif package == "jax" and not any(part.startswith("cuda") for part in extra.split(",")):
            yield Remark(
                "advice",
                "requirements",
                "jax without an extra is the CPU build.",
                where,
                ("pip install 'jax[cuda12]'",),
            )
        elif package == "onnxruntime":
            yield Remark(
                "advice", "requirements", "onnxruntime is the CPU build.", where, ("pip install onnxruntime-gpu",)
            )
        elif package == "cupy":
            yield Remark(
                "advice",
                "requirements",
                "cupy is built from source and needs nvcc; the wheels are named by CUDA version.",
                where,
                ("pip install cupy-cuda12x",),
            )


def _number(version: str | None) -> tuple[int, ...] | None:
    digits = re.findall(r"\d+", (version or "").split("+")[0])
    return tuple(int(part) for part in digits[:2]) if digits else None


def _newer(python: str | None, last: tuple[int, int]) -> bool:
    number = _number(python)
    return number is not None and number > last
