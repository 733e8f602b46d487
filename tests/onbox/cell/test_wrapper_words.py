from __future__ import annotations

from boxcar.shared.cell.said import SaidCell
from onbox.cell.wrapper_words import of_attempt

SAID = SaidCell(
    words=("train.py", "--", "a=b", ""),
    env={"A": "x y", "B": "", "C": "--"},
    launcher="python",
    nproc=None,
    time_s=90,
    workdir="/code",
    resume="/out/last.pt",
)


def test_all_that_the_wrapper_needs_comes_in_its_order() -> None:
    assert of_attempt("box-a", "c", 2, SAID, 4) == [
        *("box-a", "c", "2", "python", "4", "90", "/code", "/out/last.pt"),
        *("A=x y", "B=", "C=--", "--", "train.py", "--", "a=b", ""),
    ]


def test_what_is_not_there_has_its_place_too() -> None:
    bare = SaidCell(("t.py",), {}, "torchrun", None, None, "/code")
    assert of_attempt("b", "c", 1, bare, 1) == [
        *("b", "c", "1", "torchrun", "1", "0", "/code", "", "--", "t.py")
    ]
