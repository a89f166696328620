"""gpudoctor compat: will this combination of driver, CUDA, framework, GPU, Python and operating system work?"""

import argparse
import re
import sys
from collections.abc import Callable

from msgspec.structs import replace

from gpudoctor.cli.this_node import read_setup
from gpudoctor.knowledge import compat, frameworks, systems
from gpudoctor.knowledge.compat import Framework, Setup, Verdict
from gpudoctor.knowledge.drivers import parse_version

WRONG_USAGE = 64

LiveSetup = Callable[[], Setup | None]

_REQUIREMENT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*?)(?:\s*={1,2}\s*|\s+|@)(\d[\w.]*)(?:\+(\w+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--gpu", help="GPU name, PCI id or compute capability: 'RTX 4090', 10de:2330, sm_90")
    parser.add_argument("--driver", help="driver version: 550.54.15")
    parser.add_argument("--cuda", help="CUDA version: 12.4")
    parser.add_argument(
        "--framework",
        action="append",
        default=[],
        metavar="NAME==VERSION",
        help="framework, with its build if wanted: torch==2.4.1 or torch==2.4.1+cu121; may be repeated",
    )
    parser.add_argument("--build", help="build of the framework: cu121")
    parser.add_argument("--python", help="Python version: 3.12")
    parser.add_argument("--os", help="Linux distribution: ubuntu-22.04, rhel9")
    parser.add_argument("--modules", choices=("open", "proprietary"), help="flavour of the kernel modules")
    parser.add_argument("--forward-compat", action="store_true", help="a cuda-compat package is in use")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, live: LiveSetup = read_setup) -> int:
    """Print the verdict; without arguments this machine is judged."""
    try:
        setup = _setup(args)
    except ValueError as error:
        print(f"gpudoctor compat: {error}", file=sys.stderr)
        return WRONG_USAGE
    if not setup.parts():
        setup = live() or setup
    if not setup.parts():
        text = "nothing of NVIDIA on this machine; give at least one of --gpu, --driver, --cuda, --framework, --python, --os"
        print(f"gpudoctor compat: {text}", file=sys.stderr)
        return WRONG_USAGE
    verdict = compat.check(setup)
    if args.json:
        import json

        print(json.dumps(as_json(verdict), ensure_ascii=False, indent=2))
    else:
        print(as_text(verdict))
    return 0


def _setup(args: argparse.Namespace) -> Setup:
    for option in ("driver", "cuda", "python"):
        value = getattr(args, option)
        if value:
            try:
                parse_version(value)
            except ValueError:
                raise ValueError(f"--{option} takes a version such as 12.4, not {value!r}") from None
    if args.gpu and not compat.products_for(args.gpu):
        raise ValueError(f"no GPU {args.gpu!r} is known{_hint(compat.similar_gpus(args.gpu))}")
    if args.os and systems.parse(args.os) is None:
        known = sorted({item.name for item in systems.every() if item.id in args.os.lower()})
        raise ValueError(f"no operating system {args.os!r} is known{_hint(known or ['ubuntu 22.04', 'rhel 9'])}")
    wanted = tuple(requirement(text) for text in args.framework)
    if args.build:
        if len(wanted) != 1:
            raise ValueError("--build goes with exactly one --framework")
        wanted = (replace(wanted[0], build=args.build),)
    return Setup(
        driver=args.driver,
        cuda=args.cuda,
        frameworks=wanted,
        gpu=args.gpu,
        python=args.python,
        os=args.os,
        modules=args.modules,
        forward_compat=args.forward_compat,
    )


def _hint(close: list[str] | tuple[str, ...]) -> str:
    return f"; did you mean {', '.join(close)}?" if close else ""


def requirement(text: str) -> Framework:
    """Read a framework with its version.

    >>> requirement("torch==2.4.1+cu121")
    Framework(name='torch', version='2.4.1', build='cu121')
    """
    match = _REQUIREMENT.fullmatch(text.strip())
    name = frameworks.canonical(match[1] if match else text)
    if name not in frameworks.names():
        import difflib

        close = difflib.get_close_matches(name, frameworks.names(), n=3) or list(frameworks.names())
        raise ValueError(f"no framework {name!r} is known{_hint(close)}")
    if match is None:
        versions = frameworks.versions(name)
        raise ValueError(f"name a version of {name}, for example {name}=={versions[-1]}")
    return Framework(name, match[2], match[3])


def as_json(verdict: Verdict) -> dict[str, object]:
    """Verdict as plain data."""
    return {
        "answer": verdict.answer,
        "setup": _parts(verdict.setup),
        "reasons": [
            {"answer": item.answer, "about": item.about, "text": item.text, "sources": list(item.sources)}
            for item in verdict.reasons
        ],
        "caveats": list(verdict.caveats),
        "nearest": [{"change": item.change, "setup": _parts(item.setup)} for item in verdict.nearest],
    }


def _parts(setup: Setup) -> dict[str, object]:
    return {
        "gpu": setup.gpu,
        "driver": setup.driver,
        "cuda": setup.cuda,
        "frameworks": [{"name": f.name, "version": f.version, "build": f.build} for f in setup.frameworks],
        "python": setup.python,
        "os": setup.os,
        "modules": setup.modules,
    }


def as_text(verdict: Verdict) -> str:
    """Verdict as text for a terminal."""
    marks = {"works": "ok", "doesn't": "no", "unknown": "??"}
    given = ", ".join(f"{label} {value}" for label, value in verdict.setup.parts())
    lines = [f"{verdict.answer}: {given}", ""]
    lines += [f"  {marks[item.answer]}  {item.about}: {item.text}" for item in verdict.reasons]
    if verdict.caveats:
        lines += ["", "Bear in mind", *(f"  - {text}" for text in verdict.caveats)]
    if verdict.nearest:
        lines += ["", "This would work", *(f"  - {item.change}" for item in verdict.nearest)]
    listed = dict.fromkeys(source for item in verdict.reasons for source in item.sources)
    if listed:
        lines += ["", "References", *(f"  - {source}" for source in listed)]
    return "\n".join("".join(char if char.isprintable() else "?" for char in line) for line in lines)
