"""Which distribution classes a framework has: read from the installed files without importing them, else from a table."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Parts:
    """What `tf.distribute` holds: names below it (`experimental.X` included), and arguments per class where known."""

    names: frozenset[str]
    arguments: dict[str, tuple[str, ...]]
    source: str  # "TensorFlow 2.17.0 as installed", "TensorFlow 2.x"


# class -> (arguments of its constructor, what it is for)
STRATEGIES: dict[str, tuple[tuple[str, ...], str]] = {
    "MirroredStrategy": (("devices", "cross_device_ops"), "several GPUs of one machine"),
    "MultiWorkerMirroredStrategy": (("cluster_resolver", "communication_options"), "several machines"),
    "ParameterServerStrategy": (("cluster_resolver", "variable_partitioner"), "workers and parameter servers"),
    "OneDeviceStrategy": (("device",), "one device"),
    "TPUStrategy": (
        (
            "tpu_cluster_resolver",
            "experimental_device_assignment",
            "experimental_spmd_xla_partitioning",
        ),
        "TPUs",
    ),
    "experimental.CentralStorageStrategy": (("compute_devices", "parameter_device"), "variables kept in one place"),
    "experimental.MultiWorkerMirroredStrategy": (
        ("communication", "cluster_resolver"),
        "several machines, the old name",
    ),
    "experimental.ParameterServerStrategy": (("cluster_resolver", "variable_partitioner"), "the old name"),
    "experimental.TPUStrategy": (("tpu_cluster_resolver", "device_assignment"), "TPUs, the old name"),
}
_OTHER = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "NcclAllReduce",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Server",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "coordinator",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "experimental.CollectiveCommunication",
    "experimental.CollectiveHints",
    "experimental.CommunicationImplementation",
    "experimental.CommunicationOptions",
    "experimental.PreemptionCheckpointHandler",
    "experimental.PreemptionWatcher",
    "experimental.TerminationConfig",
    "experimental.ValueContext",
    "experimental.coordinator",
    "experimental.partitioners",
    "experimental.rpc",
]
TABLE = Parts(
    frozenset([*STRATEGIES, *_OTHER]),
    {name: arguments for name, (arguments, _) in STRATEGIES.items()},
    "any TensorFlow 2",
)

_EXPORT = re.compile(r"^from (?P<module>[\w.]+) import (?P<name>\w+)(?: as (?P<alias>\w+))?", re.MULTILINE)


def tensorflow_parts(site_packages: list[Path], version: str | None) -> Parts:
    """Return what `tf.distribute` holds in an installed TensorFlow, else what it holds in any TensorFlow 2."""
    for folder in site_packages:
        root = folder / "tensorflow" / "_api" / "v2" / "distribute"
        names: set[str] = set()
        modules: dict[str, str] = {}
        for prefix, file in (("", root / "__init__.py"), ("experimental.", root / "experimental" / "__init__.py")):
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            for found in _EXPORT.finditer(text):
                name = prefix + (found["alias"] or found["name"])
                names.add(name)
                modules[name] = f"{found['module']}:{found['name']}"
        if names:
            arguments = {
                name: known
                for name in names
                if name.endswith("Strategy") and (known := _constructor(folder, modules[name])) is not None
            }
            return Parts(
                frozenset(names),
                arguments,
                f"TensorFlow {version} as installed" if version else "TensorFlow as installed",
            )
    return TABLE


def _constructor(site_packages: Path, origin: str) -> tuple[str, ...] | None:
    """Return the arguments of a class's constructor, read from its source file."""
    module, _, name = origin.partition(":")
    file = site_packages.joinpath(*module.split(".")).with_suffix(".py")
    try:
        tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                    taken = member.args
                    if taken.kwarg or taken.vararg:
                        return None
                    return tuple(a.arg for a in [*taken.posonlyargs, *taken.args, *taken.kwonlyargs] if a.arg != "self")
    return None
