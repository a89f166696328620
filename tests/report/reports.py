"""Reports that no machine has to be broken for."""

from __future__ import annotations

from gpudoctor.facts.base import Where
from gpudoctor.findings.model import (
    Finding,
    Fix,
    ProbeResult,
    ProgramInfo,
    Report,
    SourceInfo,
    Status,
    Subject,
    Suppressed,
    Suppression,
)

HOSTILE = (
    'gpu"} 1\nevil{x="',
    "back\\slash\\",
    "\x1b[2J\x00\x07",
    "\u202etxet",
    "x" * 5000,
    "\ud800",
    "::error::owned\r\n::stop",
    "a | b=1;2;3",
    "<script>alert(1)</script>",
    "`` ` ``` [x](y)",
    "ünï ✓ 日本",
    "",
)


def finding(name: str = "0000:3b:00.0", number: int = 0, **values: object) -> Finding:
    given: dict[str, object] = {
        "id": f"hardware.made-up-{number}",
        "title": f"Something is wrong with {name}",
        "severity": "critical",
        "confidence": "certain",
        "key": f"hardware.made-up-{number}@{name}",
        "subjects": [Subject(kind="gpu", name=name)],
        "because": f"It says {name}.",
        "evidence": [Where(source="dmesg.txt", line=3, text=name)],
        "fixes": [Fix(title=f"Do {name}", commands=[f"echo {name}"])],
    }
    return Finding(**(given | values))


def report(*findings: Finding, status: Status = "critical", suppressed: bool = False) -> Report:
    kept = Suppression(id="pcie", reason="known", expires="2027-01-31")
    return Report(
        gpudoctor=ProgramInfo(version="0.1.0", engine="builtin", rules=1, python="3.11.7"),
        source=SourceInfo(kind="live", path="/"),
        node={"gpus": []},
        status=status,
        summary="; ".join(found.title for found in findings[:1]) or "Nothing wrong found",
        findings=list(findings),
        undecided=[],
        probes=[
            ProbeResult(name="nvml", status="timeout", seconds=12.0, reason="no answer"),
            ProbeResult(name="pci", status="ok", seconds=0.01),
        ],
        suppressed=[Suppressed(finding=finding(number=99), suppression=kept)] if suppressed else [],
        expired_suppressions=[Suppression(id="nvlink.link-inactive", reason="old", expires="2020-01-01")]
        if suppressed
        else [],
    )
