"""gpudoctor explain: what an id, code, name or log line means and what to do about it."""

import argparse
import sys
import textwrap
from collections.abc import Iterable

from gpudoctor.cli.finding_ids import explain_finding, finding_ids
from gpudoctor.knowledge.explain import Explanation, FindingLookup, explain, explain_lines, suggest

WRONG_USAGE = 64
WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "thing",
        nargs="*",
        help="a finding id, 'xid 79', 'sxid 20034', a CUDA, NVML, NCCL or nvidia-smi code, an NCCL variable, "
        "a GPU name or PCI id, or a raw log line; '-' reads lines from standard input",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, finding: FindingLookup = explain_finding) -> int:
    """Print the explanation; findings are looked up by the callback."""
    text = " ".join(args.thing)
    if text == "-":
        text = sys.stdin.read()
    if not text.strip():
        print("gpudoctor explain: name something to explain, for example: gpudoctor explain xid 79", file=sys.stderr)
        return WRONG_USAGE
    if len(text.splitlines()) > 1:
        found = [item for _, item in explain_lines(text, finding) if item is not None]
    else:
        one = explain(text, finding)
        found = [one] if one is not None else []
    if not found:
        print(_miss(text, finding_ids()), file=sys.stderr)
        return WRONG_USAGE
    if args.json:
        import json

        items = [as_json(item) for item in found]
        print(json.dumps(items[0] if len(items) == 1 else items, ensure_ascii=False, indent=2))
    else:
        print("\n\n".join(as_text(item) for item in found))
    return 0


def _miss(text: str, ids: Iterable[str]) -> str:
    shown = printable(text.strip().splitlines()[0])[:WIDTH]
    close = suggest(text.strip(), ids)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    return f"gpudoctor explain: nothing is known about {shown!r}{hint}"


def printable(text: str) -> str:
    """Keep control characters of a log away from the terminal.

    >>> printable("a" + chr(27) + "[31mb")
    'a?[31mb'
    """
    return "".join(char if char.isprintable() else "?" for char in text)


def as_json(item: Explanation) -> dict[str, object]:
    """Explanation as plain data."""
    return {
        "subject": item.subject,
        "kind": item.kind,
        "title": item.title,
        "severity": item.severity,
        "meaning": item.meaning,
        "facts": dict(item.facts),
        "causes": list(item.causes),
        "check": list(item.check),
        "fixes": [
            {
                "title": step.title,
                "why": step.why,
                "commands": list(step.commands),
                "risk": step.risk,
                "needs": list(step.needs),
            }
            for step in item.fix
        ],
        "references": list(item.references),
        "related": list(item.related),
    }


def as_text(item: Explanation) -> str:
    """Explanation as text for a terminal."""
    severity = f"  [{item.severity}]" if item.severity else ""
    lines = [f"{item.title}{severity}", ""]
    lines += textwrap.wrap(item.meaning, WIDTH, break_on_hyphens=False)
    if item.facts:
        lines.append("")
        pad = max(len(label) for label, _ in item.facts)
        for label, value in item.facts:
            lines += textwrap.wrap(
                value,
                WIDTH,
                initial_indent=f"  {label:<{pad}}  ",
                subsequent_indent=" " * (pad + 4),
                break_on_hyphens=False,
            )
    lines += _listed("Usual causes, most likely first", item.causes)
    lines += _listed("What to check", item.check)
    if item.fix:
        lines += ["", "What to do, least disruptive first"]
        for number, step in enumerate(item.fix, 1):
            needs = f", needs {', '.join(step.needs)}" if step.needs else ""
            lines.append(f"  {number}. {step.title}  ({step.risk}{needs})")
            lines += textwrap.wrap(
                step.why, WIDTH, initial_indent="     ", subsequent_indent="     ", break_on_hyphens=False
            )
            lines += [f"       {command}" for command in step.commands]
    lines += _listed("References", item.references)
    if item.related:
        lines += ["", *textwrap.wrap(f"See also: {', '.join(item.related)}", WIDTH, break_on_hyphens=False)]
    return "\n".join(printable(line) for line in lines)


def _listed(title: str, items: Iterable[str]) -> list[str]:
    # whole words only: an address or an option that is cut can't be copied
    lines = [
        line
        for item in items
        for line in textwrap.wrap(
            item,
            WIDTH,
            initial_indent="  - ",
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )
    ]
    return ["", title, *lines] if lines else []
