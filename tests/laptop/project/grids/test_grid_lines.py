from __future__ import annotations

import pytest

from boxcar.laptop.project.grids.grid_lines import (
    Grid,
    Known,
    divide_lines,
    grid_lines,
    with_config,
)
from boxcar.shared.cell import cell_line
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import InputError


def grid(*words: str, cfg: str = "c/base.yaml", task: str = "recon", epochs: int | None = None):
    return Grid(cfg, task, epochs, words)


def spelled(found: list[CellLine]) -> list[str]:
    return [cell_line.line_of(line) for line in found]


def line(text: str) -> CellLine:
    return cell_line.parse(text.encode(), 0, 1)


def say(found: CellLine) -> str:
    return str((found.cfg, found.task, found.epochs, found.overrides, found.own.env))


def test_two_by_three_by_three_are_eighteen_lines_with_readable_names() -> None:
    found = grid_lines(grid("lr=1e-3,3e-4", "seed=0..2", "opt=sgd,adam,lion", epochs=60))
    assert len(found) == 18
    assert spelled(found)[0] == "c/base.yaml recon 60 lr=1e-3 seed=0 opt=sgd"
    assert spelled(found)[-1] == "c/base.yaml recon 60 lr=3e-4 seed=2 opt=lion"
    assert len({one.name for one in found}) == 18
    assert found[1].name == "base_lr1e-3_seed0_optadam"


@pytest.mark.parametrize(
    "words",
    [
        ("lr=1,2", "layers=[1,2]", "t=a b,c"),
        ("env.id=A,B", "--", "nproc=2"),
        ("nproc=2", "time=2h", "env.X=1", "after=one,two", "lr=1,2"),
        ("--lr=1,2", "--amp"),
        ("数据=甲,乙", "lr=1"),
    ],
)
def test_each_line_is_read_as_it_was_written(words: tuple[str, ...]) -> None:
    for one in grid_lines(grid(*words)):
        again = line(cell_line.line_of(one))
        assert (again.name, again.own, again.overrides) == (one.name, one.own, one.overrides)


def test_own_words_are_told_for_all_cells_and_stand_first() -> None:
    found = grid_lines(grid("lr=1,2", "nproc=2", "after=a,b"))
    assert spelled(found)[1] == "c/base.yaml recon nproc=2 after=a,b lr=2"


def test_cells_without_config_are_named_by_the_task() -> None:
    assert [one.name for one in grid_lines(grid("--lr=1,2", cfg="-"))] == ["recon_lr1", "recon_lr2"]


def test_names_in_chinese_are_kept_apart() -> None:
    found = grid_lines(grid("数据=甲,乙"))
    assert spelled(found)[0] == "c/base.yaml recon name=base_数据甲 数据=甲"
    assert [one.name for one in found] == ["base_数据甲", "base_数据乙"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "at least one key with values"),
        (("nproc=2",), "at least one key with values"),
        (("--",), "at least one key with values"),
        (("name=x", "lr=1"), "get their names from their values"),
        (("nproc=1,2", "lr=1"), "one value for all cells"),
        (("env.SEED=0..2", "lr=1"), "one value for all cells"),
        (("nprocs=2", "lr=1"), "option nproc= misspelled"),
        (("lr=1", "lr=2"), "lr= is given twice"),
        (("lr=1\n2",), "control character"),
        (("lr=" + "x" * 5000,), "at most 4096"),
        (("time=soon", "lr=1"), "expected a time"),
        (("lr=\udcff",), "surrogates"),
    ],
)
def test_words_that_no_line_could_have_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as caught:
        grid_lines(grid(*words))
    assert said in str(caught.value)
    assert len(caught.value.messages) == 1


def test_a_cell_that_some_line_says_is_left_out_whatever_its_name_is() -> None:
    known = [
        Known(line("c/base.yaml recon name=mine lr=1"), "q1:1"),
        Known(line("c/base.yaml recon lr=2"), "q2:4", is_dropped=True),
    ]
    new, left_out = divide_lines(grid_lines(grid("lr=1,2,3")), known, say)
    assert spelled(new) == ["c/base.yaml recon lr=3"]
    assert [(one.cell, one.at, one.is_dropped) for one in left_out] == [
        ("base_lr1", "q1:1", False),
        ("base_lr2", "q2:4", True),
    ]


def test_a_name_that_says_another_cell_is_refused_with_both_lines() -> None:
    known = [Known(line("c/base.yaml recon 60 lr=1"), "queues/q1.txt:1")]
    with pytest.raises(InputError) as caught:
        divide_lines(grid_lines(grid("lr=1,2", epochs=90)), known, say)
    for words in ("c/base.yaml recon 90 lr=1", "queues/q1.txt:1", "c/base.yaml recon 60 lr=1"):
        assert words in str(caught.value)


@pytest.mark.parametrize("word", ["lr=1e-3,1E-3", "lr=a/b,a-b"])
def test_two_cells_of_the_grid_with_one_name_are_refused_with_both_lines(word: str) -> None:
    with pytest.raises(InputError) as caught:
        divide_lines(grid_lines(grid(word)), [], say)
    for value in word.removeprefix("lr=").split(","):
        assert f"c/base.yaml recon lr={value}" in str(caught.value)


def test_what_is_wrong_with_a_thousand_cells_is_said_in_a_few_sentences() -> None:
    known = [Known(one, "q1") for one in grid_lines(grid("lr=0..999"))]
    with pytest.raises(InputError) as caught:
        divide_lines(grid_lines(grid("lr=0..999", task="other")), known, say)
    assert len(caught.value.messages) == 4
    assert "997 more cells" in str(caught.value)


def test_a_cell_with_a_config_of_its_own_keeps_its_name_and_loses_its_overrides() -> None:
    [one] = grid_lines(grid("lr=1", "nproc=2", epochs=3))
    own = with_config(one, f"g/{one.name}.yaml")
    assert cell_line.line_of(own) == "g/base_lr1.yaml recon 3 nproc=2"
    assert own.name == one.name
