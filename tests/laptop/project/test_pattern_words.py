from __future__ import annotations

import pytest

from boxcar.laptop.project import job_values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{name}.pt", "takes no placeholder"),
        ("{out}/step_*.pt", "takes no placeholder"),
        ("checkpoints/**/step_*.pt", "matches within one name;"),
        ("step_[0-9]*.pt", "only . and . are wildcards"),
    ],
)
def test_what_nothing_can_match_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        job_values.refuse_odd_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "latest.pth",
        "step[1].pth",
        "checkpoints/step_*.pt",
        "checkpoint-*/",
        "ckpt/",
        "epoch=?.ckpt",
    ],
)
def test_a_path_and_a_pattern_are_taken(text: str) -> None:
    job_values.refuse_odd_pattern(text)


@pytest.mark.parametrize(
    "word", ["{resume}", "--resume={resume}", "a{{{resume}", '{"a": "{resume}"}']
)
def test_where_it_may_be_empty_the_placeholder_is_refused(word: str) -> None:
    why = job_values.misplaced_pattern("step_*.pt", ["--out", "{out}", word])
    assert "until a file matches step_*.pt." in why and "resume_args" in why


@pytest.mark.parametrize("word", ["{{resume}}", "{out}", "resume", "{{{{resume}}"])
def test_what_only_looks_like_it_is_taken(word: str) -> None:
    assert job_values.misplaced_pattern("step_*.pt", [word]) == ""


@pytest.mark.parametrize("resume", [None, "latest.pth", "ckpt/"])
def test_a_plain_path_is_never_empty(resume: str | None) -> None:
    assert job_values.misplaced_pattern(resume, ["{resume}"]) == ""
