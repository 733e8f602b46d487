"""What a sentence says in each language, and that the Chinese is in step with the code."""

from __future__ import annotations

import ast
import json
import re
import string
import sys
from pathlib import Path

import pytest

from boxcar.shared.sentence import _, chained, in_language, known_word, mark

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
import hatch_build  # noqa: E402 (it lies beside the packages)

CATALOG = {str(one.id): str(one.string) for one in hatch_build.read(ROOT) if one.id}
# Those that have no Chinese yet. May only get shorter.
ENGLISH_ALONE = 0


def fields(text: str) -> set[str]:
    return {name for _text, name, _spec, _as in string.Formatter().parse(text) if name is not None}


def test_a_noun_goes_with_its_number() -> None:
    assert _("{n} {n:cell|cells} failed", n=1) == "1 cell failed"
    assert _("{n} {n:cell|cells} failed", n=2) == "2 cells failed"


def test_a_sentence_within_a_sentence_is_said_in_the_same_language() -> None:
    because = _("agents are running; nothing to do")
    step = _("next: {because}", because=because)
    assert step == "next: agents are running; nothing to do"
    assert step.said("zh") == "下一步：agent 正在运行，无需操作"


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5000])
def test_any_number_of_parts_stands_in_a_row(n: int) -> None:
    said = chained(mark("{first}, {second}"), [str(one) for one in range(n)])
    assert said == ", ".join(map(str, range(n)))
    assert in_language(said, "zh") == "，".join(map(str, range(n)))


def test_a_field_is_set_apart_as_chinese_is() -> None:
    of = "{of} has no {what} {name!r}{near}; it has: {there}"
    words = {"of": _("the run {run}", run="a"), "name": "b", "near": "", "there": "c"}
    cell = in_language(_(of, what=known_word("cell", ["cell"]), **words), "zh")
    queue = in_language(_(of, what=known_word("queue", ["queue"]), **words), "zh")
    assert cell.startswith("run a 没有名为 'b' 的 cell；现有")
    assert queue.startswith("run a 没有名为 'b' 的队列；现有")
    outside = in_language(_("  outside of {{out}}: nothing was written"), "zh")
    assert outside == "  {out} 之外：没有写入任何内容"


def test_what_a_person_wrote_is_not_changed() -> None:
    path = "数据v2 终版/x.yaml"
    assert path in in_language(_("{file}: {why}", file=path, why="a b"), "zh")


def test_words_that_are_no_sentence_pass_as_they_are() -> None:
    assert in_language("CUDA out of memory", "zh") == "CUDA out of memory"
    assert known_word("{of a newer version}", {"failed"}) == "{of a newer version}"


def test_json_takes_the_english() -> None:
    assert json.dumps(_("{n} {n:cell|cells} failed", n=1)) == '"1 cell failed"'


def test_a_field_that_nobody_gave_is_an_error() -> None:
    with pytest.raises(KeyError):
        _("{box} does not answer")


def test_the_chinese_is_in_step_with_the_code() -> None:
    """Else: make words, and write the Chinese of what is new into zh.po."""
    assert {*hatch_build.extracted(ROOT)} == {*CATALOG}
    assert sum(not chinese for chinese in CATALOG.values()) <= ENGLISH_ALONE


def test_what_is_compiled_is_what_stands_there() -> None:
    """Else: make words."""
    for path, data in hatch_build.compiled(ROOT).items():
        assert (ROOT / path).read_bytes() == data, path


HALF_WIDTH = re.compile(
    r"(?<=[\u3400-\u9fff])[,;:?!()]|[,;] ?(?=[\u3400-\u9fff])|[:?!()](?=[\u3400-\u9fff])"
)


def half_width(text: str) -> list[str]:
    """Western punctuation beside a Chinese character; a key of job.yaml keeps its colon."""
    words = re.sub(r"[a-z_]+: (?=[\u3400-\u9fff])", "", re.sub(r"\{[^{}]*\}", "", text))
    return HALF_WIDTH.findall(words)


def test_chinese_has_the_punctuation_of_chinese() -> None:
    assert half_width("好,坏") and half_width("run (好)") and half_width("好, 坏")
    assert not half_width("好，job.yaml 的 env: 下（run）；{n:个|些}")
    assert {one: half_width(text) for one, text in CATALOG.items() if half_width(text)} == {}


def test_both_languages_name_the_same_fields() -> None:
    assert [one for one, chinese in CATALOG.items() if fields(one) != fields(chinese)] == []


def test_a_template_stands_where_it_can_be_collected() -> None:
    """`Sentence("...")` would never get its Chinese: `_` and `mark` are what is looked for."""
    literal = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in hatch_build.FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Sentence", "known_word", "chained")
        and node.args
        and isinstance(node.args[0], (ast.Constant, ast.JoinedStr))
    ]
    assert literal == []


def hidden(source: str) -> list[int]:
    """The lines that call `_` in a function where it is a local name."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [
        load.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, functions) and "_" in _bound(function)
        for load in ast.walk(function)
        if isinstance(load, ast.Call) and isinstance(load.func, ast.Name) and load.func.id == "_"
    ]


def _bound(function: ast.AST) -> set[str]:
    """Its parameters and what it assigns, but for what comprehensions and inner functions do."""
    found: set[str] = set()
    left = list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if isinstance(node, ast.arg):
            found.add(node.arg)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.comprehension)):
            left += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(x):\n    a, _, b = x\n    return _('gone')", [3]),
        ("def f(x):\n    for _ in x:\n        pass\n    return _('gone')", [4]),
        ("def f(x):\n    return [_('gone') for _ in x]", []),
        ("def f(x):\n    a, _rest = x\n    return _('gone')", []),
    ],
)
def test_a_planted_local_name_is_found(source: str, lines: list[int]) -> None:
    assert hidden(source) == lines


def test_no_local_name_hides_it() -> None:
    """Neither mypy nor ruff sees it: for both `_` is what is thrown away."""
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for folder in hatch_build.FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "_(" in (source := path.read_text(encoding="utf-8"))
        for line in hidden(source)
    }
    assert found == set()
