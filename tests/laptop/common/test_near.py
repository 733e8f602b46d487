from __future__ import annotations

import re
from pathlib import Path

import pytest

from boxcar.laptop.common import near
from boxcar.laptop.common.near import did_you_mean, no_such, pick
from boxcar.shared.errors import InputError


def test_the_nearest_known_name_is_offered_and_nothing_where_none_is_near():
    assert did_you_mean("recom", ["class", "recon"]) == " (did you mean 'recon'?)"
    assert did_you_mean("zebra", ["class", "recon"]) == ""


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("colour", ["slurm", "queues"], ""),
        ("delete", ["listen", "launch"], ""),
        ("submit", ["split"], ""),
        ("kill", ["pull"], ""),
        ("q3", ["q2", "other"], "q2"),
        ("nproc", ["nproc_per_node"], "nproc_per_node"),
        ("artefacts", ["artifacts"], "artifacts"),
        ("profile", ["price", "name"], ""),
        ("script", ["secrets"], ""),
        ("modal", ["local"], ""),
        ("ps", ["push"], ""),
        ("AutoDL", ["autodl"], "autodl"),
        ("code_dir", ["name", "code"], "code"),
    ],
)
def test_a_hint_is_given_only_where_it_is_near(word: str, known: list[str], meant: str) -> None:
    assert (meant in did_you_mean(word, known)) if meant else did_you_mean(word, known) == ""


def test_an_unknown_name_is_told_with_what_there_is():
    sentence = no_such("recom", ["class", "recon", "class"], what="cell", of="the run digits")
    assert sentence == (
        "the run digits has no cell 'recom' (did you mean 'recon'?); it has: class, recon"
    )
    assert no_such("a", [], what="queue", of="it").endswith("; it has: none")


def test_of_many_known_names_only_the_first_are_listed():
    sentence = no_such("x", [f"cell-{n}" for n in range(40)], what="cell", of="the run r")
    assert sentence.endswith("cell-10, cell-11 and 28 more")


def test_picked_are_the_known_names_once_in_the_order_in_which_they_were_given():
    assert pick(["b", "a", "b"], ["a", "b", "c"], what="cell", of="the run r") == ["b", "a"]


def test_all_unknown_names_are_told_at_once():
    with pytest.raises(InputError) as raised:
        pick(["a", "x", "y"], iter(["a"]), what="box", of="the run r")
    assert [problem.split(";")[0] for problem in raised.value.problems] == [
        "the run r has no box 'x'",
        "the run r has no box 'y'",
    ]


def test_every_noun_of_an_unknown_name_has_its_chinese() -> None:
    root = Path(near.__file__).parents[2]
    said = {
        noun
        for path in root.rglob("*.py")
        for noun in re.findall(r'\bwhat="([^"{]+)", of=', path.read_text(encoding="utf-8"))
    }
    assert {"cell", "queue", "endpoint"} <= said <= set(near._KINDS)
