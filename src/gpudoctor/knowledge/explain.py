"""Turns an id, a code, a name or a log line into an explanation.

Every table is reachable from here: Xid, SXid, CUDA errors, return codes, NCCL variables, GPUs, architectures, driver
branches, toolkits, framework builds, operating systems and the log messages.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from gpudoctor.knowledge.fixes import Step, ladder, step
from gpudoctor.knowledge.tables import Row, sources, table, words

if TYPE_CHECKING:
    from gpudoctor.knowledge.gpus import Product
    from gpudoctor.knowledge.xids import NvlinkEvent

Severity = Literal["info", "warning", "critical"]


class Explanation(msgspec.Struct, frozen=True):
    """What something means, why it happens, what to look at and what to do. Causes come most likely first."""

    subject: str
    kind: str
    title: str
    meaning: str
    severity: Severity | None = None
    facts: tuple[tuple[str, str], ...] = ()
    causes: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    fix: tuple[Step, ...] = ()
    references: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


FindingLookup = Callable[[str], Explanation | None]

_NUMBERED = (
    r"(?i)(?P<what>sxid|xid|nvidia[-_ ]?smi|nvml|nccl|cublas|cudnn|cuda|ib|ibv|wc|nv[-_ ]?status)"
    r"(?:[-_ ]*(?:error|err|code|exit|status|return|result|rc)(?:[-_ ]*(?:code|status))?)?(?:[\s:#=_]|-(?!\d)|(?<=\w)-)*"  # "xid-31", and no negative number
    r"(?P<number>0x[0-9a-f]+|\d+)"
)
_NAME_LENGTH = 120  # anything longer is a log line, not the name of a thing
_LINE_LENGTH = 4000
_FAMILIES = {"nvml": "nvml", "nccl": "nccl", "cublas": "cublas", "cudnn": "cudnn", "ib": "ib", "ibv": "ib", "wc": "ib"}
_FINDING = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
_DOTTED = r"(?i)(?:(?P<what>[a-z][a-z0-9_ -]*?)[\s=:-]+)?v?(?P<version>\d+(?:\.[0-9a-z]+)*)(?P<build>\+cu\d+)?"
_NCCL_SETTING = r"(NCCL_[A-Z0-9_]+)(?:(?:=| set by environment to | set to )([^\s,;]+))?"
_CUDA_NAME = r"\b(cudaError[A-Za-z]+|cudaSuccess|CUDA_ERROR_[A-Z_]+|CUDA_SUCCESS)\b"
_STATUS_NAME = (
    r"\b(NVML_(?:ERROR_[A-Z_]+|SUCCESS)|nccl[A-Z][A-Za-z]+|CUBLAS_STATUS_[A-Z_]+|CUDNN_STATUS_[A-Z_]+|IBV_WC_[A-Z_]+)\b"
)
_WC_STATUS = r"Got completion from peer.{0,120}?status=(?:\w+\()?(\d+)"
_CUDA_NUMBER = r"\b(?:CUDA|cuda)(?: driver| runtime)? (?:error|failure)[ :(]*(\d{1,4})\b"


def explain(text: str, finding: FindingLookup | None = None) -> Explanation | None:
    """Explain one thing; findings are looked up by the callback, since their texts live with the rules.

    >>> explain("xid 79").title
    'GPU fell off the bus'
    >>> explain("CUDA_ERROR_SYSTEM_NOT_READY").subject == explain("cuda 802").subject
    True
    >>> explain("NVRM: Xid (PCI:0000:41:00): 79, pid=77, GPU has fallen off the bus.").facts[0]
    ('GPU', '0000:41:00')
    """
    thing = text.strip().strip("\"'`")[:_LINE_LENGTH]
    if not thing:
        return None
    for reader in _READERS:
        found = reader(thing)
        if found is not None:
            return found
    if len(thing) > _NAME_LENGTH:
        return _hardware(thing) if "[10de:" in thing else None
    if finding is not None and re.fullmatch(_FINDING, thing.lower()):
        return finding(thing.lower())
    return _hardware(thing) or _software(thing)


def explain_lines(text: str, finding: FindingLookup | None = None) -> Iterator[tuple[str, Explanation | None]]:
    """Explain every line of a pasted text.

    >>> [found.subject for _, found in explain_lines("xid 13" + chr(10) + "xid 31") if found]
    ['xid 13', 'xid 31']
    """
    for line in text.splitlines():
        if line.strip():
            yield line, explain(line, finding)


# log lines -----------------------------------------------------------------------------------------------------------


def _log_line(text: str) -> Explanation | None:
    if len(text) < 12:
        return None
    return _xid_line(text) or _sxid_line(text) or _message(text)


def _xid_line(text: str) -> Explanation | None:
    if "Xid" not in text:
        return None
    from gpudoctor.knowledge import xids

    parsed = xids.parse_line(text)
    if parsed is None:
        return None
    found = _xid(parsed.number)
    facts: list[tuple[str, str]] = [("GPU", parsed.pci)]
    if parsed.instance is not None:
        facts.append(("MIG instance", str(parsed.instance)))
    if parsed.pid is not None:
        facts.append(("process", f"{parsed.pid} ({parsed.process})" if parsed.process else str(parsed.pid)))
    facts += parsed.facts
    event = parsed.nvlink
    if event is None:
        facts += [("text", parsed.detail)] if parsed.detail else []
        found = replace(found, facts=(*facts, *found.facts))
        return _recovery(found, facts) if parsed.number == _RECOVERY_XID else found
    facts += _nvlink_facts(event)
    return replace(
        found,
        title=f"{found.title}: {event.part or event.unit}",
        facts=(*facts, *found.facts),
        severity="critical" if "fatal" in event.severity and not event.severity.startswith("non") else "warning",
        fix=_nvlink_fix(event, found.fix),
    )


_RECOVERY_XID = 154


def _recovery(found: Explanation, facts: list[tuple[str, str]]) -> Explanation:
    from gpudoctor.knowledge import xids

    now = dict(facts).get("now", "").partition(" (")[0]
    action = xids.recovery(now)
    if action is None:
        return found
    meaning = f"{found.meaning} Here it asks to {action.text}."
    if action.value == 0:
        meaning = f"{found.meaning} Here it withdraws its earlier request: nothing is needed."
    return replace(found, meaning=meaning, severity=action.severity, fix=(*action.fix, step("other-xid")))


def _nvlink_facts(event: "NvlinkEvent") -> list[tuple[str, str]]:
    facts: list[tuple[str, str | None]] = [
        ("unit", event.unit),
        ("part", event.part),
        ("link", str(event.link) if event.link is not None else None),
        ("severity", event.severity),
        ("locality", event.locality),
        ("reason", event.reason),
        ("side", event.side),
        ("do now", f"{event.immediate.name}: {event.immediate.text}" if event.immediate else None),
        ("investigate", f"{event.investigate.name}: {event.investigate.text}" if event.investigate else None),
        ("layout of the words", event.layout),
        ("injected", "yes, by a test tool" if event.injected else None),
        ("decoding", None if event.exact else "no exact entry in the catalogue; nearest reading"),
    ]
    return [(label, value) for label, value in facts if value]


def _nvlink_fix(event: "NvlinkEvent", general: tuple[Step, ...]) -> tuple[Step, ...]:
    if event.immediate is None:
        return general
    keys = {"RESET_GPU": ["reset-gpu"], "IGNORE": ["nothing"], "XID_154_EVAL": ["do-154", "restart-app"]}
    first = keys.get(event.immediate.name, ["do-154"])
    if event.locality == "remote":
        first = ["check-peer", *first]
    wanted = event.investigate.name if event.investigate else ""
    if "SI" in wanted.split("_"):
        first = [*first, "check-nvlink", "check-cables"]
    if wanted in ("CONTACT_SUPPORT", "REPORT_ISSUE"):
        first = [*first, "support"]
    return ladder(dict.fromkeys(first))


def _sxid_line(text: str) -> Explanation | None:
    if "SXid" not in text:
        return None
    from gpudoctor.knowledge import sxids

    match = re.search(sxids.LINE, text)
    if match is None:
        return None
    found = _sxid(int(match["number"]))
    facts: list[tuple[str, str]] = [("switch", match["device"] or match["pci"]), ("PCI", match["pci"])]
    facts += [("link", match["link"])] if match["link"] else []
    facts += [("said by the driver", match["fatality"])] if match["fatality"] else []
    facts += [("text", match["text"].strip())] if match["text"].strip() else []
    severity: Severity | None = found.severity
    if match["fatality"] == "Fatal":
        severity = "critical"
    elif match["fatality"] == "Non-fatal" and severity == "critical":
        severity = "warning"
    return replace(found, facts=(*facts, *found.facts), severity=severity)


def _message(text: str) -> Explanation | None:
    hits = [row for row in table("log_messages").rows if row["match"] in text]
    if not hits:
        return None
    row = max(hits, key=lambda item: len(item["match"]))
    found = _from_message(row)
    facts: tuple[tuple[str, str], ...] = ()
    if "RmInitAdapter" in text:
        from gpudoctor.knowledge import xids

        facts = xids.decode_init_failure(text)
    if status := re.search(_WC_STATUS, text):
        detail = _code("ib", int(status[1]))
        if detail:
            return replace(detail, title=f"{found.title}: {detail.title}", related=(*detail.related, found.subject))
    if row["match"] == "Cuda failure":
        inner = _cuda_in(text)
        if inner:
            return replace(inner, title=f"{found.title}: {inner.title}", related=(*inner.related, "nccl 1"))
    return replace(found, facts=(*facts, *found.facts))


def _from_message(row: Row) -> Explanation:
    return Explanation(
        subject=row["match"],
        kind=f"{row['origin']} message",
        title=row["title"],
        meaning=row["meaning"],
        severity=row["severity"],
        causes=words(row, "causes"),
        check=words(row, "check"),
        fix=ladder(words(row, "fix")),
        references=sources("log_messages", row["source"]),
        related=words(row, "findings"),
    )


# numbered things -----------------------------------------------------------------------------------------------------


def _numbered(text: str) -> Explanation | None:
    match = re.fullmatch(_NUMBERED, text) if len(text) <= _NAME_LENGTH else None
    if match is None:
        return None
    what = re.sub(r"[-_ ]", "", match["what"].lower())
    number = int(match["number"], 0) if match["number"].lower().startswith("0x") else int(match["number"])
    if what == "xid":
        return _xid(number)
    if what == "sxid":
        return _sxid(number)
    if what == "cuda":
        return _cuda(number)
    if what == "nvidiasmi":
        return _code("nvidia-smi", number)
    if what == "nvstatus":
        return _nv_status(number)
    return _code(_FAMILIES[what], number)


def _xid(number: int) -> Explanation:
    from gpudoctor.knowledge import xids

    found = xids.xid(number)
    facts: list[tuple[str, str | None]] = [
        ("symbol", found.symbol),
        ("other meanings of the number", ", ".join(found.other_symbols) or None),
        ("class", found.category),
        ("NVIDIA: do now", f"{found.immediate.name}: {found.immediate.text}" if found.immediate else None),
        ("NVIDIA: investigate", f"{found.investigate.name}: {found.investigate.text}" if found.investigate else None),
        ("caused by a program", found.app_caused),
        ("first open driver that names it", found.first_driver),
        ("confirmed by NVIDIA's catalogue", "no" if found.unverified else None),
    ]
    return Explanation(
        subject=f"xid {number}",
        kind="xid",
        title=found.title,
        meaning=found.meaning,
        severity=found.severity,
        facts=tuple((label, value) for label, value in facts if value),
        causes=found.causes,
        check=found.check,
        fix=found.fix,
        references=found.sources,
        related=(*found.findings, *(f"xid {item}" for item in found.related)),
    )


def _sxid(number: int) -> Explanation:
    from gpudoctor.knowledge import sxids

    found = sxids.sxid(number)
    near = sxids.neighbours(number)
    if found is None:
        listed = [item for item in (sxids.sxid(other) for other in near) if item]
        text = "; ".join(f"{item.number}: {item.title}" for item in listed) or "none in the same range"
        return Explanation(
            subject=f"sxid {number}",
            kind="sxid",
            title=f"SXid {number} is not in the catalogue",
            meaning=f"The number is not in the tables of this release. Neighbours: {text}.",
            severity="warning",
            fix=ladder(("read-log", "check-nvlink", "support")),
            related=("nvlink.nvswitch-error", *(f"sxid {item.number}" for item in listed)),
        )
    effect = {
        "fatal": "The driver treats it as fatal: links or the whole fabric stop until they are reset.",
        "potentially-fatal": "It may stop the link and what lies behind it; the GPU there then reports Xid 74 or 45.",
        "non-fatal": "It is corrected or informational; alone it is no fault.",
        "unknown": "Public sources do not say how serious it is.",
    }[found.fatality]
    whole = " The whole switch has to be reset, not only the link." if found.whole_switch else ""
    facts: list[tuple[str, str | None]] = [
        ("symbol", found.symbol),
        ("block", found.block),
        ("event", found.event),
        ("fatality", found.fatality),
        ("text in the log", "; ".join(found.log_text) or None),
        ("switch chips that report it", ", ".join(found.chips) or None),
    ]
    serious = found.severity != "info"
    return Explanation(
        subject=f"sxid {number}",
        kind="sxid",
        title=found.title,
        meaning=f"An NVSwitch reports in its {found.block}: {found.event}. {effect}{whole}",
        severity=found.severity,
        facts=tuple((label, value) for label, value in facts if value),
        causes=_sxid_causes(found.event),
        check=("Xid 74 or 45 of a GPU at the same second", "link state and counters: nvidia-smi nvlink -s, -e"),
        fix=found.fix,
        references=found.sources,
        related=("nvlink.nvswitch-error",) if serious else (),
    )


def _sxid_causes(event: str) -> tuple[str, ...]:
    if "memory error" in event or "parity" in event:
        return ("a defect or chance event in a memory of the switch", "a failing switch, if it repeats")
    if "temperature" in event or "heat" in event:
        return ("air flow or coolant", "a failing fan or pump")
    if "link" in event or "checksum" in event or "lane" in event or "rate" in event or "cable" in event:
        return ("noise or poor contact on the link", "the device at the far end", "cable, connector or backplane")
    if "access" in event or "route" in event or "routing" in event or "address" in event:
        return ("Fabric Manager set the switch up wrongly or for another topology", "fallout of a GPU that was reset")
    return ("fallout of a GPU or link that failed", "a firmware or driver defect", "a failing switch")


def _cuda(number: int) -> Explanation | None:
    from gpudoctor.knowledge import cuda_errors

    found = cuda_errors.by_number(number)
    if found is None:
        return None
    facts = [("number", str(number))]
    facts += [("runtime interface", found.runtime)] if found.runtime else []
    facts += [("driver interface", found.driver)] if found.driver else []
    facts += [("text", found.text)] if found.text else []
    return Explanation(
        subject=f"cuda {number}",
        kind="cuda error",
        title=f"{' / '.join(found.names)} ({number})",
        meaning=found.meaning,
        severity="info" if number in _HARMLESS_CUDA else "critical",
        facts=tuple(facts),
        causes=found.causes,
        check=found.check,
        fix=found.fix,
        references=found.sources,
        related=found.findings,
    )


_HARMLESS_CUDA = (0, 600, 704)


def _code(family: str, number: int) -> Explanation | None:
    from gpudoctor.knowledge import return_codes

    found = return_codes.code(family, number)
    if found is None:
        return None
    facts = [("number", str(number)), ("name", found.name)]
    facts += [("text", found.text)] if found.text else []
    return Explanation(
        subject=f"{family} {number}",
        kind=f"{family} code",
        title=f"{family} {number}: {found.name}",
        meaning=found.meaning,
        severity="info" if number == 0 else "warning",
        facts=tuple(facts),
        causes=found.causes,
        check=found.check,
        fix=found.fix,
        references=found.sources,
        related=found.findings,
    )


def _nv_status(number: int) -> Explanation | None:
    from gpudoctor.knowledge import return_codes

    found = return_codes.nv_status(number)
    if found is None:
        return None
    return Explanation(
        subject=f"nv-status {number:#x}",
        kind="status of the kernel driver",
        title=f"{found[0]} ({number:#x})",
        meaning=f"The kernel driver reports: {found[1]}.",
        facts=(("number", f"{number:#x}"), ("name", found[0])),
        check=("the NVRM line that carries it, and the lines before",),
        fix=ladder(("read-log",)),
        references=(table("nv_status").source["ogkm"],),
    )


# names ---------------------------------------------------------------------------------------------------------------


def _named(text: str) -> Explanation | None:
    match = re.search(_NCCL_SETTING, text)
    if match:
        found = _variable(match[1], match[2].rstrip(".'\"") if match[2] else None)
        if found:
            return found
    inner = _cuda_in(text)
    if inner:
        return inner
    if status := re.search(_STATUS_NAME, text):
        from gpudoctor.knowledge import return_codes

        code = return_codes.by_name(status[1])
        if code:
            return _code(code.family, code.number)
    return _symbol(text)


def _cuda_in(text: str) -> Explanation | None:
    from gpudoctor.knowledge import cuda_errors

    folded = text.casefold()
    if "cuda" not in folded and len(text) < 12:
        return None
    if name := re.search(_CUDA_NAME, text):
        found = cuda_errors.by_name(name[1])
        if found:
            return _cuda(found.number)
    whole = cuda_errors.by_name(text)
    if whole:
        return _cuda(whole.number)
    if number := re.search(_CUDA_NUMBER, text):
        return _cuda(int(number[1]))
    by_text = cuda_errors.by_text(text)
    return _cuda(by_text.number) if by_text else None


def _symbol(text: str) -> Explanation | None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_/]{3,60}", text):
        return None
    from gpudoctor.knowledge import return_codes, xids

    found = xids.by_symbol(text)
    if found:
        return _xid(found.number)
    code = return_codes.by_name(text)
    if code:
        return _code(code.family, code.number)
    upper = text.upper()
    if upper.startswith(("NVSWITCH_ERR_", "ERR_HW_")):
        for row in table("sxid").rows:
            if str(row.get("symbol", "")).endswith(upper):
                return _sxid(row["sxid"])
    if upper.startswith(("NV_ERR_", "NV_WARN_", "NV_OK")):
        for row in table("nv_status").rows:
            if row["name"] == upper:
                return _nv_status(row["code"])
    action = xids.recovery(text) if "_" in text else None
    if action:
        return Explanation(
            subject=action.name,
            kind="recovery action",
            title=f"Recovery action: {action.log_text}",
            meaning=f"The driver asks to {action.text}." if action.value else "The driver asks for nothing.",
            severity=action.severity,
            fix=action.fix,
            related=("xid 154",),
        )
    bucket = next((row for row in table("resolution_buckets").rows if row["bucket"] == upper), None)
    if bucket:
        return Explanation(
            subject=upper,
            kind="resolution",
            title=f"NVIDIA's resolution {upper}",
            meaning=f"In plain words: {bucket['text']}.",
            references=sources("resolution_buckets", bucket["source"]),
        )
    return None


def _variable(name: str, value: str | None) -> Explanation | None:
    from gpudoctor.knowledge import nccl

    found = nccl.variable(name)
    if found is None:
        return None
    facts: list[tuple[str, str | None]] = [
        ("value", value),
        ("default", found.default),
        ("values", ", ".join(found.values) or None),
        ("since", found.since),
        ("if left set by mistake", found.harm),
        ("documented", None if found.documented else "no"),
    ]
    renamed = f" {name.upper()} is its former name." if found.name != name.upper() else ""
    return Explanation(
        subject=found.name,
        kind="nccl variable",
        title=f"{found.name}, a setting of NCCL",
        meaning=found.text + renamed,
        severity="warning" if value is not None and found.harm else "info",
        facts=tuple((label, text) for label, text in facts if text),
        causes=(found.harm,) if found.harm else (),
        check=("where it is set: job script, image, /etc/nccl.conf, ~/.nccl.conf",),
        fix=(Step(f"Leave {found.name} unset unless it is needed", commands=(f"unset {found.name}",)),),
        references=found.sources,
        related=found.findings,
    )


# hardware and software -----------------------------------------------------------------------------------------------


def _hardware(text: str) -> Explanation | None:
    from gpudoctor.knowledge import gpus

    inside = re.search(r"\[10de:([0-9a-fA-F]{4})\]", text) or re.match(r"GPU \d+: (.{3,60}?) \(UUID", text)
    if inside:
        text = inside[1]
    number = gpus.parse_id(text)
    listed = gpus.all_by_pci_id(number) if number is not None else ()
    product = listed[0] if listed else gpus.by_name(text)
    if product is None and number is not None:
        product = gpus.by_pci_id(number)
    if product:
        return _gpu(product, listed)
    family = gpus.by_family(text)
    if family:
        return _family(text, family)
    return _architecture(text)


def _gpu(product: "Product", same_id: Iterable["Product"]) -> Explanation:
    size = f"{product.memory_gib:g} GB" if product.memory_gib else None
    memory = " ".join(item for item in (size, product.memory_type) if item)
    nvlink = None
    if product.nvlink_links:
        nvlink = f"{product.nvlink_links} links of generation {product.nvlink_version}, {product.nvlink_gb_s:g} GB/s in total"
    elif product.p2p == "nvlink-bridge" and product.nvlink_gb_s:
        nvlink = f"by bridge between a pair, {product.nvlink_gb_s:g} GB/s"
    peer = {"nvlink": "over NVLink", "nvlink-bridge": "over an NVLink bridge", "none": "not with the stock driver"}
    span = f"{product.first_driver_branch or '?'} to {product.last_driver_branch or 'the newest'}"
    others = ", ".join(item.name for item in same_id if item is not product)
    facts: list[tuple[str, str | None]] = [
        ("architecture", product.architecture),
        ("compute capability", product.compute_capability),
        ("chip", product.chip),
        ("kind", product.kind),
        ("memory", memory or None),
        ("memory bandwidth", f"{product.memory_gb_s:g} GB/s" if product.memory_gb_s else None),
        ("power", f"{product.power_w:g} W" if product.power_w else None),
        ("PCIe", f"generation {product.pcie_gen}, x{product.pcie_width}" if product.pcie_gen else None),
        ("NVLink", nvlink),
        ("peer access", peer.get(product.p2p or "")),
        ("MIG", None if product.mig_max is None else f"up to {product.mig_max}" if product.mig_max else "no"),
        ("ECC", product.ecc),
        ("driver branches", span),
        ("known to work from driver", product.known_driver),
        ("open kernel modules", product.open_modules),
        ("PCI ids", ", ".join(f"10de:{item:04x}" for item in product.pci_ids)),
        ("same PCI id", others or None),
        ("confirmed by NVIDIA data", "no" if product.unverified else None),
    ]
    arch = _arch_span(product.compute_capability)
    intro = "A GPU" if product.listed else "A GPU that is not listed by name; its id lies in the range"
    return Explanation(
        subject=product.name,
        kind="gpu",
        title=product.name,
        meaning=f"{intro} of the {product.architecture} architecture. {arch}",
        severity="info",
        facts=tuple((label, value) for label, value in facts if value),
        references=product.sources,
        related=(f"sm_{product.compute_capability.replace('.', '')}",),
    )


def _family(text: str, family: Iterable["Product"]) -> Explanation:
    members = tuple(family)
    arches = sorted({item.architecture for item in members})
    spans = " ".join(_arch_span(cc) for cc in sorted({item.compute_capability for item in members}))
    return Explanation(
        subject=text,
        kind="gpu family",
        title=f"{text}: {len(members)} products",
        meaning=f"Several products of the {' and '.join(arches)} architecture bear this name. {spans}",
        severity="info",
        facts=tuple((item.name, ", ".join(f"10de:{number:04x}" for number in item.pci_ids)) for item in members),
        references=tuple(dict.fromkeys(source for item in members for source in item.sources)),
        related=tuple(item.name for item in members),
    )


def _arch_span(capability: str) -> str:
    from gpudoctor.knowledge import architectures

    arch = architectures.by_capability(capability)
    if arch is None:
        return ""
    last = f"to {arch.last_cuda}" if arch.last_cuda else "on"
    return f"Compute capability {capability} works with CUDA {arch.first_cuda} {last}."


def _architecture(text: str) -> Explanation | None:
    from gpudoctor.knowledge import architectures

    found = architectures.by_name(text)
    if not found and re.fullmatch(r"(?:sm_?|compute_)\d{2,3}[af]?", text.strip().lower()):
        single = architectures.by_capability(text)
        found = (single,) if single else ()
    if not found:
        return None
    first = found[0]
    facts = []
    for arch in found:
        span = f"CUDA {arch.first_cuda} {'to ' + arch.last_cuda if arch.last_cuda else 'and newer'}"
        branches = f"driver branch {arch.first_driver_branch or '?'} to {arch.last_driver_branch or 'the newest'}"
        facts.append((f"compute capability {arch.compute_capability}", f"{span}, {branches}"))
    return Explanation(
        subject=text,
        kind="architecture",
        title=f"{first.name}" + (f" (compute capability {first.compute_capability})" if len(found) == 1 else ""),
        meaning=f"A GPU architecture of NVIDIA. Open kernel modules: {first.open_modules}.",
        severity="info",
        facts=(*facts, *(("examples", ", ".join(arch.examples)) for arch in found if arch.examples)),
        references=tuple(dict.fromkeys(source for arch in found for source in arch.sources)),
    )


def _software(text: str) -> Explanation | None:
    match = re.fullmatch(_DOTTED, text)
    if match is None:
        return None
    what = (match["what"] or "").strip().casefold()
    version = match["version"]
    major = int(version.split(".", maxsplit=1)[0])
    plain = version.replace(".", "").isdigit()
    if not what and "." not in version:
        return None
    if not plain and what not in _software_names():
        return None
    if what in ("cuda", "cuda toolkit", "toolkit"):
        return _toolkit(version)
    if what in ("", "driver", "nvidia", "nvidia driver") and major >= _FIRST_BRANCH:
        return _driver(version)
    from gpudoctor.knowledge import frameworks

    if what in _software_names():
        return _framework(frameworks.canonical(what), version)
    return _system(text)


_FIRST_BRANCH = 300


def _software_names() -> set[str]:
    from gpudoctor.knowledge import frameworks

    return {*frameworks.names(), *frameworks.ALIASES}


def _driver(version: str) -> Explanation | None:
    from gpudoctor.knowledge import drivers

    branch = drivers.branch(version)
    if branch is None:
        return None
    newest = drivers.max_cuda_for_driver(version)
    facts: list[tuple[str, str | None]] = [
        ("branch", str(branch.number)),
        ("kind", branch.kind),
        ("end of life", branch.end_of_life or ("reached" if branch.ended else None)),
        ("CUDA it came with", branch.ships_cuda),
        ("newest CUDA it fully supports", newest),
        ("last branch for", ", ".join(branch.last_for) or None),
        ("open kernel modules", branch.open_modules),
    ]
    return Explanation(
        subject=f"driver {version}",
        kind="driver",
        title=f"NVIDIA driver {version}, branch {branch.number}",
        meaning="A release of the NVIDIA driver; programs of older CUDA releases run on it as well.",
        severity="warning" if branch.ended else "info",
        facts=tuple((label, value) for label, value in facts if value),
        references=branch.sources,
        related=(f"cuda {newest}",) if newest else (),
    )


def _toolkit(version: str) -> Explanation | None:
    from gpudoctor.knowledge import drivers

    found = drivers.toolkit(version)
    if found is None:
        return None
    floor = drivers.floor_for_cuda(version)
    facts: list[tuple[str, str | None]] = [
        ("release", f"{found.version} ({found.release})"),
        ("driver it came with (Linux)", found.linux_min),
        ("driver it came with (Windows)", found.windows_min),
        ("oldest driver by minor-version compatibility", floor),
    ]
    return Explanation(
        subject=f"cuda {version}",
        kind="cuda toolkit",
        title=f"CUDA toolkit {version}",
        meaning="A release of the CUDA toolkit. Its programs need the driver it came with, or from CUDA 11 on the oldest "
        "driver of the same major version if they do without new features and PTX.",
        severity="info",
        facts=tuple((label, value) for label, value in facts if value),
        references=found.sources,
        related=(f"driver {found.linux_min}",) if found.linux_min else (),
    )


def _framework(name: str, version: str) -> Explanation | None:
    from gpudoctor.knowledge import frameworks

    builds = frameworks.builds(name, version)
    if not builds:
        return None
    facts: list[tuple[str, str]] = []
    for build in builds:
        parts = [
            f"CUDA {build.cuda}" if build.cuda else "",
            f"cuDNN {build.cudnn}" if build.cudnn else "",
            f"NCCL {build.nccl}" if build.nccl else "",
            f"torch {' or '.join(build.requires_torch)}" if build.requires_torch else "",
            f"Python {build.python_min} to {build.python_max or '?'}" if build.python_min else "",
            f"code for {', '.join(build.architectures)}" if build.architectures else "",
            f"compute capability {build.min_capability} or newer" if build.min_capability else "",
            "taken by plain pip" if build.default else "",
        ]
        facts.append((f"build {build.build}", "; ".join(part for part in parts if part) or build.removed or "?"))
    removed = builds[0].removed
    return Explanation(
        subject=f"{name} {version}",
        kind="framework",
        title=f"{name} {version}",
        meaning=removed or f"A release of {name} with {len(builds)} official build{'s' if len(builds) > 1 else ''}.",
        severity="warning" if removed else "info",
        facts=tuple(facts),
        references=tuple(dict.fromkeys(source for build in builds for source in build.sources)),
        related=("framework.tensorflow-gpu-package",) if removed else (),
    )


def _system(text: str) -> Explanation | None:
    from gpudoctor.knowledge import systems

    found = systems.parse(text)
    if found is None:
        return None
    facts = [("package manager", found.package_manager)]
    facts += [("end of standard support", found.end_of_support)] if found.end_of_support else []
    facts += [("glibc", found.glibc)] if found.glibc else []
    facts += [(role.replace("_", " "), name) for role, name in found.packages.items()]
    return Explanation(
        subject=found.name,
        kind="operating system",
        title=found.name,
        meaning="A Linux distribution; below the names of its driver packages.",
        severity="info",
        facts=tuple(facts),
        references=found.sources,
    )


_READERS: tuple[Callable[[str], Explanation | None], ...] = (_numbered, _log_line, _named)


# near misses ---------------------------------------------------------------------------------------------------------


def suggest(text: str, findings: Iterable[str] = (), count: int = 5) -> tuple[str, ...]:
    """Things that resemble what was asked for.

    >>> suggest("cudaErrorNoDevce")[0]
    'cudaErrorNoDevice'
    >>> suggest("79")
    ('xid 79',)
    >>> suggest("NCCL_P2P_DISABLED")[0]
    'NCCL_P2P_DISABLE'
    """
    import difflib

    thing = text.strip()
    if len(thing) > _NAME_LENGTH:
        return ()
    if thing.isdigit():
        asked = (f"{family} {thing}" for family in ("xid", "sxid", "cuda", "nvml", "nccl", "nvidia-smi"))
        known = [item for item in asked if (found := explain(item)) and "not in the catalogue" not in found.title]
        return tuple(known[:count])
    numbered = re.fullmatch(_NUMBERED, thing)
    if numbered:
        return _near_numbers(numbered["what"].lower().replace("_", "-").replace(" ", "-"), int(numbered["number"], 0))
    pool = _pool(thing, findings)
    close = difflib.get_close_matches(thing.casefold(), pool, n=count, cutoff=0.6)
    if not close:
        close = [key for key in pool if len(thing) > 3 and thing.casefold() in key][:count]
    return tuple(dict.fromkeys(pool[key] for key in close))


def _near_numbers(what: str, number: int) -> tuple[str, ...]:
    from gpudoctor.knowledge import cuda_errors, return_codes

    family = _FAMILIES.get(what, "nvidia-smi" if "smi" in what else what)
    if family == "cuda":
        known = [item.number for item in cuda_errors.every()]
    elif family in return_codes.TABLES:
        known = [item.number for item in return_codes.every(family)]
    else:
        return ()
    near = sorted(known, key=lambda item: abs(item - number))[:3]
    return tuple(f"{family} {item}" for item in sorted(near))


def _pool(text: str, findings: Iterable[str]) -> dict[str, str]:
    names = list(findings)
    upper = text.upper()
    if upper.startswith("NCCL_"):
        names += [row["name"] for row in table("nccl_variables").rows]
    elif "." not in text:
        for row in table("cuda_errors").rows:
            names += [row[key] for key in ("runtime", "driver") if key in row]
        names += [row["symbol"] for row in table("xid").rows]
        for family in ("nvml_return", "nccl_results", "cublas_status", "cudnn_status", "ib_completion"):
            names += [row["name"] for row in table(family).rows]
    pool = {name.casefold(): name for name in names}
    if not upper.startswith(("NCCL_", "CUDA_", "CUDAERROR", "NVML_")):
        for row in table("gpus").rows:
            full = row["name"]
            for short in (full, full.removeprefix("NVIDIA "), full.removeprefix("NVIDIA GeForce ")):
                pool.setdefault(short.casefold(), full)
    return pool
