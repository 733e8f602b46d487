"""What planted defects in a real training do not show; test_planted.py has those."""

from __future__ import annotations

from typing import Any

from boxcar.training.rehearse import verdict
from boxcar.training.rehearse.compare import Compared, Difference, compare
from boxcar.training.rehearse.curve import Curve, Order, Parting
from boxcar.training.rehearse.verdict import Evidence, Killed, decide

STATE = {
    "model": {"w": 1.0},
    "optimizer": {"state": {"0": {"momentum_buffer": 1.0}}, "param_groups": [{"lr": 0.1}]},
    "scheduler": {"last_epoch": 24},
    "scaler": {"scale": 65536.0, "_growth_tracker": 24},
    "rng": [1, 2],
}
KILL = Killed(15, True, 13)


def changed(**parts: Any) -> Compared:
    return compare(STATE, STATE | parts, 1e-6)


def evidence(file: Compared | None = None, **facts: Any) -> Evidence:
    known: dict[str, Any] = {
        "files": {"latest.pth": file or changed()},
        "curve": Curve(lines=24),
        "order": None,
        "kills": (KILL,),
        "resume": "latest.pth",
    }
    return Evidence(**(known | facts))


def states(given: Evidence) -> list[str]:
    found = decide(given)
    assert found.word == verdict.DIFFERS
    return [suspect.state for suspect in found.suspects]


def test_all_equal_is_bit_equal_and_nearly_equal_is_within() -> None:
    assert decide(evidence()).word == verdict.BIT_EQUAL
    off = evidence(changed(model={"w": 1.0 + 1e-9}))
    assert decide(off).word == verdict.WITHIN
    assert decide(evidence(curve=Curve(lines=24, largest=1e-9))).word == verdict.WITHIN


def test_runs_that_part_before_the_kill_are_not_repeatable_and_blame_no_resume() -> None:
    early = Curve(24, Parting(3, 0, "loss", 1.0, 1.1))
    found = decide(evidence(changed(model={"w": 2.0}), curve=early))
    assert found.suspects == () and "not reproducible" in found.notes[0]
    found = decide(evidence(order=Order(24, "rank-0 drew other samples in epoch 0, batch 1", 0)))
    assert found.suspects == () and "epoch 0, batch 1" in found.notes[0]


def test_equal_results_prove_nothing_where_nothing_was_resumed() -> None:
    for kill in (Killed(3, False, 1), Killed(15, True, 1, is_restarted=True)):
        found = decide(evidence(kills=(kill,)))
        assert found.word == verdict.NOT_PROVEN
    assert decide(evidence(files={})).word == verdict.NOT_PROVEN


def test_a_script_that_never_saves_is_told_so() -> None:
    found = decide(evidence(files={}, kills=(Killed(3, False, 1),)))
    assert "nothing was saved before the kill" in found.notes[0]
    assert "never saves it" in found.notes[0]


def test_a_cell_that_began_anew_and_differs_says_why() -> None:
    given = evidence(changed(model={"w": 2.0}), kills=(Killed(3, False, 1),))
    assert states(given) == [verdict.EVERYTHING]


def test_a_scaler_that_began_anew_is_named() -> None:
    assert states(evidence(changed(scaler={"scale": 65536.0, "_growth_tracker": 12}))) == ["scaler"]


def test_what_shows_only_in_what_follows_of_it_is_not_guessed() -> None:
    later = Curve(24, Parting(14, 1, "loss", 1.0, 1.1))
    assert states(evidence(changed(model={"w": 2.0}, rng=[1, 1]), curve=later)) == []


def test_two_counts_that_are_behind_are_both_named() -> None:
    file = changed(model={"w": 2.0}, scheduler={"last_epoch": 12}, scaler={"_growth_tracker": 3})
    later = Curve(24, Parting(14, 1, "loss", 1.0, 1.1))
    assert states(evidence(file, curve=later)) == ["scheduler", "scaler"]


def test_what_differs_while_no_step_does_is_named() -> None:
    assert states(evidence(changed(rng=[1, 3]))) == ["rng"]


def test_rng_that_drifted_with_the_data_is_not_blamed() -> None:
    file = changed(model={"w": 2.0}, rng=[1, 1])
    problem = Order(24, "rank-0 resumed at epoch 0, batch 0", 1)
    later = Curve(24, Parting(13, 1, "loss", 1.0, 1.1))
    assert states(evidence(file, order=problem, curve=later)) == ["loader position"]
    surplus = Curve(24, Parting(13, 1, "loss", 1.0, 1.1), surplus=(25, 26))
    assert states(evidence(file, curve=surplus)) == ["loader position"]


def test_an_artifact_that_differs_alone_is_a_difference() -> None:
    files = {"latest.pth": changed(), "metrics.json": compare({"acc": 1}, {"acc": 2}, 1e-6)}
    assert decide(evidence(files=files)).word == verdict.DIFFERS
    gone = Compared(1, (Difference("(the whole)", "other", "dict of 1", "(not there)"),))
    assert decide(evidence(files={"latest.pth": gone})).word == verdict.DIFFERS
