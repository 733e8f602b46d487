"""Against the box's real answers, each "box" with a tier of its own or the one of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.fitness.tier_check import Ask, judge_tier, probe, sharing
from boxcar.shared.errors import TemporaryError
from boxcar.shared.wire.box_asks import TierProbe, TierProbed
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import tier_check as on_box

BOXES = ("box-a", "box-b", "box-c")
Change = Callable[[str, TierProbe, TierProbed], TierProbed]


@pytest.fixture
def asked_on(tmp_path: Path) -> Callable[..., Ask]:
    """`asked_on(box_c="other")`: the others see the tier `shared`. `change` has the last word."""

    def made(change: Change | None = None, **tiers: str) -> Ask:
        def ask(box: str, question: TierProbe, **more: Any) -> TierProbed:
            folder = tmp_path / tiers.get(box.replace("-", "_"), "shared")
            folder.mkdir(exist_ok=True)
            told = on_box.answer(question, RunOnBox("tiny", str(folder), str(tmp_path)))
            return change(box, question, told) if change else told

        return cast("Ask", ask)

    return made


def refused(rows: list[Row]) -> dict[str, str]:
    return {f"{row.box} {row.what}": row.found for row in rows if row.verdict == "refuse"}


def test_one_tier_for_all_passes_and_leaves_nothing(asked_on, tmp_path):
    found = probe(asked_on(), BOXES)
    assert found.is_shared
    assert refused(judge_tier(found)) == {}
    assert [row.box for row in judge_tier(found)] == [*BOXES, "all"]
    assert list((tmp_path / "shared/boxcar").iterdir()) == []


def test_a_box_in_another_region_is_told_apart_from_the_others(asked_on):
    found = probe(asked_on(box_c="other"), BOXES)
    assert not found.is_shared
    told = refused(judge_tier(found))
    assert told["box-c tier shared"] == "does not see the files of box-a, box-b"
    assert list(told) == ["box-c tier shared"], "the others are as they should be"
    assert "region" in judge_tier(found)[2].reason
    assert sharing(found) == {"box-a", "box-b"}
    assert [row.found for row in judge_tier(found) if row.what == "claims"] == ["one of 2 won"]


def test_of_two_boxes_that_do_not_see_each_other_the_one_without_a_mount_is_refused(asked_on):
    found = probe(asked_on(box_b="other"), BOXES[:2])
    both = {
        "box-a tier shared": "does not see the files of box-b",
        "box-b tier shared": "does not see the files of box-a",
    }
    assert refused(judge_tier(found)) == both, "nobody can tell which of them is right"
    assert refused(judge_tier(found, ["box-b"])) == {
        "box-b tier shared": "does not see the files of box-a"
    }
    assert refused(judge_tier(found, ["box-a", "box-b"])) == both


def test_a_box_that_reads_other_bytes_is_refused(asked_on):
    def change(box, question, told):
        if box == "box-b" and question.step == "read":
            return TierProbed(files=told.files | {"box-a": "0" * 64})
        return told

    found = probe(asked_on(change), BOXES)
    assert not found.is_shared
    assert refused(judge_tier(found)) == {
        "box-b tier shared": "reads other content than box-a wrote"
    }


@pytest.mark.parametrize("winner", BOXES)
def test_a_claim_is_judged_alike_whoever_won_it(asked_on, winner):
    """box-b is refused because of what it reads, and the claim is as it should be."""

    def change(box, question, told):
        if question.step == "claim":
            return TierProbed(has_won=box == winner)
        if question.step == "owner":
            return TierProbed(owner=winner)
        is_wrong = box == "box-b" and question.step == "read"
        return TierProbed(files=told.files | {"box-a": "0" * 64}) if is_wrong else told

    assert list(refused(judge_tier(probe(asked_on(change), BOXES)))) == ["box-b tier shared"]


@pytest.mark.parametrize("has_won", [True, False])
def test_a_claim_with_two_winners_or_none_is_refused(asked_on, has_won):
    def change(box, question, told):
        return TierProbed(has_won=has_won) if question.step == "claim" else told

    assert "all claims" in refused(judge_tier(probe(asked_on(change), BOXES)))


def test_a_claim_whose_winner_others_read_differently_is_refused(asked_on):
    def change(box, question, told):
        is_last = question.step == "owner" and box == "box-c"
        return TierProbed(owner=None) if is_last else told

    assert "all claims" in refused(judge_tier(probe(asked_on(change), BOXES)))


def test_a_box_that_falls_silent_is_refused_and_the_probe_is_cleaned_up(asked_on, tmp_path):
    def change(box, question, told):
        if box == "box-b" and question.step in ("read", "clean"):
            raise TemporaryError("box-b: the link is down")
        return told

    found = probe(asked_on(change), BOXES)
    assert not found.is_shared
    told = next(row for row in judge_tier(found) if row.box == "box-b")
    assert (told.verdict, told.reason) == ("refuse", "box-b: the link is down")
    assert list((tmp_path / "shared/boxcar").iterdir()) == []
