"""What an expression of a script comes to, as far as its source and the words that it is given say.

Nothing is run. What nobody can know before is UNKNOWN, and what is made of it as well, unless the
known parts alone decide.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from boxcar.laptop.habits import flags, known_flags
from boxcar.laptop.habits.called import assigned, dotted, last
from boxcar.laptop.habits.flags import UNKNOWN
from boxcar.laptop.habits.script import Script
from boxcar.shared.record import dataclass

_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_COUNTS_ON = ("itertools.count", "count", "itertools.cycle", "cycle")
_PASSES_ON = ("enumerate", "tqdm", "trange", "iter")
# Who calls one of these may give flags other values than their defaults.
_CHANGES = frozenset({"set_defaults", "setattr", "update", "replace"})
_DEPTH = 20


@dataclass(frozen=True)
class Values:
    """`once`: names that are given something in one place. `bare`: names that are flags' values."""

    known: Mapping[str, Any]
    once: Mapping[str, ast.expr]
    bare: frozenset[str]

    def of(self, node: ast.expr, depth: int = _DEPTH) -> Any:
        """UNKNOWN, or what the expression comes to whatever the unknown parts of it are."""
        if not depth:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node, depth - 1)
        if isinstance(node, ast.BoolOp):
            return self._bool(node, depth - 1)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = self.of(node.left, depth - 1), self.of(node.comparators[0], depth - 1)
            return _compared(type(node.ops[0]), *sides)
        if isinstance(node, ast.IfExp):
            test = self.of(node.test, depth - 1)
            return UNKNOWN if test is UNKNOWN else self.of(
                node.body if test else node.orelse, depth - 1)  # fmt: skip
        if isinstance(node, ast.UnaryOp):
            return _signed(node.op, self.of(node.operand, depth - 1))
        is_infinite = isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')",)
        return math.inf if is_infinite else UNKNOWN

    def _name(self, node: ast.Name | ast.Attribute, depth: int) -> Any:
        if dotted(node) in ("math.inf", "np.inf", "torch.inf", "sys.maxsize"):
            return math.inf
        name = last(node)
        if isinstance(node, ast.Attribute) or name in self.bare:
            return self.known.get(name, UNKNOWN)
        return self.of(self.once[name], depth) if name in self.once else UNKNOWN

    def _bool(self, node: ast.BoolOp, depth: int) -> Any:
        is_and = isinstance(node.op, ast.And)
        values = [self.of(value, depth) for value in node.values]
        if any(value is not UNKNOWN and bool(value) is not is_and for value in values):
            return not is_and
        return UNKNOWN if any(value is UNKNOWN for value in values) else is_and

    def goes_on(self, node: ast.expr) -> bool:
        """Whether what a `for` runs over has no end."""
        if not isinstance(node, ast.Call):
            return False
        if dotted(node.func) in _COUNTS_ON:
            return True
        if last(node.func) in _PASSES_ON and node.args:
            return self.goes_on(node.args[0])
        ends = node.args[:2][-1:] if last(node.func) in ("range", "trange") else []
        return any(self.of(end) == math.inf for end in ends)

    def named(self, node: ast.expr, depth: int = _DEPTH) -> Iterator[str]:
        """The known names that an expression is made of."""
        for each in ast.walk(node):
            if isinstance(each, (ast.Name, ast.Attribute)):
                is_known = isinstance(each, ast.Attribute) or each.id in self.bare
                if is_known and last(each) in self.known:
                    yield last(each)
                elif isinstance(each, ast.Name) and each.id in self.once and depth:
                    yield from self.named(self.once[each.id], depth - 1)


def read(script: Script, tree: ast.Module, known: Mapping[str, Any]) -> Values:
    """For the expressions of one file."""
    return Values(known, _said_once(tree), _bare(script, tree))


def given_by(script: Script, words: Sequence[str], config: str = "") -> dict[str, Any]:
    """What the words of a command say of flags, by their keys, also `--trainer.max_steps=5`; what a
    config's text names is UNKNOWN.
    """
    keys = {flag.key for flag in (*script.flags, *script.settings)} | known_flags.LENGTHS
    short = {name: flag.key for flag in script.flags for name in flag.names}
    found: dict[str, Any] = {key: UNKNOWN for key in keys if key in config}
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        name, is_set, value = word.partition("=")
        if not is_set and not name.startswith("-"):
            continue
        key = name.lstrip("-").replace("-", "_").rpartition(".")[2]
        value = value if is_set else following
        known = [key] if key in keys else [full for full in keys if full.startswith(key)]
        found |= dict.fromkeys([short.get(name, "")] if name in short else known, _number(value))
    return found


def _number(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN


def known_of(
    script: Script, trees: Sequence[ast.Module], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What flags and settings of a usual name are worth in this run, where only one value is said:
    a script may change its flags after they were read.
    """
    said: dict[str, list[Any]] = {}
    for flag in (*script.flags, *script.settings):
        is_open = flag.is_required or flag.is_positional or (flag.is_switch and not flag.default)
        said[flag.key] = [UNKNOWN if is_open or _CHANGES & script.calls else flag.default]
    for name, value in (pair for tree in trees for node in ast.walk(tree) for pair in _given(node)):
        if name in said or name in known_flags.LENGTHS:
            said.setdefault(name, []).append(flags.field_default(value))
    found = {name: values[0] if _is_one(values) else UNKNOWN for name, values in said.items()}
    return {**found, **{key: value for key, value in given.items() if key in found}}


def _is_one(values: Sequence[Any]) -> bool:
    return all(type(value) is type(values[0]) and value == values[0] for value in values)


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Attributes, fields and parameters, with what they are given; not `self.lr = args.lr`."""
    pairs: list[tuple[str, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(t.attr, node.value) for t in node.targets if isinstance(t, ast.Attribute)]
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
        pairs = [(node.target.attr, ast.BinOp(node.target, node.op, node.value))]
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        pairs = [(node.target.id, node.value)]
    elif isinstance(node, ast.Call):
        pairs = [(item.arg, item.value) for item in node.keywords if item.arg]
    yield from ((name, value) for name, value in pairs if value is None or last(value) != name)


def _said_once(tree: ast.Module) -> dict[str, ast.expr]:
    """What a name is given, of names that are given something in one place."""
    values = dict(pair for node in ast.walk(tree) if isinstance(node, ast.Assign)
                  for pair in ((name.id, value) for name, value in assigned(node)))  # fmt: skip
    stored = _stored(tree)
    return {name: value for name, value in values.items() if stored.get(name) == 1}


def _stored(tree: ast.Module) -> dict[str, int]:
    """How often each name is given something; a parameter counts twice."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            found[node.arg] = found.get(node.arg, 0) + 2
    return found


def _bare(script: Script, tree: ast.Module) -> frozenset[str]:
    """Flags that the source calls by their name alone: settings, and click's parameters."""
    stored = _stored(tree)
    settings = {flag.key for flag in script.settings if stored.get(flag.key) == 1}
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own = {flag.key for flag in script.flags if stored.get(flag.key) == 2}
    return frozenset(settings | (own & parameters))


def _compared(how: type[ast.cmpop], left: Any, right: Any) -> Any:
    """Of a counter, which is unknown, it is known that it is not negative and never infinite."""
    if how not in _COMPARES or (left is UNKNOWN and right is UNKNOWN):
        return UNKNOWN
    if UNKNOWN in (left, right):
        other = right if left is UNKNOWN else left
        is_beyond = isinstance(other, (int, float)) and not isinstance(other, bool)
        is_equal = {ast.Eq: False, ast.NotEq: True}.get(how, UNKNOWN)
        if is_beyond and other == math.inf:
            bounds = (0, math.inf) if left is UNKNOWN else (math.inf, 0)
            return _COMPARES[how](*bounds) if is_equal is UNKNOWN else is_equal
        return is_equal if is_beyond and other < 0 else UNKNOWN
    try:
        return bool(_COMPARES[how](left, right))
    except TypeError:
        return UNKNOWN


def _signed(op: ast.unaryop, value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(op, ast.Not):
        return not value
    return -value if isinstance(op, ast.USub) and isinstance(value, (int, float)) else UNKNOWN
