from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_name
from boxcar.shared.cell.cell_name import LONGEST_DERIVED_BYTES, check_name, key_of, name_of_line


@pytest.mark.parametrize(
    ("cfg", "task", "overrides", "name"),
    [
        ("configs/recon.yaml", "t", (), "recon"),
        ("recon.v2.yaml", "t", (), "recon.v2"),
        ("recon.yaml", "t", ("lr=1e-3", "seed=2"), "recon_lr1e-3_seed2"),
        ("-", "mnist", (), "mnist"),
        ("-", "mnist", ("--lr=1", "--seed", "2", "-v"), "mnist_lr1_seed2_v"),
        ("a.yaml", "-", ("+model.x=[1,2]",), "a_model.x1-2"),
        ("a.yaml", "-", ("data=/mnt/sets/x",), "a_datamnt-sets-x"),
        ("a.yaml", "-", ("opt={a:1}",), "a_opta-1"),
        ("a.yaml", "-", ("~lr", "++x=y z"), "a_lr_xy-z"),
        ("a.yaml", "-", ("--shift", "-1"), "a_shift_1"),
        ("a.yaml", "-", ("标题=你好",), "a"),
        ("配置.yaml", "-", ("lr=1",), "配置_lr1"),
        ("a.yaml", "-", ("lr=1.",), "a_lr1"),
        ("my config=1.yaml", "t", ("lr=1",), "my-config-1_lr1"),
        ("-", "two words", (), "two-words"),
        ("-", "-", ("--lr=1",), "lr1"),
    ],
)
def test_a_name_comes_from_the_lines_own_words(
    cfg: str, task: str, overrides: tuple[str, ...], name: str
) -> None:
    assert name_of_line(cfg, task, overrides) == name
    check_name(name)


def test_without_overrides_a_configs_basename_is_the_name_whatever_it_is() -> None:
    assert name_of_line("a b=c.yaml", "t", ()) == "a b=c"


def test_the_name_is_in_one_form() -> None:
    decomposed = unicodedata.normalize("NFD", "ü.yaml")
    assert name_of_line(decomposed, "t", ()) == name_of_line("ü.yaml", "t", ()) == "ü"


def test_a_long_name_is_cut_and_ends_in_eight_digits_of_its_words() -> None:
    one, other = (
        name_of_line("a.yaml", "t", ("x=" + "1" * 200,)),
        name_of_line("a.yaml", "t", ("x=" + "1" * 201,)),
    )
    assert len(one) == len(other) == LONGEST_DERIVED_BYTES == 80
    assert one != other
    assert re.fullmatch(r"a_x1+-[0-9a-f]{8}", one)
    assert name_of_line("a.yaml", "t", ("x=" + "1" * 76,)) == "a_x" + "1" * 76


@pytest.mark.parametrize("cfg", ["数" * 90 + ".yaml", "x" * 250 + ".yaml", "ü" * 100 + ".yaml"])
def test_a_long_basename_with_overrides_still_makes_a_name(cfg: str) -> None:
    check_name(name_of_line(cfg, "t", ("lr=1",)))
    assert name_of_line(cfg, "t", ("lr=1",)) != name_of_line(cfg, "t", ("lr=2",))


@given(
    st.from_regex(r"[a-z][a-z0-9 =._-]{0,99}", fullmatch=True),
    st.lists(st.text(max_size=60), min_size=1, max_size=6),
)
def test_a_derived_name_is_a_good_folder_for_hydra_too(head: str, overrides: list[str]) -> None:
    name = name_of_line("-", head, overrides)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", name)
    check_name(name)


@given(st.lists(st.text(max_size=60), max_size=6))
def test_it_comes_from_this_line_alone(overrides: list[str]) -> None:
    assert name_of_line("a.yaml", "t", overrides) == name_of_line("a.yaml", "t", tuple(overrides))


@pytest.mark.parametrize("name", ["a", "0", "a.b+c=d@e,f-g_h", "数据", "x" * 100])
def test_these_are_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "-", "_a", ".a", "a.", "a b", "a/b", "a\n", "..", "x" * 101, "a:b"]
)
def test_these_are_not(name: str) -> None:
    with pytest.raises(ValueError, match="the cell's name"):
        check_name(name)


def test_a_name_has_room_for_endings_in_bytes() -> None:
    with pytest.raises(ValueError, match="longer than 200 bytes"):
        check_name("数" * 67)


@pytest.mark.parametrize(
    ("word", "key"),
    [("lr=1", "lr"), ("+lr=1", "lr"), ("++lr=1", "lr"), ("~lr", "lr"), ("--lr=1", "lr"),
     ("a-b=1", "a-b"), ("--a-b", "a-b"), ("=1", ""), ("--", "")],
)  # fmt: skip
def test_a_key_is_one_however_a_script_takes_it(word: str, key: str) -> None:
    assert key_of(word) == key


def test_no_config_is_a_dash() -> None:
    assert cell_name.NO_CONFIG == "-"


# --- with the letters of every script, for a line that is given its name


@pytest.mark.parametrize(
    ("overrides", "plain", "in_any_script"),
    [
        (["lr=1e-3", "seed=2"], "base_lr1e-3_seed2", "base_lr1e-3_seed2"),
        (["data=数据一"], "base_data", "base_data数据一"),
        (["模型=大", "lr=1"], "base_lr1", "base_模型大_lr1"),
        (["t=a b/c"], "base_ta-b-c", "base_ta-b-c"),
    ],
)
def test_letters_of_every_script_stand_only_in_a_name_that_is_given(
    overrides: list[str], plain: str, in_any_script: str
) -> None:
    assert name_of_line("c/base.yaml", "t", overrides) == plain
    assert cell_name.in_any_script("c/base.yaml", "t", overrides) == in_any_script
    check_name(in_any_script)


@pytest.mark.parametrize("value", ["x" * 200, "字" * 60, "字" * 200])
def test_long_names_in_any_script_are_cut_and_stay_apart(value: str) -> None:
    names = {cell_name.in_any_script("基线.yaml", "t", [f"k={value}{n}"]) for n in range(3)}
    assert len(names) == 3
    for name in names:
        check_name(name)
