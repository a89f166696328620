"""Xid errors: the catalogue, the decoding of NVLink words, and reading whole kernel log lines."""

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

import msgspec

from gpudoctor.knowledge.fixes import Step, ladder
from gpudoctor.knowledge.tables import Row, sources, table, words

Category = Literal["application", "driver", "hardware", "memory", "fabric", "thermal-power", "firmware"]
Severity = Literal["info", "warning", "critical"]
Locality = Literal["local", "remote", "unknown"]

LINE = r"(?<!S)Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)(?: GPU-I:(?P<instance>\d+))?\): (?P<number>\d{1,4})(?:, (?P<detail>.{0,500}))?"
_PROCESS = r"pid=(?P<pid>'?<unknown>'?|\d+), name=(?P<name>[^,]{0,64})(?:, )?"
_NVLINK5 = (
    r"(?P<unit>[A-Z][A-Z0-9_]{2,30}) (?P<severity>Fatal|Nonfatal|Non-fatal)? ?(?P<cross>XC[01])? ?(?P<injected>i\d)? ?"
    r"Link (?P<link>-?\d{1,3}) \((?P<words>0x[0-9a-fA-F]{1,8}(?: 0x[0-9a-fA-F]{1,8}){1,7})\)"
)
_NVLINK4 = r"(?:link|Link) (?P<link>\d{1,2})\W.{0,20}?\(?(?P<words>0x[0-9a-fA-F]{1,8}(?:[ ,]+0x[0-9a-fA-F]{1,8}){5,7})"
_PROMOTED_V2 = 1 << 7
_PROMOTED_V1 = 1 << 9


class Bucket(msgspec.Struct, frozen=True):
    """A resolution that NVIDIA names, in plain words."""

    name: str
    text: str


class Recovery(msgspec.Struct, frozen=True):
    """A recovery action that the driver itself recommends (Xid 154, NVML)."""

    value: int
    name: str
    log_text: str
    text: str
    severity: Severity
    fix: tuple[Step, ...]


class Xid(msgspec.Struct, frozen=True):
    """One Xid of the catalogue. Unknown numbers have known=False and carry their neighbours."""

    number: int
    symbol: str | None
    other_symbols: tuple[str, ...]
    title: str
    category: Category | None
    severity: Severity
    immediate: Bucket | None
    investigate: Bucket | None
    applies: tuple[str, ...]
    app_caused: Literal["no", "possible", "often", "usually"] | None
    first_driver: str | None
    meaning: str
    causes: tuple[str, ...]
    check: tuple[str, ...]
    fix: tuple[Step, ...]
    findings: tuple[str, ...]
    related: tuple[int, ...]
    known: bool
    unverified: bool
    sources: tuple[str, ...]


class NvlinkEvent(msgspec.Struct, frozen=True):
    """A decoded NVLink 5 event (Xid 144 to 150)."""

    xid: int
    unit: str
    part: str | None
    layout: Literal["before R575", "R575 and later", "unknown"]
    subcode: int | None
    link: int | None
    severity: str
    side: str | None
    locality: Locality
    reason: str | None
    immediate: Bucket | None
    investigate: Bucket | None
    injected: bool
    exact: bool


class XidLine(msgspec.Struct, frozen=True):
    """A kernel log line taken apart."""

    number: int
    pci: str
    instance: int | None
    pid: int | None
    process: str | None
    detail: str
    facts: tuple[tuple[str, str], ...]
    nvlink: NvlinkEvent | None


def bucket(name: str) -> Bucket | None:
    """Look a resolution bucket up.

    >>> bucket("RESTART_APP").text
    'start the failed program again; no reset is needed'
    """
    folded = "XID_154" if name.startswith("N/A Informational") else name
    if folded.startswith("Solo:"):
        folded = "WORKFLOW_XID_45"
    if folded.startswith("IGNORE"):
        folded = "IGNORE"
    for row in table("resolution_buckets").rows:
        if row["bucket"] == folded:
            return Bucket(name, row["text"])
    return Bucket(name, name.lower().replace("_", " ")) if name else None


@cache
def _rows() -> dict[int, Row]:
    return {row["xid"]: row for row in table("xid").rows}


def numbers() -> tuple[int, ...]:
    """All numbers of the catalogue."""
    return tuple(_rows())


def neighbours(number: int, count: int = 2) -> tuple[int, ...]:
    """Known numbers closest to an unknown one.

    >>> neighbours(177)
    (173, 174, 175, 176)
    """
    near = sorted(numbers(), key=lambda item: (abs(item - number), item))[: 2 * count]
    return tuple(sorted(near))


@cache
def xid(number: int) -> Xid:
    """Look an Xid up; an unknown number is described by its neighbours and not dropped.

    >>> xid(79).title
    'GPU fell off the bus'
    >>> xid(9999).known
    False
    """
    row = _rows().get(number)
    if row is None:
        return _unknown(number)
    return Xid(
        number=number,
        symbol=row["symbol"],
        other_symbols=words(row, "other_symbols"),
        title=row["title"],
        category=row["category"],
        severity=row["severity"],
        immediate=bucket(row.get("immediate", "")),
        investigate=bucket(row.get("investigate", "")),
        applies=words(row, "applies"),
        app_caused=row["app_caused"],
        first_driver=row.get("first_driver"),
        meaning=row["meaning"],
        causes=words(row, "causes"),
        check=words(row, "check"),
        fix=ladder(words(row, "fix")),
        findings=words(row, "findings"),
        related=tuple(row.get("related", ())),
        known=True,
        unverified=row.get("unverified", False),
        sources=sources("xid", row["source"]),
    )


def _unknown(number: int) -> Xid:
    near = neighbours(number)
    kinds = {_rows()[item]["category"] for item in near}
    guess = kinds.pop() if len(kinds) == 1 else None
    listed = ", ".join(f"{item} ({_rows()[item]['title']})" for item in near)
    newest = max(numbers())
    newer = f" Numbers above {newest} come with newer drivers than the catalogue covers." if number > newest else ""
    return Xid(
        number=number,
        symbol=None,
        other_symbols=(),
        title=f"Xid {number} is not in the catalogue",
        category=guess,
        severity="warning",
        immediate=None,
        investigate=None,
        applies=(),
        app_caused=None,
        first_driver=None,
        meaning=f"The number is not in the tables of this release.{newer} Its nearest neighbours: {listed}.",
        causes=("see the text after the number in the log line",),
        check=("other Xids of the same GPU at that time", "release notes of the driver in use"),
        fix=ladder(("read-log", "update-driver", "support")),
        findings=("hardware.xid",),
        related=near,
        known=False,
        unverified=True,
        sources=(),
    )


def by_symbol(symbol: str) -> Xid | None:
    """Look an Xid up by the symbol of the driver's header.

    >>> by_symbol("GSP_RPC_TIMEOUT").number
    119
    """
    wanted = symbol.upper()
    for number, row in _rows().items():
        if wanted in (row["symbol"], row["symbol"].removeprefix("ROBUST_CHANNEL_")):
            return xid(number)
    for number, row in _rows().items():
        if wanted in words(row, "other_symbols"):
            return xid(number)
    return None


@cache
def recoveries() -> tuple[Recovery, ...]:
    """All recovery actions that the driver knows."""
    return tuple(
        Recovery(row["value"], row["name"], row["log_text"], row["text"], row["severity"], ladder(words(row, "fix")))
        for row in table("recovery_actions").rows
    )


def recovery(value: int | str) -> Recovery | None:
    """Look a recovery action up by value or by its text in the log.

    >>> recovery(4).name, recovery("GPU Reset Required").value
    ('DRAIN_AND_RESET', 1)
    """
    if isinstance(value, int):
        return next((item for item in recoveries() if item.value == value), None)
    wanted = value.casefold()
    return next((item for item in recoveries() if wanted in (item.log_text.casefold(), item.name.casefold())), None)


def _layout(row: Row, info: int) -> Literal["before R575", "R575 and later"] | None:
    v1 = info & 0x3FF
    if row.get("promotable"):
        v1 &= ~_PROMOTED_V1
    if v1 == row["v1"]:
        return "before R575"
    if info & 0x7F == row["subcode"]:
        return "R575 and later"
    return None


def _pick(rows: list[Row], status: int) -> tuple[Row | None, bool]:
    exact = [row for row in rows if row["error_status"] == status]
    if exact:
        return exact[0], True
    rank = {"fatal": 0, "link fatal": 1, "non-fatal": 2}
    partial = [row for row in rows if row["error_status"] and row["error_status"] & status == row["error_status"]]
    if partial:
        return min(partial, key=lambda row: rank.get(row["severity"], 3)), False
    return None, False


def decode_nvlink5(
    number: int,
    info: int,
    status: int,
    unit: str = "",
    *,
    link: int | None = None,
    severity: str | None = None,
    injected: bool = False,
) -> NvlinkEvent:
    """Decode the two words of an NVLink 5 event; the layout of the first changed with R575.

    >>> event = decode_nvlink5(149, 0x025001C6, 0, "NETIR_LINK_EVT")
    >>> event.locality, event.reason, event.immediate.name
    ('remote', 'the far end was reset', 'RESET_GPU')
    """
    reason_code = info >> 20 & 0x3F
    candidates = [row for row in table("nvlink5").rows if row["xid"] == number]
    named = [row for row in candidates if unit in row["units"]]
    hits = [(row, layout) for row in named or candidates if (layout := _layout(row, info))]
    is_link = any(row["reason"] for row, _ in hits)
    if is_link:
        same = [(row, layout) for row, layout in hits if row["reason"] == reason_code]
        hits = same or hits
    picked, exact = _pick([row for row, _ in hits], status)
    if is_link and picked is None and hits:
        picked, exact = hits[0][0], False
    if picked is not None and is_link and picked["reason"] != reason_code:
        exact = False
    layout = next((found for row, found in hits if row is picked), None) or (hits[0][1] if hits else None)
    reason = _reason(reason_code) if is_link or (number == 149 and "LINK" in unit) else None
    far = _far(reason_code) if reason else False
    shown = (severity or (picked["severity"] if picked else "unknown")).lower().replace("nonfatal", "non-fatal")
    immediate = picked["immediate"] if picked else None
    if picked is not None and picked.get("promotable"):
        bit = _PROMOTED_V1 if layout == "before R575" else _PROMOTED_V2
        promoted = bool(info & bit)
        immediate = "RESET_GPU" if promoted else "IGNORE"
        shown = severity.lower().replace("nonfatal", "non-fatal") if severity else "fatal" if promoted else "non-fatal"
    locality: Locality = "unknown"
    if picked is not None:
        locality = "remote" if far or (exact and picked["locality"] == "remote") else "local"
    if is_link and picked is not None and not exact:
        immediate = None
        locality = "remote" if far else "unknown"
    return NvlinkEvent(
        xid=number,
        unit=unit or (picked["units"][0] if picked else "unknown"),
        part=(picked or (hits[0][0] if hits else {})).get("part"),
        layout=layout or "unknown",
        subcode=picked["subcode"] if picked else None,
        link=link,
        severity=shown,
        side=picked["side"] if picked else None,
        locality=locality,
        reason=reason,
        immediate=bucket(immediate) if immediate else None,
        investigate=bucket(picked["investigate"]) if picked and (exact or not is_link) else None,
        injected=injected,
        exact=exact,
    )


def _reason(code: int) -> str:
    for row in table("link_down_reasons").rows:
        if row["code"] == code:
            return str(row["text"])
    return f"reason {code} (not in the tables)"


def _far(code: int) -> bool:
    return any(row["peer"] for row in table("link_down_reasons").rows if row["code"] == code)


def decode_nvlink4(values: tuple[int, ...]) -> tuple[str, ...]:
    """Explain the set bits in the hexadecimal words of Xid 74 (words 1, 3, 4 and 5 matter, counted from 1).

    >>> decode_nvlink4((0x10, 0, 0, 0, 0, 0, 0))
    ('word 1 bit 4: probably hardware (ECC or parity): report after more than two on one link',)
    """
    found = []
    for row in table("nvlink4_bits").rows:
        word = row["word"]
        if word > len(values):
            continue
        found += [f"word {word} bit {bit}: {row['text']}" for bit in row["bits"] if values[word - 1] >> bit & 1]
    return tuple(found)


def parse_line(line: str) -> XidLine | None:
    """Take a kernel log line apart.

    >>> parsed = parse_line("NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python, Ch 00000008, intr 10000000.")
    >>> parsed.number, parsed.pci, parsed.pid, parsed.process
    (31, '0000:3b:00', 4242, 'python')
    """
    match = re.search(LINE, line)
    if not match:
        return None
    number = int(match["number"])
    detail = (match["detail"] or "").strip()
    pid, name = None, None
    process = re.search(_PROCESS, detail)
    if process:
        pid = int(process["pid"]) if process["pid"].isdigit() else None
        name = None if "unknown" in process["name"] else process["name"].strip() or None
        detail = (detail[: process.start()] + detail[process.end() :]).strip(" ,")
    event = _nvlink_event(number, detail)
    return XidLine(
        number=number,
        pci=match["pci"],
        instance=int(match["instance"]) if match["instance"] else None,
        pid=pid,
        process=name,
        detail=detail,
        facts=decode_detail(number, detail),
        nvlink=event,
    )


def _nvlink_event(number: int, detail: str) -> NvlinkEvent | None:
    if not 144 <= number <= 150:
        return None
    match = re.search(_NVLINK5, detail)
    if not match:
        return None
    values = [int(word, 16) for word in match["words"].split()]
    return decode_nvlink5(
        number,
        values[0],
        values[1],
        match["unit"],
        link=int(match["link"]),
        severity=match["severity"],
        injected=(match["injected"] or "i0") != "i0",
    )


Decoder = Callable[[re.Match[str]], list[tuple[str, str]]]


def _groups(*labels: str) -> Decoder:
    return lambda match: [(label, value) for label, value in zip(labels, match.groups(), strict=True) if value]


def _recovery(match: re.Match[str]) -> list[tuple[str, str]]:
    before, after = recovery(int(match[1], 16)), recovery(int(match[3], 16))
    facts = [("before", f"{match[2]} ({before.text})" if before else match[2])]
    facts.append(("now", f"{match[4]} ({after.text})" if after else match[4]))
    return facts


def _status(match: re.Match[str]) -> list[tuple[str, str]]:
    from gpudoctor.knowledge import return_codes

    found = return_codes.nv_status(int(match[2], 16))
    return [("stage", match[1]), ("status", f"{match[2]} {found[0]} ({found[1]})" if found else match[2])]


def _words4(match: re.Match[str]) -> list[tuple[str, str]]:
    values = tuple(int(word, 16) for word in re.findall(r"0x[0-9a-fA-F]+", match["words"]))
    return [("link", match["link"]), *(("bit", text) for text in decode_nvlink4(values))]


_DETAILS: tuple[tuple[tuple[int, ...], str, Decoder], ...] = (
    (
        (13,),
        r"Exception on \(GPC (\d+), TPC (\d+), SM (\d+)\): ([\w ]{1,60})",
        _groups("GPC", "TPC", "SM", "error"),
    ),
    ((13,), r"ESR (0x[0-9a-f]+)=(0x[0-9a-f]+)", _groups("register", "value")),
    ((31,), r"ENGINE (\w+)", _groups("engine")),
    ((31,), r"faulted @ (0x[0-9a-f_]+)", _groups("address")),
    ((31,), r"Fault is of type (\w+)(?: ACCESS_TYPE_(\w+))?", _groups("fault", "access")),
    ((13, 31, 43, 45, 94, 95), r"Ch(?:ID)? ([0-9a-f]{4,8})", _groups("channel")),
    (
        (94, 95),
        r"((?:Unc|C)ontained): ([\w ]+) \((0x[0-9a-f]+)\)(?:\. RST: (\w+), D-RST: (\w+))?",
        _groups("containment", "unit", "unit code", "reset needed", "drain and reset needed"),
    ),
    ((48, 63, 64, 171, 172), r"physAddr:? ?(0x[0-9a-f]+)", _groups("physical address")),
    ((48, 63, 64, 171), r"partition (\d+), subpartition (\d+)", _groups("partition", "subpartition")),
    (
        (119,),
        r"after (\d+)s of waiting for RPC response from GPU(\d+) GSP! Expected function (\d+) \((\w+)\)",
        _groups("seconds", "GPU number", "function", "function name"),
    ),
    ((140,), r"DRAM:(\d+), LTC:(\d+), MMU:(\d+), PCIE:(\d+)", _groups("DRAM", "LTC", "MMU", "PCIE")),
    ((154,), r"changed from (0x\d+) \(([\w ]+)\) to (0x\d+) \(([\w ]+)\)", _recovery),
    ((74,), _NVLINK4, _words4),
)
RM_INIT = r"RmInitAdapter failed! \(0x([0-9a-f]+):0x([0-9a-f]+):(\d+)\)"


def decode_detail(number: int, detail: str) -> tuple[tuple[str, str], ...]:
    """Label what stands in the text after the number.

    >>> decode_detail(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")[1][0]
    'now'
    """
    found: list[tuple[str, str]] = []
    for wanted, pattern, decoder in _DETAILS:
        if number in wanted and (match := re.search(pattern, detail)):
            found += decoder(match)
    return tuple(found)


def decode_init_failure(line: str) -> tuple[tuple[str, str], ...]:
    """Label the numbers of an RmInitAdapter failure.

    >>> decode_init_failure("RmInitAdapter failed! (0x26:0x56:1474)")
    (('stage', '26'), ('status', '56 NV_ERR_NOT_SUPPORTED (not supported)'))
    """
    match = re.search(RM_INIT, line)
    return tuple(_status(match)) if match else ()
