"""The flags of a script, read from its source: argparse, click, dataclass parsers, bare globals."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Container, Iterable, Iterator
from typing import Any, TypeGuard

from boxcar.laptop.habits.called import assigned, dotted, last
from boxcar.shared.record import dataclass

UNKNOWN = object()
_ADDS = ("add_argument", "option", "argument", "add_arg")
_DATACLASS_PARSERS = ("HfArgumentParser", "tyro", "simple_parsing", "pyrallis", "chz")


@dataclass(frozen=True)
class Flag:
    """`names` as they are typed, such as `-b`, `--batch-size`; of a positional one its name.

    `default` is UNKNOWN where the source does not say it as a literal. `is_switch`: it takes no
    value; `is_off`: it switches off what is on. `is_setting`: it is typed as one word,
    `--name=value` or `name=value`. `is_literal`: its value is read as Python, so that a path needs
    quotes. `line` counts from 1; 0 is that of a flag which only the script's `--help` names.
    """

    names: tuple[str, ...]
    line: int
    default: Any = None
    is_switch: bool = False
    is_off: bool = False
    is_required: bool = False
    is_setting: bool = False
    is_literal: bool = False

    @property
    def is_positional(self) -> bool:
        return not self.is_setting and not self.names[0].startswith("-")

    @property
    def word(self) -> str:
        """How it is typed in full."""
        return max(self.names, key=lambda name: (name.startswith("--"), len(name)))

    @property
    def where(self) -> str:
        """Where a script at some path says it."""
        return f"line {self.line}" if self.line else "its --help"

    @property
    def key(self) -> str:
        """What it is called, however it is spelled: `batch_size`."""
        return self.word.lstrip("-").replace("-", "_")


def read(tree: ast.Module) -> tuple[Flag, ...]:
    """Every flag that the source adds to a parser, in its order."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [flag for call in calls if (flag := _added(call))]
    if any(dotted(call.func).startswith(_DATACLASS_PARSERS) for call in calls):
        found += _fields(tree)
    return tuple(sorted(found, key=lambda flag: flag.line))


def settings(tree: ast.Module) -> tuple[Flag, ...]:
    """The plain globals that `exec(open("configurator.py").read())` lets `--name=value` replace."""
    replaced_at = next((n.lineno for n in ast.walk(tree) if _is_exec_of_a_file(n)), 0)
    return tuple(
        Flag((f"--{node.targets[0].id}",), node.lineno, literal(node.value), is_setting=True)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and node.lineno < replaced_at and literal(node.value) is not UNKNOWN
    )  # fmt: skip


def words(tree: ast.Module) -> tuple[Flag, ...]:
    """What is taken by position, `out = sys.argv[1]`, by the names that it is given; in its order.

    Those behind a gap are not known. One with another value where it is missing is optional.
    """
    found: dict[int, Flag] = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assign)):
        for name, value in assigned(node):
            if (at := _argv_index(value)) is not None:
                default = value.orelse if isinstance(value, ast.IfExp) else None
                is_required = default is None
                flag = Flag((name.id,), name.lineno, literal(default), is_required=is_required)
                found.setdefault(at, flag)
    return tuple(found[at] for at in range(1, _first_gap(found)))


def _argv_index(value: ast.expr) -> int | None:
    """Of `sys.argv[1]`, `float(sys.argv[1])`, or one of these where there are enough words."""
    if isinstance(value, ast.IfExp):
        value = value.body
    if isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, ast.Subscript) or dotted(value.value) not in ("sys.argv", "argv"):
        return None
    index = literal(value.slice)
    return index if type(index) is int and index > 0 else None


def _first_gap(found: Container[int]) -> int:
    return next(at for at in itertools.count(1) if at not in found)


def _added(call: ast.Call) -> Flag | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ADDS:
        return None
    names = tuple(
        arg.value
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    )
    if not names:
        return None
    keys = {item.arg: item.value for item in call.keywords if item.arg}
    # click lists the variable's name beside the flags.
    names = tuple(name for name in names if name.startswith("-")) or names[:1]
    is_optional = literal(keys.get("nargs")) in ("?", "*")
    default = literal(keys.get("default"))
    is_off = literal(keys.get("action")) == "store_false"
    is_positional = not names[0].startswith("-")
    return Flag(
        names,
        call.lineno,
        default,
        is_switch=_is_switch(keys),
        is_off=is_off,
        is_required=literal(keys.get("required")) is True
        or (is_positional and not is_optional and default is None),
    )


def _is_switch(keys: dict[str, ast.expr]) -> bool:
    """`nargs='?'` with a `const` may be typed without a value too."""
    action = ast.unparse(keys["action"]).strip("'\"") if "action" in keys else ""
    is_bare = action.startswith("store_") or action == "count"
    is_bare |= action.endswith("BooleanOptionalAction")
    is_maybe = literal(keys.get("nargs")) == "?" and "const" in keys
    return is_bare or is_maybe or literal(keys.get("is_flag")) is True


def _fields(tree: ast.Module) -> Iterator[Flag]:
    """Those of dataclasses, which such parsers turn into flags."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and _has_decorator(node.decorator_list, "dataclass"):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield Flag(
                        (f"--{field.target.id}",),
                        field.lineno,
                        field_default(field.value),
                        is_switch=ast.unparse(field.annotation) == "bool",
                        is_required=field.value is None,
                    )


def field_default(value: ast.expr | None) -> Any:
    """The literal, also of `field(default=5)`."""
    if isinstance(value, ast.Call) and dotted(value.func).endswith("field"):
        keys = {item.arg: item.value for item in value.keywords}
        return literal(keys.get("default")) if "default" in keys else UNKNOWN
    return literal(value)


def _has_decorator(decorators: Iterable[ast.expr], name: str) -> bool:
    bare = (item.func if isinstance(item, ast.Call) else item for item in decorators)
    return any(last(item) == name for item in bare)


def _is_exec_of_a_file(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or dotted(node.func) != "exec":
        return False
    return any(isinstance(inner, ast.Call) and dotted(inner.func) == "open"
               for inner in ast.walk(node))  # fmt: skip


def literal(node: ast.expr | None) -> Any:
    """The value of a literal; UNKNOWN of any other expression, None where there is none."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
