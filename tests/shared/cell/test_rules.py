from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.cell.terms import is_pattern, quarrels_of_rules, rule_fits, rules_of_cell
from boxcar.shared.files.plan import Artifact, Rule


def found(rules: list[Rule], cell: str = "recon_big") -> list[tuple[str, str, str]]:
    return [(key, one.cells, other.cells) for key, one, other in quarrels_of_rules(rules, cell)]


@pytest.mark.parametrize(
    ("pattern", "cell"),
    [("recon_*", "recon_big"), ("*", "a"), ("recon_???", "recon_big"), ("*_b*g", "recon_big"),
     ("a.b+c", "a.b+c"), ("配置*", "配置_lr1"), ("*=1", "a=1")],
)  # fmt: skip
def test_these_fit(pattern: str, cell: str) -> None:
    assert rule_fits(pattern, cell)


@pytest.mark.parametrize(
    ("pattern", "cell"),
    [("recon", "recon_big"), ("Recon_*", "recon_big"), ("recon_?", "recon_big"), ("a.b", "axb"),
     ("[ab]", "a"), ("recon_*", "xrecon_big"), ("?", "")],
)  # fmt: skip
def test_these_do_not(pattern: str, cell: str) -> None:
    assert not rule_fits(pattern, cell)


def test_a_name_fits_in_whatever_form_it_is_spelled() -> None:
    decomposed = unicodedata.normalize("NFD", "größe")
    assert rule_fits(decomposed, "größe") and rule_fits("größe", decomposed)
    assert rule_fits(f"{decomposed}*", "größe_1") and rule_fits("gr?ße", decomposed)


def test_only_a_star_or_a_question_mark_makes_a_pattern() -> None:
    assert [is_pattern(text) for text in ("a*", "a?", "a", "[a]", "a.+")] == [True, True] + [
        False
    ] * 3


def test_an_exact_name_comes_before_patterns_and_these_in_their_order() -> None:
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
def test_two_patterns_that_say_two_things_quarrel(one: Rule, other: Rule, key: str) -> None:
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
def test_these_do_not_quarrel(one: Rule, other: Rule) -> None:
    assert found([one, other]) == []


def test_an_exact_name_settles_the_keys_that_it_gives_and_no_other() -> None:
    rules = [
        Rule("*", nproc=1, env={"A": "1", "B": "1"}),
        Rule("recon_*", nproc=2, env={"A": "2", "B": "2"}),
        Rule("recon_big", nproc=4, env={"A": "3"}),
    ]
    assert found(rules) == [("env.B", "*", "recon_*")]


@given(st.text("ab*?[.", max_size=8), st.text("ab[.", max_size=8))
def test_a_pattern_means_what_a_slow_reader_says(pattern: str, cell: str) -> None:
    def means(p: str, c: str) -> bool:
        if not p:
            return not c
        if p[0] == "*":
            return means(p[1:], c) or (bool(c) and means(p, c[1:]))
        return bool(c) and p[0] in ("?", c[0]) and means(p[1:], c[1:])

    assert rule_fits(pattern, cell) == means(pattern, cell)
