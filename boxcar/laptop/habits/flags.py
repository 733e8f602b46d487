"""The flags of a script, read from its source: argparse, click, dataclass parsers, bare globals."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from boxcar.laptop.habits.source import UNKNOWN, dotted, is_text, last, literal
from boxcar.shared.record import dataclass

_ADDS = ("add_argument", "option", "argument", "add_arg")
_DATACLASS_PARSERS = ("HfArgumentParser", "tyro", "simple_parsing", "pyrallis", "chz")


@dataclass(frozen=True)
class Flag:
    """`names` as they are typed, such as `-b`, `--batch-size`; of a positional one its name.

    `default` is UNKNOWN where the source does not say it as a literal. `is_switch`: it takes no
    value; `is_off`: it switches off what is on. `is_setting`: it is typed as one word,
    `--name=value` or `name=value`. `line`, of the file at `path`, counts from 1; 0 is that of a
    flag which only the script's `--help` names.
    """

    names: tuple[str, ...]
    line: int
    default: Any = None
    is_switch: bool = False
    is_off: bool = False
    is_required: bool = False
    is_setting: bool = False
    path: str = ""

    @property
    def is_positional(self) -> bool:
        return not self.is_setting and not self.names[0].startswith("-")

    @property
    def word(self) -> str:
        """How it is typed in full."""
        return max(self.names, key=lambda name: (name.startswith("--"), len(name)))

    @property
    def where(self) -> str:
        """Where it is said."""
        return f"{self.path}, line {self.line}" if self.line else "the script's --help"

    @property
    def key(self) -> str:
        """What it is called, however it is spelled: `batch_size`."""
        return self.word.lstrip("-").replace("-", "_")


def read(nodes: Sequence[tuple[str, ast.AST]]) -> tuple[Flag, ...]:
    """Every flag that the code adds to a parser, the script's own first; of nodes with their
    files' paths.
    """
    found: dict[str, Flag] = {}
    calls = [(path, node) for path, node in nodes if isinstance(node, ast.Call)]
    own = [flag for path, call in calls if (flag := _added(call, path))]
    if parsers := [call for _, call in calls if dotted(call.func).startswith(_DATACLASS_PARSERS)]:
        named = {last(n) for call in parsers for n in ast.walk(call) if isinstance(n, ast.expr)}
        classes = [(path, node) for path, node in nodes if isinstance(node, ast.ClassDef)]
        few = [each for each in classes if each[1].name in named]
        own += [flag for path, node in few or classes for flag in _fields(node, path)]
    for flag in own:
        found.setdefault(flag.key, flag)
    return tuple(found.values())


def settings(tree: ast.Module, path: str) -> tuple[Flag, ...]:
    """The plain globals that `exec(open("configurator.py").read())` lets `--name=value` replace."""
    replaced_at = next((n.lineno for n in ast.walk(tree) if _is_exec_of_a_file(n)), 0)
    return tuple(
        Flag((f"--{node.targets[0].id}",), node.lineno, value, is_setting=True, path=path)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.lineno < replaced_at
        and (value := literal(node.value)) is not UNKNOWN
    )


def _added(call: ast.Call, path: str) -> Flag | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ADDS:
        return None
    names = tuple(str(arg.value) for arg in call.args if is_text(arg))
    if not names:
        return None
    keys = {item.arg: item.value for item in call.keywords if item.arg}
    # click lists the variable's name beside the flags.
    names = tuple(name for name in names if name.startswith("-")) or names[:1]
    is_optional = literal(keys.get("nargs")) in ("?", "*")
    default = literal(keys.get("default"))
    is_off = literal(keys.get("action")) == "store_false"
    is_needed = not names[0].startswith("-") and not is_optional and default is None
    is_needed |= literal(keys.get("required")) is True
    return Flag(
        names, call.lineno, default, _is_switch(keys), is_off, is_required=is_needed, path=path
    )


def _is_switch(keys: dict[str, ast.expr]) -> bool:
    """`nargs='?'` with a `const` may be typed without a value too."""
    action = ast.unparse(keys["action"]).strip("'\"") if "action" in keys else ""
    is_bare = action.startswith("store_") or action == "count"
    is_bare |= action.endswith("BooleanOptionalAction")
    is_maybe = literal(keys.get("nargs")) == "?" and "const" in keys
    return is_bare or is_maybe or literal(keys.get("is_flag")) is True


def _fields(node: ast.ClassDef, path: str) -> Iterator[Flag]:
    """Those of a dataclass, which such parsers turn into flags."""
    bare = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    if all(last(each) != "dataclass" for each in bare):
        return
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name, is_needed = (f"--{field.target.id}",), field.value is None
            default, is_switch = (
                _field_default(field.value),
                ast.unparse(field.annotation) == "bool",
            )
            yield Flag(name, field.lineno, default, is_switch, is_required=is_needed, path=path)


def _field_default(value: ast.expr | None) -> Any:
    """The literal, also of `field(default=5)`."""
    if isinstance(value, ast.Call) and dotted(value.func).endswith("field"):
        keys = {item.arg: item.value for item in value.keywords}
        return literal(keys.get("default")) if "default" in keys else UNKNOWN
    return literal(value)


def _is_exec_of_a_file(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or dotted(node.func) != "exec":
        return False
    return any(
        isinstance(inner, ast.Call) and dotted(inner.func) == "open" for inner in ast.walk(node)
    )
