"""Build step: parses rules/ and probes/ once, so that no run has to (YAML takes longer to read than all the rest)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParsedDeclarations(BuildHookInterface[Any]):
    """Writes src/gpudoctor/declarations.json, for wheels and for editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Parse every declaration; `version` is standard or editable."""
        root = Path(self.root)
        sys.path.insert(0, str(root / "src"))
        from gpudoctor.declared import BUILT, build

        build([root / "rules", root / "probes"], root / "src" / "gpudoctor" / BUILT)
        build_data["artifacts"].append(f"src/gpudoctor/{BUILT}")
