from __future__ import annotations

import pytest

from boxcar.laptop.triage import advice
from boxcar.shared.triage.evidence import Course, Quote, course_of, quotes_of
from boxcar.shared.triage.signatures.all_rows import SIGNATURES


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row.id)
def test_each_row_says_what_to_do_and_what_to_type_in_both_languages(row) -> None:
    found = advice.advice_of(row.id, cell="a")
    assert found.todo is not None
    assert all(found.todo.said(one) and found.words.said(one) for one in ("en", "zh"))
    assert found.types.verb and "{" not in str(found.types)
    assert found.link == f"docs/failures.md#{row.id}"


def test_memory_has_a_ladder_that_changes_the_experiment_last() -> None:
    ladder = advice.advice_of("M2").ladder
    assert "expandable_segments" in ladder[0]
    assert "change the experiment" in ladder[-1]


def test_an_error_of_the_scripts_own_and_an_unknown_id_are_told_too() -> None:
    assert advice.advice_of("EXIT1").link.endswith("#PY")
    assert "exit code 42" in advice.advice_of("EXIT42").words
    assert advice.advice_of("OF-A-NEWER-BOXCAR").course is None
    assert list(advice.verdict_lines(advice.advice_of("OF-A-NEWER-BOXCAR"), ())) == []
    assert next(
        advice.verdict_lines(advice.advice_of("OF-A-NEWER-BOXCAR", Course.ASK), ())
    ).startswith("ASK")


def test_the_evidence_is_told_with_its_place() -> None:
    lines = list(
        advice.verdict_lines(
            advice.advice_of("M2"), [Quote(812, "CUDA out of memory"), Quote(0, "NVML")]
        )
    )
    assert "  line 812 of the log: CUDA out of memory" in lines
    assert "  NVML" in lines


@pytest.mark.parametrize("value", [None, 7, "x", [7, {"line": "a"}, {"text": "b"}], {}])
def test_a_journal_that_says_something_else_says_nothing(value) -> None:
    assert (course_of("x"), course_of(None), quotes_of(value)) == (None, None, ())
    assert quotes_of([{"line": 3, "text": "a"}]) == (Quote(3, "a"),)
