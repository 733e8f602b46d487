from __future__ import annotations

import pytest

from boxcar.laptop.project import resume_words


@pytest.mark.parametrize(
    "word", ["{resume}", "--resume={resume}", "a{{{resume}", '{"a": "{resume}"}']
)
def test_where_it_may_be_empty_the_placeholder_is_refused(word: str) -> None:
    why = resume_words.misplaced("step_*.pt", ["--out", "{out}", word])
    assert "nothing matches step_*.pt" in why and "resume_args" in why


@pytest.mark.parametrize("word", ["{{resume}}", "{out}", "resume", "{{{{resume}}"])
def test_what_only_looks_like_it_is_taken(word: str) -> None:
    assert resume_words.misplaced("step_*.pt", [word]) == ""


@pytest.mark.parametrize("resume", [None, "latest.pth", "ckpt/"])
def test_a_plain_path_is_never_empty(resume: str | None) -> None:
    assert resume_words.misplaced(resume, ["{resume}"]) == ""
