from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.training.hang import diagnosis, rank_dump
from boxcar.training.hang.diagnosis import diagnose
from boxcar.training.hang.rank_dump import RankDump
from boxcar.training.hang.stacks import GRADIENTS, CodeLine

MAIN = CodeLine("/code/train.py", 50, "main", "train()")
BACKWARD = CodeLine("/code/train.py", 20, "train", "loss.backward()", loop=(15, 25))
BARRIER = CodeLine("/code/train.py", 24, "train", "dist.barrier()", loop=(15, 25))
AFTER_LOOP = CodeLine("/code/train.py", 30, "train", "dist.barrier()")
READING = CodeLine("/code/data.py", 7, "__getitem__", "return decode(path)")
UNDER_IF = CodeLine("/code/train.py", 22, "train", "save()", (15, 25), (21, "if rank == 0:"))
SAVING = CodeLine("/code/save.py", 9, "save", "dist.barrier()")


def dump(rank: int, *places: CodeLine, **facts: Any) -> RankDump:
    return replace(RankDump(rank, 2, "running", step=7, places=places), **facts)


def waits(rank: int, *places: CodeLine, collective: str = GRADIENTS, **facts: Any) -> RankDump:
    where = places or (MAIN, BACKWARD)
    return dump(rank, *where, waits="collective", collective=collective, **facts)


def left(rank: int, **facts: Any) -> RankDump:
    return dump(rank, state="left", waits="nothing", **facts)


def raised(rank: int, error: str, *, is_follower: bool = False, **facts: Any) -> RankDump:
    return waits(rank, state="raised", error=error, is_follower=is_follower, **facts)


def called(size: int, seq: int = 4, group: str = "0") -> dict[str, Any]:
    return {"collective": "all_reduce", "seq": seq, "group": group, "sizes": [[size]]}


TABLE = {
    "one is aborted, because another rank's collective has another size": (
        [
            waits(0, state="aborted", collectives=(called(3, 3), called(1))),
            waits(1, collectives=(called(3, 3), called(5))),
        ],
        ("collective-of-another-size", (0,), GRADIENTS, "train.py:20"),
        "rank 0 called all_reduce of [1], rank 1 called all_reduce of [5]: ranks 0, 1 are in",
    ),
    "the one that got less than it asked for hangs, and the others went on": (
        [
            waits(0, collectives=(called(1), called(2, 5))),
            waits(1, collectives=(called(5),)),
            waits(2, collectives=(called(1), called(2, 5))),
        ],
        ("collective-of-another-size", (1,), GRADIENTS, "train.py:20"),
        "ranks 0, 2 called all_reduce of [1], rank 1 called all_reduce of [5]",
    ),
    "another size under an if is a collective that only some ranks call": (
        [
            waits(0, MAIN, UNDER_IF, SAVING, collective="all_reduce", collectives=(called(1),)),
            waits(1, state="aborted", collectives=(called(5),)),
        ],
        ("rank-conditional-collective", (0,), "all_reduce", "save.py:9"),
        "under `if rank == 0:` at train.py:21",
    ),
    "groups count their collectives each for itself": (
        [waits(0, collectives=(called(1),)), waits(1, collectives=(called(5, group="1"),))],
        ("stuck-link", (0, 1), GRADIENTS, "train.py:20"),
        "nothing comes",
    ),
    "an abort of which no sizes are recorded": (
        [waits(0, state="aborted"), waits(1)],
        ("one-rank-aborted", (0,), GRADIENTS, "train.py:20"),
        "rank 0 was aborted in C++: rank 0 is in gradient all_reduce at train.py:20",
    ),
    "the one under an if is to blame": (
        [waits(0, MAIN, UNDER_IF, SAVING, collective="barrier"), waits(1)],
        ("rank-conditional-collective", (0,), "barrier", "save.py:9"),
        "rank 0 is in barrier at save.py:9 `dist.barrier()`, under `if rank == 0:` at train.py:21",
    ),
    "without an if the fewest are": (
        [waits(0), waits(1), waits(2, MAIN, BARRIER, collective="barrier")],
        ("rank-conditional-collective", (2,), "barrier", "train.py:24"),
        "rank 2 is in barrier at train.py:24 `dist.barrier()`, while ranks 0, 1 are in",
    ),
    "a collective under an if that the others did not enter": (
        [waits(0, MAIN, UNDER_IF, SAVING, collective="barrier"), dump(1, MAIN, READING)],
        ("rank-conditional-collective", (0,), "barrier", "save.py:9"),
        "which rank 1 did not enter: rank 1 is at data.py:7",
    ),
    "one measures and the others are patient": (
        [dump(0, MAIN, READING), waits(1, collective="broadcast", is_patient=True)],
        ("slow", (0,), "broadcast", "data.py:7"),
        "no step for 0 s: rank 0 is at data.py:7",
    ),
    "one measures and not all of the others are patient": (
        [
            dump(0, MAIN, READING),
            waits(1, collective="broadcast", is_patient=True),
            waits(2),
        ],
        ("one-rank-diverged", (0,), "broadcast", "data.py:7"),
        "rank 0 is at data.py:7",
    ),
    "the same line at different steps": (
        [waits(0), waits(1, step=8)],
        ("rank-conditional-collective", (0,), GRADIENTS, "train.py:20"),
        "at different steps (rank 0: step 7, rank 1: step 8)",
    ),
    "loaders of different length, and the shorter one has left": (
        [waits(0, loader_lengths=(10,)), left(1, loader_lengths=(9,))],
        ("uneven-loader", (1,), GRADIENTS, "train.py:20"),
        "rank 1 ran out of batches, step 7 (loaders of 9 and 10 batches) and has left",
    ),
    "loaders of different length, and the shorter one is beyond the loop": (
        [
            waits(0, loader_lengths=(10,)),
            waits(1, MAIN, AFTER_LOOP, collective="barrier", loader_lengths=(9,)),
        ],
        ("uneven-loader", (1,), GRADIENTS, "train.py:20"),
        "is beyond its loop, at train.py:30 `dist.barrier()`; rank 0 waits in gradient all_reduce",
    ),
    "without lengths, beyond the loop after as few steps": (
        [waits(0, step=8), dump(1, MAIN, AFTER_LOOP)],
        ("uneven-loader", (1,), GRADIENTS, "train.py:20"),
        "rank 1 ran out of batches, step 7 and is beyond its loop",
    ),
    "a rank beyond the loop in a collective that only some ranks enter": (
        [
            waits(0, step=8),
            waits(1, MAIN, replace(UNDER_IF, line=31, loop=None), SAVING, collective="barrier"),
        ],
        ("rank-conditional-collective", (1,), "barrier", "save.py:9"),
        "under `if rank == 0:` at train.py:21, while rank 0 is in gradient all_reduce",
    ),
    "a rank beyond the loop after an equal loader has skipped a collective": (
        [
            waits(0, loader_lengths=(10,)),
            waits(1, MAIN, AFTER_LOOP, collective="barrier", loader_lengths=(10,)),
        ],
        ("rank-conditional-collective", (0,), GRADIENTS, "train.py:20"),
        "while rank 1 is in barrier at train.py:30",
    ),
    "a rank left, its loaders as long as the others'": (
        [
            waits(0, loader_lengths=(9,)),
            left(1, loader_lengths=(9,), last_step_at=replace(BACKWARD, ways_out=(18,))),
        ],
        ("early-return", (1,), GRADIENTS, "train.py:18"),
        "rank 1 left without an error, step 7, last seen at train.py:20; its loop is left at line"
        " 18 of train.py",
    ),
    "a rank left from nobody knows where": (
        [waits(0), left(1)],
        ("early-return", (1,), GRADIENTS, "train.py:20"),
        "rank 1 left without an error, step 7; rank 0 waits in gradient all_reduce",
    ),
    "a rank that left was ahead": (
        [waits(0), left(1, step=8, last_step_at=BACKWARD)],
        ("one-rank-diverged", (1,), GRADIENTS, "train.py:20"),
        "rank 1 left, step 8, ahead of the others, and so has left out a collective before",
    ),
    "an error was on its way when the rank left": (
        [waits(0), replace(raised(1, "ValueError: bad"), state="left")],
        ("one-rank-diverged", (1,), GRADIENTS, "train.py:20"),
        "rank 1 raised ValueError: bad",
    ),
    "the other's connection was closed, because one left": (
        [raised(0, "RuntimeError: Connection closed by peer", is_follower=True), left(1)],
        ("early-return", (1,), GRADIENTS, "train.py:20"),
        "rank 0 waits in gradient all_reduce at train.py:20",
    ),
    "one's own error comes before everything": (
        [
            waits(0, loader_lengths=(10,)),
            raised(1, "ValueError: bad\nmore", loader_lengths=(9,)),
            left(2),
        ],
        ("one-rank-diverged", (1,), GRADIENTS, "train.py:20"),
        "rank 1 raised ValueError: bad at train.py:20 `loss.backward()`, step 7; rank 0 waits",
    ),
    "all raised": (
        [raised(0, "KeyError: 'lr'"), raised(1, "KeyError: 'lr'")],
        ("every-rank-raised", (0, 1), None, "train.py:20"),
        "all 2 ranks raised; rank 0 raised KeyError: 'lr'",
    ),
    "a rank wrote nothing": (
        [waits(0)],
        ("one-rank-diverged", (1,), GRADIENTS, "train.py:20"),
        "rank 1 wrote nothing in this folder",
    ),
    "a rank is busy elsewhere": (
        [waits(0), dump(1, MAIN, BACKWARD, READING)],
        ("one-rank-diverged", (1,), GRADIENTS, "data.py:7"),
        "rank 1 is at data.py:7 `return decode(path)`, step 7; rank 0 waits",
    ),
    "a rank waits for its workers": (
        [waits(0), dump(1, MAIN, BACKWARD, waits="loader")],
        ("one-rank-diverged", (1,), GRADIENTS, "train.py:20"),
        "rank 1 is in the loader at train.py:20",
    ),
    "all wait for their workers": (
        [dump(0, BACKWARD, waits="loader"), dump(1, BACKWARD, waits="loader")],
        ("stuck-loader", (0, 1), None, "train.py:20"),
        "ranks 0, 1 are in the loader at train.py:20",
    ),
    "all wait in the same collective": (
        [waits(0), waits(1)],
        ("stuck-link", (0, 1), GRADIENTS, "train.py:20"),
        "ranks 0, 1 are in gradient all_reduce at train.py:20 `loss.backward()`, step 7",
    ),
    "all compute": (
        [dump(0, READING, silent_s=600.0), dump(1, BACKWARD)],
        ("slow", (0, 1), None, "data.py:7"),
        "no step for 600 s, and no rank waits for another",
    ),
    "one waits for its workers while the other computes": (
        [dump(0, READING), dump(1, BACKWARD, waits="loader")],
        ("slow", (0, 1), None, "data.py:7"),
        "rank 1 is in the loader",
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_diagnosis(case: str) -> None:
    dumps, expected, words = TABLE[case]
    world = 2 if len(dumps) < 3 else 3
    found = diagnose(dumps, world)
    assert (found.kind, found.ranks, found.collective, found.line) == expected
    assert words in found.sentence
    assert found.advice


def test_only_what_the_same_script_would_do_again_is_not_retried() -> None:
    def code(case: str) -> int:
        dumps = TABLE[case][0]
        return diagnose(dumps, max(2, len(dumps))).exit_code

    assert code("the one under an if is to blame") == 42
    assert code("loaders of different length, and the shorter one has left") == 42
    for case in ("a rank wrote nothing", "a rank is busy elsewhere", "all wait for their workers"):
        assert code(case) == 75
    assert code("a rank left from nobody knows where") == 75
    # A rank's own error ends the others like itself, so that its own words decide.
    assert code("one's own error comes before everything") == code("all raised") == 1
    assert code("all compute") == 0


def test_the_text_has_a_line_for_each_rank_and_says_what_to_do() -> None:
    dumps = [waits(0), raised(1, "ValueError: bad")]
    text = diagnosis.report(diagnose(dumps), dumps, Path("/out/hang"))
    first, advice, *rows, last = text.splitlines()
    assert first.startswith("boxcar: one-rank-diverged: rank 1 raised ValueError: bad")
    assert "Look at that rank" in advice
    assert rows == [
        "  rank 0: step 7, waits: collective in gradient all_reduce at train.py:20"
        " `loss.backward()`",
        "  rank 1: step 7, raised in gradient all_reduce at train.py:20 `loss.backward()`"
        " (ValueError: bad)",
    ]
    assert last == "  stacks of all ranks: /out/hang/rank_*.json"


def test_where_ranks_are_on_several_nodes_these_are_named() -> None:
    dumps = [waits(0, host="n1", step=None), dump(1, MAIN, READING, host="n2", step=None)]
    text = diagnosis.report(diagnose(dumps), dumps)
    assert "rank 0 waits in gradient all_reduce" in text and text.count("; rank 1 is on n2\n") == 1
    assert [row[:17] for row in text.splitlines()[2:]] == ["  rank 0 on n1: w", "  rank 1 on n2: w"]


def test_many_ranks_are_not_all_listed() -> None:
    dumps = [waits(rank) for rank in range(63)]
    found = diagnose(dumps, world=64)
    assert found.ranks == (63,)
    assert "63 ranks (0, 1, 2, 3, ...) wait in gradient all_reduce" in found.sentence


def test_a_dump_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    before = raised(3, "ValueError: bad", loader_lengths=(9, 2), last_step_at=UNDER_IF)
    rank_dump.write(tmp_path, before)
    assert rank_dump.read_all(tmp_path) == [before]


def test_a_file_that_is_no_dump_is_said_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rank_dump.write(tmp_path, waits(0))
    (tmp_path / "rank_00001.json").write_text('{"rank": 1')
    assert [each.rank for each in rank_dump.read_all(tmp_path)] == [0]
    assert "rank_00001.json is not a rank's dump" in capsys.readouterr().err
