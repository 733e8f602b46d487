from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from far_boxes import FarRun, a_clock_of_our_own, make_far_run
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_started,
    cell_verified,
    from_now,
    held,
    queue_done,
)

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.places.mirrored_site import LONGEST_PAUSE_S, ahead_s
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.run.condition import heartbeat_age_s, may_run
from boxcar.laptop.teardown.still_running import find_alive
from boxcar.laptop.verbs.serve_tier import send_queue
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import DurablePaths
from onbox.answers import report


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    return make_far_run(tmp_path, monkeypatch)


def tier_of(run: FarRun, box: str, name: str) -> RunOnDisk:
    """Another durable tier, of that box alone, with the run's folders; what its agent writes."""
    folder = run.agents.project.root / name
    agents = run.agents.project
    made = RunOnDisk(replace(agents, plan=replace(agents.plan, durable_dir=str(folder))))
    for path in made.site.tier.folders():
        path.mkdir(parents=True, exist_ok=True)
    run.world.tiers[box] = folder
    return made


def mirrored(run: FarRun, name: str) -> bytes | None:
    path = run.site.mirror.tier.root / name
    return path.read_bytes() if path.exists() else None


def on_tier(run: FarRun, name: str) -> bytes:
    return (run.agents.site.tier.root / name).read_bytes()


def test_one_question_to_each_box_shows_all_that_the_tier_shows(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"), cell_verified("a"), queue_done())
    run.agents.say("queue_2", agent_started(), cell_started("c"))
    run.agents.beat("queue_2", from_now(0), cell="c", box="box-b")
    scratch = run.agents.project.scratch("box-b")
    with held(run.agents.site.tier.lock("queue_2")), held(scratch.log("c")):
        view = run.look()
        expected = run.agents.look()
    assert sorted(run.world.asked) == [("box-a", "report"), ("box-b", "report")]
    assert [queue.condition.word for queue in view.queues] == ["done", "running"]
    assert [cell.word for cell in view.cells] == [cell.word for cell in expected.cells]
    assert view.queue("queue_2").is_cell_alive
    assert not view.problems
    assert mirrored(run, "journal/queue_2.jsonl") == on_tier(run, "journal/queue_2.jsonl")


def test_a_cell_of_which_only_its_claim_is_left_is_known_from_afar(run: FarRun) -> None:
    claim = Claim("lost", "queue_2", "box-b", from_now(0))
    atomic.create_once(run.agents.site.tier.claim("lost"), codec.to_document(claim))
    [cell] = [cell for cell in run.look().cells if cell.name == "lost"]
    assert (cell.queue, cell.box) == ("queue_2", "box-b")


def test_before_the_first_launch_nothing_runs_and_nothing_is_doubtful(run: FarRun) -> None:
    shutil.rmtree(run.agents.site.tier.root)
    assert run.condition("queue_1").word == "not started"
    assert run.site.is_agent_alive("queue_1") is False
    assert run.site.doubts() == []


def test_a_box_that_does_not_answer_is_silent_and_never_dead(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    run.agents.beat("queue_1", from_now(0), cell="a")
    tier, scratch = run.agents.site.tier, run.agents.project.scratch("box-a")
    with held(tier.lock("queue_1")), held(scratch.log("a")):
        assert run.condition("queue_1").word == "running"
    run.world.cut.add("box-a")
    view = run.look(in_s=3600)
    queue = view.queue("queue_1")
    assert queue.condition.word == "unreachable"
    assert "the connection timed out" in queue.condition.sentence
    assert may_run(queue)
    assert run.site.is_agent_alive("queue_1") is None
    assert run.site.is_attempt_alive("box-a", "a") is None
    (doubt,) = run.site.doubts()
    assert "box-a does not answer" in doubt and "last heard from" in doubt
    assert view.cells[0].word == "running", "the journal is on the tier, which another box reads"


def test_what_a_box_could_not_read_is_a_doubt_and_hides_no_other(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    run.agents.site.tier.claim("a").write_bytes(b"{}")
    read = report.read_plain

    def broken(folder: Path, name: str) -> bytes | None:
        if name == "claims/a.json":
            raise OSError(5, "Input/output error", name)
        return read(folder, name)

    monkeypatch.setattr(report, "read_plain", broken)
    view = run.look()
    assert run.site.doubts() == ["box-a cannot read claims/a.json: Input/output error"]
    assert view.queue("queue_1").events and view.queue("queue_1").silent is None


def test_a_box_that_never_answered_is_silent_and_nothing_is_known(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    run.world.cut |= {"box-a", "box-b"}
    view = run.look()
    assert view.queue("queue_1").condition.word == "unreachable"
    assert all("never heard from" in doubt for doubt in run.site.doubts())
    assert len(run.site.doubts()) == 2


def test_what_was_never_asked_is_not_known(run: FarRun) -> None:
    assert run.site.is_agent_alive("queue_1") is None
    assert run.site.is_attempt_alive("box-a", "a") is None


def test_the_gate_counts_a_silent_box_as_one_at_work(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), queue_done())
    run.look()
    assert find_alive(run.site, ["a"]) == ()
    run.world.cut.add("box-a")
    run.look()
    (row,) = find_alive(run.site, ["a"])
    assert "cannot tell whether" in row.what


def test_a_silent_box_is_asked_later_and_later_and_at_once_when_it_is_back(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.world.cut |= {"box-a", "box-b"}
    pauses_s: list[float] = []
    with a_clock_of_our_own(monkeypatch) as now:
        run.site.refresh()
        for _ in range(8):
            asked, began_s = len(run.world.asked), now[0]
            while len(run.world.asked) == asked:
                now[0] += 5.0
                run.site.refresh()
                assert "box-b" in run.site.silent_boxes(), "also while it is not asked"
            pauses_s.append(now[0] - began_s)
        assert pauses_s == sorted(pauses_s) and pauses_s[0] < pauses_s[1] < pauses_s[2]
        assert pauses_s[-1] == pauses_s[-2] == LONGEST_PAUSE_S
        run.world.cut.clear()
        now[0] += LONGEST_PAUSE_S
        run.site.refresh()
        assert run.site.silent_boxes() == {}
        asked = len(run.world.asked)
        run.site.refresh()
        assert len(run.world.asked) == asked + 2


def test_where_the_first_box_does_not_see_the_tier_another_one_reads_it(run: FarRun) -> None:
    run.world.tiers["box-a"] = run.agents.project.root / "not mounted"
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    view = run.look()
    assert view.cells[0].word == "running"
    assert view.queue("queue_1").condition.word == "unknown", "its lock is out of reach"


def test_a_tier_that_a_box_has_lost_is_a_doubt_and_no_death(run: FarRun) -> None:
    run.agents.say("queue_2", agent_started(), cell_started("c"))
    run.look()
    before = mirrored(run, "journal/queue_2.jsonl")
    for box in ("box-a", "box-b"):
        run.world.tiers[box] = run.agents.project.root / "not mounted"
    assert run.condition("queue_2").word == "unknown"
    assert [doubt.split()[0] for doubt in run.site.doubts()] == ["box-a", "box-b"]
    assert "is it mounted?" in run.site.doubts()[0]
    assert mirrored(run, "journal/queue_2.jsonl") == before, "what was known stays"


def test_a_box_that_was_rented_anew_gets_its_queue_though_an_older_report_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own tier is as empty as its disk; what the mirror holds is the old box's."""
    run = make_far_run(tmp_path, monkeypatch, scope=EACH_BOX)
    local = tmp_path / "queue_1.txt"
    local.write_bytes(on_tier(run, "queues/queue_1.txt"))
    site = run.site
    site.project = replace(run.project, queue_files={"queue_1": local})
    run.site.refresh()
    assert send_queue(site, "queue_1", Progress("push")) == "same"
    new = run.agents.project.root / "newly rented"
    run.world.tiers["box-a"] = new
    run.site.refresh()
    assert run.site.has_lost_its_tier("box-a") and not run.site.has_lost_its_tier("box-b")
    assert "a newly rented box? Then launch" in run.site.doubts()[0]
    DurablePaths(new, "demo").queues.mkdir(parents=True)  # as the release makes it
    assert send_queue(site, "queue_1", Progress("push")) == "appended"
    assert DurablePaths(new, "demo").queue("queue_1").read_bytes() == local.read_bytes()
    run.site.refresh()
    assert not run.site.has_lost_its_tier("box-a")
    assert send_queue(site, "queue_1", Progress("push")) == "same"


def test_what_a_box_says_of_its_own_queue_counts_more_than_what_others_see(run: FarRun) -> None:
    """A network disk shows box-a for seconds what the journal of queue_2 was before."""
    run.agents.say("queue_2", agent_started(), cell_started("c"))
    older = tier_of(run, "box-a", "older")
    shutil.copytree(run.agents.site.tier.root, older.site.tier.root, dirs_exist_ok=True)
    for attempt in range(3):
        run.agents.say("queue_2", agent_started(), cell_verified("c"), queue_done())
        for _ in range(2):
            assert run.condition("queue_2").word == "done", f"look {attempt}"
        assert mirrored(run, "journal/queue_2.jsonl") == on_tier(run, "journal/queue_2.jsonl")
    run.world.cut.add("box-a")
    assert run.condition("queue_2").word == "done"


def test_it_counts_more_also_where_another_than_the_first_box_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {f"queue_{n}": [f"configs/{n}.yaml recon 3"] for n in (1, 2, 3)}
    run = make_far_run(tmp_path, monkeypatch, lines=lines)
    run.agents.say("queue_3", agent_started(), cell_started("3"))
    older = tier_of(run, "box-b", "older")
    shutil.copytree(run.agents.site.tier.root, older.site.tier.root, dirs_exist_ok=True)
    run.agents.say("queue_3", cell_verified("3"), queue_done())
    run.world.cut.add("box-a")
    assert run.condition("queue_3").word == "done"


def test_boxes_with_tiers_of_their_own_are_each_asked_for_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_far_run(tmp_path, monkeypatch, scope=EACH_BOX)
    other = tier_of(run, "box-b", "tier of b")
    run.agents.say("queue_1", agent_started(), cell_verified("a"))
    other.say("queue_2", agent_started(), cell_verified("c"))
    view = run.look()
    assert [cell.word for cell in view.cells] == ["verified", "queued", "verified"]
    assert run.site.reach_tiers(["box-a", "box-b"]) == ["box-a", "box-b"]
    assert list(run.site.mirror.boxes_with("cells/c/manifest.json", ["box-a", "box-b"])) == [
        "box-b"
    ]
    run.world.cut.add("box-b")
    assert run.look().cells[2].word == "verified", "as it was seen last"


def test_a_shared_tier_is_reached_by_one_box_that_answers(run: FarRun) -> None:
    run.world.cut.add("box-a")
    run.site.refresh()
    assert run.site.reach_tiers(["box-a", "box-b"]) == ["box-b"]
    with pytest.raises(TemporaryError, match=r"none of box-a answers.*timed out"):
        run.site.reach_tiers(["box-a"])


def test_boxes_that_ended_in_a_teardown_are_not_asked_again(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    teardown = Teardown("demo", "ab" * 32, "stop", from_now(0), "typed", boxes={"box-a": "now"})
    results = run.project.results
    atomic.make_folder(results.root)
    atomic.write_whole(results.teardown, codec.to_document(teardown))
    run.site.refresh()
    assert run.world.asked == [("box-b", "report")]
    assert run.site.is_agent_alive("queue_1") is False
    assert run.site.is_attempt_alive("box-a", "a") is False
    assert run.site.doubts() == []
    ended = replace(teardown, finished_at=from_now(0))
    atomic.write_whole(results.teardown, codec.to_document(ended))
    run.site.refresh()
    assert run.world.asked == [("box-b", "report")], "somebody else may have these names by now"


def test_a_clock_that_is_hours_off_makes_nothing_stalled(run: FarRun) -> None:
    run.world.clock_ahead_s["box-b"] = -3 * 3600.0
    run.agents.say("queue_2", agent_started())
    run.agents.beat("queue_2", from_now(-3 * 3600), phase="idle", box="box-b")
    queue = run.look().queue("queue_2")
    age_s = heartbeat_age_s(queue, from_now(0))
    assert age_s is not None and age_s < 60
    run.world.clock_ahead_s["box-b"] = 3 * 3600.0
    queue = run.look(in_s=90).queue("queue_2")
    assert queue.heartbeat is not None
    fast = replace(queue, heartbeat=replace(queue.heartbeat, at=from_now(3 * 3600)))
    age_s = heartbeat_age_s(fast, from_now(90))
    assert age_s is not None and 60 < age_s < 150, "a clock that is ahead hides no silence"


def test_half_of_the_round_trip_is_nobodys_clock() -> None:
    before, after = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:04.000Z"
    assert ahead_s(before, "2026-01-01T00:00:02.000Z", after) == 0
    assert ahead_s(before, "2026-01-01T01:00:02.000Z", after) == 3600
    assert ahead_s(before, "2025-12-31T23:00:02.000Z", after) == -3600


def test_a_queue_that_has_left_the_plan_is_still_asked_for(run: FarRun) -> None:
    run.agents.say("queue_2", agent_started(), cell_started("c"))
    run.agents.beat("queue_2", from_now(0), box="box-b")
    plan = run.project.plan
    cells = tuple(cell for cell in plan.cells if cell.queue == "queue_1")
    narrower = replace(plan, queues={"queue_1": "box-a"}, cells=cells)
    boxes = SshSite(replace(run.project, plan=narrower), print)
    boxes.refresh()
    boxes.refresh()  # the first look shows that there is such a queue
    assert boxes.is_agent_alive("queue_2") is False, "or no down would ever open its gate"
    with held(run.agents.site.tier.lock("queue_2")):
        boxes.refresh()
        assert boxes.is_agent_alive("queue_2") is True


def test_a_long_run_comes_in_several_answers(run: FarRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_BYTES", 300)
    run.agents.say("queue_1", agent_started(), *(cell_started("a", n) for n in range(1, 9)))
    run.agents.say("queue_2", agent_started(), *(cell_started("c", n) for n in range(1, 9)))
    view = run.look()
    assert run.world.times("box-a") > 4
    for queue in ("queue_1", "queue_2"):
        name = f"journal/{queue}.jsonl"
        assert mirrored(run, name) == on_tier(run, name)
    assert [len(queue.events) for queue in view.queues] == [9, 9]


def test_an_answer_that_leads_out_of_the_mirror_silences_its_box_alone(run: FarRun) -> None:
    def lead_out(box: str, told: dict) -> None:
        if box == "box-b":
            told["files"].append(
                {
                    "path": "../../../x",
                    "offset": 0,
                    "data": "",
                    "size_bytes": 0,
                    "sha256": "ab" * 32,
                }
            )

    run.world.change = lead_out
    run.agents.say("queue_1", agent_started(), queue_done())
    assert run.condition("queue_1").word == "done"
    assert "leads out of" in run.site.silent_boxes()["box-b"]
    assert not (run.project.root / "x").exists()


def test_whether_a_running_cell_has_begun_is_known_by_the_look_itself(run: FarRun) -> None:
    log = run.agents.project.scratch("box-a").log("a")
    log.parent.mkdir(parents=True)
    with held(log):
        run.site.refresh()
        assert not run.site.has_output("box-a", "a")
        log.write_text("it begins\n")
        run.site.refresh()
        assert run.site.has_output("box-a", "a")
        assert {question for _box, question in run.world.asked} == {"report"}
    run.site.refresh()
    assert run.site.has_output("box-a", "a"), "an attempt that has ended is asked for"


def test_when_a_running_cell_last_moved_is_known_while_it_runs(run: FarRun) -> None:
    out = run.agents.project.scratch("box-a").out("a")
    out.mkdir(parents=True)
    (out / "progress.jsonl").write_text("{}\n")
    os.utime(out / "progress.jsonl", (1_800_000_000, 1_800_000_000))
    fd = lock.try_hold(run.agents.project.scratch("box-a").log("a"))
    run.site.refresh()
    assert run.site.progress_at("box-a", "a") == "2027-01-15T08:00:00.000Z"
    assert run.site.is_attempt_alive("box-a", "a") is True
    os.close(fd or -1)
    run.site.refresh()
    assert run.site.progress_at("box-a", "a") is None
    assert run.site.is_attempt_alive("box-a", "a") is False


def test_the_connections_are_ended(run: FarRun) -> None:
    run.site.refresh()
    run.site.close()
    assert sorted(run.world.ran) == [("box-a", ["closed"]), ("box-b", ["closed"])]


def test_a_run_that_is_forgotten_leaves_no_mirror(run: FarRun) -> None:
    run.agents.say("queue_1", agent_started())
    run.site.refresh()
    run.site.forget_boxes()
    assert not run.site.tier.root.exists()
    assert run.site.mirror.names_of("box-a") == []
