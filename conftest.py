"""What pytest must not import: the durable-rules adapter, where that extension isn't installed (it has no wheels)."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("durable_rules_engine") else ["src/gpudoctor/engine/durable.py"]
