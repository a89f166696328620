"""What is installed for an interpreter, told by the packages' metadata; no package is imported."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# The child runs isolated (-I): neither the working directory nor PYTHON* variables change what it sees.
_ASK = """
import importlib.metadata as m, json, sys
found = {}
for d in m.distributions():
    n = d.metadata.get("Name") if d.metadata else None
    if n: found.setdefault(n.lower().replace("_", "-"), d.version)
print(json.dumps({"python": ".".join(map(str, sys.version_info[:3])), "packages": found, "path": [p for p in sys.path if p]}))
"""
_DEADLINE = 20.0


@dataclass(frozen=True)
class Environment:
    """An interpreter and its packages (names in lower case with dashes)."""

    interpreter: str
    python: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.interpreter} (Python {self.python})" if self.python else self.interpreter

    def version(self, *names: str) -> str | None:
        """Return the version of the first of these packages that is installed."""
        return next((self.packages[name] for name in names if name in self.packages), None)


def read_environment(interpreter: str) -> Environment:
    """Ask an interpreter for its version and packages."""
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_DEADLINE, check=False
        )
        told = json.loads(done.stdout)
    except FileNotFoundError:
        return Environment(interpreter, problem="no such program")
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return Environment(interpreter, problem=f"it gave no usable answer ({type(error).__name__})")
    return Environment(
        interpreter, told["python"], dict(told["packages"]), tuple(Path(folder) for folder in told["path"])
    )
