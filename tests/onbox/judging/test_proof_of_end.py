"""Which end is proven, which is likely and marked, and which is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onbox.judging.proof_of_end import ABORTED_AT_EXIT, ENDED_BEFORE, Left, doubts, success_of

S = 1_000_000_000
KILLED = Left(
    signal="137-N",
    is_abort_at_exit=False,
    is_ended=None,
    names_last=False,
    newest_ns=100 * S,
    reported_ns=0,
    logged_ns=100 * S,
    ended_ns=101 * S,
    may_go_on=False,
    was_told_to_stop=False,
    lacks_metric=False,
)
CRASHED = replace(KILLED, signal="SEGV", logged_ns=102 * S)
PROVEN = replace(KILLED, is_ended=True, reported_ns=100 * S)
NAMED = replace(KILLED, names_last=True, logged_ns=99 * S)


@pytest.mark.parametrize("signal", ["137-N", "TERM", "HUP", "INT", "ILL", "FPE", "U9", ""])
def test_a_signal_that_somebody_sent_is_no_end_by_itself(signal: str) -> None:
    assert success_of(replace(KILLED, signal=signal)) is None


@pytest.mark.parametrize("signal", ["137-N", "TERM", "SEGV"])
@pytest.mark.parametrize("may_go_on", [False, True])
def test_a_last_epoch_that_was_reported_before_the_artifact_is_an_end(
    signal: str, may_go_on: bool
) -> None:
    found = success_of(replace(PROVEN, signal=signal, may_go_on=may_go_on))
    assert found is not None
    assert (found.warning, found.doubt) == (ENDED_BEFORE, "")


@pytest.mark.parametrize(
    "against",
    [{"newest_ns": 99 * S}, {"lacks_metric": True}, {"is_ended": False}, {"is_ended": None}],
)
def test_what_speaks_against_it_leaves_it_unproven(against: dict[str, object]) -> None:
    assert success_of(replace(PROVEN, **against)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signal", "name"), [("SEGV", "SIGSEGV"), ("ABRT", "SIGABRT"), ("BUS", "SIGBUS")]
)
def test_a_crash_right_after_the_last_write_is_a_success_that_is_marked(
    signal: str, name: str
) -> None:
    found = success_of(replace(CRASHED, signal=signal))
    assert found is not None
    assert (found.warning, found.doubt) == ("", f"{name} after its last write")


@pytest.mark.parametrize(
    "against",
    [
        {"may_go_on": True},
        {"was_told_to_stop": True},
        {"ended_ns": 106 * S},
        {"ended_ns": 90 * S},  # of another time than the attempt's
        {"reported_ns": 101 * S},
        {"lacks_metric": True},
        {"is_ended": False},
    ],
)
def test_a_crash_with_anything_against_it_is_no_end(against: dict[str, object]) -> None:
    assert success_of(replace(CRASHED, **against)) is None  # type: ignore[arg-type]


def test_a_log_that_names_the_last_epoch_before_the_artifact_is_marked() -> None:
    found = success_of(NAMED)
    assert found is not None
    assert found.doubt == "SIGKILL after its last epoch, by its log alone"


@pytest.mark.parametrize(
    "against", [{"logged_ns": 100 * S}, {"may_go_on": True}, {"was_told_to_stop": True}]
)
def test_a_log_that_lives_on_after_the_artifact_counts_against_it(
    against: dict[str, object],
) -> None:
    assert success_of(replace(NAMED, **against)) is None  # type: ignore[arg-type]


def test_torchs_own_abort_is_an_end_whatever_else_is_known() -> None:
    found = success_of(replace(CRASHED, is_abort_at_exit=True, may_go_on=True, is_ended=False))
    assert found is not None
    assert (found.warning, found.doubt) == (ABORTED_AT_EXIT, "")


@pytest.mark.parametrize(
    ("rc", "oom_kills", "other", "said"),
    [
        (0, 0, "", []),
        (0, 1, "", ["exit code 0, but a kill for memory while it ran"]),
        (0, 2, "3 of 20 epochs", ["exit code 0, but 2 kills for memory while it ran",
                                  "3 of 20 epochs"]),
        (-9, 1, "", []),  # it is what the signal was
    ],
)  # fmt: skip
def test_a_success_is_marked_by_what_was_killed_beside_it_and_by_fewer_epochs(
    rc: int, oom_kills: int, other: str, said: list[str]
) -> None:
    assert doubts(rc, oom_kills, other) == said
