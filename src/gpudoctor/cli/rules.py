"""`gpudoctor rules lint|test|list|page`: for people who add rules, ours or a site's own."""

from __future__ import annotations

import argparse
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpudoctor.engine.rule import Rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", choices=["lint", "test", "list", "page"])
    parser.add_argument(
        "path", nargs="*", default=[], type=Path, help="lint: rule files or folders; test: test files or folders"
    )
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="also use the rules in this folder")
    parser.add_argument("--only", metavar="ID", help="test, list, page: only rules whose id begins so")


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 where all is well, 1 where a rule or test fails, 64 on wrong usage, 66 where a path can't be read."""
    from gpudoctor.declared import DeclarationError

    try:
        return {"lint": _lint, "test": _test, "list": _list, "page": _page}[args.action](args)
    except DeclarationError as error:
        sys.stderr.write(f"gpudoctor rules: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"gpudoctor rules: {error.filename}: {str(error.strerror).lower()}\n")
        return 66


def _lint(args: argparse.Namespace) -> int:
    from gpudoctor.collect.probe import load_probes
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.engine.compile import compile_rules
    from gpudoctor.engine.load import read_rule_file

    ours = Doctor([Path(folder) for folder in args.rules]).rules
    checked, faults = ours, list(ours.faults)
    if not args.path:
        checked = compile_rules(ours.rules)  # anew, with every regular expression compiled
        faults += checked.faults
    if args.path:
        read = [read_rule_file(path) for path in _files(args.path)]
        checked = compile_rules(rule for rules, _ in read for rule in rules)
        faults = [fault for _, wrong in read for fault in wrong] + list(checked.faults)
    known = {rule.id for rule in (*ours.rules, *checked.rules)}
    areas = {rule_id.partition(".")[0] for rule_id in known}
    probes = {probe.name for probe in load_probes()}
    for rule in checked.rules:
        for other in rule.explains:
            if other not in known and not (other.endswith(".*") and other[:-2] in areas):
                faults.append(f"{rule.id}: explains {other}, which no rule declares")
        faults += [f"{rule.id}: verify names {name}, which is no probe" for name in rule.verify if name not in probes]
    for fault in faults:
        sys.stderr.write(f"gpudoctor rules: {fault}\n")
    sys.stdout.write(f"{len(checked.rules)} rules are in order, {len(faults)} faults\n")
    return 1 if faults else 0


def _test(args: argparse.Namespace) -> int:
    from gpudoctor.diagnosis import Doctor
    from gpudoctor.engine import available_engines
    from gpudoctor.ruletests import read_tests, run_test

    if not args.path:
        sys.stderr.write("gpudoctor rules test: name the test files or their folder (ours are in tests/rules)\n")
        return 64
    doctors = [Doctor([Path(folder) for folder in args.rules], engine) for engine in available_engines()]
    passed = failed = 0
    for path in _files(args.path):
        for test in read_tests(path):
            if args.only and not test.rule_id.startswith(args.only):
                continue
            for doctor in doctors:
                fault = run_test(test, doctor)
                passed, failed = passed + (fault is None), failed + (fault is not None)
                if fault is not None:
                    sys.stdout.write(f"FAILED {test.name} ({doctor.engine} engine)\n       {fault}\n")
    if not passed + failed:
        of = f" of rules whose id begins with {args.only}" if args.only else ""
        sys.stderr.write(f"gpudoctor rules test: {', '.join(map(str, args.path))}: no test{of}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed or not passed else 0


def _list(args: argparse.Namespace) -> int:
    for rule in sorted(_chosen(args), key=lambda rule: rule.id):
        sys.stdout.write(f"{rule.id:<36} {rule.severity:<8} {rule.title}\n")
    return 0


def _page(args: argparse.Namespace) -> int:
    from gpudoctor.report.findings_page import render_page

    sys.stdout.write(render_page(_chosen(args)))
    return 0


def _chosen(args: argparse.Namespace) -> list[Rule]:
    """Return the rules that --only leaves; raises DeclarationError where it leaves none."""
    from gpudoctor.declared import DeclarationError
    from gpudoctor.diagnosis import Doctor

    loaded = Doctor([Path(folder) for folder in args.rules]).rules
    for fault in loaded.faults:
        sys.stderr.write(f"gpudoctor rules: {fault}\n")
    rules = [rule for rule in loaded.rules if rule.id.startswith(args.only or "")]
    if not rules:
        raise DeclarationError(f"--only {args.only}: no rule's id begins so")
    return rules


def _files(paths: list[Path]) -> list[Path]:
    """Return the files named, of folders their *.yaml; raises OSError where there is none or it can't be read."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix == ".yaml")
            if not inside:
                raise FileNotFoundError(errno.ENOENT, "no *.yaml in this folder", str(path))
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", str(path))
    return files
