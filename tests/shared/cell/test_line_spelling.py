"""A line and its words are one."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_line, cell_name
from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.cell.cell_name import nfc
from boxcar.shared.cell.own_words import NOTHING_OWN, Own


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("=-+~#{}$'\"\\ ,._"),
    max_size=12,
)
NAMES = st.from_regex(cell_name.CELL_NAME, fullmatch=True).map(nfc)
VARIABLES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name != "PYTHONPATH" and not name.startswith("BOXCAR_")
)
OWNS = st.builds(
    Own,
    nproc=st.none() | st.integers(1, 9999),
    after=st.lists(NAMES.map(lambda name: name.replace(",", "-")), max_size=3).map(tuple),
    time_s=st.none() | st.integers(1, 10**7),
    env=st.dictionaries(VARIABLES, TEXT, max_size=3),
)
OVERRIDES = st.lists(
    TEXT | st.sampled_from(["--", "-", "~lr", "+x", "", "60", "name=b", "lr=1", "+lr=2", "#", "x"]),
    max_size=5,
).map(tuple)


def is_name(text: str) -> bool:
    try:
        cell_name.check_name(text)
    except ValueError:
        return False
    return True


@st.composite
def lines(draw: st.DrawFn) -> CellLine:
    cfg = draw(st.sampled_from(["a.yaml", "-", "配置/b c.yaml"]))
    task = draw(st.sampled_from(["t", "-", "two words"]))
    overrides = draw(OVERRIDES)
    derived = cell_name.name_of_line(cfg, task, overrides)
    name = draw(st.just(derived if is_name(derived) else "x") | NAMES.filter(is_name))
    epochs = draw(st.none() | st.integers(1, 999_999_999))
    return CellLine(0, 1, name, cfg, task, epochs, draw(OWNS), overrides)


def with_words(*overrides: str, own: Own = NOTHING_OWN) -> CellLine:
    return CellLine(0, 1, "a", "a.yaml", "t", None, own, overrides)


@given(lines())
@example(with_words("~lr"))
@example(with_words("+x", "y=1"))
@example(with_words("~lr", own=Own(nproc=2)))
@example(with_words("--", "x"))
@example(with_words("#x", "-v"))
@example(with_words("60"))
def test_what_a_person_is_shown_says_the_same_line(asked: CellLine) -> None:
    assert line(cell_line.line_of(asked)) == asked


@given(st.text(max_size=60))
def test_a_line_that_is_read_is_spelled_as_what_it_says(text: str) -> None:
    try:
        found = line(text)
    except ValueError:
        return
    assert line(cell_line.line_of(found)) == found


def test_letters_of_any_script_need_no_quotes() -> None:
    text = "配置/a.yaml 重建 3 标题=你好 größe=1"
    assert cell_line.line_of(line(text)) == text
    assert cell_line.line_of(line("a.yaml t 标题='你 好'")) == "a.yaml t '标题=你 好'"


def test_the_words_of_a_line_are_its_variables_and_its_overrides() -> None:
    found = line("a.yaml t 3 nproc=2 env.B=1 env.A=2 lr=1")
    assert cell_line.words_of_line(found) == ("env.B=1", "env.A=2", "lr=1")
    assert cell_line.words_of_line(line("a.yaml t 3 nproc=2")) == ()
