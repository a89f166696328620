"""Judges a program that was read: memory growth, precision, distribution, fixed devices, data loading, removed names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from gpudoctor.preflight.api import STRATEGIES, TABLE, Parts
from gpudoctor.preflight.model import Remark
from gpudoctor.preflight.program import Call, Program, paths_below


@dataclass(frozen=True)
class Surroundings:
    """What is known of the machine and its packages where that matters for a program; None where it isn't known."""

    gpus: int | None = None
    capability: float | None = None
    cpus: int | None = None
    parts: Parts = TABLE
    lightning: tuple[int, ...] | None = None


# path -> (what became of it, what to write instead); only what is gone for good
_GONE = {
    "tensorflow.Session": ("went with TensorFlow 2", "eager execution, or tf.compat.v1.Session"),
    "tensorflow.ConfigProto": ("went with TensorFlow 2", "tf.config, or tf.compat.v1.ConfigProto"),
    "tensorflow.GPUOptions": ("went with TensorFlow 2", "tf.config.experimental.set_memory_growth"),
    "tensorflow.placeholder": ("went with TensorFlow 2", "function arguments, or tf.compat.v1.placeholder"),
    "tensorflow.get_default_graph": ("went with TensorFlow 2", "tf.function, or tf.compat.v1.get_default_graph"),
    "tensorflow.contrib": ("went with TensorFlow 2", "tf.distribute, tf.keras or tensorflow_addons"),
    "tensorflow.keras.utils.multi_gpu_model": ("was removed in TensorFlow 2.4", "tf.distribute.MirroredStrategy"),
    "keras.utils.multi_gpu_model": ("was removed", "tf.distribute.MirroredStrategy"),
    "tensorflow.keras.mixed_precision.experimental": (
        "was removed in TensorFlow 2.16",
        "tf.keras.mixed_precision.set_global_policy('mixed_float16')",
    ),
    "torch.utils.data.dataloader.default_collate_fn": ("does not exist", "torch.utils.data.default_collate"),
}
_TRAINER_GONE = {
    "gpus": "accelerator='gpu', devices=...",
    "num_gpus": "devices=...",
    "tpu_cores": "accelerator='tpu', devices=...",
    "auto_select_gpus": "devices='auto'",
}
_BACKENDS = ("nccl", "gloo", "mpi", "ucc", "xccl", "hccl")
_TRAINS_TF = ("fit", "apply_gradients", "train_on_batch", "fit_generator")


def check_program(program: Program, around: Surroundings | None = None) -> Iterator[Remark]:
    """Yield what is wrong with a program, and what could be better."""
    around = around or Surroundings()
    yield from _gone(program)
    yield from _devices(program, around)
    if "tensorflow" in program.frameworks or "keras" in program.frameworks:
        yield from _strategies(program, around.parts)
        yield from _tensorflow(program, around)
    if "torch" in program.frameworks or "lightning" in program.frameworks or "pytorch_lightning" in program.frameworks:
        yield from _torch(program, around)
    if "jax" in program.frameworks:
        yield from _jax(program)


def _at(program: Program, line: int) -> str:
    return f"{program.name}:{line}"


def _gone(program: Program) -> Iterator[Remark]:
    seen: set[str] = set()
    for mention in program.mentions:
        for path, (fate, instead) in _GONE.items():
            if (mention.path == path or mention.path.startswith(path + ".")) and path not in seen:
                seen.add(path)
                yield Remark("no", "script", f"{path} {fate}.", _at(program, mention.line), (f"# write: {instead}",))


def _strategies(program: Program, parts: Parts) -> Iterator[Remark]:
    """Classes below tf.distribute that don't exist, and arguments that their constructors don't take."""
    package = "tensorflow.distribute"
    missing: set[str] = set()
    for mention in paths_below(program, package):
        name = mention.path[len(package) + 1 :]
        head = ".".join(name.split(".")[: 2 if name.startswith("experimental.") else 1])
        if head in parts.names or head in missing or head.startswith("cluster_resolver"):
            continue
        missing.add(head)
        bare = head.removeprefix("experimental.")
        if bare in parts.names:
            text = f"tf.distribute.{head} does not exist in {parts.source}; it is tf.distribute.{bare}."
        else:
            near = difflib.get_close_matches(
                bare, [known for known in parts.names if known.endswith("Strategy")], n=1, cutoff=0.75
            )
            hint = f" Did you mean tf.distribute.{near[0]}?" if near else ""
            text = (
                f"tf.distribute.{head} exists in no TensorFlow.{hint}"
                if parts is TABLE
                else f"tf.distribute.{head} does not exist in {parts.source}.{hint}"
            )
        yield Remark("no", "script", text, _at(program, mention.line), _existing(parts))
    for call in program.calls:
        if not call.path.startswith(package + ".") or call.spreads:
            continue
        name = call.path[len(package) + 1 :]
        allowed = parts.arguments.get(name)
        if allowed is None:
            continue
        wrong = [keyword for keyword in call.keywords if keyword not in allowed]
        if wrong:
            takes = ", ".join(allowed) or "none"
            yield Remark(
                "no",
                "script",
                f"tf.distribute.{name} takes no argument {wrong[0]!r}; it takes: {takes}.",
                _at(program, call.line),
                (f"# tf.distribute.{name}({', '.join(f'{known}=...' for known in allowed)})",),
            )
        elif len(call.positional) > len(allowed):
            yield Remark(
                "no", "script", f"tf.distribute.{name} takes at most {len(allowed)} arguments.", _at(program, call.line)
            )


def _existing(parts: Parts) -> tuple[str, ...]:
    return tuple(
        f"# tf.distribute.{name}: {purpose}"
        for name, (_, purpose) in STRATEGIES.items()
        if name in parts.names and not name.startswith("experimental.")
    )


def _devices(program: Program, around: Surroundings) -> Iterator[Remark]:
    for name, line in program.devices:
        digits = "".join(char for char in name.rpartition("(" if "(" in name else ":")[2] if char.isdigit())
        index = int(digits or 0)
        if around.gpus is not None and index >= around.gpus:
            yield Remark(
                "no",
                "script",
                f"{name} is fixed in the program and this machine has {around.gpus} GPU(s), numbered from 0.",
                _at(program, line),
                ("# take the index from LOCAL_RANK or an argument",),
            )
        elif index > 0:
            yield Remark(
                "advice",
                "script",
                f"{name} is fixed in the program; on a machine or in a job with fewer GPUs it fails.",
                _at(program, line),
                ("# take the index from LOCAL_RANK or an argument",),
            )
    if "CUDA_VISIBLE_DEVICES" in program.environment:
        value, line = program.environment["CUDA_VISIBLE_DEVICES"]
        if value in ("", "-1"):
            yield Remark(
                "no",
                "script",
                f"The program sets CUDA_VISIBLE_DEVICES={value!r}, which hides every GPU.",
                _at(program, line),
                ("# leave the line out",),
            )
            return
        listed = [part.strip() for part in value.split(",")]
        if around.gpus is not None and any(part.isdigit() and int(part) >= around.gpus for part in listed):
            yield Remark(
                "no",
                "script",
                f"The program sets CUDA_VISIBLE_DEVICES={value} and this machine has {around.gpus} GPU(s), numbered from 0.",
                _at(program, line),
                ("# leave it to whoever starts the program",),
            )
        elif value != "None":
            yield Remark(
                "advice",
                "script",
                f"The program sets CUDA_VISIBLE_DEVICES={value} itself and so overrides what a scheduler gives it.",
                _at(program, line),
                ("# leave it to whoever starts the program",),
            )


def _tensorflow(program: Program, around: Surroundings) -> Iterator[Remark]:
    trains = [line for method in _TRAINS_TF for line in program.methods.get(method, [])]
    grows = (
        program.called("set_memory_growth", "set_virtual_device_configuration", "set_logical_device_configuration")
        or "TF_FORCE_GPU_ALLOW_GROWTH" in program.environment
        or any(path.endswith("allow_growth") for path in program.assigned)
        or program.called("LogicalDeviceConfiguration")
    )
    if trains and not grows:
        yield Remark(
            "advice",
            "script",
            "TensorFlow will take nearly the whole GPU for its pool; libraries and other programs beside it may find none.",
            _at(program, min(trains)),
            ("export TF_FORCE_GPU_ALLOW_GROWTH=true",),
        )
    policy = program.called("set_global_policy", "set_policy", "mixed_precision.Policy") or program.called(
        "enable_mixed_precision_graph_rewrite"
    )
    if trains and not policy and _tensor_cores(around):
        yield Remark(
            "advice",
            "script",
            "Training runs in fp32; the tensor cores of this GPU would do more in mixed precision."
            if around.capability
            else "Training runs in fp32; on a GPU with tensor cores (Volta and newer) mixed precision does more.",
            _at(program, min(trains)),
            ("# tf.keras.mixed_precision.set_global_policy('mixed_float16'); last layer with dtype='float32'",),
        )
    strategy = any("distribute" in call.path and call.path.endswith("Strategy") for call in program.calls)
    if trains and not strategy and (around.gpus or 0) > 1:
        yield Remark(
            "advice",
            "script",
            f"Only one of the {around.gpus} GPUs will be used.",
            _at(program, min(trains)),
            ("# strategy = tf.distribute.MirroredStrategy(); build and compile the model in strategy.scope()",),
        )
    pipeline = program.called("from_tensor_slices", "TFRecordDataset", "image_dataset_from_directory", "list_files")
    if pipeline and "prefetch" not in program.methods:
        yield Remark(
            "advice",
            "script",
            "The tf.data pipeline has no prefetch: the GPU waits while the next batch is made.",
            _at(program, pipeline[0].line),
            ("# dataset = dataset.prefetch(tf.data.AUTOTUNE)",),
        )
    for call in program.calls:
        if (
            call.path.endswith(".map")
            and pipeline
            and call.line > pipeline[0].line
            and "num_parallel_calls" not in call.keywords
            and not call.spreads
            and len(call.positional) < 2
        ):
            yield Remark(
                "advice",
                "script",
                "The pipeline's map runs on one core.",
                _at(program, call.line),
                ("# dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE)",),
            )
            break


def _tensor_cores(around: Surroundings) -> bool:
    return around.capability is None or around.capability >= 7.0


def _torch(program: Program, around: Surroundings) -> Iterator[Remark]:
    loaders = [call for call in program.called("DataLoader") if call.path.startswith("torch")]
    for call in loaders:
        yield from _loader(program, call, around)
    yield from _trainer(program, around)
    trains = program.methods.get("backward", [])
    precise = (
        program.called(
            "autocast", "GradScaler", "set_float32_matmul_precision", "Accelerator", "prepare_model_for_kbit_training"
        )
        or program.names("torch.bfloat16", "torch.float16", "torch.half")
        or any("allow_tf32" in path for path in program.assigned)
        or {"half", "bfloat16"} & set(program.methods)
    )
    if trains and not precise and _tensor_cores(around):
        yield Remark(
            "advice",
            "script",
            "Training runs in fp32; mixed precision uses the tensor cores and half the memory for activations.",
            _at(program, min(trains)),
            (
                "# with torch.autocast('cuda', dtype=torch.bfloat16): loss = model(x)   (fp16 with GradScaler before Ampere)",
                "# or at least: torch.set_float32_matmul_precision('high')",
            ),
        )
    for call in program.called("nn.DataParallel"):
        yield Remark(
            "advice",
            "script",
            "DataParallel copies the model in every step and uses one process; DistributedDataParallel is faster on one machine too.",
            _at(program, call.line),
            (
                "torchrun --nproc_per_node=<GPUs> train.py   # with DistributedDataParallel(model, device_ids=[local_rank])",
            ),
        )
    started = program.called("init_process_group")
    for call in started:
        backend = call.values.get("backend", call.positional[0] if call.positional else None)
        if isinstance(backend, str) and not any(
            part.partition(":")[2] in _BACKENDS or part in _BACKENDS for part in backend.lower().split(",")
        ):
            yield Remark(
                "no",
                "script",
                f"{backend!r} is no backend of torch.distributed.",
                _at(program, call.line),
                ("# init_process_group('nccl')",),
            )
        elif backend == "gloo" and program.called("DistributedDataParallel"):
            yield Remark(
                "advice",
                "script",
                "gloo moves gradients through the CPU; nccl is the backend for GPUs.",
                _at(program, call.line),
                ("# init_process_group('nccl')",),
            )
    if started and program.called("DistributedDataParallel"):
        if (
            not program.called("cuda.set_device")
            and not program.names("LOCAL_RANK")
            and not any("LOCAL_RANK" in text for text, _ in program.strings)
        ):
            yield Remark(
                "advice",
                "script",
                "No rank chooses its GPU: without torch.cuda.set_device(local_rank) all of them open GPU 0.",
                _at(program, started[0].line),
                ("# torch.cuda.set_device(int(os.environ['LOCAL_RANK']))",),
            )
        if (
            loaders
            and not program.called("DistributedSampler")
            and not any("sampler" in call.keywords for call in loaders)
        ):
            yield Remark(
                "advice",
                "script",
                "Every rank reads the whole data set; a DistributedSampler gives each its part.",
                _at(program, loaders[0].line),
                ("# DataLoader(..., sampler=DistributedSampler(dataset))",),
            )


def _loader(program: Program, call: Call, around: Surroundings) -> Iterator[Remark]:
    if call.spreads:
        return
    workers = call.values.get("num_workers")
    where = _at(program, call.line)
    if "num_workers" not in call.keywords or workers == 0:
        yield Remark(
            "advice",
            "script",
            "This DataLoader reads in the training process itself (num_workers=0): the GPU waits for each batch.",
            where,
            ("# num_workers=4 to 8 per GPU, persistent_workers=True",),
        )
    elif isinstance(workers, int) and around.cpus is not None and workers * max(1, around.gpus or 1) > around.cpus:
        yield Remark(
            "advice",
            "script",
            f"{workers} workers per process on {around.gpus or 1} GPU(s) are more than the {around.cpus} CPU cores of this machine.",
            where,
            (f"# num_workers={max(1, around.cpus // max(1, around.gpus or 1) - 1)}",),
        )
    if "pin_memory" not in call.keywords or call.values.get("pin_memory") is False:
        yield Remark(
            "advice",
            "script",
            "Without pin_memory=True batches are copied to the GPU more slowly.",
            where,
            ("# pin_memory=True, and batch.to(device, non_blocking=True)",),
        )


def _trainer(program: Program, around: Surroundings) -> Iterator[Remark]:
    """Arguments of Lightning's Trainer that version 2 no longer takes."""
    for call in program.called("Trainer"):
        if not call.path.startswith(("lightning", "pytorch_lightning")):
            continue
        old = around.lightning is not None and around.lightning < (2, 0)
        for keyword in call.keywords:
            if keyword in _TRAINER_GONE and not old:
                yield Remark(
                    "no" if around.lightning else "advice",
                    "script",
                    f"Trainer takes no {keyword!r} since Lightning 2.0.",
                    _at(program, call.line),
                    (f"# Trainer({_TRAINER_GONE[keyword]})",),
                )
        if call.values.get("strategy") in ("ddp2", "dp") and not old:
            yield Remark(
                "no" if around.lightning else "advice",
                "script",
                f"Lightning 2 has no strategy {call.values['strategy']!r}.",
                _at(program, call.line),
                ("# strategy='ddp'",),
            )


def _jax(program: Program) -> Iterator[Remark]:
    platform = program.environment.get("JAX_PLATFORMS") or program.environment.get("JAX_PLATFORM_NAME")
    if platform and platform[0] == "cpu":
        yield Remark(
            "no",
            "script",
            "The program keeps JAX on the CPU.",
            _at(program, platform[1]),
            ("# leave JAX_PLATFORMS=cpu out",),
        )
    for call in program.called("config.update"):
        if call.positional[:2] in (("jax_platform_name", "cpu"), ("jax_platforms", "cpu")):
            yield Remark(
                "no", "script", "The program keeps JAX on the CPU.", _at(program, call.line), ("# leave the line out",)
            )
    if (
        ("tensorflow" in program.frameworks or "torch" in program.frameworks)
        and "XLA_PYTHON_CLIENT_PREALLOCATE" not in program.environment
        and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in program.environment
    ):
        yield Remark(
            "advice",
            "script",
            "JAX takes three quarters of the GPU at start, and another framework in the same program finds little.",
            fixes=("export XLA_PYTHON_CLIENT_MEM_FRACTION=0.5",),
        )
