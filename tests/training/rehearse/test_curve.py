from __future__ import annotations

from typing import Any

from boxcar.training.rehearse.curve import Curve, Parting, compare_curves


def lines(steps: range, **changes: Any) -> list[dict[str, Any]]:
    return [{"step": step, "loss": 1.0 / step, "at": f"{step} o'clock"} | changes for step in steps]


WHOLE = lines(range(1, 11))


def test_what_a_kill_repeats_and_swallows_is_no_difference() -> None:
    starts = [lines(range(1, 6)), lines(range(4, 11))]
    assert compare_curves(WHOLE, starts, 0.0) == Curve(lines=12)
    swallowed = [lines(range(1, 4)), lines(range(6, 11))]
    assert compare_curves(WHOLE, swallowed, 0.0).missing == ()


def test_a_kill_between_the_last_save_and_its_report_swallows_that_step_alone() -> None:
    assert compare_curves(WHOLE, [lines(range(1, 10)), []], 0.0).missing == ()
    assert compare_curves(WHOLE, [lines(range(1, 8)), []], 0.0).missing == (9, 10)
    assert compare_curves(WHOLE, [lines(range(1, 10)), [], []], 0.0).missing == ()
    assert compare_curves(WHOLE[1:], [[], []], 0.0).missing == tuple(range(2, 11))


def test_the_first_step_that_differs_is_named_with_its_start() -> None:
    resumed = lines(range(6, 8)) + lines(range(8, 11), loss=0.5)
    curve = compare_curves(WHOLE, [lines(range(1, 8)), resumed], 1e-6)
    assert curve.first == Parting(8, 1, "loss", 0.125, 0.5)


def test_a_difference_within_the_tolerance_is_measured() -> None:
    off = [line | {"loss": line["loss"] * (1 + 1e-8)} for line in WHOLE]
    curve = compare_curves(WHOLE, [off], 1e-6)
    assert curve.first is None
    assert 0 < curve.largest < 1e-7


def test_a_step_may_be_reported_twice_and_a_kill_may_take_the_second() -> None:
    both = [*WHOLE, {"step": 10, "loss": 0.3, "accuracy": 0.9}]
    assert compare_curves(both, [lines(range(1, 11)), both[9:]], 0.0).first is None
    wrong = [{"step": 10, "loss": 0.3, "accuracy": 0.8}]
    parting = compare_curves(both, [WHOLE, wrong], 0.0).first
    assert parting and (parting.name, parting.killed) == ("accuracy", 0.8)


def test_steps_that_only_one_run_took_are_named() -> None:
    assert compare_curves(WHOLE, [WHOLE[:6]], 0.0).missing == (7, 8, 9, 10)
    assert compare_curves(WHOLE, [WHOLE, lines(range(9, 13))], 0.0).surplus == (11, 12)


def test_a_loss_that_became_nan_is_written_as_null_and_differs() -> None:
    nan = [{"step": 1, "loss": None, "nonfinite": ["loss"]}]
    parting = compare_curves(WHOLE, [nan], 1e-6).first
    assert parting and (parting.step, parting.start, parting.killed) == (1, 0, None)
    assert compare_curves(nan, [nan], 1e-6).first is None
