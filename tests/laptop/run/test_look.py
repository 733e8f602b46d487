from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from run_on_disk import (
    RELEASE,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
    queue_done,
)
from waiting import LIMIT_S

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.run.condition import condition_of, may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import QueueView
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, control, heartbeat
from boxcar.shared.files.control import Control
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.journal import Journal, JournalEnd
from boxcar.shared.state import Session, State


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_run(tmp_path)


def test_a_run_that_was_never_launched_is_not_started(run):
    view = run.look()
    assert [queue.condition.word for queue in view.queues] == ["not started"] * 2
    assert [cell.word for cell in view.cells] == ["queued"] * 3
    assert not any(may_run(queue) for queue in view.queues)


def test_a_line_that_was_appended_on_the_tier_is_a_cell_of_the_roster(run):
    with run.site.tier.queue("queue_2").open("a") as file:
        file.write("configs/late.yaml det\n")
    late = run.look().cells[-1]
    assert (late.name, late.queue, late.box, late.task, late.epochs) == (
        "late", "queue_2", "box-b", "det", 9,
    )  # fmt: skip


def test_a_queue_whose_lock_is_held_is_running(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.site.tier.lock("queue_1")):
        found = run.condition("queue_1")
        assert found.word == "running"
        assert "a" in found.sentence


def test_an_agent_that_was_killed_is_dead(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")) as agent:
        agent.kill()
        agent.wait(LIMIT_S)
        found = run.condition("queue_1")
    assert found.word == "agent dead"
    assert "while a was running" in found.sentence


def test_an_agent_that_waits_for_lines_is_idle(run):
    run.say("queue_2", agent_started(), cell_started("c"), cell_verified("c"))
    run.beat("queue_2", from_now(0), phase="idle")
    with held(run.site.tier.lock("queue_2")):
        assert run.condition("queue_2").word == "idle"


def test_an_agent_that_starts_or_says_its_last_words_is_running(run):
    with held(run.site.tier.lock("queue_2")):
        assert run.condition("queue_2", in_s=600).word == "running"
        run.say("queue_2", agent_started(), queue_done())
        run.beat("queue_2", from_now(0))
        assert run.condition("queue_2", in_s=600).word == "running"


@pytest.mark.parametrize(
    ("last_words", "word"),
    [
        ([queue_done(), ("agent.stopped", {"reason": "the queue is done"})], "done"),
        ([("queue.stopped", {"reason": "asked to drain"})], "drained"),
        ([("queue.stopped", {"reason": "asked to stop"})], "stopped"),
        ([("queue.stopped", {"reason": "the disk is full"})], "stopped"),
        ([("agent.stopped", {})], "stopped"),
    ],
)
def test_the_last_words_of_an_agent_say_how_it_ended(run, last_words, word):
    run.say("queue_2", agent_started(), *last_words)
    assert run.condition("queue_2").word == word


def test_an_agent_without_a_heartbeat_for_a_minute_is_stalled(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.site.tier.lock("queue_1")), held(run.project.scratch("box-a").log("a")):
        assert run.condition("queue_1", in_s=30).word == "running"
        assert run.condition("queue_1", in_s=90).word == "stalled agent"


def test_the_heartbeat_of_the_agent_before_does_not_make_the_new_one_stalled(run):
    run.beat("queue_1", from_now(-3600), cell="a")
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        assert run.condition("queue_1").word == "running"


def test_a_cell_without_a_step_for_a_quarter_of_an_hour_is_frozen(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 10))
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(990), cell="a", progress={"step": 10})
        assert run.condition("queue_1", in_s=800).word == "running"
        assert run.condition("queue_1", in_s=1000).word == "step frozen"


def test_a_step_that_only_the_heartbeat_or_the_progress_file_knows_counts(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 10))
    progress = run.project.scratch("box-a").out("a") / "progress.jsonl"
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(3600), cell="a", progress={"step": 11})
        assert run.condition("queue_1", in_s=3610).word == "running"
        run.beat("queue_1", from_now(3600), cell="a", progress={"step": 10})
        assert run.condition("queue_1", in_s=3610).word == "step frozen"
        progress.parent.mkdir(parents=True)
        progress.touch()
        changed_at = timestamp.parse_utc(from_now(3600)).timestamp()
        os.utime(progress, (changed_at, changed_at))
        assert run.condition("queue_1", in_s=3610).word == "running"


def test_what_the_attempt_before_left_is_no_step_of_this_one(run):
    progress = run.project.scratch("box-a").out("a") / "progress.jsonl"
    progress.parent.mkdir(parents=True)
    progress.touch()
    run.say("queue_1", agent_started(), cell_started("a", attempt=2), cell_progress("a", 10))
    os.utime(progress, (0, 0))
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(36_000), cell="a")
        assert run.condition("queue_1", in_s=36_010).word == "running"


def test_a_cell_that_is_settled_makes_no_steps_and_is_not_frozen(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 10))
    with held(run.site.tier.lock("queue_1")), held(run.project.scratch("box-a").log("a")):
        run.beat("queue_1", from_now(36_000), phase="syncing", progress={"step": 10})
        assert run.condition("queue_1", in_s=36_010).word == "running"


def test_an_agent_that_starts_during_the_look_is_not_called_dead(run, monkeypatch):
    path, end = run.site.tier.heartbeat("queue_1"), heartbeat.journal_end
    with ExitStack() as agent:

        def start_then_read(asked: Path) -> JournalEnd | None:
            if asked == path:
                monkeypatch.undo()
                agent.enter_context(held(run.site.tier.lock("queue_1")))
                run.say("queue_1", agent_started(), cell_started("a"))
            return end(asked)

        # What is read just before the journal.
        monkeypatch.setattr(heartbeat, "journal_end", start_then_read)
        view = run.look()
    assert view.queue("queue_1").condition.word == "running"


def test_a_cell_that_never_reported_a_step_is_not_called_frozen(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.site.tier.lock("queue_1")):
        run.beat("queue_1", from_now(36_000), cell="a")
        assert run.condition("queue_1", in_s=36_010).word == "running"


def test_a_cell_of_slow_steps_gets_five_times_its_median_gap():
    steps = tuple(f"2026-01-01T{hour:02d}:00:00.000Z" for hour in (1, 2, 3))
    queue = QueueView(
        "queue_1",
        "box-a",
        state=State(session=Session(steps[0], 7, RELEASE, "box-a", 0)),
        is_alive=True,
        steps_at=steps,
        moved_at=steps[-1],
    )
    for now, word in (("07:59", "running"), ("08:01", "step frozen")):
        at = f"2026-01-01T{now}:00.000Z"
        beat = Heartbeat("queue_1", "box-a", RELEASE, at, 7, "running")
        assert condition_of(replace(queue, heartbeat=beat), at).word == word


def test_a_damaged_journal_hides_no_other_queue(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_started("b"))
    path = run.site.tier.journal("queue_1")
    path.write_bytes(path.read_bytes().replace(b"cell.started", b'"', 1))
    run.say("queue_2", agent_started(), cell_started("c"), cell_verified("c"), queue_done())
    view = run.look()
    assert view.queue("queue_1").condition.word == "damaged"
    assert "line 2 is damaged" in view.queue("queue_1").problems[0]
    assert view.queue("queue_2").condition.word == "done"
    assert [cell.word for cell in view.cells] == ["unknown", "unknown", "verified"]


def test_an_event_that_says_too_little_damages_its_own_journal_alone(run):
    journal = Journal(run.site.tier.journal("queue_1"), {"queue": "queue_1"})
    journal.append("agent.started", pid=7, release=RELEASE, start_index=0)
    run.say("queue_2", agent_started(), cell_verified("c"), queue_done())
    view = run.look()
    assert [queue.condition.word for queue in view.queues] == ["damaged", "done"]
    assert "lacks 'box'" in view.queue("queue_1").problems[0]


def test_a_torn_last_line_is_flagged_and_the_rest_counts(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    with run.site.tier.journal("queue_1").open("ab") as file:
        file.write(b'{"v":1,"seq":3,"id":"evt_')
    view = run.look()
    assert view.queue("queue_1").is_torn
    assert view.cells[0].word == "broken off"


def test_a_journal_that_cannot_be_read_now_is_unknown_and_not_dead(run):
    path = run.site.tier.journal("queue_1")
    path.mkdir()  # reading it raises OSError, also for root
    assert run.condition("queue_1").word == "unknown"
    assert run.condition("queue_2").word == "not started"


def test_a_lock_that_cannot_be_asked_is_unknown_and_not_dead(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    lock = run.site.tier.lock("queue_1")
    lock.symlink_to(lock)  # opening it raises OSError, also for root
    view = run.look()
    assert view.queue("queue_1").condition.word == "unknown"
    assert may_run(view.queue("queue_1"))


def test_a_damaged_heartbeat_is_said_and_the_rest_stands(run):
    run.say("queue_2", agent_started(), queue_done())
    run.site.tier.heartbeat("queue_2").write_text("{")
    view = run.look()
    assert view.queue("queue_2").condition.word == "done"
    assert "not a JSON document" in view.queue("queue_2").problems[0]


def test_the_view_says_what_was_asked_of_an_agent(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    path = run.site.tier.control("queue_1")
    atomic.write_whole(path, codec.to_document(Control(control.DRAIN, from_now(0))))
    with held(run.site.tier.lock("queue_1")):
        assert "draining" in run.condition("queue_1").sentence


def test_the_cell_that_runs_comes_before_one_that_is_settled_beside_it(run):
    synced = {"cell": "a", "attempt": 1, "manifest_sha256": "cd" * 32}
    run.say("queue_1", agent_started(), cell_started("a"), cell_started("b"))
    run.say("queue_1", ("cell.succeeded", {"cell": "a", "attempt": 1}), ("cell.synced", synced))
    assert run.look().queue("queue_1").active == "b"


def test_news_that_an_agent_left_is_said_when_it_has_ended(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_failed("a", is_final=True))
    sent = Delivered({"x": Cursor(0, channel="ntfy")})
    path = run.site.tier.delivered("queue_1")
    atomic.write_whole(path, codec.to_document(sent))

    def told():
        return [str(text) for text in run.look().queue("queue_1").undelivered]

    assert "not delivered yet" in told()[0]
    with held(run.site.tier.lock("queue_1")):
        assert told() == [], "its agent delivers"


def test_a_moved_cell_is_shown_where_it_ran(run):
    run.say("queue_2", agent_started(), cell_started("a"), cell_verified("a"))
    moved = run.look().cells[0]
    assert (moved.name, moved.queue, moved.box, moved.word) == ("a", "queue_2", "box-b", "verified")
    assert moved.metrics == {"psnr": 27.25}


def test_a_running_cell_shows_the_heartbeats_progress_and_the_time_until_now(run):
    run.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 10))
    run.beat("queue_1", from_now(0), cell="a", progress={"step": 17})
    with held(run.site.tier.lock("queue_1")), held(run.project.scratch("box-a").log("a")):
        cell = run.look(in_s=100).cells[0]
    assert (cell.word, cell.progress) == ("running", {"step": 17})
    assert cell.seconds > 99


@pytest.mark.parametrize("is_agent_alive", [False, True])
def test_a_cell_of_which_nothing_runs_any_more_is_broken_off_and_its_time_stands_still(
    run, is_agent_alive
):
    run.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 10))
    run.beat("queue_1", from_now(40), cell="a", progress={"step": 17})
    with ExitStack() as stack:
        if is_agent_alive:
            stack.enter_context(held(run.site.tier.lock("queue_1")))
        views = [run.look(in_s=in_s) for in_s in (100, 5000)]
    is_known_as = "trainer dead" if is_agent_alive else "agent dead"
    for view in views:
        assert view.queue("queue_1").condition.word == is_known_as
        [cell] = view.of_words(["broken off"])
        assert (cell.name, cell.progress) == ("a", {"step": 17})
        assert 30 < cell.seconds < 50, "until the last heartbeat"


def test_a_cell_that_lives_on_without_its_agent_runs(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    with held(run.project.scratch("box-a").log("a")):
        cell = run.look(in_s=100).cells[0]
    assert cell.word == "running" and cell.seconds > 99


def test_of_a_cell_whose_agent_cannot_be_asked_the_time_is_that_of_the_last_heartbeat(
    run, monkeypatch
):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(40), cell="a")
    monkeypatch.setattr(LocalSite, "is_agent_alive", lambda *_: None)
    monkeypatch.setattr(LocalSite, "is_attempt_alive", lambda *_: None)
    cell = run.look(in_s=5000).cells[0]
    assert cell.word == "running", "nothing is known, and doubt is no sign of death"
    assert 30 < cell.seconds < 50


def test_a_queue_that_has_left_the_plan_is_still_shown(run):
    plan = run.project.plan
    narrower = replace(
        plan,
        queues={"queue_1": "box-a"},
        cells=tuple(cell for cell in plan.cells if cell.queue == "queue_1"),
    )
    run.say("queue_2", agent_started(), cell_started("c"))
    view = look_at_run(RunOnDisk(replace(run.project, plan=narrower)).site, from_now(0))
    assert (view.queue("queue_2").box, view.cells[-1].name) == ("box-b", "c")


def test_after_a_teardown_the_pulled_journals_are_read(run):
    run.say("queue_2", agent_started(), cell_started("c"), cell_verified("c"), queue_done())
    run.say("queue_1", agent_started(), cell_started("a"))
    run.project.results.journals.parent.mkdir(parents=True)
    (run.site.tier.root / "journal").rename(run.project.results.journals)
    run.site.tier.root.rename(run.site.tier.root.with_name("gone"))
    view = run.look()
    words = [queue.condition.word for queue in view.queues]
    assert words == ["unknown", "done"]
    assert view.cells[-1].word == "verified"
