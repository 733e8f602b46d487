from __future__ import annotations

import pytest

from boxcar.laptop.tryout.code_copy import Written
from boxcar.laptop.tryout.outcome import FAILED, PASSED, Outcome, try_fault, try_note


def test_a_declared_file_beside_the_code_is_no_pass_and_says_the_way_out() -> None:
    written = Written(("best.pt",), (), (("best.pt", "runs/best.pt"),))
    why = try_fault(written, [], is_in_out=False, has_left_anything=True)
    assert why == (
        "your script wrote ./runs/best.pt beside its code, not into {out}: "
        "set workdir: out in job.yaml"
    )
    assert "write it into {out}" in try_fault(written, [], is_in_out=True, has_left_anything=True)


@pytest.mark.parametrize("word", ["runs", "./runs/", "--out=runs"])
def test_a_word_of_the_command_that_is_that_folder_is_what_to_replace(word: str) -> None:
    written = Written(("best.pt",), (), (("best.pt", "runs/best.pt"),))
    command = ["train.py", word]
    why = try_fault(written, command, is_in_out=False, has_left_anything=True)
    assert why.endswith(f"in command, write {{out}} in place of {word.removeprefix('--out=')}")


def test_what_else_lies_there_is_a_pass_that_says_so() -> None:
    assert try_fault(Written(("wandb/",)), [], is_in_out=False, has_left_anything=True) == ""
    item = Outcome("a", PASSED, lacks=("*",), beside=("wandb/", "data/"), wrote=("saved/m.pth",))
    assert (
        try_note(item) == "did not write *; but wrote saved/m.pth; "
        "wrote wandb/, data/ beside its code"
    )


def test_who_edits_his_own_code_fails_here_as_on_a_box() -> None:
    why = try_fault(Written((), ("train.py",)), [], is_in_out=False, has_left_anything=True)
    assert why == "it changed train.py of its own code, which a box refuses (CODE)"


def test_who_leaves_nothing_at_all_has_not_passed() -> None:
    why = try_fault(Written(), [], is_in_out=False, has_left_anything=False)
    assert why == "it exited with 0, but left no file in {out} and no line in its log"


def test_of_a_failure_only_the_reason_and_its_like_are_noted() -> None:
    item = Outcome("b", FAILED, "exit code 1", lacks=("m.json",), beside=("x",), like="a")
    assert try_note(item) == "exit code 1; the same as a"
