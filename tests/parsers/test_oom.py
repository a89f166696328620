"""What the programs print when a GPU, or the host, has no memory left: one row per wording."""

from __future__ import annotations

import random

import pytest

from gpudoctor.combiners.memory import judge
from gpudoctor.facts.memory import GpuOom
from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.parsers.hostoom import FORMATS as HOST_FORMATS
from gpudoctor.parsers.hostoom import daemon_oom, kernel_oom, scheduler_oom
from gpudoctor.parsers.kvcache import free_at_start, kv_cache
from gpudoctor.parsers.memuse import gpu_memory_use
from gpudoctor.parsers.oom import FORMATS, bfc_statistics, gpu_oom
from gpudoctor.parsers.scan import Scanner


def one(text: str) -> GpuOom:
    return next(gpu_oom(text))


WORDINGS = [
    ("RuntimeError: CUDA out of memory. Tried to allocate 1.17 GiB (GPU 1; 15.90 GiB total capacity; 9.02 GiB already allocated; 611.88 MiB free; 5.41 GiB cached)", "pytorch", {"device": 1, "reserved_unallocated": 5539.84, "free": 611.88}),
    ("RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 7.79 GiB total capacity; 6.10 GiB already allocated; 201.31 MiB free; 6.44 GiB reserved in total by PyTorch)", "pytorch", {"reserved": 6594.56, "reserved_unallocated": 348.16}),
    ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.70 GiB total capacity; 4.80 GiB already allocated; 17.56 MiB free; 5.00 GiB allowed; 4.90 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb", "pytorch", {"limit": 5120.0, "free": 17.56}),
    ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 2 has a total capacty of 47.54 GiB of which 1.11 GiB is free. Process 3131 has 46.42 GiB memory in use. Of the allocated memory 40.01 GiB is allocated by PyTorch, and 5.90 GiB is reserved by PyTorch but unallocated.", "pytorch", {"device": 2, "process": 47534.08, "holders": None}),
    ("[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 5 has a total capacity of 79.33 GiB of which 103.81 MiB is free. Process 811 has 30.55 GiB memory in use. Including non-PyTorch memory, this process has 48.67 GiB memory in use. Of the allocated memory 46.00 GiB is allocated by PyTorch, with 512.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.02 GiB is reserved by PyTorch but unallocated.", "pytorch", {"rank": 5, "others": 31283.2, "holders": "process 811 (30.55 GiB)"}),
    ("torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 10.46 GiB\nRequested               : 96.00 MiB\nDevice limit            : 11.99 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB", "pytorch", {"requested": 96.0, "total": 12277.76, "free": 0.0}),
    ("RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58", "pytorch", {"requested": None}),
    ("RuntimeError: CUDA error: out of memory", "pytorch", {}),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "pytorch", {"what": "handle"}),
    ("2021-03-02 11:00:00.123456: W tensorflow/core/common_runtime/bfc_allocator.cc:456] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1610612736)requested by op conv", "tensorflow", {"device": 0, "requested": 1536.0}),
    ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc [Op:Conv2D]", "tensorflow", {"device": 1, "requested": 392.0}),
    ("E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 9.90G (10632560640 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "tensorflow", {"what": "pool", "requested": 10137.6}),
    ("F tensorflow: failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY; total memory reported: 12786073600", "tensorflow", {"what": "context", "total": 12193.75}),
    ("InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory", "tensorflow", {"what": "context"}),
    ("failed to create cublas handle: the resource allocation failed", "tensorflow", {"what": "handle"}),
    ("E0514 15:42:22.522887 3766360 cuda_dnn.cc:532] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\nE0514 15:42:22.536489 3766360 cuda_dnn.cc:536] Memory usage: 62324736 bytes free, 16928342016 bytes total.", "tensorflow", {"what": "handle", "total": 16144.125}),
    ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5520758552 bytes.", "jax", {"requested": 5265.0056}),
    ("RuntimeError: Resource exhausted: Out of memory allocating 2147483648 bytes.", "jax", {"requested": 2048.0}),
    ("XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 6.25GiB (6710886400B) on device ordinal 3", "jax", {"device": 3, "requested": 6400.0}),
    ("2026-02-02 10:00:00.0 W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 9.31GiB (rounded to 9999999488)requested by op", "jax", {"requested": 9533.44}),
    ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,073,741,824 bytes, limit set to: 4,294,967,296 bytes).", "cupy", {"requested": 8192.0, "allocated": 1024.0, "limit": 4096.0}),
    ("cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 1073741824 bytes (total 536870912 bytes)", "cupy", {"requested": 1024.0}),
    ("MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/opt/include/rmm/mr/device/pool_memory_resource.hpp:196: Maximum pool size exceeded (failed to allocate 2.000 GiB)", "rmm", {"requested": 2048.0}),
    ("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/include/rmm/mr/device/cuda_memory_resource.hpp:70: cudaErrorMemoryAllocation out of memory", "rmm", {}),
    ("ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 768.000244MB memory on GPU 0, 11.769043GB memory has been allocated and available memory is only 16.250000MB.", "paddle", {"requested": 768.000244, "free": 16.25}),
    ("ERROR: Out of GPU memory trying to allocate 1.500 GiB\nEffective GPU memory usage: 99.83% (7.780 GiB/7.793 GiB)", "julia", {"requested": 1536.0, "total": 7980.032}),
    ("[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (Requested size was 4294967296 bytes.)", "tensorrt", {"requested": 4096.0}),
    ("[E] Requested amount of GPU memory (34359738368 bytes) could not be allocated. There may not be enough free memory", "tensorrt", {"requested": 32768.0}),
    ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory (/src/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:123)", "tensorrt", {}),
    ("onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 67108864", "onnxruntime", {"requested": 64.0}),
    ("CUDA failure 2: out of memory ; GPU=1 ; hostname=gpu01 ; expr=cudaMalloc((void**)&p, size);", "onnxruntime", {"device": 1}),
    ("failed to allocate CUDA memory with byte size 268435456 on GPU 0: CNMEM_STATUS_OUT_OF_MEMORY, falling back to pinned system memory", "triton", {"requested": 256.0}),
    ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4403.49 MiB on device 0: cudaMalloc failed: out of memory", "llama.cpp", {"requested": 4403.49}),
    ("ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 553648128", "llama.cpp", {"device": 1, "requested": 528.0}),
    ("CUDA error: out of memory\n  current device: 0, in function alloc at ggml/src/ggml-cuda/ggml-cuda.cu:445\n  cuMemCreate(&handle, reserve_size, &prop, 0)", "llama.cpp", {"device": 0}),
    ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "llama.cpp", {"what": "weights"}),
    ("[h264_nvenc @ 0x55d0c0ffee00] OpenEncodeSessionEx failed: out of memory (10): (no details)", "nvenc", {"what": "session"}),
    ("[hevc @ 0x5581] decoder->cvdl->cuvidCreateDecoder(&decoder->decoder, params) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory", "ffmpeg", {}),
    ("E cuda_driver.cc:794] failed to alloc 17179869184 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "tensorflow", {"what": "pinned", "requested": 16384.0}),
    ("cudaMallocHost of 4096 bytes failed: out of memory", "cuda", {"what": "pinned"}),
    ("llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers", "llama.cpp", {}),
    ("XlaRuntimeError: INTERNAL: Failed to allocate 4294967296 bytes for new constant", "jax", {"requested": 4096.0}),
    ("numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "numba", {}),
    ("pycuda._driver.MemoryError: cuMemAlloc failed: out of memory", "pycuda", {}),
    ("mxnet.base.MXNetError: [10:00:00] src/storage/./pooled_storage_manager.h:151: cudaMalloc failed: out of memory", "mxnet", {}),
    ("syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0)  out of memory", "caffe", {}),
    ("cv2.error: OpenCV(4.8.0) cuda_gpu_mat.cpp:116: error: (-217:Gpu API call) out of memory in function 'allocate'", "opencv", {}),
    ("gpu01:77:99 [0] init.cc:300 NCCL WARN Cuda failure 2 'out of memory'", "nccl", {}),
    ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`", "vllm", {}),
    ("terminate called after throwing an instance of 'thrust::system::detail::bad_alloc' what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory", "cuda", {}),
    ("code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&d_a, bytes)\"", "cuda", {}),
    ("Error: CUDA_ERROR_OUT_OF_MEMORY in cuMemAlloc", "cuda", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "framework", "fields"), WORDINGS, ids=[row[0][:60] for row in WORDINGS])
def test_wordings(text: str, framework: str, fields: dict[str, object]) -> None:
    fact = one(text)
    assert fact.framework == framework
    for name, value in fields.items():
        found = getattr(fact, name)
        assert found == (pytest.approx(value, rel=1e-4) if isinstance(value, float) else value), name


@pytest.mark.parametrize("row", WORDINGS, ids=[row[0][:60] for row in WORDINGS])
def test_every_wording_has_an_anchor(row: tuple[str, str, dict[str, object]]) -> None:
    found = Scanner(FORMATS, ()).scan("log", (row[0].encode(),))
    assert [fact.kind for fact in found.facts] == ["gpu_oom"]


@pytest.mark.parametrize(
    "text",
    [
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.22GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
        "If you run into CUDA out of memory errors, lower the batch size.",
        "    except torch.cuda.OutOfMemoryError:",
        "# avoid CUDA out of memory by chunking",
        "|        cudaMalloc retries: 0         |        CUDA OOMs: 0            |",
        "Out of memory: Killed process 12 (python3)",
        "OOM when allocating tensor with shape[8,8] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "torch.cuda.OutOfMemoryError",
    ],
)
def test_not_a_failure(text: str) -> None:
    with pytest.raises(NotThisFormat):
        one(text)


def test_message_wrapped_by_a_terminal() -> None:
    fact = one(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a\n"
        "total capacity of 23.68 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process\n"
        "has 22.46 GiB memory in use. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 7.02 GiB is\n"
        "reserved by PyTorch but unallocated.\n"
        "Traceback (most recent call last):"
    )
    assert (fact.total, fact.allocated) == (pytest.approx(23.68 * 1024), 15360.0)
    assert judge(fact) == "fragmentation"


def test_numbers_decide_not_the_hint() -> None:
    hint = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    text = "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 300.00 MiB is free. "
    small = (
        text
        + "Of the allocated memory 38.00 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated."
    )
    large = (
        text
        + "Of the allocated memory 30.00 GiB is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but unallocated."
    )
    assert judge(one(small + hint)) == "too_big"
    assert judge(one(large)) == "fragmentation"


def test_absurd_and_foreign_numbers() -> None:
    fact = one(
        "CUDA out of memory. Tried to allocate 10.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. "
        "Process 7 has 17179869184.00 GiB memory in use. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. "
        "Of the allocated memory 6.50 GiB is allocated by PyTorch, and 30.00 MiB is reserved by PyTorch but unallocated."
    )
    assert fact.process is None and fact.holders is None
    assert judge(fact) == "too_big"


def test_old_format_shows_others() -> None:
    fact = one(
        "RuntimeError: CUDA out of memory. Tried to allocate 50.00 MiB (GPU 0; 11.17 GiB total capacity; 1.10 GiB already allocated; "
        "20.00 MiB free; 1.20 GiB reserved in total by PyTorch)"
    )
    assert judge(fact) == "others"
    assert fact.others == pytest.approx(11438.08 - 20 - 1228.8 - 500, rel=1e-3)


def test_bfc_statistics_in_one_line_each() -> None:
    fact = next(bfc_statistics("Limit:   1048576000\nInUse:  943718400\nMaxInUse: 943718400\n"))
    assert (fact.limit, fact.allocated, fact.reserved_unallocated) == (1000.0, 900.0, 100.0)


HOST = [
    ("[1.0] Out of memory: Kill process 2741 (python) score 912 or sacrifice child", "host", "python"),
    ("[1.0] Memory cgroup out of memory: Kill process 2741 (python) score 1987 or sacrifice child", "cgroup", "python"),
    ("[1.0] Memory cgroup out of memory: Killed process 2741 (python3) total-vm:9kB, anon-rss:1048576kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:9kB oom_score_adj:969", "cgroup", "python3"),
    ("[1.0] Killed process 2741 (train.py) total-vm:88kB, anon-rss:77kB, file-rss:0kB", "unknown", "train.py"),
    ("[1.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0-1,oom_memcg=/kubepods.slice/p.slice,task_memcg=/kubepods.slice/p.slice/c.scope,task=python,pid=99,uid=0", "cgroup", "python"),
    ("[1.0] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python3,pid=99,uid=1000", "host", "python3"),
    ("[1.0] Task in /docker/0a1b killed as a result of limit of /docker/0a1b", "cgroup", None),
    ("[1.0] python invoked oom-killer: gfp_mask=0x14200ca(GFP_HIGHUSER_MOVABLE), order=0", "unknown", None),
    ("[1.0] oom_reaper: reaped process 2741 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB", "unknown", "python"),
    ("node systemd-oomd[700]: Killed /system.slice/trainer.service due to memory used (33216294912) / total (33562857472) and swap used (8053063680) / total (8589930496) being more than 90.00%", "host", "trainer.service"),
    ("earlyoom: sending SIGKILL to process 5120 \"python\": badness 812, VmRSS 60211 MiB", "host", "python"),
    ("Last State: Terminated  Reason: OOMKilled  Exit Code: 137", "pod", None),
    ("Warning  SystemOOM  3m  kubelet  System OOM encountered, victim process: python3, pid: 88", "host", "python3"),
    ("slurmstepd: error: Detected 3 oom_kill events in StepId=991.0. Some of the step tasks have been OOM Killed.", "cgroup", None),
    ("slurmstepd: error: Job 42 exceeded memory limit (33685504 > 33554432), being killed", "cgroup", None),
    ("srun: error: gpu03: task 2: Out Of Memory", "cgroup", None),
    ("=>> PBS: job killed: mem 67108876kb exceeded limit 67108864kb", "cgroup", None),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "cgroup", None),
    ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "host", None),
    ("trainer.service: A process of this unit has been killed by the OOM killer.", "unknown", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "scope", "process"), HOST, ids=[row[0][:60] for row in HOST])
def test_host_wordings(text: str, scope: str, process: str | None) -> None:
    found = [
        fact for fact in Scanner(HOST_FORMATS, ()).scan("log", (text.encode(),)).facts if fact.kind == "host_oom_kill"
    ]
    assert [(fact.value("scope"), fact.value("process")) for fact in found] == [(scope, process)]


@pytest.mark.parametrize(
    "text",
    [
        '            "OOMKilled": false,',
        "memory: usage 100kB, limit 9007199254740988kB, failcnt 0",
        "systemd-oomd.service: Deactivated successfully.",
        "earlyoom[11]: mem avail: 20000 of 30000 MiB (66.6%), swap free: 5000 of 5000 MiB",
        "sacct columns: OUT_OF_MEMORY means the step ran out of it",
    ],
)
def test_host_silent(text: str) -> None:
    assert not Scanner(HOST_FORMATS, ()).scan("log", (text.encode(),)).facts


KV = [
    ("ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.79 GiB). Based on the available memory, the estimated maximum model length is 47400. Try increasing", "vllm", 16384.0, 47400),
    ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", "vllm", None, None),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "sglang", None, None),
    ("[TRT-LLM] [RANK 1] [E] Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: KV cache", "tensorrt-llm", None, None),
    ("llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", "llama.cpp", None, None),
    ("Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`", "tgi", 4096.0, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "server", "needed", "fits"), KV, ids=[row[0][:60] for row in KV])
def test_kv_cache(text: str, server: str, needed: float | None, fits: int | None) -> None:
    text = text.partition("\n\n")[2] or text
    fact = next(kv_cache(text))
    assert (fact.server, fact.needed, fact.max_length) == (server, needed, fits)


def test_free_at_start_of_tensorflow_1() -> None:
    fact = next(free_at_start("totalMemory: 10.91GiB freeMemory: 397.56MiB"))
    assert fact.taken_share > 0.9 and not fact.refused


def test_memory_use_that_levels_off_does_not_grow() -> None:
    lines = [f"step {n} cuda memory allocated: {min(9000, 5000 + 1000 * n)} MB" for n in range(30)]
    assert not next(gpu_memory_use("\n".join(lines))).growing
    saw = [f"gpu memory used: {4000 + (n % 5) * 900} MiB" for n in range(40)]
    assert not next(gpu_memory_use("\n".join(saw))).growing


def test_garbled_text_never_breaks_a_parser() -> None:
    source = random.Random(7)
    texts = [row[0] for row in (*WORDINGS, *HOST, *KV)]
    for _ in range(600):
        text = source.choice(texts)
        cut = text[source.randrange(len(text)) : source.randrange(len(text) + 1)] + source.choice(
            ["", "\n", "9" * 400, "(((", "\x00"]
        )
        for parse in (
            gpu_oom,
            kernel_oom,
            daemon_oom,
            scheduler_oom,
            kv_cache,
            free_at_start,
            gpu_memory_use,
            bfc_statistics,
        ):
            try:
                list(parse(cut))  # type: ignore[operator]
            except NotThisFormat:
                continue


def test_hostile_line_takes_linear_time() -> None:
    line = "CUDA out of memory. Tried to allocate " + "1 GiB has " * 100_000
    Scanner((*FORMATS, *HOST_FORMATS), ()).scan("log", ((line + "\n").encode() * 3,))
