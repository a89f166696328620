"""Formats of Slurm: nodes and jobs as its commands show them, its configuration files, batch scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gpudoctor.facts.container import SlurmGres, SlurmJob, SlurmNode
from gpudoctor.facts.host import Config
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

_GPU_WORDS = LazyRegex(
    r"gpu|gres|nvidia|check_nv|nvml|xid|\becc\b|nvlink|nvswitch|cuda|dcgm|fabric ?manager|row ?remap|retired page|fallen off",
    re.IGNORECASE,
)
_COUNT_LOW = LazyRegex(r"gres/\w+(?::\S+)? count (?:reported lower than configured|too low)")


def _slurm_node(
    name: str, state: str | None, reason: str | None, at: int, *, gres: str | None = None, used: str | None = None
) -> SlurmNode:
    return SlurmNode(
        at=at,
        name=name,
        state=state,
        reason=reason,
        drained=bool(state and re.search(r"drain|drng|down|fail|inval", state, re.IGNORECASE)) if state else None,
        gpu_reason=bool(_GPU_WORDS.search(reason)) if reason else None,
        count_low=bool(_COUNT_LOW.search(reason)) if reason else None,
        gres=gres,
        gres_used=used,
    )


def show_node(text: str) -> Iterator[SlurmNode]:
    r"""`scontrol show node`.

    >>> node = next(show_node("NodeName=n1 Arch=x86_64 CoresPerSocket=1\n   Gres=gpu:a100:4\n   State=IDLE+DRAIN ThreadsPerCore=1\n   Reason=gres/gpu count reported lower than configured (3 < 4) [slurm@2024-12-19T11:03:34]"))
    >>> node.name, node.gres, node.drained, node.count_low
    ('n1', 'gpu:a100:4', True, True)
    """
    lines = text.split("\n")
    name = re.match(r"\s*NodeName=(\S+)", lines[0])
    if not name:
        raise NotThisFormat
    state = gres = used = reason = None
    last = 0
    for offset, line in enumerate(lines[:60]):
        if offset and line.lstrip().startswith("NodeName="):
            break
        if found := re.search(r"\bState=(\S+)", line):
            state, last = found[1], offset
        if found := re.search(r"\bGres=(\S+)", line):
            gres = found[1]
        if found := re.search(r"\bGresUsed=(\S+)", line):
            used = found[1]
        if found := re.search(r"\bReason=(.*?)(?: \[[^\]]*\])?\s*$", line):
            reason, last = found[1].strip(), offset
    if "Arch=" not in text[:4000] and "ThreadsPerCore=" not in text[:4000] and reason is None:
        raise NotThisFormat
    if not re.search(r"\bState=\S+ +\w|\bReason=|\bArch=", text[:4000]):
        raise NotThisFormat  # a line of slurm.conf
    yield _slurm_node(name[1], state, reason, last, gres=gres, used=used)


def sinfo_reasons(text: str) -> Iterator[SlurmNode]:
    r"""`sinfo -R`: why nodes are down or drained.

    >>> rows = "REASON               USER      TIMESTAMP           NODELIST\ngres/gpu count report root      2024-05-01T10:11:12 gpu[01-02]"
    >>> node = next(sinfo_reasons(rows))
    >>> node.name, node.reason, node.gpu_reason
    ('gpu[01-02]', 'gres/gpu count report', True)
    """
    lines = text.split("\n")
    if not re.match(r"\s*REASON\s+USER\s+TIMESTAMP", lines[0]):
        raise NotThisFormat
    for offset, line in enumerate(lines[1:], start=1):
        found = re.match(
            r"\s*(?P<reason>\S.*?)\s+(?P<user>\S+)\s+(?:\d{4}-\d\d-\d\dT\S+|Unknown)\s+(?:(?P<state>[a-z]\w*[*$@#~!%^-]?)\s+)?(?P<nodes>\S+)\s*$",
            line,
        )
        if not found:
            return
        yield _slurm_node(found["nodes"], found["state"] or "drained", found["reason"].strip(), offset)


_COLUMN = LazyRegex(r"[A-Z][A-Z_:()/]*$")


def sinfo_table(text: str) -> Iterator[SlurmNode]:
    r"""`sinfo -N -o ...` or `sinfo -Nl`: a table of nodes with a column for the reason.

    >>> rows = "NODELIST STATE   REASON\ngpu-1    idle    none\ngpu-2    drained uncorrectable ECC errors on GPU 3"
    >>> [(node.name, node.drained, node.reason) for node in sinfo_table(rows)]
    [('gpu-1', False, None), ('gpu-2', True, 'uncorrectable ECC errors on GPU 3')]
    """
    lines = text.split("\n")
    columns = lines[0].split()
    nodes = next((name for name in ("NODELIST", "HOSTNAMES") if name in columns), None)
    if not nodes or "REASON" not in columns or "TIMESTAMP" in columns or not all(map(_COLUMN.match, columns)):
        raise NotThisFormat
    before = columns.index("REASON")
    behind = len(columns) - before - 1
    for offset, line in enumerate(lines[1:], start=1):
        words = line.split()
        if len(words) <= before + behind:
            return
        end = len(words) - behind
        cells = dict(zip([*columns[:before], *columns[before + 1 :]], [*words[:before], *words[end:]], strict=True))
        reason = " ".join(words[before:end])
        state = cells.get("STATE", "drained")
        yield _slurm_node(cells[nodes], state, None if reason in {"none", "(null)", "N/A"} else reason, offset)


def show_job(text: str) -> Iterator[SlurmJob]:
    r"""`scontrol show job`.

    >>> job = next(show_job("JobId=7 JobName=train\n   JobState=PENDING Reason=Resources Dependency=(null)\n   Partition=gpu AllocNode:Sid=l:1\n   ReqTRES=cpu=8,mem=64G,node=1,gres/gpu=2\n"))
    >>> job.gpus, job.reason
    (2, 'Resources')
    """
    lines = text.split("\n")
    name = re.match(r"\s*JobId=(\d+)", lines[0])
    if not name:
        raise NotThisFormat
    end = next((number for number, line in enumerate(lines[1:], start=1) if not line.strip() or "JobId=" in line), 60)
    body = "\n".join(lines[:end])
    if "JobState=" not in body:
        raise NotThisFormat
    values = dict(re.findall(r"\b(JobState|Reason|Partition)=(\S+)", body))
    tres = re.search(r"\b(?:ReqTRES|AllocTRES|TRES)=(\S*)", body)
    per_node = re.search(r"\b(?:TresPer\w+|Gres|TresPerNode)=(?:gres[:/])?gpu(?::[\w.-]+)?:(\d+)", body)
    gpus = None
    if tres:
        count = re.search(r"gres/gpu(?::[\w.-]+)?=(\d+)", tres[1])
        gpus = int(count[1]) if count else int(per_node[1]) if per_node else 0
    reason = values.get("Reason")
    yield SlurmJob(
        id=name[1],
        gpus=gpus,
        partition=values.get("Partition"),
        state=values.get("JobState"),
        reason=None if reason == "None" else reason,
        seen_by="scontrol",
    )


_GPU_REQUEST = LazyRegex(
    r"(?:--gres(?:-flags)?[= ]\S*gpu(?::[A-Za-z][\w.-]*)?(?::(?P<gres>\d+))?|--gpus(?:-per-(?:node|task|socket))?[= ](?:[A-Za-z][\w.-]*:)?(?P<gpus>\d+)"
    r"|-G ?(?:[A-Za-z][\w.-]*:)?(?P<short>\d+)|--tres-per-\w+[= ]\S*gpu)"
)


def batch_script(text: str) -> Iterator[SlurmJob]:
    r"""The `#SBATCH` lines of a batch script.

    >>> next(batch_script("#SBATCH --partition=gpu\n#SBATCH --gres=gpu:a100:2\n#SBATCH -t 1:00")).gpus
    2
    >>> next(batch_script("#SBATCH -p gpu\n#SBATCH -N 1\nsrun python train.py")).gpus
    0
    """
    lines = text.split("\n")
    if not lines[0].lstrip().startswith("#SBATCH"):
        raise NotThisFormat
    gpus = 0
    partition = None
    options, last = 0, 0
    for offset, line in enumerate(lines):
        stripped = line.strip()
        if not stripped.startswith("#SBATCH"):
            continue
        options, last = options + 1, offset
        if found := _GPU_REQUEST.search(stripped):
            number = next((group for group in found.groups() if group), "1")
            gpus = max(gpus, int(number))
        if found := re.search(r"(?:--partition[= ]|-p ?)(\S+)", stripped):
            partition = found[1]
    yield SlurmJob(at=last, gpus=gpus, partition=partition, seen_by="script")


_LISTS = LazyRegex(r'\s*"(?P<list>nodes|jobs)"\s*:\s*(?=\[)')
_TRES = LazyRegex(r"gres/gpu(?::[\w.-]+)?=(\d+)")


def data_json(text: str) -> Iterator[SlurmNode | SlurmJob]:
    r"""`scontrol show node --json`, `sinfo --json`, `squeue --json`: the list of nodes or jobs in it.

    >>> sample = '"nodes": [{"name": "n1", "state": ["IDLE", "DRAIN"], "reason": "gres/gpu count too low (3 < 4)", "gres": "gpu:4"}]'
    >>> node = next(data_json(sample)); node.name, node.state, node.drained, node.count_low
    ('n1', 'IDLE+DRAIN', True, True)
    """
    found = _LISTS.match(text)
    if not found:
        raise NotThisFormat
    try:
        listed, _ = json.JSONDecoder().raw_decode(text, found.end())
    except (ValueError, RecursionError):
        raise NotThisFormat from None
    keys = ("name", "state") if found["list"] == "nodes" else ("job_id", "job_state")
    members = [each for each in listed if isinstance(each, dict) and all(key in each for key in keys)]
    if not members:
        raise NotThisFormat
    lines, at = text.split("\n"), 0
    for member in members:
        value = json.dumps(member[keys[0]])
        at = next(
            (n for n in range(at, len(lines)) if re.match(rf'.*"{keys[0]}"\s*:\s*{re.escape(value)}', lines[n])), at
        )
        yield _node_of(member, at) if found["list"] == "nodes" else _job_of(member, at)
        at = min(at + 1, len(lines) - 1)


def _words(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def _node_of(member: dict[str, Any], at: int) -> SlurmNode:
    flags = member.get("state_flags")
    state = _words(member["state"]) + (f"+{_words(flags)}" if isinstance(flags, list) and flags else "")
    gres, used, reason = (str(member.get(key) or "") or None for key in ("gres", "gres_used", "reason"))
    return _slurm_node(str(member["name"]), state, reason, at, gres=gres, used=used)


def _job_of(member: dict[str, Any], at: int) -> SlurmJob:
    tres = _TRES.search(str(member.get("tres_req_str") or member.get("tres_alloc_str") or ""))
    reason = str(member.get("state_reason") or "None")
    return SlurmJob(
        at=at,
        id=str(member["job_id"]),
        gpus=int(tres[1]) if tres else 0 if member.get("tres_req_str") else None,
        partition=str(member.get("partition") or "") or None,
        state=_words(member["job_state"]),
        reason=None if reason == "None" else reason,
        seen_by="scontrol",
    )


# --- configuration ------------------------------------------------------------------------------------------------

_RANGE = LazyRegex(r"\[([\d,-]+)\]")


def expand_count(pattern: str) -> int:
    """Count the files that Slurm's bracket notation names.

    >>> expand_count("/dev/nvidia[0-3,6]"), expand_count("/dev/nvidia0,/dev/nvidia1")
    (5, 2)
    """
    total = 0
    for part in re.split(r",(?![^\[]*\])", pattern):
        number = 1
        for inside in _RANGE.findall(part):
            count = 0
            for piece in inside.split(","):
                low, _, high = piece.partition("-")
                if low.isdigit() and (not high or high.isdigit()):
                    count += max(1, min(1024, int(high) - int(low) + 1)) if high else 1
            number *= max(count, 1)
        total += number
    return total


def gres_conf(text: str) -> Iterator[SlurmGres]:
    r"""gres.conf: how the GPUs are found, and the records that name them; equal records are counted.

    >>> facts = list(gres_conf("AutoDetect=nvml\nName=gpu\nName=gpu"))
    >>> facts[-1].records, facts[-1].autodetect
    (2, 'nvml')
    >>> next(gres_conf("NodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]")).gpus
    4
    """
    lines = text.split("\n")
    if not re.match(r"\s*(?:AutoDetect=\w+|(?:NodeName=\S+ +)?Name=\w+)", lines[0], re.IGNORECASE):
        raise NotThisFormat
    autodetect = None
    seen: dict[str, int] = {}
    total: dict[str, int] = {}
    last: dict[str, int] = {}
    for offset, line in enumerate(lines):
        stripped = line.partition("#")[0].strip()
        if not stripped:
            continue
        pairs = {key.lower(): value for key, value in re.findall(r"(\w+)=(\S+)", stripped)}
        if not pairs or not ({"autodetect", "name"} & pairs.keys()):
            break
        if "autodetect" in pairs and "name" not in pairs and "nodename" not in pairs:
            autodetect = pairs["autodetect"].lower()
        if pairs.get("name", "").lower() != "gpu":
            continue
        nodes, file = pairs.get("nodename", ""), pairs.get("file", "")
        seen[stripped.lower()] = seen.get(stripped.lower(), 0) + 1
        count = expand_count(file) if file else int(pairs["count"]) if pairs.get("count", "").isdigit() else 0
        total[nodes] = total.get(nodes, 0) + count
        last[nodes] = offset
        if seen[stripped.lower()] == 1:
            yield SlurmGres(
                at=offset,
                seen_by="gres.conf",
                nodes=nodes or None,
                type=pairs.get("type"),
                gpus=count or None,
                file=file or None,
                autodetect=autodetect,
                records=1,
            )
        else:
            yield SlurmGres(
                at=offset,
                seen_by="gres.conf",
                nodes=nodes or None,
                autodetect=autodetect,
                records=seen[stripped.lower()],
            )
    for nodes, count in total.items():
        if count:
            yield SlurmGres(
                at=last[nodes], seen_by="gres.conf total", nodes=nodes or None, gpus=count, autodetect=autodetect
            )


def conf_node(text: str) -> Iterator[SlurmGres]:
    """A node line of slurm.conf that declares GPUs.

    >>> fact = next(conf_node("NodeName=g[1-2] CPUs=64 Gres=gpu:a100:4 State=UNKNOWN"))
    >>> fact.gpus, fact.nodes
    (4, 'g[1-2]')
    """
    line = text.partition("\n")[0]
    found = re.match(r"\s*NodeName=(?P<nodes>\S+)\s.*?\bGres=(?P<gres>\S+)", line, re.IGNORECASE)
    if not found or "Arch=" in line:
        raise NotThisFormat
    counts = re.findall(r"\bgpu(?::([A-Za-z][\w.-]*))?(?::(\d+))?(?=[,(]|$)", found["gres"])
    if not counts:
        raise NotThisFormat
    yield SlurmGres(
        seen_by="slurm.conf",
        nodes=found["nodes"],
        type=counts[0][0] or None,
        gpus=sum(int(number or 1) for _, number in counts),
    )


_SETTINGS = ("ConstrainDevices", "GresTypes", "TaskPlugin", "ProctrackType")


def slurm_setting(text: str) -> Iterator[Config]:
    """A setting of slurm.conf or cgroup.conf that decides about GPUs.

    >>> next(slurm_setting("ConstrainDevices=no")).setting
    'no'
    """
    line = text.partition("\n")[0]
    found = re.match(r"\s*(?P<key>\w+)\s*=\s*(?P<value>\S+)", line)
    key = next((name for name in _SETTINGS if found and found["key"].lower() == name.lower()), None)
    if not found or key is None:
        raise NotThisFormat
    file = "cgroup.conf" if key == "ConstrainDevices" else "slurm.conf"
    yield Config(file=file, key=key, setting=found["value"].lower())


FORMATS: tuple[Format, ...] = (
    Format("scontrol show node", ("NodeName=",), show_node, lines=60),
    Format("sinfo -R", ("REASON ",), sinfo_reasons, lines=200),
    Format("sinfo table", ("REASON",), sinfo_table, lines=200),
    Format("scontrol show job", ("JobId=",), show_job, lines=60),
    Format("Slurm's JSON", ('"nodes": [', '"jobs": ['), data_json, lines=200_000),
    Format("batch script", ("#SBATCH",), batch_script, lines=60),
    Format("gres.conf", ("AutoDetect=", "Name=gpu"), gres_conf, lines=200),
    Format("slurm.conf node", ("NodeName=",), conf_node, lines=1),
    Format("slurm settings", tuple(f"{name}=" for name in _SETTINGS), slurm_setting, lines=1),
)
