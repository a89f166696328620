"""Inference servers that find no room: the KV cache is too small, or the GPU isn't free when they start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.memory import FreeAtStart, KvCache
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.template import size_bytes

_S = r"-?\d[\d.,]*\s*(?:[kKMGT]i?)?[bB]"
_N = r"\d[\d,]*"

# server, fatal, pattern with the groups needed/available in tokens (…_tokens) or sizes (…_size), length
_WORDINGS: tuple[tuple[str, bool, LazyRegex], ...] = tuple(
    (server, fatal, LazyRegex(pattern, re.IGNORECASE))
    for server, fatal, pattern in (
        ("vllm", True, rf"max seq len \((?P<needed_tokens>{_N})\) is larger than the maximum number of tokens that can be stored in (?:the )?KV cache \((?P<available_tokens>{_N})\)"),
        ("vllm", True, rf"max seq len \((?P<length>{_N})\), \(?(?P<needed_size>{_S}) KV cache is needed, which is larger than the available KV cache memory \((?P<available_size>{_S})\)(?:.{{0,80}}estimated maximum model length is (?P<fits>{_N}))?"),
        ("vllm", True, r"No available memory for the cache blocks"),
        ("vllm", False, r"preempted by PreemptionMode\.\w+ mode because there is not enough KV cache space"),
        ("vllm", False, rf"(?:prompt|input) \((?P<needed_tokens>{_N}) tokens\) .{{0,40}}exceeds the capacity of block_manager"),
        ("sglang", True, r"Not enough memory\. Please try to increase --mem-fraction-static"),
        ("sglang", True, r"(?:Prefill|Decode) out of memory\. Try to lower your batch size"),
        ("sglang", False, r"(?:KV cache pool is full|Decode out of memory happened)\.? ?.{0,10}Retract"),
        ("sglang", True, rf"input length \((?P<needed_tokens>{_N}) tokens\) exceeds the maximum allowed length \((?P<available_tokens>{_N}) tokens\).{{0,60}}KV cache"),
        ("tensorrt-llm", True, rf"max KV cache length of input sequences \((?P<needed_tokens>{_N})\) exceeds the KV cache manager's maximum supported length \((?P<available_tokens>{_N})\)"),
        ("tensorrt-llm", True, r"Can't allocate (?:enough )?(?:new )?blocks?\b.{0,20}KV ?cache"),
        ("tensorrt-llm", True, r"component could not be created: KV cache(?:.{0,60}Total GPU memory \(GiB\): (?P<total_gib>\d+(?:\.\d+)?))?"),
        ("tensorrt-llm", True, r"(?:Impossible to fit any sequence in kvCache|No (?:free|available) blocks? (?:left )?(?:in|for).{0,20}KV ?cache|not enough (?:free )?memory .{0,30}kv ?cache|kv ?cache.{0,40}(?:insufficient|not enough) (?:GPU )?memory)"),
        ("tgi", True, rf"Not enough memory to handle (?P<needed_tokens>{_N}) (?:total|prefill) tokens(?: with .{{0,60}})?\. You need to (?:decrease|increase)"),
        ("tgi", True, r"Not enough memory to run with (?:the )?`?--?max-batch-(?:prefill|total)-tokens"),
        ("lmdeploy", True, r"No enough blocks? for (?:`?session_len`?)? ?\(?(?P<needed_tokens>\d+)\)?"),
        ("llama.cpp", True, r"(?:llama_\w*kv_cache\w*|llama_new_context\w*|llama_init\w*|llama_context)\S*:.{0,60}(?:failed to allocate (?:CUDA\d+ )?buffer for kv cache|kv_cache_init\(\) failed for self-attention cache|failed to allocate .{0,20}kv cache)"),
        ("ollama", True, r"(?:failed to (?:create|initialize) (?:the )?context: )failed to allocate (?:buffer for )?(?:kv|memory for the KV) ?cache"),
    )
)  # fmt: skip


def kv_cache(text: str) -> Iterator[KvCache]:
    """A server that has too little room for its KV cache.

    >>> fact = next(kv_cache("ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that "
    ... "can be stored in KV cache (7344). Try increasing `gpu_memory_utilization`"))
    >>> fact.server, fact.needed, fact.available, fact.account
    ('vllm', 32768.0, 7344.0, 'one sequence may have 32768 tokens and the cache holds 7344')
    """
    message = " ".join(line.strip() for line in text.split("\n")[:5])[:1200]
    first = len(text.partition("\n")[0])
    for server, fatal, pattern in _WORDINGS:
        found = pattern.search(message)
        if found is None or found.start() > first:
            continue
        groups = {name: value for name, value in found.groupdict().items() if value}
        fact = KvCache(server=server, fatal=fatal)
        if "needed_tokens" in groups:
            fact.unit, fact.needed = "tokens", _number(groups["needed_tokens"])
            fact.available = _number(groups.get("available_tokens"))
        elif "needed_size" in groups:
            fact.unit, fact.needed, fact.available = "MiB", _mib(groups["needed_size"]), _mib(groups["available_size"])
        length = _number(groups.get("fits"))
        fact.max_length = int(length) if length is not None else None
        if fact.unit == "tokens" and fact.available is not None and fact.max_length is None:
            fact.max_length = int(fact.available)
        fact.account = _account(fact, _number(groups.get("length")))
        yield fact
        return
    raise NotThisFormat


def _account(fact: KvCache, length: float | None) -> str:
    if fact.needed is None:
        return (
            "after the weights and the working memory nothing is left for it" if fact.fatal else "requests have to wait"
        )
    if fact.unit == "tokens":
        held = f" and the cache holds {fact.available:.0f}" if fact.available is not None else ""
        return f"one sequence may have {fact.needed:.0f} tokens{held}"
    of = f" of {length:.0f} tokens" if length is not None else ""
    fits = f"; about {fact.max_length} tokens would fit" if fact.max_length is not None else ""
    return (
        f"one sequence{of} needs {fact.needed / 1024:.2f} GiB and {(fact.available or 0) / 1024:.2f} GiB are left{fits}"
    )


def _number(text: str | None) -> float | None:
    digits = (text or "").replace(",", "")
    return float(digits) if digits.isdigit() else None


def _mib(text: str) -> float | None:
    negative = text.startswith("-")
    try:
        size = size_bytes(text.lstrip("-")) / 2**20
    except ValueError:
        return None
    return -size if negative else size


_VLLM = LazyRegex(
    r"Free memory on device(?: (?P<device>\S+))? \((?P<free>\d+(?:\.\d+)?)/(?P<total>\d+(?:\.\d+)?) Gi?B\) on startup is less than desired "
    r"GPU memory utilization \([\d.]+, (?P<wanted>\d+(?:\.\d+)?) Gi?B\)"
)
_TF_NEW = LazyRegex(
    r"totalMemory: (?P<total>\d+(?:\.\d+)?\s*[KMGT]i?B) freeMemory: (?P<free>\d+(?:\.\d+)?\s*[KMGT]i?B)"
)
_TF_OLD = LazyRegex(
    r"Total memory: (?P<total>\d+(?:\.\d+)?\s*[KMGT]i?B)\s+.{0,80}?Free memory: (?P<free>\d+(?:\.\d+)?\s*[KMGT]i?B)"
)
_OLLAMA = LazyRegex(
    r"msg=\"inference compute\".{0,400}library=cuda.{0,400}total=\"(?P<total>\d+(?:\.\d+)? [KMGT]i?B)\" available=\"(?P<free>\d+(?:\.\d+)? [KMGT]i?B)\""
)

_SPARK = LazyRegex(
    r"(?:initial|pool) allocation of [\d.]+ Mi?B \(calculated from \S+ \(=[^)]{1,20}\) and (?P<free>\d+(?:\.\d+)?) Mi?B free memory\) was less than "
    r"the minimum allocation of (?P<wanted>\d+(?:\.\d+)?) \(calculated from \S+ \(=[^)]{1,20}\) and (?P<total>\d+(?:\.\d+)?) Mi?B total memory"
)


def free_at_start(text: str) -> Iterator[FreeAtStart]:
    """What a program found free before it took any GPU memory itself.

    >>> fact = next(free_at_start("ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired GPU "
    ... "memory utilization (0.95, 45.01 GiB). Decrease GPU memory utilization"))
    >>> fact.refused, round(fact.taken / 1024, 2), round(fact.taken_share, 2)
    (True, 15.94, 0.34)
    """
    message = " ".join(line.strip() for line in text.split("\n")[:2])[:1600]
    if found := _VLLM.search(message):
        total, free, wanted = (float(found[name]) * 1024 for name in ("total", "free", "wanted"))
        program, refused = "vllm", True
    elif (found := _TF_NEW.search(message)) or (found := _TF_OLD.search(message)):
        total, free = _mib(found["total"]) or 0.0, _mib(found["free"]) or 0.0
        wanted, program, refused = None, "tensorflow", False
    elif found := _SPARK.search(message):
        total, free, wanted = (float(found[name]) for name in ("total", "free", "wanted"))
        program, refused = "spark-rapids", True
    elif found := _OLLAMA.search(message):
        total, free = _mib(found["total"]) or 0.0, _mib(found["free"]) or 0.0
        wanted, program, refused = None, "ollama", False
    else:
        raise NotThisFormat
    if not 0 <= free <= total or not total:
        raise NotThisFormat
    index = re.search(r"\d+$", (found.groupdict().get("device") or "").strip(":"))
    yield FreeAtStart(
        program=program,
        total=total,
        free=free,
        wanted=wanted,
        taken=total - free,
        taken_share=round((total - free) / total, 4),
        refused=refused,
        device=int(index[0]) if index else None,
        gpu=f"GPU {index[0]}" if index else None,
    )


FORMATS = (
    Format(
        "KV cache too small",
        (
            "stored in KV cache",
            "stored in the KV cache",
            "KV cache is needed",
            "memory for the cache blocks",
            "not enough KV cache space",
            "capacity of block_manager",
            "--mem-fraction-static",
            "out of memory. Try to lower",
            "KV cache pool is full",
            "Decode out of memory happened",
            "exceeds the maximum allowed length",
            "component could not be created",
            "any sequence in kvCache",
            "KV cache",
            "kvcache",
            "Not enough memory to",
            "No enough block",
            "buffer for kv cache",
            "self-attention cache",
        ),
        kv_cache,
        lines=5,
    ),
    Format(
        "memory free at start",
        ("Free memory on device", "free memory) was less than", "freeMemory:", "Total memory:", "inference compute"),
        free_at_start,
        lines=2,
    ),
)
