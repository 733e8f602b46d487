from __future__ import annotations

import pytest

from boxcar.shared.artifacts import resume_match


@pytest.mark.parametrize(
    ("resume", "name"),
    [
        ("checkpoints/step_*.pt", "checkpoints/step_1.pt"),
        ("checkpoint-*/", "checkpoint-5"),
        ("runs/?/last*", "runs/a/last.ckpt"),
        ("latest.pth", "latest.pth"),
        ("ckpt/", "ckpt"),
        ("*[1].pt", "step[1].pt"),
        ("检查点_*.pt", "检查点_7.pt"),
        (".un*", ".unfinished"),
        ("*.tmp", "step_1.tmp"),
        ("tmp_*/", "tmp_1"),
        ("*/", "attempt-3"),
        ("*.pt", "party-1.part2.pt"),
    ],
)
def test_a_name_is_matched_part_by_part(resume: str, name: str):
    assert resume_match.matches(resume, name)


@pytest.mark.parametrize(
    ("resume", "name"),
    [
        ("checkpoints/step_*.pt", "step_1.pt"),
        ("*.pt", "checkpoints/step_1.pt"),
        ("step_?.pt", "step_10.pt"),
        ("step_*.pt", "step_1.pt.tmp"),
        ("*[1].pt", "step1.pt"),
        ("*", ".unfinished"),
        ("*.p.", "step.pt"),
        # Of a killed save: orbax 0.12 and 0.5, transformers 4.38, and as people write them.
        ("*/", "300.orbax-checkpoint-tmp"),
        ("*/", "300.orbax-checkpoint-tmp-1700000000"),
        ("*checkpoint-*/", "tmp-checkpoint-500"),
        ("step_*", "step_1.pt.tmp"),
        ("step_*", "step_1.pt.part"),
        ("step_*", "step_1.unfinished"),
        ("step_*.pt", "step_1_tmp.pt"),
        ("runs/*/last.pt", "runs/tmp/last.pt"),
        ("latest.pth", "latest_pth"),
    ],
)
def test_what_only_looks_alike_is_no_match(resume: str, name: str):
    assert not resume_match.matches(resume, name)


def test_numbers_of_a_name_are_compared_as_numbers():
    assert resume_match.numbers("epoch=10-step=5") > resume_match.numbers("epoch=9-step=700")
    assert resume_match.numbers("last-v1.ckpt") > resume_match.numbers("last.ckpt")
