"""Formats of CUDA: its error texts, its libraries as the loader finds them, nvcc, and environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.driver import DriverVersion
from gpudoctor.facts.framework import CudaError, CudaToolkit, SharedLibrary, SymbolError
from gpudoctor.facts.host import EnvVar
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

# number: name in the runtime, name in the driver API, the texts that either prints for it
_ERRORS: dict[int, tuple[str, str, tuple[str, ...]]] = {
    2: ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", ()),
    3: ("cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", ("CUDA error: initialization error",)),
    34: ("cudaErrorStubLibrary", "CUDA_ERROR_STUB_LIBRARY", ("CUDA driver is a stub library",)),
    35: (
        "cudaErrorInsufficientDriver",
        "",
        ("driver version is insufficient for CUDA runtime version", "driver on your system is too old"),
    ),
    36: ("cudaErrorCallRequiresNewerDriver", "", ("API call is not supported in the installed CUDA driver",)),
    46: (
        "cudaErrorDevicesUnavailable",
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        ("devices are busy or unavailable", "CUDA-capable device(s) is/are busy or unavailable"),
    ),
    98: ("cudaErrorInvalidDeviceFunction", "", ("invalid device function",)),
    100: ("cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", ("no CUDA-capable device is detected",)),
    101: ("cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", ("invalid device ordinal",)),
    200: ("cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", ("device kernel image is invalid",)),
    209: (
        "cudaErrorNoKernelImageForDevice",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        ("no kernel image is available for execution", "no binary for GPU"),
    ),
    214: ("cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE", ("uncorrectable ECC error encountered",)),
    218: ("cudaErrorInvalidPtx", "CUDA_ERROR_INVALID_PTX", ("a PTX JIT compilation failed",)),
    220: ("cudaErrorNvlinkUncorrectable", "CUDA_ERROR_NVLINK_UNCORRECTABLE", ("uncorrectable NVLink error",)),
    222: (
        "cudaErrorUnsupportedPtxVersion",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        ("PTX was compiled with an unsupported toolchain", "(Unsupported PTX version)"),
    ),
    221: ("cudaErrorJitCompilerNotFound", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", ("PTX JIT compiler library not found",)),
    227: (
        "cudaErrorInsufficientLoaderVersion",
        "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION",
        ("Loader version is insufficient for fatbin",),
    ),
    304: ("cudaErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM", ("OS call failed or operation not supported",)),
    500: ("cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", ("named symbol not found",)),
    700: (
        "cudaErrorIllegalAddress",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        ("illegal memory access was encountered",),
    ),
    702: ("cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", ("the launch timed out and was terminated",)),
    710: ("cudaErrorAssert", "CUDA_ERROR_ASSERT", ("device-side assert triggered",)),
    714: ("cudaErrorHardwareStackError", "CUDA_ERROR_HARDWARE_STACK_ERROR", ("hardware stack error",)),
    715: (
        "cudaErrorIllegalInstruction",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        ("illegal instruction was encountered",),
    ),
    716: ("cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", ("misaligned address",)),
    717: (
        "cudaErrorInvalidAddressSpace",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        ("operation not supported on global/shared address space",),
    ),
    718: ("cudaErrorInvalidPc", "CUDA_ERROR_INVALID_PC", ("invalid program counter",)),
    719: ("cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", ("unspecified launch failure",)),
    800: ("cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED", ()),
    801: ("cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", ()),
    802: ("cudaErrorSystemNotReady", "CUDA_ERROR_SYSTEM_NOT_READY", ("system not yet initialized",)),
    803: (
        "cudaErrorSystemDriverMismatch",
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        ("unsupported display driver / cuda driver combination",),
    ),
    804: (
        "cudaErrorCompatNotSupportedOnDevice",
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        ("forward compatibility was attempted on non supported HW",),
    ),
    919: ("cudaErrorFabricNotReady", "CUDA_ERROR_FABRIC_NOT_READY", ("GPU fabric is not ready within",)),
    999: (
        "cudaErrorUnknown",
        "CUDA_ERROR_UNKNOWN",
        ("CUDA unknown error", "CUDA error: unknown error", "initialize CUDA: unknown error"),
    ),
}
# Numbers of the runtime before CUDA 10.1, when they differed from those of the driver.
_OLD_NUMBERS = {8: 98, 10: 101, 30: 999, 38: 100, 48: 209, 59: 710, 74: 716, 77: 700}
_BY_NAME = {name.lower(): number for number, row in _ERRORS.items() for name in row[:2] if name}
_NAME = LazyRegex(r"\b(?:cudaError[A-Z]\w+|CUDA_ERROR_[A-Z_]+)")
_TEXTS = LazyRegex(
    "|".join(f"(?P<n{number}>{'|'.join(map(re.escape, row[2]))})" for number, row in _ERRORS.items() if row[2]),
    re.IGNORECASE,
)
# A bare number counts only where the text says that it is a CUDA error.
_NUMBER = LazyRegex(
    r"(?:(?i:CUDA)(?: driver| runtime| API)? (?:[Ee]rror|[Ff]ailure|call failed)|cuInit(?:\(0\))?|cudaGetDeviceCount(?:\(\))?|CudaAPIError|"
    r"Cuda(?:Driver|Runtime)?(?: API)? ?[Ee]rror|cuda_status|(?i:CUDA) initialization failure)"
    r"(?: returned| status| code| failed with| with error| = |:){0,4} *[\[(:]?(?:error |code[=:]? ?|#)?(?P<number>\d{1,3})\b(?!\.\d)"
    r"|\bcu(?:da)?[A-Z]\w{2,40}(?:\([^()\n]{0,80}\))?:? (?:has )?(?:err|error|failed|failure|returned|returns)\b"
    r"(?: with| error| err| code| status| result| value| CUDA| #|[ :=(\[]){0,6}(?P<called>\d{1,3})\b(?!\.\d)"
    r"|(?:[Cc]uda driver library|cudart|cuda) (?:failed to get device context|init failure:?) (?P<context>\d{1,3})(?!\d)"
    r"|CUDA error\b[^\n]{0,200}\((?:code|error(?:[ -]code)?):? (?P<coded>\d{1,3})\b"
)
# Programs with texts of their own, such as Blender's Cycles: "Illegal address in cuMemcpyDtoH(...)".
_OWN_TEXTS = {
    "illegal address": 700, "launch failed": 719, "launch exceeded timeout": 702, "unknown error": 999, "ecc error": 214,
    "no binary": 209, "no device": 100, "not initialized": 3,
}  # fmt: skip
_OWN = LazyRegex(
    rf"\b(?P<before>{'|'.join(_OWN_TEXTS)}) in (?:cu[A-Z]\w+\b|(?:CUDA|OptiX) queue )|\bCUDA error at cu[A-Z]\w+: (?P<behind>{'|'.join(_OWN_TEXTS)})\b"
    rf"|\bFailed to (?:create|retain|configure) CUDA context \((?P<context>{'|'.join(_OWN_TEXTS)})\)",
    re.IGNORECASE,
)
_RANK = LazyRegex(r"(?:^\[?|\brank[ :=]?|\[rank)(?P<rank>\d{1,5})(?:\]|: )", re.IGNORECASE)
# Lines of a program's source, which name errors without having one.
_SOURCE_CODE = LazyRegex(r"^\s*(?:case |return \"|#define |//|\* |except |if \(|enum\b)|==\s*(?:cudaError|CUDA_ERROR)")


def cuda_error(text: str) -> Iterator[Fact]:
    """A line in which a program names a CUDA error: by its text, by its name, or by its number.

    >>> fact = next(cuda_error("RuntimeError: CUDA error: an illegal memory access was encountered"))
    >>> fact.number, fact.name
    (700, 'cudaErrorIllegalAddress')
    >>> next(cuda_error("cuInit(0) failed -> CUDA_ERROR_UNKNOWN: unknown error")).number
    999
    >>> next(cuda_error("numba.cuda.cudadrv.driver.CudaAPIError: [34]")).name
    'cudaErrorStubLibrary'
    """
    line = text.partition("\n")[0]
    if _SOURCE_CODE.search(line):
        raise NotThisFormat
    number = None
    if found := _NAME.search(line):
        number = _BY_NAME.get(found[0].lower())
    if number is None and (found := _TEXTS.search(line)):
        number = int(str(found.lastgroup)[1:])
    if number is None and (found := _NUMBER.search(line)):
        number = int(found["number"] or found["called"] or found["context"] or found["coded"])
        number = number if number in _ERRORS else _OLD_NUMBERS.get(number)
    if number is None and (found := _OWN.search(line)):
        number = _OWN_TEXTS[(found["before"] or found["behind"] or found["context"]).lower()]
    if number is None:
        raise NotThisFormat
    rank = _RANK.search(line)
    yield CudaError(
        name=_ERRORS[number][0],
        number=number,
        message=parse_stamp(line).message.strip()[:300],
        rank=int(rank["rank"]) if rank else None,
    )


_LIBRARY = (
    r"(?P<{0}>(?:lib)?(?:cudart|cublasLt|cublas|cufftw?|curand|cusolver(?:Mg)?|cusparseLt|cusparse|nvrtc-builtins|nvrtc|"
    r"nvJitLink|nvToolsExt|nvToolsExt64|cupti|cudnn\w*|nvvm|npp\w+|nvjpeg|cufile|cuda|nvinfer\w*|nvonnxparser|nvcuda|"
    r"custatevec|cutensornet|cutensorMg|cutensor|cudss|nvshmem_host)"
    r"(?:32|64|-\w+)?(?:_\d+)*\.(?:so|dll)(?:\.\d+)*)"
)
_ANY_LIBRARY = _LIBRARY.format("library")
# How programs say that the loader did not find a library; `by` who says it.
_NOT_FOUND: tuple[tuple[str, LazyRegex], ...] = (
    ("tensorflow", LazyRegex(rf"Could not (?:load|dlopen) (?:dynamic )?library '{_ANY_LIBRARY}'; dlerror")),
    ("ldd", LazyRegex(rf"^\s*{_ANY_LIBRARY} => not found")),
    (
        "loader",
        LazyRegex(
            rf"{_ANY_LIBRARY}['\"]?: (?:cannot open|failed to open|(?i:kann die|ne peut ouvrir|impossible d'ouvrir|no se puede abrir|impossibile aprire|não foi possível abrir|не удается открыть|невозможно открыть|无法打开|не удалось открыть|共有オブジェクト))"
        ),
    ),
    ("loader", LazyRegex(rf"Could not (?:load|locate|find) (?:the )?(?:library )?[`'\"]?{_ANY_LIBRARY}")),
    (
        "loader",
        LazyRegex(
            rf"(?:Unable|[Ff]ailed|Cannot|Can't) (?:to )?(?:load|open|dlopen|find)(?: any of)? (?:(?:shared |dynamic )?library )?[{{`'\"(]*{_ANY_LIBRARY}"
        ),
    ),
    (
        "loader",
        LazyRegex(
            rf"(?:Library )?{_ANY_LIBRARY}['\"]? (?:is not found|was not found|not found|cannot be found|could not be found|is missing|which is missing|cannot found)"
        ),
    ),
    ("loader", LazyRegex(rf"module (?:could not be found|not found)[^\n]*{_ANY_LIBRARY}")),
    ("loader", LazyRegex(rf"depends on [`'\"]?{_ANY_LIBRARY}[`'\"]? which is missing")),
    ("loader", LazyRegex(rf"CuPy failed to load {_ANY_LIBRARY}")),
    # Rust's cudarc tries many names and prints the one without system's prefix and ending
    (
        "loader",
        LazyRegex(
            r'Unable to dynamically load the "(?P<library>cu(?:da|dart|blas|blaslt|dnn|fft|rand|solver|sparse|pti|tensor|file)|nvrtc)" shared library'
        ),
    ),
    # Java's bindings to CUDA (JavaCPP): the binding is there, what it needs isn't
    (
        "loader",
        LazyRegex(
            r"\bjni(?P<library>(?:cuda|nvrtc|npp|nvinfer|cu[a-z]{2,9})\w{0,12}\.dll): Can't find dependent libraries"
        ),
    ),
    (
        "loader",  # Paddle; 127 is a library that is there and lacks a function
        LazyRegex(
            rf"third-party dynamic library \({_ANY_LIBRARY}[^)]{{0,80}}\) that Paddle depends on is not configured correctly(?!\. \(error code is 127)"
        ),
    ),
)
_LINKER = LazyRegex(r"cannot find -l(?P<name>cu\w+|nv\w+)\b")
# The container library looking around among adapters that are not NVIDIA's; a library that is there and doesn't fit.
_NOT_MISSING = LazyRegex(
    r"dxcore\.c|undefined symbol|symbol lookup (?:error|for)|wrong ELF class|Searching (?:in backup|further) paths"
)
_LDCONFIG = LazyRegex(rf"^\s*{_LIBRARY.format('library')} \(libc6[^)]*\) => (?P<path>/\S+)")
_LDD = LazyRegex(rf"^\s*{_LIBRARY.format('library')} => (?P<path>/\S+)")
_LISTED = LazyRegex(
    rf"(?:calling init: |generating link map|^[\da-f]+-[\da-f]+ r\S+ .* |^\s*|-> )(?P<path>/\S*/{_LIBRARY.format('library')})\s*$"
)


def _library(soname: str, **fields: str | bool | None) -> SharedLibrary:
    plain = soname.removeprefix("lib")
    name, _, tail = plain.partition(".")
    version = tail.partition(".")[2] or None
    if found := re.fullmatch(r"(\w+?)(?:32|64)?_(\d+)(?:_\d+)*", name):
        if tail.startswith("dll"):
            name, version = found[1], found[2]
    elif tail.startswith("dll"):
        name = re.sub(r"(?:32|64)$", "", name)
    return SharedLibrary(name=name, soname=soname, version=version, **fields)  # type: ignore[arg-type]


def library_not_found(text: str) -> Iterator[Fact]:
    """A program, ldd or the linker says that a CUDA library isn't there.

    >>> fact = next(library_not_found("ImportError: libcudart.so.12: cannot open shared object file: No such file"))
    >>> fact.name, fact.version, fact.found, fact.seen_by
    ('cudart', '12', False, 'loader')
    >>> next(library_not_found("Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!")).name
    'cudnn_ops'
    """
    line = text.partition("\n")[0]
    if _NOT_MISSING.search(line):
        raise NotThisFormat
    for seen_by, pattern in _NOT_FOUND:
        if found := pattern.search(line):
            yield _library(found["library"], found=False, seen_by=seen_by)
            return
    if found := _LINKER.search(line):
        yield _library(f"lib{found['name']}.so", found=False, seen_by="linker")
        return
    raise NotThisFormat


def library_found(text: str) -> Iterator[Fact]:
    """A line of ldconfig -p, ldd, LD_DEBUG=libs, a memory map or a listing that shows where a CUDA library is.

    >>> fact = next(library_found("        libcudnn.so.8 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcudnn.so.8"))
    >>> fact.name, fact.version, fact.seen_by
    ('cudnn', '8', 'ldconfig')
    >>> next(library_found("  5580: calling init: /venv/lib/nvidia/cudnn/lib/libcudnn_graph.so.9")).path
    '/venv/lib/nvidia/cudnn/lib/libcudnn_graph.so.9'
    """
    line = text.partition("\n")[0]
    for seen_by, pattern in (("ldconfig", _LDCONFIG), ("ldd", _LDD), ("listing", _LISTED)):
        if found := pattern.search(line):
            path = found["path"]
            yield _library(
                found["library"], path=path, folder=path.rpartition("/")[0], seen_by=seen_by, stub="/stubs/" in path
            )
            return
    raise NotThisFormat


_UNDEFINED = LazyRegex(
    r"(?:undefined symbol|symbol lookup error)[:,]? [`']?(?P<symbol>[A-Za-z_]\w*)'?(?:,? version [`']?(?P<library>[\w.-]+))?"
)
_LINK_TIME = LazyRegex(r"\bsymbol (?P<symbol>\w+),? version (?P<library>[\w.-]+) not defined in file \S+")
_NO_VERSION = LazyRegex(
    r": version [`'\u2018](?P<library>[\w.-]+)['\u2019] not found \(required by (?P<file>[^)]{1,400})\)"
)
_FILE_BEFORE = LazyRegex(r"([^\s:'\"]{1,300}\.so[.\d]{0,20}): ?$")


def symbol_error(text: str) -> Iterator[Fact]:
    """The loader finds a library without the symbol that another one needs.

    >>> line = "ImportError: /v/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12"
    >>> fact = next(symbol_error(line))
    >>> fact.file, fact.symbol, fact.library
    ('libcusparse.so.12', '__nvJitLinkAddData_12_1', 'libnvJitLink.so.12')
    """
    line = text.partition("\n")[0][:4000]
    found = _LINK_TIME.search(line) or _NO_VERSION.search(line) or _UNDEFINED.search(line)
    if not found:
        raise NotThisFormat
    groups = found.groupdict()
    before = _FILE_BEFORE.search(line[max(0, found.start() - 330) : found.start()])
    file = groups.get("file") or (before[1] if before else None)
    yield SymbolError(
        file=file.rpartition("/")[2] if file else None,
        path=file,
        symbol=groups.get("symbol"),
        library=groups.get("library"),
    )


_NVCC = LazyRegex(r"Cuda compilation tools, release (?P<version>\d+\.\d+)")
_VERSION_TXT = LazyRegex(r"^CUDA Version (?P<version>\d+\.\d+)(?:\.\d+)?\s*$")


def nvcc_version(text: str) -> Iterator[Fact]:
    """The line of `nvcc --version`, or of the version.txt of an old toolkit.

    >>> next(nvcc_version("Cuda compilation tools, release 12.4, V12.4.131")).version
    '12.4'
    """
    line = text.partition("\n")[0]
    found = _NVCC.search(line) or _VERSION_TXT.search(line)
    if not found:
        raise NotThisFormat
    yield CudaToolkit(version=found["version"], seen_by="nvcc")


_DRIVER = LazyRegex(
    r"^(?!\s*\|)(?P<before>.*?)\b(?:NVIDIA |nvidia |Nvidia )?[Dd]river [Vv]ersion ?[:=] ?(?P<version>\d{3}\.\d{2,3}(?:\.\d{1,3})?)\b(?:.*?CUDA [Vv]ersion ?[:=] ?(?P<cuda>\d+\.\d))?"
)
_CUDA_LINE = LazyRegex(r"^\s*CUDA [Vv]ersion ?[:=] ?(?P<cuda>\d+\.\d)\s*$")


def driver_statement(text: str) -> Iterator[Fact]:
    """A driver version that a program, a report or a person wrote down, and the CUDA version that it offers.

    >>> next(driver_statement("Nvidia driver version: 535.104.05")).version
    '535.104.05'
    >>> next(driver_statement("Driver Version: 570.86.10\\nCUDA Version: 12.8")).cuda
    '12.8'
    """
    line, _, rest = text.partition("\n")
    found = _DRIVER.search(line[:500])
    if not found or "requires" in found["before"] or "minimum" in found["before"].lower():
        raise NotThisFormat
    following = _CUDA_LINE.match(rest.partition("\n")[0])
    version = found["version"]
    yield DriverVersion(
        version=version,
        branch=int(version.partition(".")[0]),
        cuda=found["cuda"] or (following["cuda"] if following else None),
        seen_by="log",
    )


_NAMES = (
    r"(?:CUDA|NVIDIA|NCCL|CUDNN|TORCH|PYTORCH|TF|XLA|JAX|GLOO|UCX|FI|OMPI|OMP|MASTER|SLURM|VLLM|PJRT|TRITON|CUPY|NUMBA)_[A-Z0-9_]*[A-Z0-9]"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|WORLD_SIZE|LOCAL_RANK|RANK|TORCH_CUDA_ARCH_LIST"
)
_CAPABILITY = r"\d{1,2}\.\d[af]?(?:\+PTX)?"  # a list of them holds spaces, also where env prints it without quotes
_VALUE = rf"\"[^\"\n]*\"|'[^'\n]*'|{_CAPABILITY}(?: {_CAPABILITY})+(?!\S)|[^\s\"']*"
_PROMPT = r"(?:(?:\([\w.-]+\) ?)?(?:\[?[\w.-]+@[^$#>\n]{0,80}|[\w~/.-]{0,60})?[$#>%] ?)?"
_WORDS = r"(?:(?:sudo|env|export|set|setenv|declare|ENV|ARG|RUN|-|\++|!|%env|-gx|-x)\s+|Environment=|!)*"
_START = LazyRegex(rf"^\s*{_PROMPT}\s*{_WORDS}\s*\"?(?P<name>{_NAMES})(?P<sign>=|: | = |\s+)")
_NEXT = LazyRegex(rf"\s*\"?(?P<name>{_NAMES})=(?P<value>{_VALUE})")
_OPTION = LazyRegex(
    rf"(?:\s-e|\s--env|\s-x|\sENV|\sexport|\senv|[;&]|\bset)[ =]+(?:[\"'])?(?P<name>{_NAMES})=(?P<value>{_VALUE})"
)
_PYTHON = LazyRegex(
    rf"os\.(?:environ\[|putenv\(|environ\.setdefault\()[\"'](?P<name>{_NAMES})[\"']\]?\s*[=,]\s*(?:str\()?[\"']?(?P<value>[^\"'\n)]*)"
)
_KUBERNETES = LazyRegex(rf"^\s*-? ?name: [\"']?(?P<name>{_NAMES})[\"']?\s*$")
_KUBERNETES_VALUE = LazyRegex(rf"^\s*value: *(?P<value>{_VALUE})\s*$")
_ECHO = LazyRegex(rf"\becho \"?\$\{{?(?P<name>{_NAMES})\}}?\"?\s*$")
_NCCL_SET = LazyRegex(
    r"NCCL INFO (?P<name>NCCL_[A-Z0-9_]+) set (?:by environment )?to (?P<value>.*?)\.?$|(?P<name2>NCCL_[A-Z0-9_]+) set by environment to (?P<value2>.*?)\.?$"
)
_LOADER_PATH = LazyRegex(r"; LD_LIBRARY_PATH: (?P<value>\S+)")


def env_var(text: str) -> Iterator[Fact]:
    """Assignments in a shell, script, Dockerfile, compose or pod file, program, or the answer of `env` and `echo`.

    >>> [(f.name, f.setting) for f in env_var("CUDA_VISIBLE_DEVICES=2,3 NCCL_DEBUG=INFO torchrun train.py")]
    [('CUDA_VISIBLE_DEVICES', '2,3'), ('NCCL_DEBUG', 'INFO')]
    >>> [f.setting for f in env_var("      - NVIDIA_VISIBLE_DEVICES=all")]
    ['all']
    >>> list(env_var("For debugging consider passing CUDA_LAUNCH_BLOCKING=1."))
    Traceback (most recent call last):
    gpudoctor.parsers.base.NotThisFormat
    """
    line, _, rest = text.partition("\n")
    following = rest.partition("\n")[0]
    seen: set[str] = set()
    for name, value in _assignments(line, following):
        setting = value.strip().strip("\"'").rstrip(",") if not value.startswith(('"', "'")) else value.strip()[1:-1]
        if name.startswith("CUDA_ERROR") or name in seen:
            continue
        seen.add(name)
        yield EnvVar(name=name, setting=setting)
    if not seen:
        raise NotThisFormat


def _assignments(line: str, following: str) -> Iterator[tuple[str, str]]:
    if found := _NCCL_SET.search(line):
        yield found["name"] or found["name2"], found["value"] if found["name"] else found["value2"]
        return
    if found := _PYTHON.search(line):
        yield found["name"], found["value"]
        return
    if found := _LOADER_PATH.search(line):
        yield "LD_LIBRARY_PATH", found["value"]
        return
    if (found := _KUBERNETES.match(line)) and (value := _KUBERNETES_VALUE.match(following)):
        yield found["name"], value["value"]
        return
    if found := _ECHO.search(line):
        if following and not re.match(r"^\S*[$#>]\s", following):
            yield found["name"], following
        return
    message = parse_stamp(line).message
    if found := _START.match(message):
        yield from _chain(message, found)
    for found in _OPTION.finditer(message):
        yield found["name"], found["value"]


def _chain(message: str, found: re.Match[str]) -> Iterator[tuple[str, str]]:
    """The assignment at the start of a line, and those that follow it at once."""
    sign = found["sign"]
    if sign != "=":
        keyword = message[: found.start("name")].split()
        spaced = sign.isspace()
        if spaced and (not keyword or keyword[-1] not in ("ENV", "setenv", "-gx", "-x")):
            return
        value = message[found.end() :].strip()
        if value and not (spaced and " " in value):
            yield found["name"], value
        return
    position = found.start("name")
    while match := _NEXT.match(message, position):
        yield match["name"], match["value"]
        position = match.end()


_LIBRARY_WORDS = (
    "libcudart", "libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnvrtc", "libnvJitLink",
    "libnvToolsExt", "libcupti", "libcudnn", "libnvvm", "libnpp", "libnvjpeg", "libcufile", "libcuda.so", "libnvinfer",
    "libnvonnxparser", "cudart64_", "cublas64_", "cublasLt64_", "cufft64_", "curand64_", "cusolver64_", "cusparse64_",
    "libcustatevec", "libcutensor", "libcudss", "libnvshmem", "Unable to dynamically load the", "Can't find dependent libraries",
    "nvrtc64_", "cupti64_", "nvJitLink_", "nvToolsExt64", "cusparseLt", "nvjpeg64_", "cudnn64_", "cudnn_", "nvcuda.dll", "nvinfer",
)  # fmt: skip
_ERROR_WORDS = (
    "CUDA_ERROR_", "cudaError", "cuda error", "cuda failure", "CudaAPIError", "cuInit", "cudaGetDeviceCount", "CUDA driver error",
    "CUDA runtime error", "CUDA initialization failure", "cuda API error", "cudaSetDevice", "cudaMalloc", "cudaMemcpy", "cudaDeviceSynchronize",
    "cudaStreamSynchronize", "cudaGetLastError", "cudaFree", "cudaMemGetInfo", "cuCtx", "cuDevice", "cuMemAlloc", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpy", "cuMemset",
    "cuMemFree", "cuMemExport", "cuMemImport", "cuMemGet", "cuMemHost", "cuMemAddress", "cuMemRelease", "cuMemUnmap", "cuMemPrefetch", "cuModuleLoad", "cuLaunchKernel", "cuStream",
    "cuLinkAdd", " in CUDA queue ", " in OptiX queue ", "failed to get device context", " CUDA context (", "cudart init", *(text for row in _ERRORS.values() for text in row[2]),
)  # fmt: skip

FORMATS = (
    Format("CUDA error", _ERROR_WORDS, cuda_error, lines=1, fold=True),
    Format("CUDA library that was not found", (*_LIBRARY_WORDS, "cannot find -l"), library_not_found, lines=1, fold=True),
    Format("CUDA library", _LIBRARY_WORDS, library_found, lines=1, fold=True),
    Format(
        "undefined symbol", ("undefined symbol", "with link time reference", "not found (required by"), symbol_error, lines=1, fold=True
    ),
    Format("nvcc --version", ("Cuda compilation tools, release", "CUDA Version "), nvcc_version, lines=1, fold=True),
    Format("driver version in a text", ("driver version: ", "driver version:", "driver version = "), driver_statement, lines=2, fold=True),
    Format(
        "environment variables",
        (
            "CUDA_", "NVIDIA_", "NCCL_", "CUDNN_", "TORCH_", "TF_", "XLA_", "JAX_", "GLOO_", "UCX_", "FI_", "OMPI_", "OMP_",
            "MASTER_", "SLURM_", "VLLM_", "PJRT_", "TRITON_", "CUPY_", "NUMBA_", "LD_LIBRARY_PATH", "LD_PRELOAD", "WORLD_SIZE",
            "LOCAL_RANK", "RANK=",
        ),
        env_var,
        lines=2, fold=True
    ),
)  # fmt: skip
