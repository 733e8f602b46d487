from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from far_boxes import make_far_run
from finished_run import make_run as make_finished_run
from run_on_disk import (
    LINES,
    MANIFEST,
    RELEASE,
    SHA256,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_got_worse,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
    queue_done,
)

from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.run.condition import condition_of
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import exit_code, rows_of_run, status
from boxcar.laptop.view.run_tables import notes_of_run, tables_of_run
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import Command, Message
from boxcar.shared.files import codec
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.receipt import CellVerdict, RunReceipt, Teardown


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    return make_run(tmp_path)


@pytest.fixture
def done(run) -> RunOnDisk:
    """Every cell verified, and no agent left."""
    for queue, cells in (("queue_1", "ab"), ("queue_2", "c")):
        verified = [cell_verified(cell) for cell in cells]
        run.say(queue, agent_started(), *verified, queue_done())
    return run


def pull(run: RunOnDisk, cells: str) -> None:
    for cell in cells:
        path = run.project.results.manifest(cell)
        path.parent.mkdir(parents=True)
        path.write_bytes(MANIFEST)
    pull_journals(run)


def pull_journals(run: RunOnDisk) -> None:
    shutil.copytree(run.site.tier.journals, run.project.results.journals, dirs_exist_ok=True)


def write_receipt(run: RunOnDisk, sha256: str = SHA256, missing: tuple[str, ...] = ()) -> None:
    cells = [CellVerdict(cell, "queue_1", sha256, missing) for cell in "abc"]
    found = RunReceipt("demo", from_now(0), tuple(cells))
    path = run.project.results.receipt
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_whole(path, codec.to_document(found))


def next_of(run: RunOnDisk) -> str | None:
    command = next_step(run.look(), run.site).command
    return str(command) if command else None


def test_the_tables_name_every_queue_and_cell(run, capsys):
    run.say(
        "queue_1", agent_started(), cell_started("a"), cell_progress("a", 12, epoch=3, dice=0.5)
    )
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.site.tier.lock("queue_1")):
        assert status(run.project) == 0
    out = capsys.readouterr().out
    rows = {row.split()[0]: row.split() for row in out.splitlines() if row.split()}
    assert rows["queue_1"][:5] == ["queue_1", "box-a", "running", "a", "12"]
    assert rows["queue_1"][-1] == digest.short(RELEASE)
    assert rows["a"][:8] == ["a", "queue_1", "running", "1", "12", "3", "dice", "0.5"]
    assert rows["c"][:3] == ["c", "queue_2", "queued"]


def test_the_last_number_and_the_best_are_both_said(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"), cell_got_worse("a"))
    status(run.project)
    assert "val_loss 5.725 (best 0.0667)" in " ".join(capsys.readouterr().out.split())
    status(run.project, as_json=True)
    row = json.loads(capsys.readouterr().out)["cells"][0]
    assert (row["progress"], row["best"]) == ({"val_loss": 5.7246}, {"val_loss": 0.0667})
    run.say("queue_1", cell_verified("a"))
    status(run.project, as_json=True)
    row = json.loads(capsys.readouterr().out)["cells"][0]
    assert (row["metrics"], row["best"]) == ({"psnr": 27.25}, {})


def test_when_a_cell_is_tried_again_is_said_by_this_machines_clock_in_both_tables(run, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    waits = ("cell.retried", {"cell": "a", "attempt": 1, "failure": "NET", "wait_s": 7200})
    run.say("queue_1", agent_started(), cell_started("a"), waits)
    with held(run.site.tier.lock("queue_1")):
        view = run.look()
    fast = replace(view.queue("queue_1"), clock_ahead_s=3600.0)
    fast = replace(fast, condition=condition_of(fast, timestamp.after(view.at, -3600)))
    view = replace(view, queues=(fast,))
    rows = rows_of_run(run.site, view, next_step(view, run.site))
    cells = tables_of_run(rows)[-1]
    [why] = [row[cells.columns.index("why")] for row in cells.rows if row[0] == "a"]
    monkeypatch.undo()
    time.tzset()
    assert why.removeprefix("NET: ") in fast.condition.sentence


def test_markup_and_escapes_in_a_name_are_shown_as_they_are(tmp_path, capsys):
    run = make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3"]})
    warning = {"what": "[red]", "text": "[bold]\x1b[31mred\x1b[0m"}
    run.say("queue_1", agent_started(), ("box.warning", warning), queue_done())
    status(run.project)
    out = capsys.readouterr().out
    assert "[red]" in out
    assert "[bold]\\x1b[31mred" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("told", "course"),
    [
        ({"failure": "STORE", "class": "FIX_DATA"}, "FIX_DATA"),  # of a person's own signature
        ({"failure": "M2"}, "OUT_OF_MEMORY"),  # an older agent says no class; the row knows it
        ({"failure": "OF-A-NEWER-BOXCAR", "class": "SOMETHING"}, None),
        ({"failure": "OF-A-NEWER-BOXCAR", "class": ["x"]}, None),
    ],
)
def test_json_has_the_class_of_a_failure(run, capsys, told, course):
    failed = ("cell.failed", cell_failed("a")[1] | told)
    run.say("queue_1", agent_started(), cell_started("a"), failed, cell_started("b"))
    status(run.project, as_json=True)
    rows = json.loads(capsys.readouterr().out)["cells"]
    assert {row["cell"]: row["class"] for row in rows} == {"a": course, "b": None, "c": None}


def test_a_result_in_doubt_is_marked_until_the_cell_is_tried_anew(run, capsys):
    told = {"cell": "a", "attempt": 1, "seconds": 5.0, "doubt": "12 of 100 epochs"}
    run.say("queue_1", agent_started(), cell_started("a"), ("cell.succeeded", told))
    run.say("queue_1", cell_verified("a"))
    status(run.project)
    assert "not certain: 12 of 100 epochs" in capsys.readouterr().out
    status(run.project, as_json=True)
    cells = {row["cell"]: row for row in json.loads(capsys.readouterr().out)["cells"]}
    assert cells["a"]["doubt"] == "12 of 100 epochs"
    assert "doubt" not in cells["b"]
    run.say("queue_1", cell_started("a", 2))
    status(run.project, as_json=True)
    cells = {row["cell"]: row for row in json.loads(capsys.readouterr().out)["cells"]}
    assert "doubt" not in cells["a"]


def test_a_result_that_was_lent_says_its_doubt_with_its_proof(run, capsys):
    """No event of this queue said that it had ended."""
    lent = cell_verified("a")[1] | {"doubt": "12 of 100 epochs", "by": "laptop"}
    run.say("queue_1", agent_started(), ("cell.verified", lent))
    status(run.project, as_json=True)
    assert json.loads(capsys.readouterr().out)["cells"][0]["doubt"] == "12 of 100 epochs"


def test_json_is_one_document_and_no_table(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"), cell_failed("a"))
    assert status(run.project, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    keys = {"format", "run", "at", "queues", "cells", "problems", "warnings", "next", "rotate"}
    assert set(found) == keys | {"open_meters"}
    assert found["queues"][0]["condition"] == "agent dead"
    assert found["queues"][1]["heartbeat_age_s"] is None
    assert found["cells"][0]["state"] == "failed"
    assert found["cells"][0]["detail"]["failure"] == "OOM"
    assert found["next"]["command"] == "invoke launch"


def test_what_is_refused_for_the_local_files_is_no_next_step(run):
    wrong = Message("queues/q1.txt:2: no such config")
    run.project = replace(run.project, faults=(wrong,))
    step = next_step(run.look(), run.site)
    assert step.command == Command("plan")
    assert str(step.because) == (
        "fix the local files first: queues/q1.txt:2: no such config. Then: invoke launch"
    )


def test_a_failed_cell_is_exit_1(done):
    assert status(done.project) == 0
    done.say("queue_2", cell_failed("c"))
    assert status(done.project) == 1


def test_a_cell_that_failed_in_one_queue_and_was_verified_in_another_has_not_failed(done):
    done.say("queue_2", agent_started(), cell_failed("a"), queue_done())
    assert status(done.project) == 0


def test_a_dead_agent_is_exit_1_and_said(run, capsys):
    run.say("queue_1", agent_started(pid=4711), cell_started("a"))
    assert status(run.project) == 1
    assert "queue_1: agent dead: its agent (process 4711 on box-a)" in capsys.readouterr().err


def test_a_damaged_journal_is_exit_1_and_said_with_its_line(done, capsys):
    done.site.tier.journal("queue_2").write_text("no journal\n")
    assert status(done.project) == 1
    said = capsys.readouterr()
    assert "queue_2.jsonl: line 1 is damaged" in said.err
    assert "verified" in said.out, "the other queue is still shown"


def test_a_torn_line_is_said_where_no_agent_is_writing_it(run, capsys):
    run.say("queue_1", agent_started())
    with run.site.tier.journal("queue_1").open("ab") as file:
        file.write(b'{"v":1')
    status(run.project)
    assert "a crash cut off the last line" in capsys.readouterr().err
    with held(run.site.tier.lock("queue_1")):
        status(run.project)
    assert "torn" not in capsys.readouterr().err


def test_only_the_last_warnings_are_shown(run, capsys):
    warnings = [("box.warning", {"what": "w", "text": f"warning-{n}"}) for n in range(9)]
    run.say("queue_1", agent_started(), *warnings, queue_done())
    status(run.project)
    out = capsys.readouterr().out
    assert [n for n in range(9) if f"warning-{n}" in out] == [4, 5, 6, 7, 8]


def test_next_follows_the_life_of_a_run(done):
    assert next_of(done) == "invoke pull"
    pull(done, "ab")
    assert next_of(done) == "invoke pull"
    pull(done, "c")
    assert next_of(done) == "invoke verify"
    write_receipt(done, missing=("best.pth is missing",))
    assert next_of(done) == "invoke verify"
    write_receipt(done, sha256="00" * 32)
    assert next_of(done) == "invoke verify", "the receipt speaks of other results"
    write_receipt(done)
    assert next_of(done) == "invoke down"


def test_next_is_no_teardown_where_a_failed_cell_was_published_again(done):
    """Its receipt is of the result before, so verify would not say that it is settled."""
    pull(done, "abc")
    write_receipt(done)
    done.say("queue_1", agent_started(), cell_started("a", attempt=2), cell_failed("a"))
    done.say("queue_1", queue_done())
    pull_journals(done)
    assert next_of(done) == "invoke down", "what is published is what was verified"
    done.site.tier.manifest("a").write_bytes(b"another manifest")
    assert next_of(done) != "invoke down"


def test_next_is_a_pull_where_the_journal_here_is_not_the_one_on_the_tier(done):
    pull(done, "abc")
    write_receipt(done)
    done.say("queue_1", agent_started(), queue_done())
    assert next_of(done) == "invoke pull"


def test_next_is_nothing_after_a_teardown_and_something_after_a_new_launch(done):
    teardown = Teardown("demo", "d", "remove", from_now(0), "typed", finished_at=from_now(0))
    done.project.results.root.mkdir(parents=True)
    atomic.write_whole(done.project.results.teardown, codec.to_document(teardown))
    assert next_of(done) == "invoke pull"
    done.site.tier.root.rename(done.site.tier.root.with_name("gone"))
    assert next_of(done) is None


def test_next_is_launch_where_nothing_ran_or_an_agent_is_dead(run):
    assert next_of(run) == "invoke launch"
    run.say("queue_1", agent_started(), cell_started("a"))
    run.say("queue_2", agent_started(), cell_started("c"))
    with held(run.site.tier.lock("queue_2")):
        assert next_of(run) == "invoke launch"


def test_next_is_a_launch_from_the_top_where_only_cells_above_the_beginning_are_left(run):
    begun = {"pid": 7, "release": RELEASE, "start_index": 1, "start_cell": "b"}
    run.say("queue_1", ("agent.started", begun), cell_verified("b"), queue_done())
    run.say("queue_2", agent_started(), cell_verified("c"), queue_done())
    assert str(next_step(run.look(), run.site).command) == "invoke launch --start-index 0"


def test_next_is_no_launch_of_a_dead_agent_that_has_nothing_left(run):
    run.say("queue_1", agent_started(), cell_verified("a"), cell_verified("b"))
    run.say("queue_2", agent_started(), cell_verified("c"), queue_done())
    assert run.condition("queue_1").word == "agent dead"
    assert next_of(run) == "invoke pull"


def test_next_is_wait_while_an_agent_is_at_work(run):
    run.say("queue_2", agent_started(), cell_started("c"))
    with held(run.site.tier.lock("queue_2")):
        assert next_of(run) == "invoke watch"


def test_next_is_launch_where_the_system_ended_a_queue_beside_one_that_is_at_work(run):
    ended = ("agent.stopped", {"reason": "told to end by SIGTERM", "by": "signal"})
    run.say("queue_1", agent_started(), cell_verified("a"), ended)
    run.say("queue_2", agent_started(), cell_started("c"))
    with held(run.site.tier.lock("queue_2")):
        assert next_of(run) == "invoke launch"
        assert "the system ended its agent" in run.condition("queue_1").sentence
    run.say("queue_2", cell_verified("c"), queue_done())
    run.say("queue_1", agent_started(), cell_verified("b"), ended)
    assert next_of(run) == "invoke pull"


def test_next_is_the_repair_of_a_damaged_journal(done):
    done.site.tier.journal("queue_2").write_text("no journal\n")
    assert next_of(done) == "invoke repair"


def test_next_explains_a_failed_cell_once_the_others_are_safe(run):
    run.say("queue_1", agent_started(), cell_verified("a", SHA256), cell_failed("b"), queue_done())
    run.say("queue_2", agent_started(), cell_verified("c", SHA256), queue_done())
    assert next_of(run) == "invoke pull"
    because = str(next_step(run.look(), run.site).because)
    assert because == "2 verified cells to pull; 1 cell failed: invoke explain --cell b"
    pull(run, "ac")
    assert next_of(run) == "invoke explain --cell b"


def test_next_of_cells_that_come_after_a_failed_one_is_that_one_and_no_launch(tmp_path, capsys):
    lines = {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3 after=a"]}
    run = make_run(tmp_path, lines)
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    assert next_of(run) == "invoke explain --cell a"
    assert status(run.project) == 1
    said = capsys.readouterr()
    assert "1 cell waits for a, which failed; launch alone does not start it" in said.err
    assert "blocked: a failed" in said.out


def test_next_is_launch_where_a_cell_waits_for_no_other(tmp_path):
    lines = {"queue_1": [*LINES["queue_1"], "configs/d.yaml recon 3 after=a"]}
    run = make_run(tmp_path, lines)
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    assert next_of(run) == "invoke launch"


def test_why_a_cell_failed_is_said_in_short(run, capsys):
    long = ("cell.failed", cell_failed("b")[1] | {"reason": "it said\n" + "no " * 99})
    run.say("queue_1", agent_started(), cell_failed("a"), long, queue_done())
    status(run.project)
    said = capsys.readouterr().out
    assert "OOM: out of memory" in said
    assert "OOM: it said no no" in said and "…" in said


def test_a_queue_that_is_done_and_got_a_line_since_is_launched_again(done):
    with done.site.tier.queue("queue_2").open("a") as file:
        file.write("configs/late.yaml det\n")
    assert next_of(done) == "invoke launch"


def test_numbers_leave_out_words_and_what_has_a_column():
    values = {"step": 3, "epoch": 1, "loss": 0.123456, "phase": "eval", "psnr": 27, "dice": 0.9}
    assert named_numbers(values, 2) == "loss 0.1235, psnr 27"


def test_a_view_of_another_moment_does_not_change_what_is_next(done):
    view = done.look()
    assert str(next_step(replace(view, at=from_now(86_400)), done.site).command) == "invoke pull"


def test_a_box_that_does_not_answer_is_said_and_nothing_is_decided(tmp_path, monkeypatch, capsys):
    run = make_far_run(tmp_path, monkeypatch)
    run.agents.say("queue_1", agent_started(), cell_started("a"))
    run.world.cut.add("box-a")
    assert status(run.project, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["queues"][0]["condition"] == "unreachable"
    assert told["queues"][0]["is_alive"] is None
    assert told["next"]["command"] == "invoke status"
    assert "console" in told["next"]["because"]
    assert any("box-a does not answer" in problem for problem in told["problems"])


def test_a_queue_without_a_trainer_is_to_be_stopped(run):
    run.say("queue_1", agent_started(), cell_started("a"))
    run.beat("queue_1", from_now(0), cell="a")
    with held(run.site.tier.lock("queue_1")):
        view = run.look(in_s=45)
        assert str(next_step(view, run.site).command) == "invoke stop"
        assert exit_code(view) == 1


def test_a_queue_that_waits_for_room_says_what_a_person_can_do(run):
    full = {"failure": "DISK", "reason": "0 bytes are free", "wait_s": 0, "awaits_room": True}
    retried = ("cell.retried", {"cell": "a", "attempt": 1, **full})
    run.say("queue_1", agent_started(), cell_started("a"), retried)
    run.beat("queue_1", from_now(0), cell=None, phase="idle")
    with held(run.site.tier.lock("queue_1")):
        view = run.look()
        assert "free some" in str(next_step(view, run.site).because)
        rows = rows_of_run(run.site, view, next_step(view, run.site))
        assert any("waits for disk space on box-a" in str(note) for note in notes_of_run(rows))


def test_agents_at_work_do_not_hide_a_cell_that_failed(run):
    run.say("queue_1", agent_started(), cell_failed("a"), cell_started("b"))
    with held(run.site.tier.lock("queue_1")):
        step = next_step(run.look(), run.site)
    assert str(step.command) == "invoke watch"
    assert str(step.because) == "agents are running; 1 cell failed: invoke explain --cell a"


def test_nothing_may_go_while_the_roster_is_in_doubt(done):
    pull(done, "abc")
    write_receipt(done)
    assert next_of(done) == "invoke down"
    (done.site.tier.queues / "queue_9.txt").mkdir()
    step = next_step(done.look(), done.site)
    assert str(step.command) == "invoke verify"
    assert "queue_9.txt" in str(step.because)


def test_one_that_still_delivers_after_the_end_is_named(tmp_path: Path, capsys: Any) -> None:
    run = make_finished_run(tmp_path)
    tier = run.site.tier
    for folder in tier.folders():
        folder.mkdir(parents=True, exist_ok=True)
    tier.journal("q1").unlink()
    log = Journal(tier.journal("q1"), {"run": "tiny", "queue": "q1", "box": "box-a"})
    log.append("agent.started", pid=1, release="r1", start_index=0)
    log.append("queue.done", verified=1, failed=0)
    log.append("agent.stopped", reason="the queue is done", by="done")
    sent = Delivered({"x": Cursor(0, channel="feishu", refused="answered 200: no such robot")})
    tier.delivered("q1").write_bytes(codec.to_document(sent))
    status(run.project)
    told = capsys.readouterr().err
    assert "q1: feishu rejects its notifications: answered 200: no such robot" in told
    assert "was not delivered yet" in told
