"""A cell's name, the config that it comes from, and the times that a line gives."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell import cell_name, duration
from boxcar.shared.cell.cell_name import (
    LONGEST_DERIVED_BYTES,
    check_name,
    config_path,
    is_one_edit,
    key_of,
    name_of_line,
    same_name_key,
    stored_names,
)


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
def test_a_name_comes_from_the_lines_own_words(cfg, task, overrides, name):
    assert name_of_line(cfg, task, overrides) == name
    check_name(name)


def test_without_overrides_a_configs_basename_is_the_name_whatever_it_is():
    assert name_of_line("a b=c.yaml", "t", ()) == "a b=c"


def test_the_name_is_in_one_form():
    decomposed = unicodedata.normalize("NFD", "ü.yaml")
    assert name_of_line(decomposed, "t", ()) == name_of_line("ü.yaml", "t", ()) == "ü"


def test_a_long_name_is_cut_and_ends_in_eight_digits_of_its_words():
    one, other = (
        name_of_line("a.yaml", "t", ("x=" + "1" * 200,)),
        name_of_line("a.yaml", "t", ("x=" + "1" * 201,)),
    )
    assert len(one) == len(other) == LONGEST_DERIVED_BYTES == 80
    assert one != other
    assert re.fullmatch(r"a_x1+-[0-9a-f]{8}", one)
    assert name_of_line("a.yaml", "t", ("x=" + "1" * 76,)) == "a_x" + "1" * 76


@pytest.mark.parametrize("cfg", ["数" * 90 + ".yaml", "x" * 250 + ".yaml", "ü" * 100 + ".yaml"])
def test_a_long_basename_with_overrides_still_makes_a_name(cfg):
    check_name(name_of_line(cfg, "t", ("lr=1",)))
    assert name_of_line(cfg, "t", ("lr=1",)) != name_of_line(cfg, "t", ("lr=2",))


@given(
    st.from_regex(r"[a-z][a-z0-9 =._-]{0,99}", fullmatch=True),
    st.lists(st.text(max_size=60), min_size=1, max_size=6),
)
def test_a_derived_name_is_a_good_folder_for_hydra_too(head, overrides):
    name = name_of_line("-", head, overrides)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", name)
    check_name(name)


@given(st.lists(st.text(max_size=60), max_size=6))
def test_it_comes_from_this_line_alone(overrides):
    assert name_of_line("a.yaml", "t", overrides) == name_of_line("a.yaml", "t", tuple(overrides))


@pytest.mark.parametrize("name", ["a", "0", "a.b+c=d@e,f-g_h", "数据", "x" * 100])
def test_these_are_names(name):
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "-", "_a", ".a", "a.", "a b", "a/b", "a\n", "..", "x" * 101, "a:b"]
)
def test_these_are_not(name):
    with pytest.raises(ValueError, match="invalid cell name"):
        check_name(name)


def test_a_name_has_room_for_endings_in_bytes():
    with pytest.raises(ValueError, match="longer than 200 bytes"):
        check_name("数" * 67)


@pytest.mark.parametrize(
    ("word", "key"),
    [("lr=1", "lr"), ("+lr=1", "lr"), ("++lr=1", "lr"), ("~lr", "lr"), ("--lr=1", "lr"),
     ("a-b=1", "a-b"), ("--a-b", "a-b"), ("=1", ""), ("--", "")],
)  # fmt: skip
def test_a_key_is_one_however_a_script_takes_it(word, key):
    assert key_of(word) == key


def test_no_config_is_a_dash():
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
    overrides, plain, in_any_script
):
    assert name_of_line("c/base.yaml", "t", overrides) == plain
    assert cell_name.in_any_script("c/base.yaml", "t", overrides) == in_any_script
    check_name(in_any_script)


@pytest.mark.parametrize("value", ["x" * 200, "字" * 60, "字" * 200])
def test_long_names_in_any_script_are_cut_and_stay_apart(value):
    names = {cell_name.in_any_script("基线.yaml", "t", [f"k={value}{n}"]) for n in range(3)}
    assert len(names) == 3
    for name in names:
        check_name(name)


# --- how a config's path is spelled


NFD = unicodedata.normalize("NFD", "ü")


def edits(one: str, other: str) -> int:
    """Levenshtein's distance, the long way."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]


@given(st.text("abn", max_size=6), st.text("abn", max_size=6))
def test_one_edit_is_a_letter_left_out_put_in_or_mistyped(one, other):
    assert is_one_edit(one, other) == (edits(one, other) == 1)


@pytest.mark.parametrize(
    ("text", "path"),
    [("./a//b/./c.yaml", "a/b/c.yaml"), (f"{NFD}/a", "ü/a"), ("a/../b", "a/../b"), ("", "")],
)
def test_a_configs_path_has_one_spelling(text, path):
    assert config_path(text) == config_path(path) == path


def test_two_files_of_one_spelling_are_both_found():
    assert stored_names(["ü", NFD, "a"]) == {"ü": ["ü", NFD], "a": ["a"]}


def test_names_that_a_disk_takes_for_one_have_one_key():
    assert same_name_key("Ü") == same_name_key(NFD)
    assert same_name_key("a") != same_name_key("b")


# --- a time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("2d", 172_800),
     ("1d2h3m4s", 93_784), ("0h1s", 1)],
)  # fmt: skip
def test_a_time_is_read_in_seconds(text, seconds):
    assert duration.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "90", "0s", "1.5h", "-1h", "1m1h", "1h1h", "1H", "1 h", " 1h", "1h\n", "١s", "1w"]
)
def test_another_text_is_refused_with_what_is_one(text):
    with pytest.raises(ValueError, match="expected a time such as 90s, 30m, 2h or 1h30m"):
        duration.parse_duration(text)


@given(st.integers(1, 10**9))
def test_it_is_spelled_as_it_is_read(seconds):
    assert duration.parse_duration(duration.spell_duration(seconds)) == seconds


def test_it_is_spelled_in_short():
    spelled = [duration.spell_duration(time_s) for time_s in (60, 5400, 86_400, 61)]
    assert spelled == ["1m", "1h30m", "1d", "1m1s"]
