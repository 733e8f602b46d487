from __future__ import annotations

from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.cell import terms
from boxcar.shared.cell.cell_line import parse
from boxcar.shared.files.plan import Rule


def of(text: str, **plan: Any) -> list[str]:
    return list(terms.misfits_of_line(make_plan(**plan), parse(text.encode(), 0, 1)))


def test_a_line_that_fits_its_command_has_none() -> None:
    everything = ("t.py", "{cfg}", "{task}", "{epochs}", "{more}", "{after}", "{name}")
    assert of("a.yaml t 3 after=x env.A=1 lr=1", command=everything) == []
    assert of("- - name=a --lr=1", command=("t.py", "{name}"), epochs=None) == []


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("- t", ("t.py", "{cfg}"), "the command takes {cfg}, but the line has - in its place"),
        ("a.yaml -", ("t.py", "{task}"), "the command takes {task}, but the line has - in"),
        ("a.yaml t", ("t.py", "{epochs}"), "the command takes {epochs}, but the line gives none"),
        ("a.yaml t", ("t.py", "{after}"), "the command takes {after}, but the line has no after="),
        ("a.yaml t after=x,y", ("t.py", "{after}"), "after= names several: write {after:CELL}"),
        ("a.yaml t after=x", ("t.py", "{after:y}"), "takes {after:y}, but the line's after= does"),
        ("a.yaml t env.KEY=1", ("t.py",), "env.KEY= is in the line, but KEY is one of the secrets"),
    ],
)
def test_what_does_not_fit_is_said(text: str, command: tuple[str, ...], expected: str) -> None:
    [found] = of(text, command=command, epochs=None, secrets=("KEY",))
    assert expected in found


def test_the_cells_own_command_is_what_has_to_fit() -> None:
    rules = (Rule("a*", command=("t.py",)),)
    assert of("- a2", command=("t.py", "{cfg}"), rules=rules) == []
    assert of("- b", command=("t.py", "{cfg}"), rules=rules) != []


def test_resume_args_are_words_of_the_command_too() -> None:
    assert of("- t", command=("t.py",), resume_args=("-r", "{cfg}")) != []


def test_two_patterns_that_quarrel_over_a_line_are_said_on_the_box_too() -> None:
    plan = make_plan(rules=(Rule("a*", nproc=1), Rule("*b", nproc=2)))
    [found] = terms.misfits_of_rules(plan, "ab")
    assert "one nproc_per_node by 'a*' and another by '*b'" in found
    assert list(terms.misfits_of_rules(plan, "a")) == []


@pytest.mark.parametrize(("command", "is_told"), [(("t.py",), True), (("t.py", "{task}"), False)])
def test_an_override_in_the_place_of_a_task_that_nobody_takes_is_told(
    command: tuple[str, ...], is_told: bool
) -> None:
    found = of("base.yaml lr=1e-3", command=command)
    assert bool(found) == is_told
    assert all("write - before it" in text for text in found)
