"""Last lines that no row knows are named by what they are about; nothing else is named by them."""

from __future__ import annotations

import pytest

from boxcar.shared.triage.evidence import Course, Evidence
from boxcar.shared.triage.judge import judge


@pytest.mark.parametrize(
    ("said", "id"),
    [
        ("trainer: ran into OOM in step 7", "M2"),
        ("ERROR you do not have enough GPU memory available", "M2"),
        ("luajit: not enough memory", "HOSTMEM"),
        ("the volume is full", "DISK"),
        ("error --resume checkpoint doesn't exist", "C17"),
        ("the loader has no training samples", "NODATA"),
        ("could not decode this image", "BADFILE"),
        ("invalid learning rate setting", "U27"),
        ("please set --data to a folder", "U27"),
        ("fatal: failed to compile the kernels", "MOD"),
        ("failed to download the weights of the encoder", "NET"),
    ],
)
def test_a_last_line_is_named_by_what_it_is_about(said: str, id: str) -> None:
    assert judge(Evidence(f"epoch 1 step 2 loss 0.3\n{said}\n", rcs=frozenset({1}))).id == id


def test_an_exception_of_the_scripts_own_outranks_what_a_line_is_about() -> None:
    trace = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\n'
    log = f"failed to download the weights of the encoder\n{trace}mine.Stopped: that was all\n"
    assert judge(Evidence(log, rcs=frozenset({1}))).course is Course.FIX_CODE


def test_what_was_said_long_before_the_end_tells_nothing() -> None:
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    later = "".join(f"a line that tells of {a} and {b}\n" for a in words for b in words[:2])
    log = f"failed to download the weights of the encoder\n{later}"
    assert judge(Evidence(log, rcs=frozenset({1}))).id == "SAID"
