"""Whether a script's training has an end, read from its source with the words that it is given.

A test is worked out as far as the flags' values say it: a loop without an end is one whose every
way out is closed by them, or that has none. What the source does not say counts as an end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from boxcar.laptop.habits import imported, worth
from boxcar.laptop.habits.called import dotted, last
from boxcar.laptop.habits.flags import UNKNOWN, Flag
from boxcar.laptop.habits.script import Script
from boxcar.laptop.habits.worth import Values
from boxcar.shared.record import dataclass

_TRAINS = ("backward", "zero_grad", "step", "fit", "partial_fit")
_LEAVES = ("exit", "_exit", "quit", "abort")
_ENDS = ("StopIteration", "SystemExit", "KeyboardInterrupt")


@dataclass(frozen=True)
class Endless:
    """`path` is relative to the project; `key` is what would end the loop of that line, were it
    not `value`; '' where nothing does. `flag` is how that is typed, where the script takes it.
    """

    path: str
    line: int
    key: str = ""
    value: Any = None
    flag: Flag | None = None

    @property
    def where(self) -> str:
        return f"{self.path}, line {self.line}"

    @property
    def said(self) -> str:
        """How what would end it is typed, else what it is called."""
        return self.flag.word if self.flag else self.key


def of(root: Path, script: Script, given: Mapping[str, Any]) -> Endless | None:
    """The first such loop of the script, or of what it imports of the project by name. `given` are
    values of flags by their keys; UNKNOWN is one that only the run knows.
    """
    if (main := imported.parsed(root / script.path)) is None:
        return None
    sources = [(script.path, main, main), *_imported(root, script.path, main)]
    known = worth.known_of(script, [tree for _, tree, _ in sources], given)
    for path, tree, part in sources:
        values = worth.read(script, tree, known)
        for loop in _loops(part, values):
            if _trains(loop) and not any(_is_open(tests, values) for tests in _ways_out(loop)):
                tests = [test for tests in _ways_out(loop) for test in tests]
                own = [loop.test] if isinstance(loop, ast.While) else []
                return _told(path, loop, [*own, *tests], script, values)
        for call in _lightning(script, part, values):
            return _told(path, call, [item.value for item in call.keywords], script, values)
    return None


# --- what is looked at


def _imported(
    root: Path, path: str, main: ast.Module
) -> Iterator[tuple[str, ast.Module, ast.Module]]:
    """Of `from mine.trainer import Trainer` the file, and what stands there under that name."""
    for file, names in imported.by_name(root, root / path, main):
        if tree := imported.parsed(file):
            body = [each for each in tree.body if getattr(each, "name", None) in names]
            yield file.relative_to(root).as_posix(), tree, ast.Module(body, [])


# --- loops and the ways out of them


def _loops(tree: ast.AST, values: Values) -> Iterator[ast.While | ast.For]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.While)
            and values.of(node.test) is not UNKNOWN
            and values.of(node.test)
        ) or (isinstance(node, ast.For) and values.goes_on(node.iter)):
            yield node  # fmt: skip


def _trains(loop: ast.While | ast.For) -> bool:
    calls = (last(node.func) for node in ast.walk(loop) if isinstance(node, ast.Call))
    return any(name in _TRAINS or name.startswith("train") for name in calls)


def _ways_out(loop: ast.While | ast.For) -> Iterator[tuple[ast.expr, ...]]:
    """The tests that each stands behind; one that has to be false stands under a `not`."""
    yield from _leaving(loop.body, (), is_own=True)


def _leaving(
    body: Iterable[ast.AST], tests: tuple[ast.expr, ...], *, is_own: bool
) -> Iterator[tuple[ast.expr, ...]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.ExceptHandler) and _is_of_a_person(node):
            continue
        if _leaves(node, is_own=is_own):
            yield tests
        elif isinstance(node, ast.If):
            yield from _leaving(node.body, (*tests, node.test), is_own=is_own)
            other = ast.UnaryOp(ast.Not(), node.test)
            yield from _leaving(node.orelse, (*tests, other), is_own=is_own)
        else:
            inner = is_own and not isinstance(node, (ast.While, ast.For, ast.AsyncFor))
            yield from _leaving(ast.iter_child_nodes(node), tests, is_own=inner)


def _leaves(node: ast.AST, *, is_own: bool) -> bool:
    if isinstance(node, ast.Raise):
        return _is_an_end(node)
    if isinstance(node, ast.Call):
        return last(node.func) in _LEAVES
    is_break = isinstance(node, ast.Break) and is_own
    return is_break or isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom))


def _is_an_end(node: ast.Raise) -> bool:
    """Not one for what went wrong."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    name = last(raised) if raised else ""
    return bool(name) and (name in _ENDS or not name.endswith(("Error", "Exception")))


def _is_of_a_person(node: ast.ExceptHandler) -> bool:
    """Who types Ctrl-C, which nobody does on a box."""
    return node.type is not None and dotted(node.type) == "KeyboardInterrupt"


def _is_open(tests: Iterable[ast.expr], values: Values) -> bool:
    return all(values.of(test) is UNKNOWN or values.of(test) for test in tests)


def _lightning(script: Script, tree: ast.AST, values: Values) -> Iterator[ast.Call]:
    """`Trainer(max_epochs=-1)`, which nothing else ends."""
    if not {"lightning", "pytorch_lightning"} & script.imports:
        return
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        keys = {item.arg: values.of(item.value) for item in call.keywords}
        is_open = keys.get("max_steps", -1) == -1 and "max_time" not in keys and None not in keys
        if last(call.func) == "Trainer" and keys.get("max_epochs") == -1 and is_open:
            yield call


def _told(
    path: str, at: ast.stmt | ast.expr, tests: Iterable[ast.expr], script: Script, values: Values
) -> Endless:
    keys = [key for test in tests for key in values.named(test)]
    key = next((key for key in keys if values.known[key] is not UNKNOWN), "")
    flag = script.flag(key.lower()) if key else None
    return Endless(path, at.lineno, key, values.known.get(key), flag)
