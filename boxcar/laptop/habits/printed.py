"""What a script prints, read from its source: literal text, and the values between. Pure.

Known are print and its like with f-strings, `%`, `.format` and several words, loggers, and tqdm's
postfix. Of any other way nothing is said.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.habits.source import dotted, last
from boxcar.shared.record import dataclass

_PRINTS = re.compile(
    r"(?i)(.*\.)?((\w*_)?print(_?\w*)?|(rank_zero_|log_)?info|warning|set_description(_str)?|echo)"
    r"|tqdm\.write|log|(.*\.)?set_postfix_str"
)
_POSTFIX = "set_postfix"
_PERCENT = re.compile(r"%(?:\((\w+)\))?([-+ #0]*\d*)(?:\.\d+)?([diouxXeEfFgGsr])")
_BRACES = re.compile(r"\{(\w*)(?:![rsa])?(?::([^{}]*))?\}")
_AS_NUMBER = re.compile(r"[^a-zA-Z]*([eEfFgG%d]|\.\d+$)")
_TEXTS = (ast.JoinedStr, ast.BinOp, ast.Call)
_MAKE_NUMBERS = ("item", "float", "round", "int", "len")


@dataclass(frozen=True)
class Value:
    """One value within a text. `is_number`: it is printed as one for sure, and no tensor is; with
    `is_padded` there may be blanks before it.
    """

    is_number: bool
    is_padded: bool = False


Part = str | Value


@dataclass(frozen=True)
class Text:
    """What one call prints, at a line of the source."""

    line: int
    parts: tuple[Part, ...]


def read(tree: ast.Module) -> Iterator[Text]:
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    named = {
        name.id: node.value
        for node in given
        for name in node.targets
        if isinstance(name, ast.Name) and isinstance(node.value, _TEXTS)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if last(call.func) == _POSTFIX:
            yield from (Text(call.lineno, parts) for parts in _of_postfix(call))
        elif _PRINTS.fullmatch(dotted(call.func)):
            yield Text(call.lineno, tuple(_joined(_of_call(call, named))))


def _of_postfix(call: ast.Call) -> Iterator[tuple[Part, ...]]:
    given = [(keyword.arg, keyword.value) for keyword in call.keywords]
    for each in call.args[:1]:
        if isinstance(each, ast.Dict):
            keys = (k.value if isinstance(k, ast.Constant) else None for k in each.keys)
            given += [(str(k), v) for k, v in zip(keys, each.values, strict=True) if k]
    yield from ((f"{key}=", Value(is_number=True), "]") for key, _ in given if key)


def _of_call(call: ast.Call, named: Mapping[str, ast.expr]) -> Iterator[Part]:
    """A logger fills its first word with the others; print sets a blank between."""
    args = [
        named.get(each.id, each) if isinstance(each, ast.Name) else each
        for each in call.args
        if not isinstance(each, ast.Starred)
    ]
    if any(keyword.arg == "sep" for keyword in call.keywords):
        return
    if len(args) > 1 and isinstance(args[0], ast.Constant) and _PERCENT.search(str(args[0].value)):
        yield from _filled(str(args[0].value), _PERCENT, args[1:])
        return
    for number, each in enumerate(args):
        yield from [" "] if number else []
        yield from _of(each)


def _of(node: ast.expr) -> Iterator[Part]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for each in node.values:
            yield from _of(each)
    elif isinstance(node, ast.FormattedValue):
        spec = "".join(str(p) for p in _of(node.format_spec)) if node.format_spec else ""
        yield from _value(node.value, spec)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from itertools.chain(_of(node.left), _of(node.right))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        yield from _filled(str(node.left.value), _PERCENT, values)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Call) and last(node.func) == "format" and _is_formatted(node):
        yield from _filled(str(node.func.value.value), _BRACES, node.args)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Call) and last(node.func) == "str" and node.args:
        yield from _value(node.args[0], "")
    else:
        yield from _value(node, "")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_formatted(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _is_text(call.func.value)


def _filled(template: str, holes: re.Pattern[str], values: Sequence[ast.expr]) -> Iterator[Part]:
    at = 0
    for number, hole in enumerate(holes.finditer(template)):
        yield template[at : hole.start()]
        spec = (hole[2] or "") + (hole[3] if holes is _PERCENT else "")
        given = values[number] if number < len(values) else ast.Constant(None)
        yield from _value(given, spec.replace("s", "").replace("r", ""))
        at = hole.end()
    yield template[at:]


def _value(node: ast.expr, spec: str) -> Iterator[Part]:
    is_made = isinstance(node, ast.Call) and last(node.func) in _MAKE_NUMBERS
    is_padded = bool(re.match(r"[^.a-zA-Z]*[1-9]", spec))
    yield Value(is_made or bool(_AS_NUMBER.match(spec)), is_padded)
    yield from ["%"] if spec.endswith("%") else []


def _joined(parts: Iterator[Part]) -> Iterator[Part]:
    """Texts that follow each other are one."""
    for is_text, group in itertools.groupby(parts, lambda part: isinstance(part, str)):
        found = list(group)
        yield from ["".join(map(str, found))] if is_text else found
