"""What of the job holds for a cell: its rules, its terms, its GPUs."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan

from boxcar.shared.cell import terms, visible_gpus
from boxcar.shared.cell.cell_line import parse
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.cell.terms import is_pattern, quarrels_of_rules, rule_fits, rules_of_cell
from boxcar.shared.files.plan import Artifact, Rule

JOB: dict[str, Any] = {
    "nproc": 1,
    "time_s": 10,
    "command": ("job.py",),
    "launcher": "torchrun",
    "artifacts": (Artifact("job.pt"),),
    "resume": "job.ckpt",
}
PATTERN: dict[str, Any] = {
    "nproc": 2,
    "time_s": 20,
    "command": ("pattern.py",),
    "launcher": "python",
    "artifacts": (Artifact("pattern.pt"),),
    "resume": "pattern.ckpt",
}
EXACT: dict[str, Any] = {
    "nproc": 3,
    "time_s": 30,
    "command": ("exact.py",),
    "launcher": "accelerate",
    "artifacts": (Artifact("exact.pt"),),
    "resume": "exact.ckpt",
}


@pytest.mark.parametrize("key", JOB)
def test_key_by_key_the_exact_name_comes_before_a_pattern_and_that_before_the_job(key):
    pattern, exact = Rule("a*", **{key: PATTERN[key]}), Rule("a", **{key: EXACT[key]})
    plan = make_plan(**JOB, rules=(pattern, exact))
    assert [getattr(terms.terms_of_cell(plan, cell), key) for cell in ("a", "a2", "b")] == [
        EXACT[key],
        PATTERN[key],
        JOB[key],
    ]


def test_a_lines_word_comes_first():
    plan = make_plan(**JOB, rules=(Rule("a", nproc=3, time_s=30),))
    found = terms.terms_of_cell(plan, "a", Own(nproc=8, time_s=80))
    assert (found.nproc, found.time_s) == (8, 80)
    assert terms.terms_of_cell(plan, "a", Own(nproc=8)).time_s == 30


def test_a_key_that_a_rule_does_not_give_comes_from_the_next():
    plan = make_plan(**JOB, rules=(Rule("a", nproc=3), Rule("a*", nproc=2, time_s=20)))
    found = terms.terms_of_cell(plan, "a")
    assert (found.nproc, found.time_s, found.launcher) == (3, 20, "torchrun")


def test_env_is_merged_by_variable():
    plan = make_plan(
        env={"P": "profile"},
        job_env={"A": "job", "B": "job", "C": "job"},
        rules=(Rule("a", env={"C": "exact"}), Rule("a*", env={"B": "pattern", "C": "pattern"})),
    )
    assert terms.terms_of_cell(plan, "a").env == {"A": "job", "B": "pattern", "C": "exact"}
    assert terms.terms_of_cell(plan, "b").env == {"A": "job", "B": "job", "C": "job"}


def test_ranks_by_name_of_an_older_plan_still_count():
    plan = make_plan(nproc=1, cell_nproc={"a": 4})
    assert [terms.terms_of_cell(plan, cell).nproc for cell in ("a", "b")] == [4, 1]


def test_rules_hold_for_a_cell_that_no_plan_knows():
    plan = make_plan(rules=(Rule("seg_*", nproc=4),))
    assert plan.cells == () and terms.terms_of_cell(plan, "seg_new", NOTHING_OWN).nproc == 4


def test_cells_with_other_artifacts_are_told():
    rule = Rule("a", artifacts=(Artifact("x"), Artifact("y")))
    assert terms.other_artifacts(make_plan(rules=(rule,)), ["a", "b"]) == {
        "a": (Artifact("x"), Artifact("y"))
    }


# --- rules


def found(rules: list[Rule], cell: str = "recon_big") -> list[tuple[str, str, str]]:
    return [(key, one.cells, other.cells) for key, one, other in quarrels_of_rules(rules, cell)]


@pytest.mark.parametrize(
    ("pattern", "cell"),
    [("recon_*", "recon_big"), ("*", "a"), ("recon_???", "recon_big"), ("*_b*g", "recon_big"),
     ("a.b+c", "a.b+c"), ("配置*", "配置_lr1"), ("*=1", "a=1")],
)  # fmt: skip
def test_these_fit(pattern, cell):
    assert rule_fits(pattern, cell)


@pytest.mark.parametrize(
    ("pattern", "cell"),
    [("recon", "recon_big"), ("Recon_*", "recon_big"), ("recon_?", "recon_big"), ("a.b", "axb"),
     ("[ab]", "a"), ("recon_*", "xrecon_big"), ("?", "")],
)  # fmt: skip
def test_these_do_not(pattern, cell):
    assert not rule_fits(pattern, cell)


def test_a_name_fits_in_whatever_form_it_is_spelled():
    decomposed = unicodedata.normalize("NFD", "größe")
    assert rule_fits(decomposed, "größe") and rule_fits("größe", decomposed)
    assert rule_fits(f"{decomposed}*", "größe_1") and rule_fits("gr?ße", decomposed)


def test_only_a_star_or_a_question_mark_makes_a_pattern():
    assert [is_pattern(text) for text in ("a*", "a?", "a", "[a]", "a.+")] == [True, True] + [
        False
    ] * 3


def test_an_exact_name_comes_before_patterns_and_these_in_their_order():
    rules = [Rule("*", nproc=1), Rule("recon_*", nproc=2), Rule("recon_big", nproc=3), Rule("x")]
    assert [rule.nproc for rule in rules_of_cell(rules, "recon_big")] == [3, 1, 2]


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        (Rule("*", nproc=1), Rule("recon_*", nproc=2), "nproc_per_node"),
        (Rule("*", command=("a.py",)), Rule("recon_*", command=("b.py",)), "command"),
        (Rule("*", launcher="python"), Rule("recon_*", launcher="torchrun"), "launcher"),
        (Rule("*", time_s=1), Rule("recon_*", time_s=2), "time"),
        (Rule("*", resume="a"), Rule("recon_*", resume="b"), "resume"),
        (
            Rule("*", artifacts=(Artifact("a"),)),
            Rule("recon_*", artifacts=(Artifact("b"),)),
            "artifacts",
        ),
        (Rule("*", env={"A": "1"}), Rule("recon_*", env={"A": "2"}), "env.A"),
    ],
)
def test_two_patterns_that_say_two_things_quarrel(one, other, key):
    assert found([one, other]) == [(key, "*", "recon_*")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Rule("*", nproc=1), Rule("recon_*", nproc=1)),
        (Rule("*", nproc=1), Rule("recon_*", time_s=1)),
        (Rule("*", nproc=1), Rule("recon_big", nproc=2)),
        (Rule("*", nproc=1), Rule("seg_*", nproc=2)),
        (Rule("*", env={"A": "1"}), Rule("recon_*", env={"B": "2"})),
    ],
)
def test_these_do_not_quarrel(one, other):
    assert found([one, other]) == []


def test_an_exact_name_settles_the_keys_that_it_gives_and_no_other():
    rules = [
        Rule("*", nproc=1, env={"A": "1", "B": "1"}),
        Rule("recon_*", nproc=2, env={"A": "2", "B": "2"}),
        Rule("recon_big", nproc=4, env={"A": "3"}),
    ]
    assert found(rules) == [("env.B", "*", "recon_*")]


@given(st.text("ab*?[.", max_size=8), st.text("ab[.", max_size=8))
def test_a_pattern_means_what_a_slow_reader_says(pattern, cell):
    def means(p: str, c: str) -> bool:
        if not p:
            return not c
        if p[0] == "*":
            return means(p[1:], c) or (bool(c) and means(p, c[1:]))
        return bool(c) and p[0] in ("?", c[0]) and means(p[1:], c[1:])

    assert rule_fits(pattern, cell) == means(pattern, cell)


# --- what does not fit


def of(text: str, **plan: Any) -> list[str]:
    return list(terms.misfits_of_line(make_plan(**plan), parse(text.encode(), 0, 1)))


def test_a_line_that_fits_its_command_has_none():
    everything = ("t.py", "{cfg}", "{task}", "{epochs}", "{more}", "{after}", "{name}")
    assert of("a.yaml t 3 after=x env.A=1 lr=1", command=everything) == []
    assert of("- - name=a --lr=1", command=("t.py", "{name}"), epochs=None) == []


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("- t", ("t.py", "{cfg}"), "the command uses {cfg}, but the line has - there"),
        ("a.yaml -", ("t.py", "{task}"), "the command uses {task}, but the line has - there"),
        ("a.yaml t", ("t.py", "{epochs}"), "the command uses {epochs}, but the line has none"),
        ("a.yaml t", ("t.py", "{after}"), "the command uses {after}, but the line has no after="),
        (
            "a.yaml t after=x,y",
            ("t.py", "{after}"),
            "after= names several cells: write {after:CELL}",
        ),
        ("a.yaml t after=x", ("t.py", "{after:y}"), "uses {after:y}, but the line's after= does"),
        ("a.yaml t env.KEY=1", ("t.py",), "env.KEY= is in the line, but KEY is one of the secrets"),
    ],
)
def test_what_does_not_fit_is_said(text, command, expected):
    [found] = of(text, command=command, epochs=None, secrets=("KEY",))
    assert expected in found


def test_the_cells_own_command_is_what_has_to_fit():
    rules = (Rule("a*", command=("t.py",)),)
    assert of("- a2", command=("t.py", "{cfg}"), rules=rules) == []
    assert of("- b", command=("t.py", "{cfg}"), rules=rules) != []


def test_resume_args_are_words_of_the_command_too():
    assert of("- t", command=("t.py",), resume_args=("-r", "{cfg}")) != []


def test_two_patterns_that_quarrel_over_a_line_are_said_on_the_box_too():
    plan = make_plan(rules=(Rule("a*", nproc=1), Rule("*b", nproc=2)))
    [found] = terms.misfits_of_rules(plan, "ab")
    assert "two values of nproc_per_node, by 'a*' and by '*b'" in found
    assert list(terms.misfits_of_rules(plan, "a")) == []


@pytest.mark.parametrize(("command", "is_told"), [(("t.py",), True), (("t.py", "{task}"), False)])
def test_an_override_in_the_place_of_a_task_that_nobody_takes_is_told(command, is_told):
    found = of("base.yaml lr=1e-3", command=command)
    assert bool(found) == is_told
    assert all("write - before it" in text for text in found)


# --- GPUs


@pytest.mark.parametrize(
    ("one", "other", "are_apart"),
    [
        (("0",), ("1",), True),
        (("0", "1"), ("1", "2"), False),
        (("GPU-ab",), ("GPU-cd",), True),
        (("0",), ("GPU-cd",), False),  # may be the same one
        ((), ("0",), True),
        (None, ("0",), False),
        (("0",), None, False),
    ],
)
def test_two_are_apart_where_both_name_their_gpus_and_none_twice(one, other, are_apart):
    assert visible_gpus.are_apart(one, other) is are_apart


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, None),
        ({"job_env": {"CUDA_VISIBLE_DEVICES": "1"}}, ("1",)),
        ({"env": {"CUDA_VISIBLE_DEVICES": "0"}}, ("0",)),
        (
            {
                "job_env": {"CUDA_VISIBLE_DEVICES": "1"},
                "rules": (Rule("x*", env={"CUDA_VISIBLE_DEVICES": "2,3"}),),
            },
            ("1", "2", "3"),
        ),
        ({"rules": (Rule("x*", env={"CUDA_VISIBLE_DEVICES": "2"}),)}, None),
        ({"job_env": {"CUDA_VISIBLE_DEVICES": "{task}"}}, None),
    ],
)
def test_a_plan_sees_what_any_of_its_cells_may_see(own, found):
    assert visible_gpus.of_plan(make_plan(**own)) == found
