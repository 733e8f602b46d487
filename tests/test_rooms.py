"""The rooms inside boxcar/ and onbox/: who stands on whom, no circles, no crowds, who may speak.

Every import counts, also a late one and one under TYPE_CHECKING: whoever reads the file has to know
what it names.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import sources

SOURCES = sources.sources(*sources.HOUSES)

# Each room may import those in the lines above its own, and itself.
LEVELS = {
    "boxcar/laptop": (
        ("common",),
        ("init", "triage", "webhooks"),
        ("project",),
        ("release", "fitness", "providers"),
        ("hosts", "tryout"),
        ("run", "tensorboard"),
        ("results", "news"),
        ("teardown", "view"),
        ("places", "trackers"),
        ("verbs",),
    ),
    "onbox": (
        ("machine",),
        ("result",),
        ("attempt", "nodes", "webhooks", "slurm"),
        ("judging",),
        ("queue",),
        ("checkpoint",),
        ("agent", "answers"),
        ("deadline_news",),
        ("after_reboot", "deadline", "idle_end"),
        ("__main__",),
        ("begin",),
    ),
}
MOST_MODULES = 24
# A list, not a noun: one file for each verb, and for each question.
MAY_BE_LONG = ("boxcar/laptop/verbs", "onbox/answers")
# What a person reads passes through this module, and only verbs may import it.
TERMINAL = "boxcar.laptop.common.show"
# The schema of a profile is a program of its own: `python -m`.
SPEAKERS = ("boxcar/laptop/verbs/", "boxcar/laptop/project/profiles/json_schema.py")


def module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def arrows(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules of ours that each imports, anywhere in it."""
    known = {module(file) for file in files}
    return {
        module(file): {full if full in known else home for home, full in _named(source)}
        & known - {module(file)}
        for file, source in files.items()
    }


@functools.cache
def _named(source: str) -> frozenset[tuple[str, str]]:
    """What a source imports: the module, and the module with the name behind it."""
    names: set[tuple[str, str]] = set()
    for node in sources.imports(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {(alias.name, alias.name) for alias in node.names}
        else:
            assert not node.level, "a relative import hides where it leads"
            home = str(node.module)
            names |= {(home, f"{home}.{alias.name}") for alias in node.names}
    return frozenset(names)


def against_the_levels(files: Mapping[str, str]) -> list[str]:
    """`a imports b` for each import of a room that does not stand below."""
    return [
        f"{name} imports {other}"
        for name, others in arrows(files).items()
        for other in sorted(others)
        if not _may_import(name, other)
    ]


def _may_import(name: str, other: str) -> bool:
    for house, levels in LEVELS.items():
        prefix = house.replace("/", ".") + "."
        if name.startswith(prefix) and other.startswith(prefix):
            own, room = (path.removeprefix(prefix).split(".")[0] for path in (name, other))
            return own == room or _level(levels, room) < _level(levels, own)
    return True


def _level(levels: tuple[tuple[str, ...], ...], room: str) -> int:
    for number, rooms in enumerate(levels):
        if room in rooms:
            return number
    raise AssertionError(f"the room {room} has no level in tests/test_rooms.py")


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of modules that each reach one another."""
    left = {name: set(others) for name, others in graph.items()}
    while ends := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in ends}
    reached = {name: _reached(left, name) for name in left}
    found = {
        frozenset(other for other in left if other in reached[name] and name in reached[other])
        for name in left
    }
    return [set(circle) for circle in found if circle]


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    heads = {start}
    while heads:
        heads = {other for head in heads for other in graph[head] if other in graph} - reached
        reached |= heads
    return reached


def crowds(files: Iterable[str]) -> list[str]:
    modules = Counter(
        str(Path(file).parent) for file in files if Path(file).name not in ("__init__.py",)
    )
    return [
        f"{folder}: {count} modules"
        for folder, count in modules.items()
        if count > MOST_MODULES and folder not in MAY_BE_LONG
    ]


def speaking_nouns(files: Mapping[str, str]) -> list[str]:
    """Files of the laptop that import the terminal, or print, and are no verbs."""
    found = arrows(files)
    return [
        file
        for file, source in files.items()
        if file.startswith("boxcar/laptop/")
        and not file.startswith(SPEAKERS)
        and module(file) != TERMINAL
        and (TERMINAL in found[module(file)] or _prints(source))
    ]


@functools.cache
def _prints(source: str) -> bool:
    speaking = {"print", "sys.stdout.write", "sys.stderr.write"}
    if not any(name in source for name in speaking):
        return False
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    spelled = {ast.unparse(call.func) for call in calls}
    return bool(spelled & speaking)


def test_no_room_imports_one_that_does_not_stand_below_it():
    assert against_the_levels(SOURCES) == []


def test_no_files_import_each_other_in_a_circle():
    assert circles(arrows(SOURCES)) == []


def test_no_folder_is_a_crowd():
    assert crowds(SOURCES) == []


def test_only_verbs_speak():
    assert speaking_nouns(SOURCES) == []


def test_every_folder_says_in_its_door_what_it_is():
    folders = {str(Path(file).parent) for file in SOURCES}
    for folder in folders:
        door = SOURCES.get(f"{folder}/__init__.py")
        assert door is not None, f"{folder} has no __init__.py"
        assert ast.get_docstring(ast.parse(door)), f"{folder}/__init__.py says nothing"


LAPTOP = "boxcar/laptop"


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (f"{LAPTOP}/run/x.py", "from boxcar.laptop.verbs import launch"),
        (f"{LAPTOP}/run/x.py", "from boxcar.laptop.results.judge import judge"),
        (f"{LAPTOP}/common/x.py", "def late():\n    import boxcar.laptop.project.queues.sync"),
        (f"{LAPTOP}/project/queues/x.py", "from boxcar.laptop.hosts import connection"),
        ("onbox/result/x.py", "from onbox.agent import agent"),
        ("onbox/machine/x.py", "from onbox.result import settle"),
    ],
)
def test_a_planted_import_of_a_room_above_is_found(file, source):
    [found] = against_the_levels(SOURCES | {file: source})
    assert found.startswith(module(file))


@pytest.mark.parametrize("how", ["{}", "def late():\n    {}", "if TYPE_CHECKING:\n    {}"])
def test_a_planted_circle_is_found(how):
    forth = "from boxcar.laptop.run import planted_b"
    back = how.format("from boxcar.laptop.run import planted_a")
    a, b = f"{LAPTOP}/run/planted_a.py", f"{LAPTOP}/run/planted_b.py"
    assert circles(arrows(SOURCES | {a: forth, b: back})) == [{module(a), module(b)}]


@pytest.mark.parametrize(
    "source", ["from boxcar.laptop.common import show", "print('word')", "sys.stderr.write('word')"]
)
def test_a_planted_noun_that_speaks_is_found(source):
    file = f"{LAPTOP}/run/planted.py"
    assert speaking_nouns(SOURCES | {file: source}) == [file]


def test_a_planted_crowd_is_found():
    files = [f"{LAPTOP}/run/planted_{number}.py" for number in range(MOST_MODULES + 1)]
    [found] = crowds(itertools.chain(files, [f"{LAPTOP}/run/__init__.py"]))
    assert found.startswith(f"{LAPTOP}/run: ")
