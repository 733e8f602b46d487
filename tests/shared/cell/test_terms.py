from __future__ import annotations

from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.cell import terms
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
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
def test_key_by_key_the_exact_name_comes_before_a_pattern_and_that_before_the_job(key: str) -> None:
    pattern, exact = Rule("a*", **{key: PATTERN[key]}), Rule("a", **{key: EXACT[key]})
    plan = make_plan(**JOB, rules=(pattern, exact))
    assert [getattr(terms.terms_of_cell(plan, cell), key) for cell in ("a", "a2", "b")] == [
        EXACT[key],
        PATTERN[key],
        JOB[key],
    ]


def test_a_lines_word_comes_first() -> None:
    plan = make_plan(**JOB, rules=(Rule("a", nproc=3, time_s=30),))
    found = terms.terms_of_cell(plan, "a", Own(nproc=8, time_s=80))
    assert (found.nproc, found.time_s) == (8, 80)
    assert terms.terms_of_cell(plan, "a", Own(nproc=8)).time_s == 30


def test_a_key_that_a_rule_does_not_give_comes_from_the_next() -> None:
    plan = make_plan(**JOB, rules=(Rule("a", nproc=3), Rule("a*", nproc=2, time_s=20)))
    found = terms.terms_of_cell(plan, "a")
    assert (found.nproc, found.time_s, found.launcher) == (3, 20, "torchrun")


def test_env_is_merged_by_variable() -> None:
    plan = make_plan(
        env={"P": "profile"},
        job_env={"A": "job", "B": "job", "C": "job"},
        rules=(Rule("a", env={"C": "exact"}), Rule("a*", env={"B": "pattern", "C": "pattern"})),
    )
    assert terms.terms_of_cell(plan, "a").env == {"A": "job", "B": "pattern", "C": "exact"}
    assert terms.terms_of_cell(plan, "b").env == {"A": "job", "B": "job", "C": "job"}


def test_ranks_by_name_of_an_older_plan_still_count() -> None:
    plan = make_plan(nproc=1, cell_nproc={"a": 4})
    assert [terms.terms_of_cell(plan, cell).nproc for cell in ("a", "b")] == [4, 1]


def test_rules_hold_for_a_cell_that_no_plan_knows() -> None:
    plan = make_plan(rules=(Rule("seg_*", nproc=4),))
    assert plan.cells == () and terms.terms_of_cell(plan, "seg_new", NOTHING_OWN).nproc == 4


def test_cells_with_other_artifacts_are_told() -> None:
    rule = Rule("a", artifacts=(Artifact("x"), Artifact("y")))
    assert terms.other_artifacts(make_plan(rules=(rule,)), ["a", "b"]) == {
        "a": (Artifact("x"), Artifact("y"))
    }
