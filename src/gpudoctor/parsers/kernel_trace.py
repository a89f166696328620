"""Stacks that the kernel prints: oopses, hung tasks, lockups, and whose functions are in them."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.host import KernelTrace
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex
from gpudoctor.patterns.stamp import parse_stamp

_BLOCKED = LazyRegex(
    r"task (?P<task>\S+?):(?P<pid>\d+) blocked (?:in I/O wait )?for more than (?P<seconds>\d+) seconds"
)
_STATE = LazyRegex(r"task:(?P<task>\S+)\s+state:D\b.*?pid:\s?(?P<pid>\d+)")
_LOCKUP = LazyRegex(
    r"soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s! \[(?P<task>[^\]]+?):(?P<pid>\d+)\]|hard LOCKUP|detected stalls? on CPU"
)
_OOPS = LazyRegex(
    r"BUG: unable to handle|BUG: kernel NULL pointer|kernel BUG at|general protection fault|Oops: |Oops\[#|"
    r"Unable to handle kernel|Kernel panic - not syncing|divide error: |invalid opcode: |unable to handle page fault"
)
_COMM = LazyRegex(r"\bPID: (?P<pid>\d+)\b.*?\bComm: (?P<task>\S+)")
_FUNCTION = LazyRegex(r"(?P<function>[A-Za-z_]\w+)\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?P<module>nvidia\w*)\b")
# Without an offset, as kdump and some distributions print it.
_BARE = LazyRegex(
    r"^\s*\??\s*(?P<function>(?:_nv\d+rm|nv_\w+|rm_\w+|os_acquire\w+|uvm_\w+))\s*(?:\[(?:nvidia\w*)\])?\s*$"
)
_NEXT = LazyRegex(r"blocked for more than|BUG: |end trace|soft lockup|task:\S+ +state:")
_GPU_TASK = LazyRegex(r"^(?:nvidia|nv_|irq/\d+-nvidia|UVM |uvm|dcgm|nv-hostengine|nvsm|X$|Xorg)")


def kernel_trace(text: str) -> Iterator[KernelTrace]:
    r"""An oops, a hung task or a lockup with its stack.

    >>> sample = '''[ 9.1] INFO: task nv_queue:1014 blocked for more than 120 seconds.
    ... [ 9.1] Call Trace:
    ... [ 9.1]  rmapiLockAcquire+0x294/0x360 [nvidia]'''
    >>> fact = next(kernel_trace(sample)); fact.event, fact.nvidia, fact.function
    ('blocked', True, 'rmapiLockAcquire')
    """
    lines = text.split("\n")
    first = parse_stamp(lines[0]).message.strip()
    task = pid = seconds = None
    if found := _BLOCKED.search(first) or _STATE.search(first):
        groups = found.groupdict()
        event, task, pid = "blocked", groups["task"], int(groups["pid"])
        seconds = int(groups["seconds"]) if groups.get("seconds") else None
    elif found := _LOCKUP.search(first):
        event, task = "lockup", found["task"]
        pid = int(found["pid"]) if found["pid"] else None
        seconds = int(found["seconds"]) if found["seconds"] else None
    elif _OOPS.search(first) and not first.startswith("traps: "):  # that is a program's own fault
        event = "oops"
    else:
        raise NotThisFormat
    function = None
    for number, line in enumerate(lines[1:], start=1):
        message = parse_stamp(line).message
        if "Modules linked in:" in message:
            continue
        if number > 2 and _NEXT.search(message) and not _STATE.search(message):
            break
        if task is None and (found := _COMM.search(message)):
            task, pid = found["task"], int(found["pid"])
        if function is None and (found := _FUNCTION.search(message) or _BARE.match(message)):
            function = found["function"]
    if function is None and (found := _FUNCTION.search(first)):
        function = found["function"]
    yield KernelTrace(
        event=event,
        task=task,
        pid=pid,
        seconds=seconds,
        nvidia=function is not None,
        gpu_task=bool(task and _GPU_TASK.match(task)),
        function=function,
        message=first[:200],
    )


FORMATS = (
    Format(
        "kernel stack",
        (
            "blocked for more than",
            "blocked in I/O wait for more",
            "state:D ",
            "soft lockup - CPU",
            "hard LOCKUP",
            "detected stall",
            "BUG: unable to handle",
            "BUG: kernel NULL",
            "kernel BUG at",
            "general protection fault",
            "Oops: ",
            "Unable to handle kernel",
            "Kernel panic - not syncing",
        ),
        kernel_trace,
        lines=70,
    ),
)
