from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared.files.attempt import Done
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.judging import judgement
from onbox.judging.judgement import Looked
from onbox.judging.verdict import Action
from onbox.machine.place import Place

CHANGED = Looked(("train.py",))
AT = "2026-11-21T03:27:43.973Z"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    scratch, durable = ScratchPaths(tmp_path / "box", "r"), DurablePaths(tmp_path / "tier", "r")
    scratch.root.mkdir(parents=True)
    found: Any = SimpleNamespace(scratch=scratch, durable=durable, plan=make_plan())
    return cast(Place, found)


def test_an_attempt_without_a_record_is_never_failed_for_changed_code(place: Place) -> None:
    verdict = judgement.of_attempt(place, "a", None, None, CHANGED)
    assert (verdict.action, verdict.failure) == (Action.RETRY, "GONE")


def test_one_that_ended_is(place: Place) -> None:
    done = Done("a", 1, 0, AT, AT, 1.0, 0, False, "r")
    assert judgement.of_attempt(place, "a", done, 0, CHANGED).failure == "CODE"
