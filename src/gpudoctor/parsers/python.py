"""Formats of Python: errors, package lists, pip's complaints, and what frameworks say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.framework import (
    FrameworkBuild,
    Python,
    PythonError,
    PythonPackage,
    RefusedRelease,
    VersionConflict,
)
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_ERROR = LazyRegex(
    r"(?:^|[\s|:\])>])(?P<module>(?:[A-Za-z_]\w*\.){0,8})(?P<type>[A-Z]\w{0,60}(?:Error|Exception|Interrupt))(?:: (?P<message>.*)|:?\s*$)"
)
_RANK = LazyRegex(r"\[?\brank ?(?P<rank>\d{1,5})\b", re.IGNORECASE)
_MORE = 8  # lines that a message may go on for


def python_error(text: str) -> Iterator[Fact]:
    """The last line of a traceback, or any `XError: message`, with the lines that the message goes on for.

    >>> fact = next(python_error("[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory."))
    >>> fact.type, fact.module, fact.rank, fact.message
    ('OutOfMemoryError', 'torch.cuda', 3, 'CUDA out of memory.')
    """
    lines = text.split("\n")
    found = _ERROR.search(lines[0][:4000])
    if not found:
        raise NotThisFormat
    message = [found["message"] or ""]
    for line in lines[1 : _MORE + 1]:
        if not line.strip() or _ERROR.search(line[:4000]) or line.lstrip().startswith(("Traceback", "File ", "During")):
            break
        message.append(line.strip())
    rank = _RANK.search(lines[0][: found.start() + 1])
    yield PythonError(
        type=found["type"],
        module=found["module"].rstrip(".") or None,
        message=" ".join(message)[:1500],
        rank=int(rank["rank"]) if rank else None,
    )


_NAMES = (
    r"torch|pytorch|torchvision|torchaudio|torchtext|tensorflow(?:[-_](?:gpu|cpu|intel|macos|rocm))?|tf[-_]nightly(?:[-_]gpu)?|keras|"
    r"jax|jaxlib|jax[-_]cuda\d+[-_](?:plugin|pjrt)|nvidia[-_](?!smi|driver|container|docker|dkms|kernel|utils|modprobe|settings|persist|fabric|firmware|open|compute)[a-z0-9_-]+|cupy(?:[-_]cuda[\w.]+)?|flash[-_]attn(?:[-_]3)?|xformers|"
    r"vllm(?:[-_]flash[-_]attn)?|sglang|sgl[-_]kernel|flashinfer[\w-]*|onnxruntime(?:[-_]gpu|[-_]directml)?|bitsandbytes|apex|deepspeed|"
    r"triton|numba(?:[-_]cuda)?|ctranslate2|tensorrt[\w-]*|transformers|accelerate|transformer[-_]engine[\w-]*|auto[-_]gptq|"
    r"autoawq[\w-]*|gptqmodel|llama[-_]cpp[-_]python|mmcv(?:-full)?|detectron2|pytorch3d|torch[-_](?:scatter|sparse|cluster|spline[-_]conv|geometric)|"
    r"dgl|xgboost|lightgbm|cudatoolkit|cuda-toolkit|pytorch-cuda|pytorch-mutex|cudnn|causal[-_]conv1d|mamba[-_]ssm|faster[-_]whisper|minference|"
    r"lightning|pytorch[-_]lightning|numpy|cudf[\w-]*|cuml[\w-]*|rmm[\w-]*"
)
_VERSION = r"\d+(?:\.\d+)*(?:\.?(?:a|b|rc|dev|post)\d*)*(?:\.dev\d+)?"
_LOCAL = r"(?:\+(?P<local>[\w.]+))?"
_LISTED = LazyRegex(
    rf"^\s*(?:\[(?:pip3?|conda)\] |- |\d+[.)] )?[\"']?(?P<name>{_NAMES})(?:\[[\w,-]+\])?(?:\s*={{2,3}}\s*|={{1}}|\s+(?=v?\d+\.)|\s*:\s*)v?(?P<version>{_VERSION}){_LOCAL}"
    r"(?:[=\s]+(?P<build>[\w.]+))?(?:\s+(?P<channel>[\w./:-]+))?\s*(?:;.*|#.*|\[.*)?[\"']?,?\s*$",
    re.IGNORECASE,
)
_SAID = LazyRegex(
    rf"\b(?P<name>PyTorch|TensorFlow|tf|{_NAMES})(?:\.?_*version_*|\s+version)\s*(?:is|[:=])*\s*[\"'(]*v?(?P<version>{_VERSION}){_LOCAL}",
    re.IGNORECASE,
)
_ASKED = LazyRegex(r"(?P<name>torch|tf|tensorflow|jax|jaxlib)\.__version__\)?\s*[\"']?\s*$")
_ANSWER = LazyRegex(rf"^[\"']?(?P<version>{_VERSION}){_LOCAL}[\"']?\s*$")
_SHOWN = LazyRegex(rf"^Name: (?P<name>{_NAMES})\s*$", re.IGNORECASE)
_SHOWN_VERSION = LazyRegex(rf"^Version: (?P<version>{_VERSION}){_LOCAL}")
_EXISTING = LazyRegex(
    rf"Found existing installation: (?P<name>{_NAMES}) (?P<version>{_VERSION}){_LOCAL}", re.IGNORECASE
)
_SATISFIED = LazyRegex(
    rf"Requirement already satisfied: (?P<name>{_NAMES})\b.*\((?P<version>{_VERSION}){_LOCAL}\)\s*$", re.IGNORECASE
)
_WHEEL = LazyRegex(
    rf"(?:^|[\s/])(?P<name>{_NAMES})-(?P<version>{_VERSION})(?:(?:\+|%2B)(?P<local>[\w.]+))?-(?:cp|py)\d+\S*\.whl",
    re.IGNORECASE,
)
_INSTALLED = LazyRegex(rf"(?:^|\s)(?P<name>{_NAMES})-(?P<version>{_VERSION}){_LOCAL}(?=\s|$)", re.IGNORECASE)
_YOU_HAVE = LazyRegex(rf"PyTorch {_VERSION}\S* with CUDA \S+ \(you have (?P<version>{_VERSION}){_LOCAL}\)")
# What a line must hold, and its form: the sign spares other lines the expression.
_LINES = (
    ("", _LISTED),
    ("xisting installation", _EXISTING),
    ("equirement already satisfied", _SATISFIED),
    ("ersion", _SAID),
    (".whl", _WHEEL),
)
_CONDA_CUDA = LazyRegex(r"cuda(?P<major>\d+)\.?(?P<minor>\d)")
_CPU_BUILD = LazyRegex(r"(?:^|_)cpu(?:_|$)")
_PLAIN = {"tf": "tensorflow"}


def _package(found: re.Match[str], name: str | None = None) -> PythonPackage:
    groups = found.groupdict()
    plain = re.sub(r"[-_.]+", "-", (name or groups["name"]).lower())
    conda_pytorch = plain == "pytorch"
    plain = "torch" if conda_pytorch else _PLAIN.get(plain, plain)
    local, build = groups.get("local"), groups.get("build")
    if build and local is None:
        if cuda := _CONDA_CUDA.search(build):
            local = f"cu{cuda['major']}{cuda['minor']}"
        elif _CPU_BUILD.search(build) or (plain == "tensorflow" and build.startswith(("mkl", "eigen"))):
            local = "cpu"
    channel = groups.get("channel") or ("conda" if build else None)
    return PythonPackage(name=plain, version=groups["version"], local=local, channel=channel)


def python_packages(text: str) -> Iterator[Fact]:
    """Packages in pip list, pip freeze, pip show, conda list, requirements, pip's own messages, and `x.__version__`.

    >>> [(f.name, f.version, f.local) for f in python_packages("torch                     2.11.0+cu130")]
    [('torch', '2.11.0', 'cu130')]
    >>> [(f.name, f.version, f.local) for f in python_packages("[conda] pytorch  2.1.2  py3.10_cuda12.1_cudnn8.9.2_0  pytorch")]
    [('torch', '2.1.2', 'cu121')]
    >>> [(f.name, f.version) for f in python_packages("Successfully installed nvidia-cudnn-cu12-9.5.1.17 torch-2.7.0")]
    [('nvidia-cudnn-cu12', '9.5.1.17'), ('torch', '2.7.0')]
    """
    line, _, rest = text.partition("\n")
    line = line[:6000]
    if line.lstrip().startswith("File "):
        raise NotThisFormat
    following = rest.partition("\n")[0]
    if "uccessfully installed" in line:
        for installed in _INSTALLED.finditer(line):
            yield _package(installed)
        return
    if (found := _SHOWN.match(line)) and (version := _SHOWN_VERSION.match(following)):
        yield _package(version, found["name"])
        return
    for question, answer in printed(line, following):
        if (asked := _ASKED.search(question)) and (version := _ANSWER.match(answer)):
            yield _package(version, asked["name"])
            return
    if found := _YOU_HAVE.search(line):
        yield _package(found, "torch")
        return
    for sign, pattern in _LINES:
        if sign in line and (found := pattern.search(line)) and not _about_others(line):
            yield _package(found)
            return
    raise NotThisFormat


def _about_others(line: str) -> bool:
    """Tell whether the line speaks of a version that is not here: a requirement, a search, another build."""
    return any(
        words in line for words in ("requires", "was built", "compiled", "No matching", "satisfies the requirement")
    )


_PRINT = LazyRegex(r"\bprint\((?P<arguments>.+)\)[\"'; ]*$")


def printed(line: str, answer: str) -> list[tuple[str, str]]:
    """Pair each thing that a line asks for with its answer on the following line; a plain question is one pair.

    >>> printed("python -c 'import torch; print(torch.__version__, torch.cuda.is_available())'", "2.4.1+cu121 False")
    [('torch.__version__', '2.4.1+cu121'), ('torch.cuda.is_available()', 'False')]
    """
    found = _PRINT.search(line)
    questions = _arguments(found["arguments"]) if found else []
    if len(questions) < 2:
        return [(line, answer)]
    answers = answer.split(None, len(questions) - 1)
    return list(zip(questions, answers, strict=True)) if len(answers) == len(questions) else []


def _arguments(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


_CONFLICT_SIGNS = LazyRegex(r", but you(?:'ll)? have ")
_NEEDS = LazyRegex(
    r"(?P<part>[\w.-]{1,80}) (?P<version>\d\S{0,40}) (?:requires|has requirement) (?P<other>[A-Za-z][\w.-]{0,80})(?P<needed>.*)$"
)
_HAS = LazyRegex(r"[\w.-]{1,80} (?P<found>\d\S{0,40}?)(?: which is incompatible)?\.?\s*$")


def pip_conflict(text: str) -> Iterator[Fact]:
    """A line of pip's resolver (or of pip check) about two packages that don't go together.

    >>> fact = next(pip_conflict("torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible."))
    >>> fact.part, fact.other, fact.needed, fact.found
    ('torchvision', 'torch', '==2.0.1', '2.1.0')
    """
    line = text.partition("\n")[0][:2000]
    signs = _CONFLICT_SIGNS.search(line)
    needs = _NEEDS.search(line[: signs.start()]) if signs else None
    has = _HAS.match(line[signs.end() :]) if signs else None
    if not needs or not has:
        raise NotThisFormat
    needed = needs["needed"].partition(";")[0].strip()
    yield VersionConflict(
        topic="dependency",
        part=needs["part"].lower(),
        version=needs["version"],
        other=needs["other"].lower(),
        needed=needed,
        found=has["found"],
        advice=f"Install {needs['other']}{needed}, or a {needs['part']} that fits {has['found']}.",
    )


_REFUSED = LazyRegex(
    rf"satisfies the requirement (?P<name>{_NAMES})(?:\[[\w,-]*\])?(?:[=~<>!]=?=?(?P<version>{_VERSION}){_LOCAL})?[^\n(]{{0,60}}"
    r"\(from versions: (?P<offered>[^)]*)\)",
    re.IGNORECASE,
)


def pip_refusal(text: str) -> Iterator[Fact]:
    """pip's line about a requirement for which it found no file.

    >>> line = "ERROR: Could not find a version that satisfies the requirement torch==2.3.1 (from versions: 2.5.0, 2.5.1)"
    >>> fact = next(pip_refusal(line)); fact.package, fact.version, fact.offered
    ('torch', '2.3.1', '2.5.0, 2.5.1')
    """
    found = _REFUSED.search(text.partition("\n")[0][:6000])
    if not found:
        raise NotThisFormat
    yield RefusedRelease(
        package=re.sub(r"[-_.]+", "-", found["name"].lower()),
        version=found["version"],
        local=found["local"],
        offered=found["offered"],
    )


_PYTHON = LazyRegex(r"^\s*(?:\w+ )?(?:Python|python)(?: version)?:?\s+(?P<version>[23]\.\d{1,2}(?:\.\d+)?)\b")


def python_version(text: str) -> Iterator[Fact]:
    """The answer of `python -V`, or the line of an environment report.

    >>> next(python_version("Python 3.12.3")).version, next(python_version("Python version: 3.10.12 (main)")).version
    ('3.12.3', '3.10.12')
    """
    found = _PYTHON.match(text.partition("\n")[0])
    if not found:
        raise NotThisFormat
    yield Python(version=found["version"])


_ENV_KEYS = {
    "PyTorch version": "version",
    "CUDA used to build PyTorch": "cuda",
    "Is CUDA available": "sees_gpu",
}


def collect_env(text: str) -> Iterator[Fact]:
    """The report of `python -m torch.utils.collect_env`: the build; its other lines have parsers of their own.

    >>> sample = "PyTorch version: 2.1.0+cpu\\nIs debug build: False\\nCUDA used to build PyTorch: Could not collect\\n"
    >>> fact = next(collect_env(sample + "Is CUDA available: False"))
    >>> fact.version, fact.cpu_only, fact.sees_gpu
    ('2.1.0', True, False)
    """
    lines = text.split("\n")
    values: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        key, colon, value = line.partition(":")
        field = _ENV_KEYS.get(key.strip())
        if colon and field and field not in values:
            values[field] = (number, value.strip())
        elif number and key.strip() == "PyTorch version":
            break
    if "cuda" not in values and "sees_gpu" not in values:
        raise NotThisFormat
    version, _, local = values.get("version", (0, ""))[1].partition("+")
    cuda = values.get("cuda", (0, ""))[1]
    has_cuda = bool(re.match(r"\d+\.\d+", cuda))
    rocm = "ROCM used to build PyTorch" in text and bool(re.search(r"ROCM used to build PyTorch: \d", text))
    sees = values.get("sees_gpu", (0, ""))[1]
    yield FrameworkBuild(
        name="torch",
        version=version or None,
        cuda=cuda if has_cuda else None,
        cuda_major=int(cuda.partition(".")[0]) if has_cuda else None,
        cpu_only=None if rocm or not (version or cuda) else (local.startswith("cpu") or (bool(cuda) and not has_cuda)),
        sees_gpu={"True": True, "False": False}.get(sees),
        at=values.get("cuda", values.get("version", (0, "")))[0],
    )


_STATEMENTS: tuple[tuple[str, LazyRegex], ...] = (
    ("tensorflow", LazyRegex(r"(?:TensorFlow|tf)\b[^\n]{0,40}\bbuilt[ _]with[ _](?:CUDA|GPU)\W*(?:support)?\W*(?P<cuda>True|False)", re.IGNORECASE)),
    ("tensorflow", LazyRegex(r"is_built_with_cuda\b[^\n]{0,12}?\W(?P<cuda>True|False)")),
    ("torch", LazyRegex(r"torch\.version\.cuda\)?\W+(?P<none>None)|torch\.version\.cuda\)?\W+(?P<version>\d+\.\d+)")),
    ("torch", LazyRegex(r"torch\.cuda\.is_available\b\W*(?:is )?\W*(?P<sees>True|False)")),
    ("torch", LazyRegex(r"(?:PyTorch|torch)[^\n]{0,20}\bCUDA (?:is )?available\W+(?P<sees>True|False)", re.IGNORECASE)),
    ("tensorflow", LazyRegex(r"(?:Is GPU available\W|Num GPUs Available\W|list_physical_devices\('GPU'\))\W{0,6}(?P<none_seen>\[\]|0\b)")),
)  # fmt: skip
_ON_NEXT_LINE = LazyRegex(
    r"(?P<question>torch\.version\.cuda|is_built_with_cuda\(\)|torch\.cuda\.is_available\(\)|list_physical_devices\(['\"]GPU['\"]\))\)?[\"';]*\s*$"
)


_PLAIN_VERSION = LazyRegex(r"\d{1,2}\.\d")


def _answered(line: str, answer: str) -> str:
    """Put a question and the answer on the following line together."""
    found = _ON_NEXT_LINE.search(line)
    if not found:
        return line
    if line.startswith(">>> torch.version.cuda") and (not answer or answer.startswith(">>>")):
        answer = "None"  # which a Python session doesn't print
    if answer in ("True", "False", "None", "[]") or answer.startswith(("'", '"')) or _PLAIN_VERSION.fullmatch(answer):
        return f"{found['question']}: {answer}"
    return line


def framework_statement(text: str) -> Iterator[Fact]:
    """What a framework answers about its own build, on the same line or the next.

    >>> next(framework_statement("Is TensorFlow built with CUDA?: False")).cpu_only
    True
    >>> next(framework_statement(">>> torch.cuda.is_available()\\nFalse")).sees_gpu
    False
    """
    line, _, rest = text.partition("\n")
    builds = [
        build
        for question, answer in printed(line[:2000], rest.partition("\n")[0].strip())
        if (build := _stated(_answered(question, answer)))
    ]
    if not builds:
        raise NotThisFormat
    yield from builds


def _stated(line: str) -> FrameworkBuild | None:
    for name, pattern in _STATEMENTS:
        if not (found := pattern.search(line)):
            continue
        groups = found.groupdict()
        if groups.get("cuda"):
            return FrameworkBuild(name=name, cpu_only=groups["cuda"].lower() == "false")
        if groups.get("none"):
            return FrameworkBuild(name=name, cpu_only=True)
        if groups.get("version"):
            version = groups["version"]
            return FrameworkBuild(name=name, cuda=version, cuda_major=int(version.partition(".")[0]))
        return FrameworkBuild(
            name=name, sees_gpu=groups.get("sees", "").lower() == "true" if groups.get("sees") else False
        )
    return None


# Names as they stand in lists and messages, not in the paths of a traceback, of which a log has thousands.
_BEFORE_VERSION = (" ", "=", "-", "\t", ":")
_COMMON = (
    "torch",
    "jax",
    "triton",
    "transformers",
    "accelerate",
    "numpy",
    "vllm",
    "numba",
    "deepspeed",
    "xformers",
    "keras",
    "lightning",
    "apex",
)
_PACKAGE_WORDS = (
    *(name + sign for name in _COMMON for sign in _BEFORE_VERSION),
    "torch.__version", "jax.__version", "PyTorch version", "torchvision", "torchaudio", "torchtext", "torch_", "tensorflow ", "tensorflow=", "tensorflow-",
    "tensorflow:", "tensorflow.__version", "tensorflow version", "tensorflow_", "tf.__version", "tf_nightly", "tf-nightly", "tf version",
    "jaxlib", "jax_cuda", "nvidia-", "nvidia_c", "nvidia_n", "cupy", "flash-attn", "flash_attn", "sglang", "sgl-kernel", "flashinfer-", "flashinfer=",
    "onnxruntime ", "onnxruntime=", "onnxruntime-", "onnxruntime_gpu", "bitsandbytes ", "bitsandbytes=", "bitsandbytes-", "ctranslate2", "tensorrt ",
    "tensorrt=", "tensorrt-", "transformer-engine", "transformer_engine ", "transformer_engine=", "auto-gptq", "auto_gptq", "autoawq", "gptqmodel",
    "llama_cpp_python", "llama-cpp-python", "mmcv ", "mmcv=", "mmcv-", "detectron2 ", "detectron2=", "dgl ", "dgl=", "xgboost ", "xgboost=", "lightgbm ",
    "lightgbm=", "cudatoolkit", "cuda-toolkit", "cudnn ", "cudnn=", "causal-conv1d", "causal_conv1d", "mamba-ssm", "mamba_ssm", "faster-whisper", "minference",
    "pytorch-cuda", "pytorch3d", "cudf-", "cuml-", "rmm-",
)  # fmt: skip

FORMATS = (
    Format("Python error", ("Error: ", "Exception: ", "Error:\n"), python_error, lines=_MORE + 2, fold=True),
    Format("Python packages", _PACKAGE_WORDS, python_packages, lines=2, fold=True),
    Format("pip conflict", ("but you have ", "but you'll have "), pip_conflict, lines=1, fold=True),
    Format("pip refusal", ("satisfies the requirement ",), pip_refusal, lines=1, fold=True),
    Format("Python version", ("python 2.", "python 3.", "python version"), python_version, lines=1, fold=True),
    Format("torch.utils.collect_env", ("PyTorch version: ", "CUDA used to build PyTorch"), collect_env, lines=60, fold=True),
    Format(
        "framework's own words",
        ("built with", "built_with", "torch.version.cuda", "cuda.is_available", "cuda available", "Is GPU available", "Num GPUs Available", "list_physical_devices"),
        framework_statement,
        lines=2, fold=True
    ),
)  # fmt: skip
