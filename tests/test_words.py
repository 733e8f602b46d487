"""docs/words.md: one row for each word; a module keeps its own name where it is imported."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

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


PRODUCT = tracked("boxcar/*.py", "onbox/*.py", "tasks.py")


def test_each_word_has_one_row_and_there_are_at_most_forty():
    found = [*rows("Things"), *rows("Acts")]
    words = [row[0] for row in found]
    assert 0 < len(words) <= 40
    assert sorted(words) == sorted(set(words))
    assert all(len(row) == 2 and row[1] for row in found)


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
