"""What pytest must not import: the durable-rules adapter, where that extension isn't there (it has no wheels) or doesn't load."""

from gpudoctor.engine import available_engines

collect_ignore = [] if "durable" in available_engines() else ["src/gpudoctor/engine/durable.py"]
