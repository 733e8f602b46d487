"""Queues from their start to their end, by the real agent and its real wrappers."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import attempt, codec, control, heartbeat, manifest, receipt
from boxcar.shared.files.plan import Artifact, Box, OwnSignature
from boxcar.shared.process import end_reason

LIFE = ["claimed", "started", "succeeded", "synced", "verified"]

TAKES_EPOCHS = ("train.py", "{cfg}", "{out}", "{epochs}")


def types(run: Any, queue: str = "q1") -> list[str]:
    return [event.type for event in run.events(queue=queue)]


def test_three_cells_run_one_after_another_and_each_is_verified_once(make_run):
    cells = {name: {"steps": 2} for name in "abc"}
    run = make_run(cells, is_hurried=False, scratch=("latest.json", "epoch_*.json"))
    assert run.finish() == 0
    assert [run.life(cell) for cell in cells] == [LIFE] * 3
    mine = [e for e in run.events() if e.type in ("cell.started", "cell.succeeded")]
    assert [(e.cell, e.type) for e in mine] == [
        (cell, f"cell.{what}") for cell in cells for what in ("started", "succeeded")
    ]
    assert types(run)[:2] == ["agent.started", "queue.started"]
    assert types(run)[-2:] == ["queue.done", "agent.stopped"]
    assert run.events("queue.done")[0].data["verified"] == 3
    for cell in cells:
        assert run.result(cell) == {"step": 2, "first": 0, "starts": 1}
        owner = attempt.read_claim(run.durable.claim(cell))
        assert owner
        assert (owner.queue, owner.box) == ("q1", "box-a")
        found = receipt.read_cell(run.durable.receipt(cell))
        assert found.is_good
        assert found.manifest_sha256 == manifest.sha256(run.durable.manifest(cell))
        assert not (run.out(cell) / "latest.json").exists()
        assert (run.out(cell) / "m.json").exists()
    left = sorted(path.name for path in run.durable.claims.iterdir())
    assert left == sorted(f"{cell}.json" for cell in cells)
    beat = heartbeat.read_heartbeat(run.durable.heartbeat("q1"))
    assert beat
    assert beat.phase == "idle"


def test_what_a_killed_agent_left_half_written_is_removed_and_others_stay(make_run):
    run = make_run({"a": {}})
    folder = run.durable.heartbeat("q1").parent
    for name in (".q1.json.0a1b2c3d.part", ".q10.json.0a1b2c3d.part"):
        (folder / name).write_bytes(b"{")
    assert run.finish() == 0
    left = sorted(path.name for path in folder.iterdir())
    assert left == [".q10.json.0a1b2c3d.part", "q1.json"]


def test_a_second_agent_finds_nothing_to_do_and_says_so(make_run):
    run = make_run({"a": {}})
    assert run.finish() == 0
    before = run.durable.manifest("a").read_bytes()
    assert run.finish() == 0
    assert types(run)[-4:] == ["agent.started", "queue.started", "queue.done", "agent.stopped"]
    assert run.life("a") == LIFE
    assert run.durable.manifest("a").read_bytes() == before
    assert len(run.starts("a")) == 1


def test_while_it_lingers_it_takes_what_is_appended_and_passes_over_what_is_no_cell(
    make_run, until
):
    run = make_run({"a": {}, "b": {}}, linger_s=int(LIMIT_S))
    run.durable.queue("q1").write_text("# the baseline\n\nconfigs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.verified", "a")
    run.append("configs/b.json count many", "", "# next", "configs/none.json count 3")
    until(lambda: run.warnings("waits_for_release"))
    run.append("configs/b.json count 3")
    run.wait_for("cell.verified", "b")
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    assert run.life("a") == LIFE
    assert run.life("b") == LIFE
    assert run.life("none") == []  # it waits for a release that has its config
    assert len(run.warnings("queue_line")) == 1
    assert "many" in run.warnings("queue_line")[0]
    assert len(run.starts("a")) == 1


def test_a_line_that_comes_while_the_last_result_is_settled_is_run(make_run, tmp_path, until):
    python = tmp_path / "slow-checker"
    python.write_text(
        f"""#!/bin/bash
while [[ $* = *load_check* && ! -e {tmp_path}/gate ]]; do touch {tmp_path}/waits; sleep 0.05; done
exec {sys.executable} "$@"
"""
    )
    python.chmod(0o755)
    run = make_run({"a": {}, "b": {}}, training_python=str(python))
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.synced", "a")
    run.append("configs/b.json count 3")
    until((tmp_path / "waits").exists)
    run.wait_for_looks()
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert [run.state(cell) for cell in "ab"] == ["verified", "verified"]


def test_a_last_line_that_an_editor_leaves_without_a_line_feed_is_run(make_run):
    run = make_run({"a": {}, "b": {}, "c": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3\nconfigs/b.json count 3\n")
    agent = run.start()
    run.wait_for("cell.started", "a")
    text = run.durable.queue("q1").read_text()
    run.durable.queue("q1").write_text(f"{text}configs/c.json count 3")
    assert agent.wait(LIMIT_S) == 0
    assert [run.state(cell) for cell in "abc"] == ["verified"] * 3
    assert not run.warnings("queue_edited")


def test_a_last_line_that_goes_on_after_it_has_counted_is_said(make_run, until):
    run = make_run({"a": {}, "b": {}}, linger_s=int(LIMIT_S))
    path = run.durable.queue("q1")
    path.write_text("configs/a.json count 3\nconfigs/b.json count 3")
    agent = run.start()
    run.wait_for("cell.verified", "b")
    path.write_text(f"{path.read_text()}0\nconfigs/b.json count 3 name=c\n")
    until(lambda: run.warnings("queue_edited"))
    run.wait_for("cell.verified", "c")
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    (said,) = run.warnings("queue_edited")
    assert "was 'configs/b.json count 3' and is now 'configs/b.json count 30'" in said
    assert run.life("b") == LIFE


def test_an_edit_above_the_end_is_said_and_what_has_run_stays(make_run, until):
    run = make_run({"a": {}, "b": {}}, linger_s=int(LIMIT_S))
    agent = run.start()
    run.wait_for("cell.verified", "b")
    text = run.durable.queue("q1").read_text().replace("a.json count 3", "a.json other 3")
    run.durable.queue("q1").write_text(text)
    until(lambda: run.warnings("queue_edited"))
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    assert "a.json other 3" in run.warnings("queue_edited")[0]
    assert run.life("a") == LIFE
    assert len(run.starts("a")) == 1


def test_a_queue_file_that_an_editor_replaces_is_not_gone(make_run):
    run = make_run({"a": {}, "b": {}}, linger_s=int(LIMIT_S), gone_s=LIMIT_S)
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.verified", "a")
    path = run.durable.queue("q1")
    path.rename(path.with_name("q1.txt~"))
    time.sleep(0.7)  # it looks three times a second; no look can be seen, and a late one is no harm
    path.write_text("configs/a.json count 3\nconfigs/b.json count 3\n")
    run.wait_for("cell.verified", "b")
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0


def test_a_queue_file_that_is_saved_in_place_while_the_agent_looks_loses_no_cell(make_run, until):
    run = make_run({"a": {}, "b": {}}, gone_s=LIMIT_S)
    text = run.durable.queue("q1").read_text()
    run.durable.queue("q1").write_text("")
    agent = run.start()
    until(run.durable.heartbeat("q1").exists)
    run.wait_for_looks()
    assert not run.events("queue.done")
    run.durable.queue("q1").write_text(text)
    assert agent.wait(LIMIT_S) == 0
    assert [run.life(cell) for cell in "ab"] == [LIFE, LIFE]
    assert run.warnings("queue_edited") == []


def test_without_a_queue_file_it_says_which(make_run):
    run = make_run({"a": {}})
    run.durable.queue("q1").unlink()
    assert run.finish() == 43
    assert str(run.durable.queue("q1")) in run.said


def test_the_start_index_counts_lines_that_are_no_comments(make_run):
    run = make_run({"a": {}, "b": {}})
    run.durable.queue("q1").write_text(
        "# all\nconfigs/a.json count\n\n  # more\nconfigs/b.json count 3\n"
    )
    assert run.finish(start_index=1) == 0
    assert [run.state(cell) for cell in "ab"] == ["queued", "verified"]


def test_a_queue_begins_with_the_named_cell_though_a_line_above_was_commented_out(make_run):
    run = make_run({"a": {}, "b": {}, "c": {}})
    queue = run.durable.queue("q1")
    queue.write_text(queue.read_text().replace("configs/a", "# configs/a"))
    assert run.finish("q1", 1, "b") == 0
    assert [run.state(cell) for cell in "abc"] == ["queued", "verified", "verified"]
    assert run.events("agent.started")[0].data["start_cell"] == "b"
    queue.write_text(queue.read_text().replace("configs/b", "configs/z"))
    assert run.finish("q1", 1, "b") == 43
    assert "to begin with b, which has no line any more" in run.said


def test_a_cell_whose_line_is_commented_out_meanwhile_is_not_run(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {}, "c": {}})
    agent = run.start()
    run.wait_for_step("a")
    queue = run.durable.queue("q1")
    queue.write_text(queue.read_text().replace("configs/b", "# configs/b"))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert [run.state(cell) for cell in "abc"] == ["verified", "queued", "verified"]
    assert [text.split(": ")[1] for text in run.warnings("queue_edited")] == [
        "b was commented out. What has run stays as it is"
    ]


def test_lines_without_epochs_where_the_job_has_none_are_failed_cells_and_the_queue_goes_on(
    make_run,
):
    run = make_run({"a": {}, "b": {}, "c": {}}, command=TAKES_EPOCHS)
    run.durable.queue("q1").write_text("configs/a.json t\nconfigs/b.json t\nconfigs/c.json t 3\n")
    assert run.finish() == 1
    assert [run.state(cell) for cell in "abc"] == ["failed", "failed", "verified"]
    assert all("epochs" in event.data["reason"] for event in run.events("cell.failed"))


def test_a_line_that_was_never_attempted_does_not_part_two_that_fail_alike(make_run):
    faulty = {"exits": [1, 0], "prints": "ModuleNotFoundError: No module named 'timm'"}
    cells = {"a": faulty, "b": {}, "c": faulty, "d": {}}
    run = make_run(cells, command=TAKES_EPOCHS)
    lines = ["configs/a.json t 3", "configs/b.json t", "configs/c.json t 3", "configs/d.json t 3"]
    run.durable.queue("q1").write_text("".join(f"{line}\n" for line in lines))
    assert run.finish() == 43
    assert [run.state(cell) for cell in "abcd"] == ["failed", "failed", "failed", "queued"]


# --- how a config's path is spelled


def test_a_config_is_found_however_its_line_spells_it(make_run):
    stored = unicodedata.normalize("NFD", "größe")
    run = make_run({"a": {}, "b": {}, "c": {}, stored: {}, "é": {}})
    lines = ["./configs/a.json", "configs//b.json", ".//configs/./c.json", "configs/größe.json"]
    lines.append(f"configs/{unicodedata.normalize('NFD', 'é')}.json")
    run.durable.queue("q1").write_text("".join(f"{line} t 3\n" for line in lines))
    assert run.finish() == 0
    handed = {event.cell: event.data["cfg"] for event in run.events("cell.started")}
    # Each as it lies in the release: on Linux another form is another file.
    assert handed == {
        "a": "configs/a.json",
        "b": "configs/b.json",
        "c": "configs/c.json",
        "größe": f"configs/{stored}.json",
        "é": "configs/é.json",
    }
    assert [manifest.read_manifest(run.durable.manifest(cell)).cfg for cell in handed] == [
        *handed.values()
    ]


def test_a_line_whose_config_cannot_be_told_fails_its_cell_and_the_queue_goes_on(make_run):
    stored = unicodedata.normalize("NFD", "größe")
    run = make_run({stored: {}, "größe": {}, "b": {}})
    run.durable.queue("q1").write_text("configs/größe.json t 3\ntrain.py/none.json t 3\n")
    run.append("configs/b.json t 3")
    assert run.finish() == 1
    assert [run.state(cell) for cell in ("größe", "none", "b")] == ["failed", "failed", "verified"]
    twins, lacking = (event.data for event in run.events("cell.failed"))
    assert twins["failure"] == lacking["failure"] == "NOCFG"
    assert "two files" in twins["reason"]
    assert "push" in lacking["reason"]


# --- more than one


def test_the_second_agent_of_a_queue_leaves_the_first_alone(make_run):
    run = make_run({"a": {"gate": 1}})
    first = run.start()
    run.wait_for_step("a")
    assert run.finish() == 75
    assert "q1" in run.said
    assert "already running" in run.said
    run.open_gate()
    assert first.wait(LIMIT_S) == 0
    assert run.life("a") == LIFE


def test_a_cell_in_two_queues_is_run_by_one_of_them(make_run):
    run = make_run({"a": {}})
    run.durable.queue("q2").write_text("configs/a.json count 3\n")
    agents = [run.start("q1"), run.start("q2")]
    codes = [agent.wait(LIMIT_S) for agent in agents]
    lives = [run.life("a", queue) for queue in ("q1", "q2")]
    assert sorted(lives) == [[], LIFE]
    assert len(run.starts("a", "box-a") + run.starts("a", "box-b")) == 1
    other = "q1" if lives[1] else "q2"
    assert "claimed" in run.warnings("claimed_elsewhere", other)[0]
    done = dict(zip(("q1", "q2"), codes, strict=True))
    [ended] = run.events("queue.done", queue=other)
    # The other's own end depends on whether the cell was verified by then.
    assert done.pop(other) == (1 if "reason" in ended.data else 0)
    assert [*done.values()] == [0]


def test_a_cell_that_another_queue_has_verified_leaves_nothing_open(make_run):
    run = make_run({"a": {}})
    run.durable.queue("q2").write_text("configs/a.json count 3\n")
    assert run.finish("q1") == 0
    assert run.finish("q2") == 0
    assert "reason" not in run.events("queue.done", queue="q2")[0].data


def test_a_cell_that_another_queue_has_and_has_not_verified_is_neither_done_nor_running(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    first = run.start()
    run.wait_for_step("a")
    first.kill()
    first.wait()
    os.kill(attempt.read_running(run.scratch().running("a")).pid, signal.SIGKILL)
    claim = attempt.Claim("a", "q2", "box-b", "2026-11-22T02:00:00.000Z")
    run.durable.claim("a").write_bytes(codec.to_document(claim))
    run.open_gate()
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["queued", "verified"]
    assert "a belongs to another queue" in run.events("queue.done")[0].data["reason"]
    assert len(run.events("cell.skipped")) == 1


def test_a_line_that_cannot_be_read_leaves_the_queue_open(make_run):
    run = make_run({"a": {}})
    run.append("configs/b.json count many")
    assert run.finish() == 1
    assert run.state("a") == "verified"
    assert "line 2 cannot be read" in run.events("queue.done")[0].data["reason"]


# --- how cells end


def test_what_cannot_be_published_is_kept_and_judged_anew_without_training(make_run):
    run = make_run({"a": {"writes": [""]}})
    assert run.finish() == 1
    (run.scratch("box-a").out("a") / "m.json").write_text('{"step": 3}')
    assert run.finish() == 0
    assert len(run.starts("a")) == 1
    assert [event.type for event in run.events("cell.verified")] == ["cell.verified"]


def test_each_end_of_a_cell_has_its_consequence_and_the_next_cell_runs(make_run):
    cells = {
        "final": {"exits": [42]},
        "busy": {"exits": [75, 0]},
        "leaves": {"exits": [85, 0], "steps": 2},
        "unasked": {"exits": [85, 0], "steps": 0},
        "faulty": {"exits": [1, 0], "prints": "ValueError: the halves differ"},
        "nothing": {"writes": [None]},
        "good": {},
        "empty": {"writes": [""]},
        "nan": {"writes": ['{"step": NaN}']},
        "keyless": {"writes": ['{"loss": 1}']},
    }
    run = make_run(cells)
    assert run.finish() == 1
    found = {event.cell: event.data for event in run.events("cell.failed")}
    assert {cell: data["failure"] for cell, data in found.items()} == {
        "final": "EXIT42",
        "unasked": "UNASKED",
        "faulty": "EXIT1",
        "nothing": "NO-ART",
        "empty": "UNFIT",
        "nan": "BAD-ART",
        "keyless": "BAD-ART",
    }
    assert found["faulty"]["reason"] == "ValueError: the halves differ"
    assert "m.json" in found["nothing"]["reason"]
    assert "step" in found["keyless"]["reason"]
    for cell in ("busy", "leaves"):
        assert run.life(cell) == ["claimed", "started", "retried", *LIFE[1:]]
        assert len(run.starts(cell)) == 2
    assert run.life("good") == LIFE
    assert run.events("queue.done")[0].data["verified"] == 3
    assert (run.durable.cell("faulty") / "faulty.log").exists()


def test_a_later_agent_tries_again_what_failed_but_not_what_is_final(make_run):
    run = make_run({"final": {"exits": [42, 0]}, "faulty": {"exits": [1, 0]}})
    assert run.finish() == 1
    assert run.finish() == 1
    assert run.state("faulty") == "verified"
    assert run.state("final") == "failed"
    assert len(run.starts("final")) == 1
    assert run.events("queue.done")[-1].data["failed"] == 1


def test_a_later_agent_runs_again_what_was_published_and_found_bad(make_run):
    run = make_run({"a": {"writes": ['{"step": NaN}', '{"step": 2}']}})
    assert run.finish() == 1
    assert run.events("cell.failed")[0].data["failure"] == "BAD-ART"
    assert run.finish() == 0
    assert run.life("a").count("verified") == 1
    assert len(run.starts("a")) == 2
    assert run.result("a") == {"step": 2}
    kept = list((run.durable.root / "replaced").iterdir())
    assert [(folder / "m.json").read_text() for folder in kept] == ['{"step": NaN}']


@pytest.mark.parametrize("code", [43, 3])
def test_a_cell_can_stop_the_queue(make_run, code):
    run = make_run({"a": {"exits": [code, 0]}, "b": {}})
    assert run.finish() == 43
    assert run.state("a") == "failed"
    assert run.state("b") == "queued"
    assert types(run)[-2:] == ["queue.stopped", "agent.stopped"]
    assert "q1 stopped: a:" in run.said
    assert run.finish() == 0
    assert [run.state(cell) for cell in "ab"] == ["verified", "verified"]


def test_two_cells_that_fail_alike_and_fast_stop_the_queue(make_run):
    faulty = {"exits": [1, 0], "prints": "ModuleNotFoundError: No module named 'timm'"}
    run = make_run({"a": faulty, "b": faulty, "c": {}})
    assert run.finish() == 43
    assert [run.state(cell) for cell in "abc"] == ["failed", "failed", "queued"]
    assert "timm" in run.said
    assert run.finish() == 0
    assert run.state("c") == "verified"


def test_a_cell_that_is_always_busy_comes_to_an_end(make_run):
    run = make_run({"a": {"exits": [75]}, "b": {}})
    assert run.finish() == 1
    assert run.life("a") == ["claimed", *["started", "retried"] * 2, "started", "failed"]
    assert run.state("b") == "verified"


def test_a_training_interpreter_that_is_not_there_stops_the_queue_and_is_named(make_run):
    run = make_run({"a": {}, "b": {}}, training_python="/no/such/python")
    assert run.finish() == 43
    assert "/no/such/python" in run.said
    assert run.state("b") == "queued"


def test_a_cell_that_leaves_pipes_where_the_agent_reads_is_one_bad_cell(make_run):
    run = make_run({"a": {"pipes": 1, "exits": [1, 0]}, "b": {}})
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["failed", "verified"]
    for name in ("progress.jsonl", "latest.json"):
        (run.out("a") / name).unlink()  # the script itself would wait for them
    assert run.finish() == 0
    assert run.state("a") == "verified"
    assert run.warnings("log_replaced")


# --- being told to end


def test_a_training_that_had_ended_when_a_signal_came_is_a_success(make_run):
    """Where its artifacts load, and it is known that no work was left."""
    nan = ['{"step": NaN}', '{"step": 1}']
    cells = {
        "ended": {"dies_at_end": 9, "epoch": 99},
        "aborted": {"aborts_at_exit": True},
        "bad": {"dies_at_end": 9, "epoch": 99, "writes": nan},
        "left": {"dies_at_end": 15, "prints": "Epoch 1/3"},
        "untold": {"dies_at_end": 9},  # who knows; it goes on from its checkpoint
    }
    run = make_run(cells)
    assert run.finish() == 0
    retried = {event.cell: event.data for event in run.events("cell.retried")}
    assert {cell: data["failure"] for cell, data in retried.items()} == {
        "bad": "137-N",
        "left": "TERM",
        "untold": "137-N",
    }
    assert retried["bad"]["class"] == "RESUME_SAME"
    why = {
        "ended": "ended by a signal after it had written everything",
        "aborted": "torch's own threads aborted it after its script's end",
    }
    for cell, words in why.items():
        [first] = [event for event in run.events("cell.succeeded") if event.cell == cell]
        assert first.data["attempt"] == 1
        assert words in first.data["warnings"][0]


def test_a_box_with_a_dead_gpu_takes_no_more_cells_and_says_which_wait(make_run):
    lost = {"exits": [1], "prints": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"}
    run = make_run({"a": lost, "b": {}, "c": {}})
    assert run.finish() == 43
    [stopped] = run.events("queue.stopped")
    assert (
        "This box takes no more cells; 3 cells for another box: a, b, c" in stopped.data["reason"]
    )
    assert "boxcar move --cell a --queue QUEUE" in stopped.data["reason"]
    [failed] = run.events("cell.failed")
    assert failed.data["class"] == "OTHER_BOX"
    assert "fallen off the bus" in failed.data["evidence"][0]["text"]


def test_a_persons_own_signature_comes_before_boxcars(make_run):
    own = OwnSignature("STORE", "FIX_DATA", r"store \S+ is locked", "our store was locked")
    cells = {"a": {"exits": [1], "prints": "KeyError: store x is locked"}}
    run = make_run(cells, signatures=(own,))
    assert run.finish() == 1
    [failed] = run.events("cell.failed")
    assert (failed.data["failure"], failed.data["class"]) == ("STORE", "FIX_DATA")
    assert failed.data["reason"] == "our store was locked: KeyError: store x is locked"


def test_two_cells_that_fail_alike_of_what_is_theirs_alone_stop_no_queue(make_run):
    memory = {"exits": [1], "prints": "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"}
    run = make_run({"a": memory, "b": memory, "c": {}})
    assert run.finish() == 1
    assert [event.cell for event in run.events("cell.verified")] == ["c"]


def test_told_to_end_by_a_signal_the_cell_saves_and_the_next_agent_goes_on(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": 85}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    agent.terminate()
    assert agent.wait(LIMIT_S) == 85
    assert [event.data["by"] for event in run.events("queue.stopped", "agent.stopped")] == [
        "signal",
        "signal",
    ]
    assert run.life("a") == ["claimed", "started", "preempted"]
    assert types(run)[-2:] == ["queue.stopped", "agent.stopped"]
    assert "SIGTERM" in run.events("agent.stopped")[0].data["reason"]
    run.open_gate()
    assert run.finish() == 0
    assert run.result("a") == {"step": 3, "first": 1, "starts": 2}
    assert run.life("a").count("verified") == 1


def test_a_script_that_ends_well_when_it_is_told_to_leave_is_not_taken_for_finished(make_run):
    run = make_run({"a": {"gate": 1, "steps": 3, "on_term": 0}})
    agent = run.start()
    run.wait_for_step("a")
    (run.out("a") / "m.json").write_text('{"step": 1}')  # the best one so far
    agent.terminate()
    agent.wait(LIMIT_S)
    assert run.state("a") == "preempted"
    run.open_gate()
    assert run.finish() == 0
    assert run.result("a")["step"] == 3


@pytest.mark.parametrize(
    ("want", "life", "state"),
    [("drain", LIFE, "verified"), ("stop", ["claimed", "started", "preempted"], "preempted")],
)
def test_a_control_file_drains_or_stops(make_run, want, life, state):
    run = make_run({"a": {"gate": 1, "on_term": 85}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    run.ask(want)
    if want == "drain":
        run.wait_for_looks()  # and must not end the cell
        assert run.life("a") == ["claimed", "started"]
        run.open_gate()
    agent.wait(LIMIT_S)
    assert run.life("a") == life
    assert run.state("a") == state
    assert run.state("b") == "queued"
    assert want in run.events("queue.stopped")[0].data["reason"]
    assert [event.data["by"] for event in run.events("queue.stopped", "agent.stopped")] == [
        want
    ] * 2


def test_after_the_budgets_instant_the_cell_ends_and_no_other_begins(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    limit = control.Control(control.RUN, timestamp.utc_now(), begin_until=timestamp.utc_now())
    atomic.write_whole(run.durable.control("q1"), codec.to_document(limit))
    run.wait_for_looks()
    assert run.life("a") == ["claimed", "started"], "what runs runs on"
    run.open_gate()
    agent.wait(LIMIT_S)
    assert (run.state("a"), run.state("b")) == ("verified", "queued")
    ends = run.events("queue.stopped", "agent.stopped")
    assert [event.data["by"] for event in ends] == [end_reason.BUDGET] * 2


@pytest.mark.parametrize(("resume", "words"), [("latest.json", "a"), ("never_*.pt", "no")])
def test_a_stop_says_that_a_checkpoint_was_saved_only_where_one_is_there(make_run, resume, words):
    run = make_run({"a": {"gate": 1, "on_term": 85}}, resume=resume)
    agent = run.start()
    run.wait_for_step("a")
    run.ask("stop")
    agent.wait(LIMIT_S)
    [event] = run.events("cell.preempted")
    assert event.data["reason"] == f"it was asked to stop, and saved {words} checkpoint"


def test_a_script_that_does_not_leave_is_killed_and_the_agent_ends(make_run):
    run = make_run({"a": {"gate": 1, "on_term": "ignore"}})
    agent = run.start()
    pid = run.wait_for_step("a")
    agent.send_signal(signal.SIGINT)
    agent.wait(LIMIT_S)
    assert not run.is_alive(pid)
    assert run.state("a") == "preempted"


@pytest.mark.parametrize("without", ["nothing", "environment"])
def test_a_daemon_of_one_cell_does_not_live_on_beside_the_next(make_run, without):
    run = make_run({"a": {"child": without}, "b": {}})
    assert run.finish() == 0
    assert not run.is_alive(int((run.out("a") / "child").read_text()))
    assert run.state("b") == "verified"


# --- the durable tier


def test_a_full_tier_publishes_nothing_and_the_next_agent_settles_what_is_there(
    make_run, small_tier
):
    space = {"seen": small_tier.seen, "enter": small_tier.enter, "full_disk_s": 0.0}
    run = make_run({"a": {"gate": 1}}, **space)
    agent = run.start()
    run.wait_for_step("a")
    small_tier.fill(left_bytes=1 << 20)
    run.open_gate()
    assert agent.wait(LIMIT_S) == 3
    assert "MB are free" in run.said
    assert not run.durable.manifest("a").exists()
    assert run.state("a") == "succeeded"
    small_tier.make_room()
    assert run.finish() == 0
    assert run.life("a").count("verified") == 1
    assert len(run.starts("a")) == 1
    assert run.result("a")["starts"] == 1


def test_a_tier_without_a_byte_left_damages_no_journal(make_run, small_tier, until):
    space = {"seen": small_tier.seen, "enter": small_tier.enter, "full_disk_s": 0.0}
    run = make_run({"a": {"gate": 1}}, **space)
    agent = run.start()
    run.wait_for_step("a")
    small_tier.fill(left_bytes=0)
    run.open_gate()
    assert agent.wait(LIMIT_S) == 3
    assert str(run.plan.durable_dir) in run.said
    small_tier.make_room()
    until(lambda: run.scratch().done("a", 1).exists())
    assert run.finish() == 0
    assert run.life("a").count("verified") == 1
    assert len(run.starts("a")) == 1


def test_a_full_tier_is_waited_for_and_the_queue_goes_on_by_itself(make_run, small_tier):
    run = make_run({"a": {"gate": 1}, "b": {}}, seen=small_tier.seen, enter=small_tier.enter)
    agent = run.start()
    run.wait_for_step("a")
    small_tier.fill(left_bytes=1 << 20)
    run.open_gate()
    warning = run.wait_for_warning("disk_full")
    assert "MB are free" in warning.data["text"]
    run.wait_for_looks()
    small_tier.make_room()
    assert agent.wait(LIMIT_S) == 0
    assert [run.life(cell) for cell in "ab"] == [LIFE, LIFE]


# --- the box's own disk


def on_small_disk(run_of: Any, disk: Any, cells: dict[str, Any], **changes: Any) -> Any:
    """A run whose scratch of box-a is this disk; the durable tier lies beside it."""
    boxes = tuple(Box(name, str(disk.folder), str(disk.folder / "none")) for name in ("box-a",))
    places = {"durable_dir": str(disk.folder.parent / "durable"), "queues": {"q1": "box-a"}}
    return run_of(cells, seen=disk.seen, enter=disk.enter, boxes=boxes, **places, **changes)


def test_a_full_disk_is_named_and_waited_for_and_the_cell_goes_on_from_its_checkpoint(
    make_run, small_tier
):
    run = on_small_disk(make_run, small_tier, {"a": {"steps": 3, "fills": 1}, "b": {}})
    agent = run.start()
    retried = run.wait_for("cell.retried", "a")
    assert retried.data["failure"] == "DISK"
    assert "MB are free" in retried.data["reason"]
    assert run.wait_for_warning("disk_full").seq > retried.seq
    run.wait_for_looks()
    (run.out("a") / "filler").unlink()
    assert agent.wait(LIMIT_S) == 0
    assert run.result("a") == {"step": 3, "first": 1, "starts": 2}
    assert run.state("b") == "verified"


def test_a_disk_that_stays_full_ends_the_queue_by_its_journal_whatever_becomes_of_its_log(
    make_run, small_tier
):
    run = on_small_disk(make_run, small_tier, {"a": {"fills": 1}}, full_disk_s=0.0)
    run.log = Path("/dev/full")
    assert run.finish() == 3
    assert types(run)[-3:] == ["cell.retried", "queue.stopped", "agent.stopped"]
    assert "MB are free" in run.events("queue.stopped")[0].data["reason"]
    (run.out("a") / "filler").unlink()
    assert run.finish() == 0
    assert run.state("a") == "verified"


def test_a_queue_that_waits_for_room_can_be_stopped(make_run, small_tier):
    run = on_small_disk(make_run, small_tier, {"a": {"fills": 1}})
    agent = run.start()
    run.wait_for_warning("disk_full")
    run.ask("stop")
    assert agent.wait(LIMIT_S) == 0
    assert [event.data["by"] for event in run.events("queue.stopped")] == ["stop"]


def test_a_tier_that_becomes_read_only_loses_no_result(make_run, small_tier, until):
    run = make_run({"a": {"gate": 1}}, seen=small_tier.seen, enter=small_tier.enter)
    agent = run.start()
    run.wait_for_step("a")
    small_tier.make_read_only()
    run.open_gate()
    assert agent.wait(LIMIT_S) not in (0, 1)
    assert "Read-only file system" in run.said
    assert str(run.plan.durable_dir) in run.said
    small_tier.make_writable()
    until(lambda: run.scratch().done("a", 1).exists())
    assert run.finish() == 0
    assert run.life("a").count("verified") == 1
    assert len(run.starts("a")) == 1


# --- waits

AWAY = "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hf.co'): Max retries"


def test_a_cell_that_waits_for_the_network_lets_others_go_and_a_new_launch_tries_at_once(make_run):
    cells = {"a": {"exits": [1, 1, 0], "prints": AWAY}, "b": {}, "c": {}}
    run = make_run(cells, later_s=3600.0)
    agent = run.start()
    run.wait_for("cell.verified", "c")
    assert (run.state("a"), len(run.starts("a"))) == ("retrying", 2)
    assert run.state("b") == "verified"
    assert [event.data["wait_s"] for event in run.events("cell.retried")] == [60, 300]
    assert agent.poll() is None, "a queue with a cell that waits is not done"
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    run.ask("run")
    assert run.finish() == 0
    assert (run.state("a"), len(run.starts("a"))) == ("verified", 3)


def test_a_queue_is_not_done_before_what_waits_was_tried_again(make_run):
    run = make_run({"a": {"exits": [1, 1, 1, 0], "prints": AWAY}})
    assert run.finish() == 0
    assert run.life("a").count("retried") == 3
    assert run.events("queue.done")[0].data["verified"] == 1


def test_who_comes_after_a_cell_that_waits_waits_too_and_is_not_blocked(make_run):
    run = make_run({"a": {"exits": [1, 1, 0], "prints": AWAY}, "b": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3\nconfigs/b.json count 3 after=a\n")
    assert run.finish() == 0
    assert run.life("b") == LIFE


def test_a_line_that_comes_while_copies_are_waited_for_is_begun(make_run, tmp_path):
    """An agent tries for ten minutes after the last cell; here nothing ever comes to be there."""
    (tmp_path / "home").write_text("no folder")
    run = make_run({"a": {}, "b": {}}, second=f"file://{tmp_path}/home")
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.verified", "a")
    run.wait_for_warning("copy_failed")
    run.append("configs/b.json count 3")
    run.wait_for("cell.verified", "b")
    assert run.warnings("not_copied") == []
    run.ask("stop")
    assert agent.wait(LIMIT_S) == 0
    assert run.warnings("not_copied") != []


# --- names of ours


def test_who_leaves_only_a_name_of_ours_is_told_what_to_rename_and_the_queue_goes_on(make_run):
    train = (
        "import json, pathlib, sys\n"
        "config = json.loads(pathlib.Path(sys.argv[1]).read_text())\n"
        "(pathlib.Path(sys.argv[2]) / config['leaves']).write_text(json.dumps({'step': 1}))\n"
    )
    cells = {"a": {"leaves": "manifest.json"}, "b": {"leaves": "m.json"}}
    run = make_run(cells, train=train, artifacts=(Artifact("m*.json"),), resume=None)
    assert run.finish() == 1
    [failed] = run.events("cell.failed")
    assert (failed.cell, failed.data["failure"]) == ("a", "NO-ART")
    assert "manifest.json has a name that Boxcar uses itself: rename it" in failed.data["reason"]
    assert run.life("b") == LIFE


# --- secrets


def test_no_secret_leaves_the_boxs_own_disk(make_run):
    secret, token = "s3cr3t-0123456789", "t0ken-9876543210"
    run = make_run({"a": {"gate": 1}, "b": {"exits": [1]}})
    credentials = Path(run.plan.box("box-a").credentials)
    webhook = {
        "url": f"http://127.0.0.1:1/{token}",
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    }
    credentials.write_text(json.dumps({"env": {"API_KEY": secret}, "webhooks": [webhook]}))
    credentials.chmod(0o600)
    agent = run.start()
    run.wait_for_step("a")
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        assert not any(word.encode() in line for word in (secret, token, "MfKQ9r8GKY"))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 1
    environment = run.out("a") / "environment.json"
    assert json.loads(environment.read_text())["API_KEY"] == secret
    for path in run.root.rglob("*"):
        if path.is_file() and path not in (credentials,) and path.name != "environment.json":
            data = path.read_bytes()
            assert not any(word.encode() in data for word in (secret, token, "MfKQ9r8GKY")), path


def give_to_q2(run: Any, cell: str) -> None:
    """What `move` leaves of the cell on the tier."""
    claim = attempt.Claim(cell, "q2", "box-b", "2026-11-22T00:00:00.000Z", moved_from="q1")
    atomic.write_whole(run.durable.claim(cell), codec.to_document(claim))


def test_an_agent_that_comes_back_ends_an_attempt_at_a_cell_that_is_anothers_by_now(
    make_run, until
):
    """Before it starts another cell, and it publishes nothing of it."""
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    script = run.wait_for_step("a")
    agent.kill()
    agent.wait()
    give_to_q2(run, "a")
    assert run.finish() == 1
    assert not run.is_alive(script)
    assert run.state("a") == "queued" and run.life("b")[-1] == "verified"
    types = [(event.type, event.cell) for event in run.events("cell.skipped", "cell.claimed")]
    assert types.index(("cell.skipped", "a")) < types.index(("cell.claimed", "b"))
    assert not run.durable.manifest("a").exists()


def test_a_running_attempt_at_a_cell_that_was_given_away_is_ended(make_run, until):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    script = run.wait_for_step("a")
    give_to_q2(run, "a")
    assert agent.wait(LIMIT_S) == 1
    assert not run.is_alive(script) and not run.durable.manifest("a").exists()
    assert (run.state("a"), run.state("b")) == ("queued", "verified")


def test_a_result_on_scratch_of_a_cell_that_was_given_away_is_not_published(make_run):
    run = make_run({"a": {}})
    run.durable.cell("a").write_bytes(b"in the way")  # so that the first agent cannot publish
    assert run.finish() != 0
    run.durable.cell("a").unlink()
    give_to_q2(run, "a")
    run.finish()
    assert run.state("a") == "queued" and not run.durable.manifest("a").exists()


def test_the_queue_that_got_a_cell_says_from_which(make_run):
    run = make_run({"a": {"steps": 2}})
    give_to_q2(run, "a")
    run.durable.queue("q2").write_text("configs/a.json count 3\n")
    assert run.finish("q2") == 0
    [claimed] = run.events("cell.claimed", queue="q2")
    assert (claimed.cell, claimed.data["from"]) == ("a", "q1")
    assert run.state("a", queue="q2") == "verified"


def test_an_agent_for_one_cell_settles_it_and_leaves_the_next_to_the_next_agent(make_run):
    run = make_run({"a": {}, "b": {}})
    run.enter = ("env", "BOXCAR_ONE_CELL=1")
    assert run.finish() == 85
    assert [run.life(cell) for cell in "ab"] == [LIFE, []]
    assert types(run)[-1] == "agent.stopped"
    assert run.finish() == 0
    assert [run.life(cell) for cell in "ab"] == [LIFE, LIFE]
    assert types(run)[-2:] == ["queue.done", "agent.stopped"]
