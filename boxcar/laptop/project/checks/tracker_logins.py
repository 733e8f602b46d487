"""A tracker that a script uses whatever its flags say, where the job has neither its secret nor a
mode of it: `smoke` sets such modes itself, and on a box the tracker asks for a login.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.init import reached, source, trackers
from boxcar.laptop.init.trackers import Tracker
from boxcar.shared.cell import said
from boxcar.shared.cell.said import Places, is_script
from boxcar.shared.files.plan import Plan
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A test of these names is true for one rank of each training; any other is of a flag.
_RANKS = re.compile(r"(?i).*(rank|main|master|primary|world_size)|__name__")
_NO_NAMES = frozenset({"int", "get", "getenv"})
_STARTS = ("init", "login", "start", "Experiment", "start_run")
_SAYS = frozenset({"mode", "key", "api_key", "online"})
_SAYS_BY_CALL = ("set_tracking_uri", "OfflineExperiment")


@dataclass(frozen=True)
class Lacking:
    """`script` uses `tracker`, of which the job says nothing."""

    script: str
    tracker: Tracker

    @property
    def sentence(self) -> Sentence:
        about = {"script": self.script, "name": self.tracker.name, "lines": self.tracker.lines}
        return _(
            "{script} imports {name}, but job.yaml has neither its secret nor its mode: write "
            "{lines}",
            **about,
        )


def lacking(code: Path, plan: Plan) -> dict[str, list[Lacking]]:
    """By the cell's name; each script is read once."""
    used: dict[str, list[Tracker]] = {}
    found: dict[str, list[Lacking]] = {}
    for cell in plan.cells:
        what = said.say_cell(plan, cell, Places("{out}", ""))
        script = own_script(code, what.words)
        if script not in used:
            used[script] = list(_used(code, script)) if script else []
        given = {*what.env, *plan.secrets}
        found[cell.name] = [
            Lacking(script, one) for one in used[script] if not given & {*one.modes, one.secret}
        ]
    return found


def notes(code: Path, plan: Plan) -> list[str]:
    every = (one for found in lacking(code, plan).values() for one in found)
    return list(dict.fromkeys(one.sentence for one in every))


def own_script(code: Path, words: Sequence[str]) -> str:
    """Relative to the code; '' for none of its own."""
    path = next((code / word.lstrip("/") for word in words if is_script(word)), None)
    if words[0] == "-m" and len(words) > 1:
        path = reached.file_of((code, code / "src"), words[1])
    is_own = path is not None and path.is_file() and path.resolve().is_relative_to(code.resolve())
    return path.relative_to(code).as_posix() if path and is_own else ""


def _used(code: Path, script: str) -> Iterator[Tracker]:
    tree = source.parsed(code / script)
    parts = reached.reached_modules(code, code / script, tree).parts if tree else ()
    trees = [part.tree for part in parts]
    every = [node for each in trees for node in ast.walk(each)]
    sure = list(_surely_run(trees))
    for row in trackers.trackers_of_script({name for node in sure for name in _imported(node)}):
        is_started = any(_starts(row, node) for node in sure)
        if not any(_is_said(row, node) for node in every) and (
            is_started or not any(_starts(row, node) for node in every)
        ):
            yield row


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    is_from = isinstance(node, ast.ImportFrom) and node.module and not node.level
    return [str(node.module).partition(".")[0]] if is_from else []  # type: ignore[attr-defined]


def _starts(tracker: Tracker, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = source.dotted(node.func)
    return name.startswith(f"{tracker.name}.") and source.last(node.func) in _STARTS


def _is_said(tracker: Tracker, node: ast.AST) -> bool:
    """By the script itself."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in tracker.modes
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        key = source.literal(node.slice)
        return isinstance(key, str) and key == tracker.secret
    if not isinstance(node, ast.Call):
        return False
    keys = {keyword.arg for keyword in node.keywords}
    return (_starts(tracker, node) and bool(keys & _SAYS)) or (
        source.last(node.func) in _SAYS_BY_CALL
    )


def _surely_run(trees: Sequence[ast.Module]) -> Iterator[ast.AST]:
    """All but what stands below a flag or is tried, and functions that are named only there."""
    bodies = _bodies(trees)
    left: list[Sequence[ast.AST]] = [tree.body for tree in trees]
    while left:
        for node in left.pop():
            is_flags = isinstance(node, (ast.If, ast.IfExp)) and _is_of_a_flag(node.test)
            if is_flags and isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return):
                break  # what follows is below the flag, too
            if is_flags or _is_tried(node) or isinstance(node, _FUNCTIONS):
                continue
            yield node
            if isinstance(node, (ast.Name, ast.Attribute)):
                left += bodies.pop(source.last(node), [])
            for _name, value in ast.iter_fields(node):
                inner = value if isinstance(value, list) else [value]
                left.append([each for each in inner if isinstance(each, ast.AST)])


def _bodies(trees: Sequence[ast.Module]) -> dict[str, list[list[ast.stmt]]]:
    """Of each function by its name; of what makes an object by the name of its class."""
    found: dict[str, list[list[ast.stmt]]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, _FUNCTIONS) and node.name != "__init__":
            found.setdefault(node.name, []).append(node.body)
        elif isinstance(node, ast.ClassDef):
            made = [
                each.body
                for each in node.body
                if isinstance(each, _FUNCTIONS) and each.name == "__init__"
            ]
            found.setdefault(node.name, []).extend(made)
    return found


def _is_of_a_flag(test: ast.expr) -> bool:
    """`args.wandb`, `rank == 0 and use_wandb`; not `rank == 0`, `__name__ == "__main__"`."""
    inner = {id(n.value) for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    nodes = [node for node in ast.walk(test) if id(node) not in inner]
    names = {source.last(n) for n in nodes if isinstance(n, (ast.Name, ast.Attribute))}
    return any(not _RANKS.match(name) for name in names - _NO_NAMES)


def _is_tried(node: ast.AST) -> bool:
    """`try: import wandb`, whatever happens when it is not there."""
    return isinstance(node, ast.Try) and any(map(_imported, node.body))
