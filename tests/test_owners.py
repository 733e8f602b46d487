"""A fact has one owner: whoever writes it down a second time is found here.

Each fact is a pattern of source, and the module that alone may hold it. Docstrings and comments are
no source: they may speak of a fact.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

import pytest
import sources

from boxcar.laptop.project.profiles import schema
from boxcar.shared.wire import run_asks

LAPTOP = "boxcar/laptop/"
PRODUCT = sources.sources("boxcar", "onbox", "tasks.py", "bootstrap.py")


@dataclass(frozen=True)
class Finds:
    """What of a syntax tree states a fact; only a source with these words in it is parsed."""

    words: str
    of: Callable[[ast.AST], Iterable[object]]

    def __call__(self, source: str) -> bool:
        return bool(re.search(self.words, source) and list(self.of(_tree(source))))


@dataclass(frozen=True)
class Fact:
    """`finds` says whether a module states the fact. It is looked for `below`."""

    name: str
    owner: str
    finds: Finds
    below: str = ""


def text(pattern: str, *, of_f_strings: bool = True) -> Finds:
    """Texts in which the pattern is found."""
    return Finds(
        re.sub(r"(?<!\\)[$^]", "", pattern),
        lambda tree: [word for word in _texts(tree, of_f_strings) if re.search(pattern, word)],
    )


def number(*numbers: int) -> Finds:
    return Finds(
        rf"\b({'|'.join(map(str, numbers))})\b",
        lambda tree: [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value in numbers
        ],
    )


def name(pattern: str) -> Finds:
    """Names that are used or attributes that are asked for."""
    return Finds(pattern, lambda tree: [w for w in _names(tree) if re.fullmatch(pattern, w)])


def assigned(words: str) -> Finds:
    """Names with these words that get a value of their own in a module or class: not those of
    another's constant."""
    return Finds(
        words,
        lambda tree: [
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and not isinstance(node.value, (ast.Attribute, ast.Name))
            for target in node.targets
            if isinstance(target, ast.Name) and re.search(words, target.id)
        ],
    )


FACTS = [
    Fact("exit codes", "boxcar/shared/process/exit_codes.py", number(42, 43, 75, 85, 130)),
    Fact("a disk is full", "boxcar/shared/disk/mounts.py", name("ENOSPC|EDQUOT|EFBIG")),
    Fact("free room", "boxcar/shared/disk/mounts.py", name("statvfs|fstatvfs|disk_usage")),
    Fact("mount table", "boxcar/shared/disk/mounts.py", text("mountinfo|/proc/mounts")),
    Fact("progress file", "boxcar/shared/files/progress.py", text(r"^progress\.jsonl$")),
    Fact("training's facts", "boxcar/shared/files/progress.py", text(r"^training\.json$")),
    Fact("names of variables", "boxcar/shared/names.py", text(r"\[A-Za-z_\]\[A-Za-z0-9_\]")),
    Fact("bytes of a webhook", "boxcar/shared/wire/webhook_secret.py", assigned(r"BODY_BYTES\b")),
    Fact(
        "time between interruptions", "boxcar/shared/artifacts/cadence.py", assigned("MTBF|PRIOR")
    ),
    Fact(
        "how a v1 end is read",
        "boxcar/shared/process/end_reason.py",
        # Not the parts of an f-string, by which a sentence is written and not read.
        text(r"^(asked to \w+|told to end by )$", of_f_strings=False),
    ),
    Fact("the nearest name", f"{LAPTOP}common/near.py", name("get_close_matches"), LAPTOP),
    Fact(
        "what is said of a name that is unknown",
        f"{LAPTOP}common/near.py",
        text(
            r"mistakes\.(near|no_such)$|did you mean|(there is|has|is) no (cell|queue|box) $|"
            r"no such (cell|queue|box)"
        ),
        LAPTOP,
    ),
    Fact("the project's own folder", f"{LAPTOP}common/home.py", text(r"^\.boxcar$"), LAPTOP),
    Fact("bytes for people", f"{LAPTOP}common/units.py", text(r"^ ?(kB|MB|TB)$"), LAPTOP),
    Fact("measured numbers for people", f"{LAPTOP}common/units.py", text(r"^\.4g$"), LAPTOP),
]


def owners(fact: Fact, modules: Mapping[str, str]) -> list[str]:
    return [
        path
        for path, source in modules.items()
        if path.startswith(fact.below) and fact.finds(source)
    ]


def _tree(source: str) -> ast.AST:
    """Without docstrings, and without texts that stand alone as comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [child for child in body if not _is_docstring(child)]  # type: ignore[attr-defined]
    return tree


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _texts(tree: ast.AST, of_f_strings: bool) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif of_f_strings or not isinstance(node, ast.JoinedStr):
            yield from _texts(node, of_f_strings)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_fact_has_one_owner(fact):
    assert owners(fact, PRODUCT) == [fact.owner]


@pytest.mark.parametrize(
    ("fact", "planted"),
    [
        ("exit codes", "import sys\nsys.exit(75)\n"),
        ("a disk is full", "import errno\n_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)\n"),
        ("free room", "import os\nfree = os.statvfs('/').f_bavail\n"),
        ("free room", "from shutil import disk_usage\nfree = disk_usage('/').free\n"),
        ("mount table", "lines = open('/proc/self/mountinfo')\n"),
        ("progress file", "FILE = 'progress.jsonl'\n"),
        ("training's facts", "ALSO = ('a', 'training.json')\n"),
        ("names of variables", "import re\nNAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')\n"),
        ("bytes of a webhook", "MOST_BODY_BYTES = 20_000\n"),
        ("time between interruptions", "class Pace:\n    MTBF_S = 24 * 3600.0\n"),
        ("how a v1 end is read", "is_told = reason.startswith('told to end by ')\n"),
        ("the nearest name", "import difflib\nnear = difflib.get_close_matches('x', [])\n"),
        ("what is said of a name that is unknown", "text = f'the run has no cell {name!r}'\n"),
        ("the project's own folder", "folder = root / '.boxcar' / 'x'\n"),
        ("bytes for people", "text = f'{size_bytes / 1e6:.1f} MB'\n"),
        ("measured numbers for people", "text = f'{value:.4g}'\n"),
    ],
)
def test_a_second_owner_is_found(fact, planted):
    [found] = [row for row in FACTS if row.name == fact]
    assert owners(found, {"boxcar/laptop/planted.py": planted}) == ["boxcar/laptop/planted.py"]


def test_who_only_speaks_of_a_fact_is_no_owner():
    speaks = '"""Ends with 75, and reads progress.jsonl."""\n# progress.jsonl\nx = y.PRIOR_S\n'
    for fact in FACTS:
        assert owners(fact, {"speaks.py": speaks}) == []


def test_a_profile_may_name_every_way_in_which_a_box_can_keep_an_agent_alive():
    """pydantic wants a Literal, so the words stand there a second time."""
    assert set(run_asks.DETACH_WAYS) <= set(get_args(schema.Primitive))
