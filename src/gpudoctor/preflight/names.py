"""What the names in a program stand for, told from its imports alone."""

from __future__ import annotations

import ast

# Usual aliases, for snippets that leave their imports out.
_USUAL = {"tf": "tensorflow", "torch": "torch", "keras": "keras", "jax": "jax", "jnp": "jax.numpy", "nn": "torch.nn"}


class Names(ast.NodeVisitor):
    """Aliases of a module: `import tensorflow as tf`, `from torch import nn`."""

    def __init__(self, tree: ast.AST) -> None:
        self.aliases: dict[str, str] = {}
        self.imported: dict[str, int] = {}  # module -> line of its first import
        self.visit(tree)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: D102
        for name in node.names:
            self.imported.setdefault(name.name, node.lineno)
            if name.asname:
                self.aliases[name.asname] = name.name
            else:
                first = name.name.split(".")[0]
                self.aliases[first] = first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: D102
        if node.level or not node.module:
            return
        self.imported.setdefault(node.module, node.lineno)
        for name in node.names:
            self.aliases[name.asname or name.name] = f"{node.module}.{name.name}"

    def path(self, node: ast.AST) -> str | None:
        """Return the dotted path of an expression such as `tf.distribute.MirroredStrategy`; None for anything else.

        >>> tree = ast.parse("import tensorflow as tf\\ntf.keras.mixed_precision.Policy")
        >>> Names(tree).path(tree.body[1].value)
        'tensorflow.keras.mixed_precision.Policy'
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        head = self.aliases.get(node.id) or _USUAL.get(node.id, node.id)
        return ".".join([head, *reversed(parts)])

    def uses(self, framework: str) -> bool:
        """Tell whether a package is imported."""
        return any(name == framework or name.startswith(framework + ".") for name in self.imported)
