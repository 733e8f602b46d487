"""docs/words.md: one meaning for each word, and what people read keeps to it."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sources
from sources import ROOT

PAGE = ROOT / "docs" / "words.md"
ROOMS = ("boxcar/laptop", "boxcar/training", "boxcar/shared", "onbox")


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def rows(title: str) -> list[tuple[str, ...]]:
    """The rows of the table below a heading of the page, without its head."""
    part = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [tuple(field.strip() for field in line.strip("|").split("|")) for line in lines[2:]]


FORBIDDEN = [row[0] for row in rows("What is not written")]
PRODUCT = tracked("boxcar/*.py", "onbox/*.py", "tasks.py")
# What people read as it stands. Decisions tell how it was; the page itself names what is not said.
PAGES = [
    path
    for path in tracked("README*.md", "docs/*.md", "templates/*", "profiles/*.yaml", "*.md")
    if not path.startswith("docs/decisions/") and path != "docs/words.md"
]


def texts(path: str) -> Iterator[tuple[int, str]]:
    """What a module may say: its strings but for docstrings, and of tasks.py also those."""
    tree = ast.parse((ROOT / path).read_text())
    kept = () if path == "tasks.py" else _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in kept:
            yield node.lineno, node.value


def _docstrings(tree: ast.Module) -> list[ast.expr]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    return [body[0].value for body in bodies if isinstance(body[0], ast.Expr)]


@functools.cache
def lower(path: str) -> str:
    return (ROOT / path).read_text().lower()


@functools.cache
def lower_texts(path: str) -> list[tuple[int, str]]:
    return [(line, text.lower()) for line, text in texts(path)]


def said(phrase: str, text: str) -> bool:
    words = re.escape(phrase).replace(r"\ ", r"\s+")
    return re.search(rf"(?<!\w)(?<!there ){words}(?!\w)", text.lower()) is not None


def places_of(phrase: str, path: str) -> list[str]:
    """Only a module that has all of its words, over whatever lines, is parsed."""
    if not all(word in lower(path) for word in phrase.split()):
        return []
    return [f"{path}:{line}" for line, text in lower_texts(path) if said(phrase, text)]


def test_each_word_stands_on_the_page_once_and_has_a_meaning():
    found = [*rows("Things"), *rows("Acts")]
    words = [row[0] for row in found]
    assert len(words) > 40
    assert sorted(words) == sorted(set(words))
    assert all(len(row) == 2 and row[1] for row in found)


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_no_text_of_the_product_is_stilted(phrase):
    assert [place for path in PRODUCT for place in places_of(phrase, path)] == []


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_no_page_that_people_read_is_stilted(phrase):
    assert [path for path in PAGES if said(phrase, lower(path))] == []


def test_a_stilted_phrase_is_found_over_a_line_end_and_not_inside_a_word():
    assert said("gone on with", "it is Gone\n  on with")
    assert not said("mend", "a recommended amendment")
    assert said("cell(s)", "3 cell(s) left")


def test_module_names_are_unique_within_a_room():
    places: dict[tuple[str, str], list[str]] = {}
    for path in PRODUCT:
        room = next((room for room in ROOMS if path.startswith(f"{room}/")), "")
        if not Path(path).stem.startswith("__"):
            places.setdefault((room, Path(path).stem), []).append(path)
    assert {key for key, paths in places.items() if len(paths) > 1} == SHARED_NAMES


# May only shrink.
SHARED_NAMES = {("boxcar/laptop", "rules")}


def test_an_import_renames_no_module_of_ours():
    assert [f"{path}: {name}" for path in PRODUCT for name in _renamed(path)] == []


def _renamed(path: str) -> Iterator[str]:
    for node in sources.imports(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (
                f"{alias.name} as {alias.asname}"
                for alias in node.names
                if alias.asname and alias.name.split(".")[0] in ("boxcar", "onbox")
            )
        elif node.module and node.level == 0:
            for alias in node.names:
                is_ours = _is_module(f"{node.module}.{alias.name}")
                if is_ours and alias.asname and alias.asname != alias.name:
                    yield f"{node.module}.{alias.name} as {alias.asname}"


def _is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
