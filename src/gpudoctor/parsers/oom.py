"""Allocations on a GPU that failed: what every framework prints, with the sizes that its message holds.

Each wording is one row of `_WORDINGS`, tried in order on the line and the few that follow (long messages are wrapped by
terminals and pagers); the first that fits names the framework. Groups called like a field of GpuOom are sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

import msgspec

from gpudoctor.facts.memory import GpuOom
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.template import size_bytes

MIB = 2**20
CONTEXT = 500.0  # MiB that a CUDA context with its libraries takes; between 250 and 1200 were seen
_LONGEST = 1_500  # characters of a message that are looked at
_ABSURD = 4_000_000.0  # MiB; PyTorch prints 17179869184 GiB where the driver hides a process's share

S = r"\d[\d.,]*\s*(?:[kKMGT]i?)?(?:[bB](?:ytes?)?)?"  # a size with its unit
B = r"\d[\d,]*"  # a number of bytes

_SIZES = ("requested", "total", "free", "process", "allocated", "reserved", "reserved_unallocated", "limit", "others")
# What stands before the words where nothing failed: advice, source code that catches the error, statistics.
_ADVICE = LazyRegex(
    r"(?:\bif (?:you|there|it|this|the)\b|\bto (?:avoid|prevent|fix|reduce)\b|\bavoid|\bprevent|\bin case of\b|\bwhen (?:you|there)\b"
    r"|\b(?:may|might|could|can|will|would) (?:\w+ )?(?:cause|lead|run|result|get|be|go)\b|\bexcept\b|\bcatch\b|\bisinstance\(|(?<![-=])[#>] |\blikely to\b|\brisk)"
    r"[^.!:]{0,80}$",
    re.IGNORECASE,
)
# A program's own line that looks for the words in an error: `if "out of memory" in str(error):`.
_IN_CODE = LazyRegex(
    r"\s*(?:if|elif|while|assert|return|when|case)\b[^\"'\n]{0,80}[\"'][^\"'\n]{0,80}[\"']\s*(?:in\b|not in\b|==|\))"
)
# A guide's line about the message: "`CUDA out of memory` means that the batch is too large".
_EXPLAINED = LazyRegex(r"[`'\"*]{1,3} (?:usually |typically |often )?(?:means|indicates)\b")
_NEW_RECORD = LazyRegex(
    r"\s*(?:$|Traceback |File \"|\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\w+Error\b|\[rank\d|ERROR|WARN|INFO|raise |\+-|[\w.-]+@[\w.-]+:|\$ )"
)


class Wording(msgspec.Struct, frozen=True):
    """How one program says it. what: as in GpuOom; `line` is searched in the message from its line on."""

    framework: str
    line: LazyRegex
    what: str = "tensor"


def _wording(framework: str, pattern: str, what: str = "tensor") -> Wording:
    return Wording(framework, LazyRegex(pattern, re.IGNORECASE), what)


_WORDINGS = (
    # TensorFlow and XLA: pool, handles, contexts
    _wording("tensorflow", rf"Allocator \(\w*GPU_(?P<device>\d+)_?\w*\) ran out of memory trying to allocate (?P<requested>{S})"),
    _wording("tensorflow", r"OOM when allocating tensor with shape\s?\[(?P<shape>[\d,x ]*)\] and type (?P<dtype>\w+) on \S*(?:device:)?GPU:(?P<device>\d+)"),
    _wording("tensorflow", r"OOM when allocating tensor (?:of shape|with shape)\s?\[(?P<shape>[\d,x ]*)\](?: and type (?P<dtype>\w+))?(?!.{0,120}(?:by allocator (?:mkl)?cpu|CPU:0))"),
    _wording("tensorflow", rf"failed to allocate (?P<requested>{S})(?: \({B} bytes\))? from device:(?: RESOURCE_EXHAUSTED:)?[ :]*CUDA_ERROR_OUT_OF_MEMORY", "pool"),
    _wording("tensorflow", rf"cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY(?:.{{0,60}}total memory reported: (?P<total>{B}))?", "context"),
    _wording("tensorflow", r"CUDA runtime implicit initialization on GPU:(?P<device>\d+) failed\. Status: out of memory", "context"),
    _wording("tensorflow", r"cudaGetDevice\(\) failed\. Status: out of memory", "context"),
    _wording("tensorflow", r"Dst tensor is not initialized"),
    _wording("tensorflow", r"failed to create cublas(?:Lt)? handle: (?:CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)|cublas error|the resource allocation failed|the library was not initialized)", "handle"),
    _wording("tensorflow", rf"could not create cudnn handle: (?:CUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR(?:_DEVICE_ALLOCATION_FAILED)?))(?:.{{0,200}}?Memory usage: (?P<free>{B}) bytes free, (?P<total>{B}) bytes total)?", "handle"),
    _wording("tensorflow", r"failed to create cusolver(?:dn)? (?:instance|handle)", "handle"),
    _wording("jax", r"(?:gpu|cu)solverDnCreate\(&?handle\) failed: cuSolver internal error", "handle"),
    _wording("jax", rf"RESOURCE[_ ]?EXHAUSTED:? .{{0,40}}Out of memory (?:while trying to allocate|allocating) (?P<requested>{S})"),
    _wording("jax", rf"RESOURCE[_ ]?EXHAUSTED:? .{{0,20}}Failed to allocate request for (?P<requested>{S})(?: \({B}B?\))? on device ordinal (?P<device>\d+)"),
    _wording("jax", r"RESOURCE[_ ]?EXHAUSTED:? .{0,80}(?:CUDA_ERROR_OUT_OF_MEMORY|out of memory)"),
    # array libraries and data frames
    _wording("cupy", rf"Out of memory allocating (?P<requested>{B}) bytes \(allocated so far: (?P<allocated>{B}) bytes(?:, limit set to: (?P<limit>{B}) bytes)?"),
    _wording("cupy", rf"out of memory to allocate (?P<requested>{B}) bytes \(total (?P<allocated>{B}) bytes\)"),
    _wording("rmm", rf"(?:rmm\S*|RMM failure).{{0,300}}Maximum pool size exceeded(?: \(failed to allocate (?P<requested>{S})\))?"),
    _wording("rmm", rf"std::bad_alloc: (?:out_of_memory: )?(?:CUDA error|RMM failure) .{{0,20}}at: ?\S*(?:rmm|mr/)\S*(?:.{{0,40}}failed to allocate (?P<requested>{S}))?"),
    _wording("rmm", r"RMM_ERROR_OUT_OF_MEMORY|out_of_memory: (?:CUDA|RMM)"),
    _wording("xgboost", rf"bad_alloc: cudaErrorMemoryAllocation.{{0,60}}Free memory: (?P<free>{S}).{{0,20}}Requested memory: (?P<requested>{S})"),
    _wording("paddle", rf"Out of memory error on GPU (?P<device>\d+)\. Cannot allocate (?P<requested>{S}) memory on GPU \d+, (?:(?P<allocated>{S}) memory has been allocated and )?available memory is only (?P<free>{S})"),
    _wording("julia", rf"Out of GPU memory trying to allocate (?P<requested>{S})(?:.{{0,60}}\((?P<used>{S})/(?P<total>{S})\))?"),
    # inference: TensorRT, ONNX Runtime, Triton, llama.cpp
    _wording("tensorrt", rf"Requested amount of (?:GPU )?memory \((?P<requested>{B}) bytes\) could not be allocated"),
    _wording("tensorrt", rf"Error Code 2: OutOfMemory \((?:Requested size was (?P<requested>{B}) bytes)?"),
    _wording("tensorrt", r"(?:\[TRT\]|TensorRT|defaultAllocator|tllmBuffers|safeRuntime|engine\.cpp).{0,200}(?:Cuda (?:Runtime|Error)|CUDA runtime error|OutOfMemory).{0,160}out ?of ?memory"),
    _wording("tensorrt", r"CUDA runtime error in \S*(?:cuda|cu)\w+\([^\n]{0,200}: out of memory"),
    _wording("onnxruntime", rf"Available memory of (?P<free>{B}) is smaller than requested bytes of (?P<requested>{B})"),
    _wording("onnxruntime", rf"(?:bfc_arena|BFCArena).{{0,200}}Failed to allocate memory for requested buffer of size (?P<requested>{B})"),
    _wording("onnxruntime", r"CUDA failure 2: out of memory\s*; GPU=(?P<device>\d+)"),
    _wording("onnxruntime", r"CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED(?:\s*; GPU=(?P<device>\d+))?", "handle"),
    _wording("triton", rf"failed to allocate CUDA memory with byte size (?P<requested>{B}) on GPU (?P<device>\d+)"),
    _wording("triton", r"CNMEM_STATUS_OUT_OF_MEMORY"),
    _wording("llama.cpp", rf"allocating (?P<requested>{S}) on device (?P<device>\d+): cudaMalloc failed: out of memory"),
    _wording("llama.cpp", rf"failed to allocate CUDA(?P<device>\d+) buffer of size (?P<requested>{B})"),
    _wording("llama.cpp", r"unable to allocate CUDA(?P<device>\d+) buffer", "weights"),
    _wording("llama.cpp", r"CUDA error(?: 2)?(?: at \S+)?: out of memory.{0,80}?(?:current device: (?P<device>\d+), in function|ggml[-_]cuda)"),
    _wording("llama.cpp", r"failed to allocate compute (?:pp |tg )?buffers"),
    _wording("exllama", r"Insufficient VRAM"),
    _wording("jax", rf"Failed to allocate (?P<requested>{B}) bytes for new constant"),
    _wording("ollama", r"llama runner process (?:has terminated|no longer running): .{0,80}(?:CUDA error|cudaMalloc|CUDA0).{0,40}(?:out of memory|buffer)"),
    # video
    _wording("nvenc", r"(?:OpenEncodeSessionEx|nvEncOpenEncodeSessionEx)\b.{0,80}(?:out of memory|\b10\b|OUT_OF_MEMORY)", "session"),
    _wording("nvenc", r"(?:CreateInputBuffer|CreateBitstreamBuffer|InitializeEncoder|EncodePicture)\w* failed: out of memory"),
    _wording("ffmpeg", r"(?:cu|cvdl)->cu(?:Ctx|DevicePrimary)\w+\(.{0,120}failed -> CUDA_ERROR_OUT_OF_MEMORY", "context"),
    _wording("ffmpeg", r"(?:cu|cvdl)->cu\w+\(.{0,160}failed -> CUDA_ERROR_OUT_OF_MEMORY"),
    # host memory that the driver was to pin: not the GPU's
    _wording("tensorflow", rf"failed to alloc (?P<requested>{B}) bytes on host: CUDA_ERROR_OUT_OF_MEMORY", "pinned"),
    _wording("tensorflow", rf"could not allocate pinned host memory of size: (?P<requested>{S})", "pinned"),
    _wording("cuda", r"(?:cudaMallocHost|cudaHostAlloc|cudaHostRegister|cuMemHostAlloc|cuMemAllocHost|cuMemHostRegister)\w*\b.{0,80}(?:out of memory|OUT_OF_MEMORY|cudaErrorMemoryAllocation)", "pinned"),
    _wording("llama.cpp", rf"failed to allocate (?P<requested>{S}) of pinned memory: out of memory", "pinned"),
    # other programs
    _wording("numba", r"Call to cu\w+ results in (?:CUDA_ERROR_OUT_OF_MEMORY|UNKNOWN_CUDA_ERROR 2)"),
    _wording("pycuda", r"cu(?:MemAlloc|CtxCreate|MemHostAlloc|MemAllocPitch)\w* failed: out of memory"),
    _wording("mxnet", r"cudaMalloc (?:retry )?failed: out of memory"),
    _wording("matlab", r"Out of memory on device\b"),
    _wording("caffe", r"error == cudaSuccess \(2 vs\. 0\)\s+out of memory"),
    _wording("opencv", r"Gpu API call\) out of memory in function"),
    _wording("blender", r"System is out of GPU memory|Out of memory in (?:CUDA|cuda|OptiX|cu[A-Z])\w*"),
    _wording("blender", r"Failed to (?:create|retain|configure) CUDA context \(Out of memory\)", "context"),
    _wording("ctranslate2", r"CUDA failed with error out of memory"),
    _wording("opencl", r"CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    _wording("nccl", r"NCCL (?:WARN|INFO)\b.{0,80}Cuda failure (?:2 )?'?out of memory"),
    _wording("relion", rf"CudaCustomAllocator out of memory(?:.{{0,40}}\[requestedSpace:\s*(?P<requested>{B}) B\])?"),
    _wording("lammps", r"Insufficient memory on accelerator(?! \(or no fix)"),
    # PyTorch without numbers, and plain CUDA
    _wording("pytorch", r"cuda runtime error \(2\) : out of memory|THCudaCheck FAIL .{0,200}error=2 : out of memory"),
    _wording("pytorch", r"CUBLAS_STATUS_ALLOC_FAILED when calling", "handle"),
    _wording("pytorch", r"cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "handle"),
    _wording("vllm", r"CUDA out of memory occurred when (?:warming up|profiling)"),
    _wording("pytorch", r"CUDA (?:driver )?error: out of memory|(?:CUDA|GPU) out of memory"),
    _wording("cuda", r"\bCUDA_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|cuda(?: runtime| driver)? (?:error|failure)\W{1,12}(?:\(?2\)?\W{0,3})?out of memory|cu(?:da)?(?:Malloc\w*|MemAlloc\w*|MemCreate)\W.{0,80}out of memory"),
    # what programs make of cudaGetErrorString, the file of the source and its line
    _wording("cuda", r"(?:\bGPUassert: |\bcuda\w*[^\n:;]{0,80}\bfailed:? )out of memory\b|\bout of memory in (?:file )?\S{0,200}(?:\.cuh?\b|\S at line \d+ \(error-code 2\))"),
    _wording("cuda", r"\bcuda error (?:in |cuda)[^\n]{0,240}: out of memory\b|\.cuh?\b\W{1,3}(?:(?:in |at )?line )?\d+\W{1,4}(?:error: )?out of memory\b"),
)  # fmt: skip

_BYTES_OF = {"half": 2, "bfloat16": 2, "float16": 2, "double": 8, "float64": 8, "int64": 8, "complex64": 8, "complex128": 16,
    "uint8": 1, "int8": 1, "bool": 1, "int16": 2, "uint16": 2}  # fmt: skip


def gpu_oom(text: str) -> Iterator[GpuOom]:
    """An allocation on a GPU that failed, in any framework's words.

    >>> fact = next(gpu_oom("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total "
    ... "capacity of 79.18 GiB of which 1.08 GiB is free. Including non-PyTorch memory, this process has 78.09 GiB memory "
    ... "in use. Of the allocated memory 75.31 GiB is allocated by PyTorch, and 1.83 GiB is reserved by PyTorch but unallocated."))
    >>> fact.framework, fact.device, round(fact.requested), round(fact.free), round(fact.reserved_unallocated)
    ('pytorch', 0, 2007, 1106, 1874)
    >>> next(gpu_oom("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.")).requested
    2048.0
    """
    message = _message(text)
    if "this is not a failure" in message[:600] or _IN_CODE.match(message):
        raise NotThisFormat
    fact = _pytorch(message) or _async_pool(message)
    if fact is None:
        first = text.partition("\n")[0]
        for wording in _WORDINGS:
            found = wording.line.search(message)
            if found is None or found.start() > len(first) or _ADVICE.search(message[: found.start()]):
                continue
            if _EXPLAINED.match(message[found.end() :]):
                continue
            fact = _from_wording(wording, found, message)
            break
    if fact is None:
        raise NotThisFormat
    if fact.device is not None:
        fact.gpu = f"GPU {fact.device}"
    fact.rank = _rank(message)
    yield fact


def _message(text: str) -> str:
    """Join the line with those that continue it."""
    lines = text.split("\n")
    parts = [lines[0]]
    for line in lines[1:]:
        if _NEW_RECORD.match(line) or sum(map(len, parts)) > _LONGEST:
            break
        parts.append(line.strip())
    return " ".join(parts)[:_LONGEST]


def _mib(size: str | None) -> float | None:
    if size is None:
        return None
    try:
        value = size_bytes(size.strip().rstrip(".,")) / MIB
    except ValueError:
        return None
    return value if value < _ABSURD else None


# Without the words before it, where a report quotes the sizes alone.
_TRIED = LazyRegex(
    rf"(?P<said>out of memory\.? ?)?Tried to allocate (?P<requested>{S})"
    r"(?(said)(?=[\s.(])|(?= \(GPU \d+; |\.? GPU \d+ has a total capac))",
    re.IGNORECASE,
)
_DEVICE = LazyRegex(r"\(?GPU (?P<device>\d+)(?:;| has a total)")
_NUMBERS = {
    "total": LazyRegex(rf"(?:total capaci?ty of (?P<new>{S})(?= of which)|; (?P<old>{S}) total capacity)"),
    "free": LazyRegex(rf"(?:of which (?P<new>{S}) is free|; (?P<old>{S}) free\b)"),
    "allocated": LazyRegex(rf"(?:memory (?P<new>{S}) is allocated by PyTorch|; (?P<old>{S}) already allocated)"),
    "reserved": LazyRegex(rf"; (?P<old>{S}) reserved in total"),
    "reserved_unallocated": LazyRegex(rf"(?:and (?P<new>{S}) is reserved by PyTorch but|; (?P<old>{S}) cached)"),
    "limit": LazyRegex(rf"(?P<new>{S}) allowed\b"),
    "process": LazyRegex(rf"this process has (?P<new>{S}) memory in use"),
}
_PROCESS = LazyRegex(rf"Process (?P<pid>\d+) has (?P<size>{S}) memory in use")


def _pytorch(message: str) -> GpuOom | None:
    """PyTorch's caching allocator, from 1.0 (`cached`) over 1.4 (`reserved in total`) to 2.x (processes by name)."""
    tried = _TRIED.search(message)
    if tried is None or _ADVICE.search(message[: tried.start()]):
        return None
    rest = message[tried.end() :]
    following = _TRIED.search(rest)
    if following:
        rest = rest[: following.start()]
    sizes: dict[str, float | None] = {"requested": _mib(tried["requested"])}
    for name, pattern in _NUMBERS.items():
        found = pattern.search(rest)
        if found:
            sizes[name] = _mib(next((group for group in found.groups() if group), None))
    device = _DEVICE.search(rest)
    fact = GpuOom(framework="pytorch", device=int(device["device"]) if device else None, **sizes)  # type: ignore[arg-type]
    _complete(fact, [(int(found["pid"]), _mib(found["size"])) for found in _PROCESS.finditer(rest)])
    return fact


def _complete(fact: GpuOom, seen: list[tuple[int, float | None]]) -> None:
    """Work out what the message leaves to the reader: the pool's slack, this process, the others."""
    if fact.reserved_unallocated is None and fact.reserved is not None and fact.allocated is not None:
        fact.reserved_unallocated = max(0.0, fact.reserved - fact.allocated)
    if fact.reserved is None and fact.reserved_unallocated is not None and fact.allocated is not None:
        fact.reserved = fact.allocated + fact.reserved_unallocated
    total, free, pool = fact.total, fact.free, fact.reserved
    if fact.process is not None and total is not None and fact.process > 1.05 * total:
        fact.process = None  # Windows counts what was moved to host memory
    named = sorted(
        ((size, pid) for pid, size in seen if size is not None and (total is None or size <= 1.02 * total)),
        reverse=True,
    )
    if fact.process is None and pool is not None and named:
        # Inside a container the own process has a number of its own: it is the smallest that can hold the pool.
        own = next((entry for entry in reversed(named) if entry[0] >= 0.98 * pool), None)
        if own is not None:
            fact.process, fact.pid = own
            named.remove(own)
    if named:
        fact.others = sum(size for size, _ in named)
        fact.holders = ", ".join(f"process {pid} ({_size(size)})" for size, pid in named[:6])
    elif total is not None and free is not None:
        held = fact.process if fact.process is not None else (None if pool is None else pool + CONTEXT)
        if held is not None:
            fact.others = max(0.0, total - free - held)
    if total:
        if fact.reserved_unallocated is not None:
            fact.reserved_share = round(fact.reserved_unallocated / total, 4)
        if fact.others is not None:
            fact.others_share = round(fact.others / total, 4)


_ASYNC = LazyRegex(r"OutOfMemoryError.{0,40}Allocation on device ?(?P<device>\d+)?")
_ASYNC_NUMBERS = {
    "allocated": LazyRegex(rf"Currently allocated\s*: (?P<size>{S})"),
    "requested": LazyRegex(rf"Requested\s*: (?P<size>{S})"),
    "total": LazyRegex(rf"Device limit\s*: (?P<size>{S})"),
    "free": LazyRegex(rf"Free \(according to CUDA\)\s*: (?P<size>{S})"),
}


def _async_pool(message: str) -> GpuOom | None:
    """PyTorch with CUDA's own pool (backend:cudaMallocAsync), as ComfyUI runs it."""
    found = _ASYNC.search(message)
    if found is None:
        return None
    sizes = {
        name: _mib(number["size"]) for name, pattern in _ASYNC_NUMBERS.items() if (number := pattern.search(message))
    }
    fact = GpuOom(framework="pytorch", device=int(found["device"]) if found["device"] else None, **sizes)  # type: ignore[arg-type]
    fact.reserved = fact.allocated
    _complete(fact, [])
    return fact


def _from_wording(wording: Wording, found: re.Match[str], message: str) -> GpuOom:
    groups = found.groupdict()
    framework = wording.framework
    if framework == "tensorflow" and re.search(r"external/xla|\bjax|xla/tsl|xla/stream_executor|xla/pjrt", message):
        framework = "jax"
    sizes = {name: _mib(groups[name]) for name in _SIZES if groups.get(name)}
    fact = GpuOom(
        framework=framework,
        what=wording.what,
        device=int(groups["device"]) if groups.get("device") else None,
        **sizes,  # type: ignore[arg-type]
    )
    if groups.get("used") and fact.total is not None and (used := _mib(groups["used"])) is not None:
        fact.free = fact.total - used
    if groups.get("shape"):
        extents = [int(part) for part in re.findall(r"\d+", groups["shape"])[:12]]
        fact.requested = prod(extents) * _BYTES_OF.get((groups.get("dtype") or "float").lower(), 4) / MIB
        if not 0 < fact.requested < _ABSURD:
            fact.requested = None
    if fact.what == "context" and fact.total is None and fact.requested is None:
        total = re.search(rf"total memory reported: ({B})", message)
        fact.total = _mib(total[1]) if total else None
    return fact


_RANK = LazyRegex(r"\[rank(\d+)\]|\brank[ :=]?(\d+)\b|\bTP(\d+)\b|\[(\d+)\]<stderr>", re.IGNORECASE)


def _rank(message: str) -> int | None:
    found = _RANK.search(message[:200])
    return int(next(group for group in found.groups() if group)) if found else None


def _size(mib: float) -> str:
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


_STATISTICS = LazyRegex(r"\b(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize):\s+(\d+)")


def bfc_statistics(text: str) -> Iterator[GpuOom]:
    """The statistics at the end of a BFC allocator's dump (TensorFlow, JAX).

    >>> sample = '''2024-05-02 10:11:12.1: I tensorflow/core/common_runtime/bfc_allocator.cc:1095] Stats:
    ... Limit:                      5928845312
    ... InUse:                      5804972544
    ... MaxInUse:                   5877852160
    ... NumAllocs:                       10551
    ... '''
    >>> fact = next(bfc_statistics(sample)); fact.limit, fact.allocated
    (5654.1875, 5536.05...)
    """
    numbers: dict[str, float] = {}
    for line in text.split("\n")[:8]:
        for name, value in _STATISTICS.findall(line):
            numbers.setdefault(name, float(value) / MIB)
    if "Limit" not in numbers or "InUse" not in numbers or not numbers["Limit"]:
        raise NotThisFormat
    limit, used = numbers["Limit"], numbers["InUse"]
    yield GpuOom(
        framework="tensorflow",
        what="statistics",
        limit=limit,
        allocated=used,
        reserved_unallocated=max(0.0, limit - used),
    )


_ANCHORS = (
    "out of memory",
    "outofmemory",
    "out_of_memory",
    "Allocation on device",
    "OOM when allocating tensor",
    "Dst tensor is not initialized",
    "cublas handle",
    "cublasLt handle",
    "cudnn handle",
    "cusolver",
    "solverDnCreate",
    "RESOURCE_EXHAUSTED",
    "Resource exhausted",
    "cudaErrorMemoryAllocation",
    "Maximum pool size exceeded",
    "bad_alloc: out_of_memory",
    "bad_alloc: CUDA error",
    "bad_alloc: RMM failure",
    "Out of GPU memory",
    "Requested amount of",
    "Available memory of",
    "Failed to allocate memory for requested buffer",
    "failed to allocate CUDA",
    "unable to allocate CUDA",
    "STATUS_ALLOC_FAILED",
    "OpenEncodeSessionEx",
    "UNKNOWN_CUDA_ERROR 2",
    "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    "CUBLAS failure 3",
    "on host: CUDA_ERROR",
    "pinned host memory",
    "failed to allocate compute",
    "Insufficient VRAM",
    "bytes for new constant",
    "Tried to allocate",
    "memory on accelerator",
)

FORMATS = (
    Format("GPU out of memory", _ANCHORS, gpu_oom, lines=9, fold=True),
    Format("BFC allocator statistics", ("MaxInUse:",), bfc_statistics, lines=8, back=3),
)
