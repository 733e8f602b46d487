"""Each fact has one owner: these notice a second one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAPTOP = ROOT / "boxcar" / "laptop"


def texts(folder: Path, *but: str) -> Iterator[tuple[str, str]]:
    """Every text in the code below `folder`, docstrings left out, with the file that holds it."""
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name not in but:
            for text in code_texts(ast.parse(path.read_text())):
                yield name, text


def code_texts(tree: ast.AST) -> Iterator[str]:
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def holders(rule: str, folder: Path, *but: str) -> list[str]:
    """The files, besides `but`, of which a text fits the rule."""
    return sorted({name for name, text in texts(folder, *but) if re.search(rule, text)})


def test_an_unknown_name_is_told_in_one_way():
    near = "boxcar/laptop/common/near.py"
    second = r"did you mean|(there is|has|is) no (cell|queue|box) $|no such (cell|queue|box)"
    assert holders(second, LAPTOP, near) == []
    assert [name for name in modules_with("get_close_matches") if name != near] == []


def modules_with(word: str) -> list[str]:
    files = sorted(LAPTOP.rglob("*.py"))
    return [path.relative_to(ROOT).as_posix() for path in files if word in path.read_text()]


def test_one_module_joins_what_lies_below_the_projects_own_folder():
    assert holders(r"^\.boxcar$", LAPTOP) == ["boxcar/laptop/common/home.py"]
    assert modules_with('FOLDER / "') == []


def test_one_module_spells_bytes_and_seconds_for_people():
    units = "boxcar/laptop/common/units.py"
    assert holders(r"^ ?(kB|MB|TB)$", LAPTOP, units) == []
    assert holders(r"^\.4g$", LAPTOP, units) == []
