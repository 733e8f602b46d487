from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.project.duplicate_flags import notes_on_duplicate_flags
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.shared.files import queue_line
from boxcar.shared.files.plan import Rule

COMMAND = ("train.py", "{cfg}", "--epochs", "{epochs}", "--out={out}", "opt.lr=1", "--amp")


def notes(*lines: str, **own: Any) -> list[str]:
    parsed = queue_line.parse_queue("".join(f"{line}\n" for line in lines).encode())
    assert not parsed.bad, parsed.bad
    queue = QueueFile("q1", "box-a", "queues/q1.txt", Path("q1.txt"), parsed)
    return notes_on_duplicate_flags(make_plan(**({"command": COMMAND} | own)), [queue])


@pytest.mark.parametrize(
    ("words", "head", "other"),
    [
        ("--epochs 9", "--epochs", "--epochs {epochs}"),
        ("--epochs=9", "--epochs=", "--epochs {epochs}"),
        ("--out elsewhere", "--out", "--out={out}"),
        ("opt.lr=2", "opt.lr=", "opt.lr=1"),
        ("+opt.lr=2", "+opt.lr=", "opt.lr=1"),
        ("--amp", "--amp", "--amp"),
    ],
)
def test_an_override_beside_the_same_flag_of_the_command_is_told(
    words: str, head: str, other: str
) -> None:
    [found] = notes(f"a.yaml t 3 {words}")
    assert found.startswith(f"queues/q1.txt:1: {head} is also in the command ({other}). ")
    assert "Most scripts use the last, here the line's; if you mean it, put --" in found


def test_which_one_is_the_last_depends_on_where_more_stands() -> None:
    [found] = notes("a.yaml t 3 --lr 2", command=("train.py", "{more}", "--lr", "1"))
    assert "(--lr 1). Most scripts use the last, here the command's" in found
    [found] = notes("a.yaml t 3 --from x", resume_args=("--from", "{resume}"), resume="l.pt")
    assert "(--from {resume}). Most scripts use the last, here the command's" in found


def test_the_same_flag_twice_is_told() -> None:
    [found] = notes("a.yaml t 3 --lr 1 --lr 2")
    assert "queues/q1.txt:1: --lr is given twice, and most scripts use the" in found


@pytest.mark.parametrize(
    "words", ["-- --epochs 9", "--lr 1 -- --lr 2", "--lr 1 --wd 2", "--x -1 --y -1", "lr=1", ""]
)
def test_behind_a_double_dash_and_of_other_flags_nothing_is_told(words: str) -> None:
    assert notes(f"a.yaml t 3 {words}") == []


def test_what_a_thousand_lines_say_is_told_once() -> None:
    found = notes(*(f"a.yaml t 3 --epochs {n}" for n in range(1, 1000)))
    assert len(found) == 1 and found[0].startswith("queues/q1.txt:1 and 998 more lines: --epochs")


def test_the_command_of_a_rule_is_the_one_that_counts() -> None:
    rules = (Rule("a_*", command=("other.py", "--lr", "1")),)
    assert "--lr is also in the command" in notes("a.yaml t 3 --lr 2", rules=rules)[0]
    assert notes("a.yaml t 3 --epochs 2", rules=rules) == []
