"""A training program, read by its syntax tree and never run: what it sets, which classes it names, what it fixes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpudoctor.preflight.names import Names

MAX_BYTES = 5_000_000


class ProgramUnreadable(ValueError):
    """The program can't be read; str() says why in one line."""


@dataclass(frozen=True)
class Call:
    """A call of a named thing: its dotted path, constant keyword arguments, number of positional ones, line."""

    path: str
    line: int
    keywords: tuple[str, ...]
    values: dict[str, object]  # constants only
    positional: tuple[object, ...]  # constants, None for what isn't one
    spreads: bool  # *args or **kwargs


@dataclass(frozen=True)
class Mention:
    """A dotted path that the program names, called or not."""

    path: str
    line: int


@dataclass
class Program:
    """What was read of one program."""

    name: str
    frameworks: tuple[str, ...] = ()
    calls: list[Call] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    methods: dict[str, list[int]] = field(default_factory=dict)  # .prefetch(...), .cuda(...) of anything
    devices: list[tuple[str, int]] = field(default_factory=list)  # device names with a fixed index
    environment: dict[str, tuple[str, int]] = field(default_factory=dict)  # os.environ[...] = ...
    strings: list[tuple[str, int]] = field(default_factory=list)
    assigned: dict[str, int] = field(default_factory=dict)  # attribute paths that are assigned
    installs: list[tuple[str, int]] = field(default_factory=list)  # `!pip install` lines of a notebook

    def called(self, *endings: str) -> list[Call]:
        """Return the calls whose path ends with one of these."""
        return [call for call in self.calls if call.path.endswith(endings)]

    def names(self, *endings: str) -> bool:
        """Tell whether a path with one of these endings occurs at all."""
        return any(mention.path.endswith(endings) for mention in self.mentions)


_DEVICE = re.compile(
    r"^(?:cuda:(?P<cuda>\d+)|/?(?:job:\w+/)?(?:replica:\d+/)?(?:task:\d+/)?/?(?:device:)?gpu:(?P<gpu>\d+))$",
    re.IGNORECASE,
)
_FRAMEWORKS = ("tensorflow", "keras", "torch", "jax", "lightning", "pytorch_lightning", "transformers")


def read_program(path: Path) -> Program:
    """Read a .py file or a notebook; raises ProgramUnreadable."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ProgramUnreadable(f"{path}: larger than {MAX_BYTES // 10**6} MB, not a program")
    except OSError as error:
        raise ProgramUnreadable(f"{path}: {error.strerror or error}") from None
    if path.suffix == ".ipynb":
        text = _notebook(path, text)
    return parse_program(path.name, text)


def parse_program(name: str, text: str) -> Program:
    """Read a program's text.

    >>> program = parse_program("train.py", "import tensorflow as tf\\nwith tf.device('/GPU:3'): pass")
    >>> program.frameworks, program.devices
    (('tensorflow',), [('/GPU:3', 2)])
    """
    program = Program(name)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if re.match(r"\s*[!%]", line):  # a notebook's shell line
            program.installs.append((line.strip().lstrip("!%"), number))
            lines.append(re.match(r"\s*", line)[0] + "pass")  # type: ignore[index]
        else:
            lines.append(line)
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError) as error:
        at = getattr(error, "lineno", None)
        raise ProgramUnreadable(
            f"{name}{f':{at}' if at else ''}: not a Python 3 program: {getattr(error, 'msg', error)}"
        ) from None
    except RecursionError:
        raise ProgramUnreadable(f"{name}: nested too deeply to be read") from None
    names = Names(tree)
    program.frameworks = tuple(framework for framework in _FRAMEWORKS if names.uses(framework))
    for node in ast.walk(tree):
        _note(program, names, node)
    program.calls.sort(key=lambda call: call.line)
    program.devices = sorted(dict.fromkeys(program.devices), key=lambda found: found[1])
    return program


def _notebook(path: Path, text: str) -> str:
    try:
        cells = json.loads(text)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError):
        raise ProgramUnreadable(f"{path}: not a notebook that can be read") from None
    return "\n".join(code)


def _note(program: Program, names: Names, node: ast.AST) -> None:
    if isinstance(node, ast.Call):
        _note_call(program, names, node)
    elif isinstance(node, (ast.Attribute, ast.Name)) and (path := names.path(node)):
        if "." in path:
            program.mentions.append(Mention(path, node.lineno))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
        program.strings.append((node.value, node.lineno))
        if _DEVICE.match(node.value.strip()):
            program.devices.append((node.value.strip(), node.lineno))
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            _note_target(program, names, target, node.value)


def _note_call(program: Program, names: Names, node: ast.Call) -> None:
    if isinstance(node.func, ast.Attribute):
        program.methods.setdefault(node.func.attr, []).append(node.lineno)
        if node.func.attr in ("cuda", "set_device", "to") and node.args:
            index = _constant(node.args[0])
            if type(index) is int:
                program.devices.append((f"{node.func.attr}({index})", node.lineno))
    path = names.path(node.func)
    if path is None:
        path = f"?.{node.func.attr}" if isinstance(node.func, ast.Attribute) else None
    if path is None:
        return
    positional = tuple(_constant(argument) for argument in node.args if not isinstance(argument, ast.Starred))
    keywords = {keyword.arg: _constant(keyword.value) for keyword in node.keywords if keyword.arg}
    spreads = any(keyword.arg is None for keyword in node.keywords) or len(positional) != len(node.args)
    program.calls.append(Call(path, node.lineno, tuple(keywords), keywords, positional, spreads))
    if path in ("os.environ.setdefault", "os.putenv") and len(positional) == 2:
        program.environment[str(positional[0])] = (str(positional[1]), node.lineno)
    if path == "torch.device" and len(positional) == 2 and positional[0] == "cuda" and type(positional[1]) is int:
        program.devices.append((f"cuda:{positional[1]}", node.lineno))


def _note_target(program: Program, names: Names, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Subscript) and names.path(target.value) == "os.environ":
        key = _constant(target.slice)
        if isinstance(key, str):
            program.environment[key] = (str(_constant(value)), target.lineno)
    elif isinstance(target, ast.Attribute) and (path := names.path(target)):
        program.assigned[path] = target.lineno


def _constant(node: ast.expr) -> object:
    """Return a constant, or a list of constants as a tuple; None for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(_constant(element) for element in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return -inner if isinstance(inner, (int, float)) else None
    return None


def paths_below(program: Program, package: str) -> Iterator[Mention]:
    """Yield what the program names below a package, longest paths first, each once."""
    seen: set[str] = set()
    for mention in sorted(program.mentions, key=lambda found: -found.path.count(".")):
        path = mention.path
        if path.startswith(package + ".") and not any(known == path or known.startswith(path + ".") for known in seen):
            seen.add(path)
            yield mention
