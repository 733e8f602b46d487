from __future__ import annotations

from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.verbs import pull_journals as module
from boxcar.laptop.verbs.pull import FAILED, PULLED, pull_journals


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    made: FinishedRun = make_run(tmp_path)
    made.say("q1", ("agent.started", {"pid": 1, "release": "r1", "box": "box-a"}))
    return made


def test_a_journal_that_has_not_grown_is_not_copied_again(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, copy = list[str](), module.checked_copy.checked_copy
    monkeypatch.setattr(
        module.checked_copy, "checked_copy", lambda *of: (copied.append(of[2]), copy(*of))[1]
    )
    first, again = pull_journals(run.site), pull_journals(run.site)
    assert first == again and {one.word for one in again} == {PULLED}
    assert copied == [one.name for one in first] and "q1.jsonl" in copied
    run.say("q1", ("queue.done", {"verified": 0, "failed": 0}))
    pull_journals(run.site)
    here = run.project.results.journals / "q1.jsonl"
    assert copied == [*(one.name for one in first), "q1.jsonl"]
    assert here.read_bytes() == run.site.tier.journal("q1").read_bytes()


def test_one_that_is_damaged_on_the_tier_and_here_alike_has_failed(run: FinishedRun) -> None:
    pull_journals(run.site)
    for path in (run.site.tier.journal("q1"), run.project.results.journals / "q1.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"box-a", b"box-b"))
    words = {one.name: one.word for one in pull_journals(run.site)}
    assert words["q1.jsonl"] == FAILED
