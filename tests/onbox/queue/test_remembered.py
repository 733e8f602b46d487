from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from plans import make_plan

from boxcar.shared import state
from boxcar.shared.cell import cell_line
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Artifact, Metric, Rule
from boxcar.shared.files.release import Code, Release
from boxcar.shared.state import (
    CellRecord,
    CellState,
    Claimed,
    Failed,
    Preempted,
    Queued,
    Running,
    Waiting,
)
from onbox.queue import acceptance, resaid
from onbox.queue.reporter import Remembered
from onbox.queue.resaid import FAILURE, Standing, sentence, standing

AT = "2026-11-22T10:00:00.000Z"


def events(*said: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(seq, f"evt_{seq}", AT, type, data) for seq, (type, data) in enumerate(said, 1)]


def life(cell: str) -> list[tuple[str, dict[str, Any]]]:
    one: dict[str, Any] = {"cell": cell, "attempt": 1}
    made = {"manifest_sha256": "a" * 64}
    return [
        ("cell.claimed", {"cell": cell}),
        ("cell.started", one | {"cfg": f"{cell}.yaml", "task": "t", "epochs": 3, "release": "r1"}),
        ("cell.progress", one | {"progress": {"step": 3}}),
        ("cell.retried", one | {"failure": "OOM", "reason": "full", "wait_s": 1}),
        ("cell.succeeded", one | {"seconds": 5.0}),
        ("cell.synced", one | made | {"size_bytes": len(cell) * 10}),
        ("cell.verified", one | made | {"metrics": {"psnr": 31.5}}),
    ]


AGENT = ("agent.started", {"pid": 7, "release": "r1", "box": "b", "start_index": 0})
ALL = [
    AGENT,
    *life("a"),
    ("box.warning", {"what": "left_out", "text": "x", "cell": "a"}),
    *life("bb"),
    AGENT,
    ("cell.started", {"cell": "c", "attempt": 1, "cfg": "c", "task": "t", "epochs": 1}),
    ("queue.done", {"verified": 2}),
]


def replayed(events: Sequence[Event]) -> state.State:
    """With what the agent keeps of a verified cell."""
    replay = state.Replay()
    for event in events:
        replay.take(event)
        replay.shorten(event.cell or "")
    return replay.state()


def test_after_every_event_its_state_is_that_of_a_replay():
    kept = Remembered(())
    for count, event in enumerate(whole := events(*ALL), 1):
        kept.take(event)
        assert kept.state() == replayed(whole[:count])
        words = {cell: record.state.word for cell, record in kept.state().cells.items()}
        full = state.replay(whole[:count]).cells
        assert words == {cell: record.state.word for cell, record in full.items()}
        assert [r.attempts for r in kept.state().cells.values()] == [
            r.attempts for r in full.values()
        ]
    assert Remembered(whole).state() == kept.state()


def test_a_state_that_was_asked_for_stays_as_it_was():
    whole = events(*ALL)
    kept = Remembered(whole[:3])
    before = kept.state()
    for event in whole[3:]:
        kept.take(event)
    assert before == replayed(whole[:3])


def test_of_each_kind_the_newest_about_a_cell_is_known():
    kept = Remembered(events(*ALL, ("cell.started", life("a")[1][1] | {"attempt": 2})))
    assert kept.newest["cell.started"]["a"].data["attempt"] == 2
    assert "bb" not in kept.newest["cell.succeeded"], "it is verified"
    assert kept.begun["a"].data["attempt"] == 2
    assert kept.started_from == {("r1", 0): "a"}
    assert kept.largest_result_bytes == 20
    assert kept.was_warned("left_out", "a")
    assert not kept.was_warned("left_out", "bb")


def test_of_a_verified_cell_so_few_bytes_are_kept_that_a_long_queue_is_no_matter():
    cells = [f"cell_{number:04}" for number in range(100)]
    kept = Remembered(events(*itertools.chain.from_iterable(map(life, cells))))
    records = kept.state().cells
    assert len({id(records[cell]) for cell in cells}) == 1
    assert sum(len(kept.begun.packed(cell)) for cell in cells) < 5_000
    assert all(kept.begun.packed(c) is kept.newest["cell.started"].packed(c) for c in cells)
    assert [kept.begun[cell].data["cfg"] for cell in cells] == [f"{cell}.yaml" for cell in cells]
    assert "cell.synced" not in kept.newest


def test_where_results_are_copied_what_was_synced_is_known():
    kept = Remembered(events(*ALL), is_copied=True)
    assert set(kept.newest["cell.synced"]) == {"a", "bb"}


def test_a_lent_result_says_how_its_cell_was_begun():
    lent = ("cell.verified", {"cell": "a", "attempt": 1, "manifest_sha256": "b", "cfg": "a.yaml"})
    assert Remembered(events(lent)).begun["a"].type == "cell.verified"


def test_an_event_that_lacks_what_its_type_must_say_is_damage():
    with pytest.raises(DamagedError, match="lacks 'attempt'"):
        Remembered(events(("cell.succeeded", {"cell": "a"})))


def test_an_event_costs_the_same_after_many_as_after_few():
    def calls_of_one_more(count: int) -> int:
        said = itertools.chain.from_iterable(life(f"c{number}") for number in range(count + 1))
        *before, last = events(*said)
        kept = Remembered(before)
        kept.state()
        return _calls(lambda: (kept.take(last), kept.state(), kept.newest["cell.started"]["c0"]))

    assert calls_of_one_more(200) == calls_of_one_more(2)


def _calls(act: Callable[[], object]) -> int:
    count = 0

    def hook(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


# --- said anew


LINE = cell_line.parse(b"a.yaml t 3 name=a lr=1", 0, 1)


def claim(saying: str | None = "one", moved_from: str | None = None) -> Claim:
    return Claim("a", "q1", "box-a", AT, moved_from, saying)


def started(saying: str | None = None, text: str = "a.yaml t 3 name=a lr=1") -> Event:
    line = cell_line.parse(text.encode(), 0, 1)
    data = {"cell": "a", "cfg": line.cfg, "epochs": line.epochs, "saying": saying}
    kept = {
        key: value
        for key, value in (data | cell_line.begun_fields(line)).items()
        if value is not None
    }
    return Event(1, "evt_1", AT, "cell.started", kept)


def failed(failure: str) -> CellState:
    return Failed(1, AT, failure, "", "rel", is_final=False)


def found(now: str | None, state: CellState, attempts: int = 1, **claimed: Any) -> Standing:
    return standing(now, claim(**claimed), CellRecord(state, attempts=attempts), None)


BROKEN_OFF = [Running(1, AT), Preempted(1, AT), Waiting(1, AT, "OOM", awaits_room=False)]


@pytest.mark.parametrize("state", [*BROKEN_OFF, failed("E"), failed(FAILURE), Queued()])
def test_the_same_saying_goes_on(state):
    assert found("one", state) is Standing.AS_BEGUN


@pytest.mark.parametrize("state", [*BROKEN_OFF, failed("E")])
def test_where_nobody_knows_one_of_the_two_it_is_taken(state):
    assert found(None, state) is Standing.AS_BEGUN
    assert found("two", state, saying=None) is Standing.AS_BEGUN
    assert standing("two", None, CellRecord(), None) is Standing.AS_BEGUN


@pytest.mark.parametrize("state", BROKEN_OFF)
def test_what_was_broken_off_is_not_gone_on_with_under_another(state):
    assert found("two", state) is Standing.OTHERWISE


def test_what_failed_for_good_begins_anew():
    assert found("two", failed("E")) is Standing.ANEW


def test_what_was_refused_stays_refused_until_its_line_is_as_it_was():
    assert found("two", failed(FAILURE)) is Standing.OTHERWISE


def test_what_was_only_claimed_begins_as_its_line_says_now():
    assert found("two", Claimed(AT), attempts=0) is Standing.ANEW


def test_what_was_moved_here_was_begun_elsewhere():
    assert found("two", Claimed(AT), attempts=0, moved_from="q2") is Standing.OTHERWISE


def test_where_an_older_claim_says_nothing_its_last_start_speaks():
    record = CellRecord(Preempted(1, AT), attempts=1)
    assert standing("two", claim(None), record, started("one")) is Standing.OTHERWISE
    assert standing("one", claim(None), record, started("one")) is Standing.AS_BEGUN
    assert standing("two", claim(None), record, started()) is Standing.AS_BEGUN


def test_the_sentence_says_as_what_it_was_begun():
    other = started(text="a.yaml t 3 name=a lr=2")
    assert sentence(LINE, other) == "a was begun as 'a.yaml t 3 name=a lr=2'"


def test_the_same_line_with_another_config_says_so():
    assert sentence(LINE, started()) == "a was begun with another text of a.yaml"


def test_epochs_that_a_line_leaves_to_the_job_are_no_other_line():
    bare = cell_line.parse(b"a.yaml t name=a lr=1", 0, 1)
    assert sentence(bare, started()) == "a was begun with another text of a.yaml"


def test_without_a_start_here_there_is_less_to_say():
    assert sentence(LINE, None) == "a was begun as another line"
    assert resaid.FAILURE == "SAID-OTHERWISE"


# --- put right


WRONG = (Artifact("m.json"), Artifact("ema.json"))
RIGHT = {"artifacts": (Artifact("m.json", ("step",)),)}
CELLS: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
OTHER = "# other code\n"


@pytest.fixture
def failed_with(make_run: Any) -> Any:
    run = make_run(CELLS, artifacts=WRONG)
    assert run.finish() != 0
    assert run.events("cell.failed", cell="a")[0].data["failure"] == "NO-ART"
    return run


def tries(run: Any) -> int:
    return int(run.life("a").count("started"))


def relaunch(run: Any, archives: Any, cells: Any = CELLS, *, more: str = "", **plan: Any) -> int:
    train = (run.release / "code/train.py").read_text() + more
    run.release = run.push(archives, cells, train=train, **plan)
    return int(run.finish())


def test_what_it_left_is_taken_and_nothing_is_trained_again(failed_with, archives):
    assert relaunch(failed_with, archives, **RIGHT) == 0
    assert tries(failed_with) == 1 and failed_with.state("a") == "verified"
    made = manifest.read_manifest(failed_with.durable.manifest("a"))
    assert made.attempt == 1 and made.release != failed_with.release.name
    assert "judged anew" in made.warnings[0]
    [said] = failed_with.events("cell.succeeded", cell="a")
    assert said.data["judged_by"] == failed_with.release.name


def test_of_the_corrected_job_other_metrics_and_loads_do_not_count(failed_with, archives):
    other = {"artifacts": (Artifact("m.json", load="bytes"),)}
    assert relaunch(failed_with, archives, **other, metrics=(Metric("m", "log", r"m (\S+)"),)) == 0
    assert tries(failed_with) == 1


@pytest.mark.parametrize("other", [{"more": OTHER}, {"cells": {"a": {"steps": 2}, "b": {}}}])
def test_where_code_or_config_differ_it_is_trained_again(failed_with, archives, other):
    relaunch(failed_with, archives, **{**RIGHT, **other})
    assert tries(failed_with) == 2
    assert all(
        "judged_by" not in one.data for one in failed_with.events("cell.succeeded", cell="a")
    )


@pytest.mark.parametrize(
    ("other", "is_alike"),
    [
        (RIGHT | {"metrics": (Metric("m", "log", r"m (\S+)"),)}, True),
        ({"rules": (Rule("b", env={"N": "2"}),)}, True),
        ({"rules": (Rule("a", env={"N": "2"}),)}, False),
        ({"job_env": {"N": "2"}}, False),
        ({"command": ("train.py", "{cfg}", "{out}", "--x")}, False),
        ({"secrets": ("TOKEN",)}, False),
        ({"resume": "other.json"}, False),
        ({"training_python": "/other/python"}, False),
    ],
)
def test_only_where_the_same_is_run_it_may_be_put_right(other, is_alike):
    plan = make_plan(artifacts=WRONG)
    assert acceptance.is_alike(plan, replace(plan, **other), LINE) is is_alike


def test_what_still_lacks_an_artifact_is_trained_again(failed_with, archives):
    assert (
        relaunch(failed_with, archives, artifacts=(Artifact("m.json"), Artifact("more.json"))) != 0
    )
    assert tries(failed_with) == 2 and failed_with.state("a") == "failed"


def test_a_job_that_names_the_same_ones_takes_nothing_that_was_put_there(failed_with, archives):
    (failed_with.out("a") / "ema.json").write_text("{}")
    relaunch(failed_with, archives, artifacts=WRONG)
    assert tries(failed_with) == 2


def test_an_attempt_whose_record_is_lost_is_trained_again(failed_with, archives):
    failed_with.scratch().done("a", 1).unlink()
    assert relaunch(failed_with, archives, **RIGHT) == 0
    assert tries(failed_with) == 2


def test_job_and_queue_that_travel_with_the_code_are_none_of_it():
    plan = make_plan(queues={"q1": "box-a"})
    files = (
        "code/train.py",
        "code/job.yaml",
        "code/queues/q1.txt",
        "code/sub/job.yaml",
        "plan.json",
    )
    found = Release("r", "", "", Code(None, False), tuple(FileRecord(f, 1, "0") for f in files))
    assert [file.path for file in acceptance.code_of(found, plan)] == ["train.py", "sub/job.yaml"]
