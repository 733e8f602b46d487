"""What `config.merge_from_args(sys.argv[1:])` takes, `--model.n_layer=10`, as minGPT's CfgNode has
it: the attributes that the source gives a value before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from boxcar.laptop.habits import imported
from boxcar.laptop.habits.called import dotted, last
from boxcar.laptop.habits.flags import UNKNOWN, Flag, literal

_MERGES = "merge_from_args"


def read(root: Path, path: Path, tree: ast.Module) -> tuple[Flag, ...]:
    """Of the script's own functions, and of `C.model = GPT.get_default_config()` wherever the
    project has that class.
    """
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    if not any(last(call.func) == _MERGES for call in calls):
        return ()
    trees = [
        tree,
        *filter(None, (imported.parsed(f) for f, _ in imported.by_name(root, path, tree))),
    ]
    classes = {node.name: node for each in trees for node in _classes(each)}
    is_literal = any(map(_reads_literals, trees))
    own = [node for node in tree.body if not isinstance(node, ast.ClassDef)]
    found: dict[str, Flag] = {}
    for key, line, value in _values(ast.Module(own, []), classes):
        found[key] = Flag((f"--{key}",), line, value, is_setting=True, is_literal=is_literal)
    return tuple(found.values())


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _reads_literals(tree: ast.Module) -> bool:
    """minGPT's own takes text without quotes only where it could be a name: a path is none."""
    methods = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == _MERGES)
    calls = (n for method in methods for n in ast.walk(method) if isinstance(n, ast.Call))
    return any(last(call.func) == "literal_eval" for call in calls)


def _values(
    tree: ast.AST, classes: dict[str, ast.ClassDef], depth: int = 3
) -> Iterator[tuple[str, int, object]]:
    """`system.seed` of `C.system.seed = 3407`, with its line and its value."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
            continue
        key = dotted(node.targets[0]).partition(".")[2]
        if method := _method(node.value, classes):
            inner = _values(method, classes, depth - 1) if depth else ()
            yield from ((f"{key}.{name}", node.lineno, value) for name, _, value in inner)
        elif (value := literal(node.value)) is not UNKNOWN and key:
            yield key, node.lineno, value


def _method(value: ast.expr, classes: dict[str, ast.ClassDef]) -> ast.FunctionDef | None:
    """What `GPT.get_default_config()` runs."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    owner = classes.get(dotted(value.func.value))
    found = (node for node in owner.body if isinstance(node, ast.FunctionDef)) if owner else ()
    return next((node for node in found if node.name == value.func.attr), None)
