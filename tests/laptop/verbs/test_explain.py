from __future__ import annotations

import json
from dataclasses import replace

import pytest
from run_on_disk import (
    RELEASE,
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

from boxcar.laptop.common import show
from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.relaunch import starts_over
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.verbs.explain import explain, explanation
from boxcar.laptop.verbs.explain_history import history_of_cell, tell_history
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, journal
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.receipt import BYTES, WHY_BYTES, CellReceipt, Finding, Teardown


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    run = make_run(tmp_path)
    return RunOnDisk(replace(run.project, profile=load_profile("local", tmp_path)))


def publish(run: RunOnDisk, cell: str, problems: tuple[str, ...] = (), *others: Finding) -> None:
    at = from_now(0)
    manifest = Manifest(
        "demo", cell, "queue_1", "box-a", RELEASE, 2, "recon", f"{cell}.yaml", 3, at, at,
        (FileRecord("best.pth", 1_500_000, "00" * 32),),
    )  # fmt: skip
    finding = Finding("best.pth", "torch", problems)
    receipt = CellReceipt("demo", cell, 2, "cd" * 32, at, (finding, *others))
    run.site.tier.cell(cell).mkdir()
    atomic.write_whole(run.site.tier.manifest(cell), codec.to_document(manifest))
    atomic.write_whole(run.site.tier.receipt(cell), codec.to_document(receipt))


def test_a_cells_history_is_told_in_sentences_with_times(run, capsys):
    retried = {"cell": "a", "attempt": 1, "failure": "NET", "reason": "no route", "wait_s": 60.0}
    retried["seconds"] = 83.0
    run.say("queue_1", agent_started(), ("cell.claimed", {"cell": "a"}), cell_started("a"))
    run.say("queue_1", cell_progress("a", 10, epoch=1, loss=0.5), cell_got_worse("a"))
    run.say("queue_1", ("cell.retried", retried))
    run.say("queue_1", cell_started("a", attempt=2), cell_failed("a", is_final=True), queue_done())
    assert explain(run.project, cell="a") == 0
    said = capsys.readouterr()
    for sentence in (
        "claimed by queue_1 on box-a",
        "attempt 1 started: configs/a.yaml recon, 3 epochs, 1 rank",
        "attempt 1: step 10, epoch 1, loss 0.5",
        "attempt 1: val_loss 5.725 (best 0.0667)",
        "attempt 1 failed after 1m23s (NET: no route); retry in 60.0 s",
        "not retried with this release",
        "in queue_1, index 0, on box-a",
    ):
        assert sentence in said.out
    assert "next: invoke logs --cell a" in said.err
    first = journal.read_journal(run.journal("queue_1").path).events[1]
    assert any(first.at in line and "claimed" in line for line in said.out.splitlines())


def test_a_cell_is_explained_in_the_language_that_is_asked_for(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"), cell_failed("a", is_final=True))
    show.begin()
    show.speak("zh")
    assert explain(run.project, cell="a") == 0
    assert "失败" in capsys.readouterr().out
    show.begin()
    assert explain(run.project, cell="a") == 0
    assert "失败" not in capsys.readouterr().out
    with pytest.raises(InputError, match="--lang"):
        show.speak("fr")


def test_a_cell_that_comes_after_a_failed_one_is_explained_by_it(tmp_path, capsys):
    lines = {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3 after=a"]}
    run = RunOnDisk(replace(make_run(tmp_path, lines).project))
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    assert explain(run.project, cell="b") == 0
    said = capsys.readouterr()
    assert "blocked by a, which failed" in said.out
    assert "next: invoke explain --cell a  (it waits for a, which failed)" in said.err


def test_a_failed_cell_whose_line_is_commented_out_is_to_be_given_up(tmp_path, capsys):
    run = RunOnDisk(replace(make_run(tmp_path, {"queue_1": ["configs/b.yaml recon 3"]}).project))
    run.say("queue_1", agent_started(), cell_failed("a"), queue_done())
    explain(run.project, cell="a")
    assert "next: invoke down --abandon a --because '…'" in capsys.readouterr().err
    queue = look_at_run(run.site, from_now(0)).queue("queue_1")
    assert starts_over(queue, RELEASE, ["b"]) is None
    assert "1 failed cell starts over, changed or not: a" in str(starts_over(queue, RELEASE, ["a"]))


def test_a_row_of_reports_is_one_moment_that_counts_them(run):
    reports = [cell_progress("a", step) for step in range(1, 101)]
    run.say("queue_1", agent_started(), cell_started("a"), *reports)
    moments = explanation(run.site, "a").history
    assert len(moments) == 2
    assert "step 1 … attempt 1: step 100" in moments[1].what
    assert "(100 reports)" in moments[1].what


def test_the_history_of_a_moved_cell_is_that_of_both_queues_in_order():
    def event(second: int, queue: str) -> Event:
        at = f"2026-01-01T00:00:{second:02d}.000Z"
        return Event(second, f"evt_{second}", at, "cell.started", {"cell": "a", "queue": queue})

    queues = (
        QueueView("queue_1", "box-a", events=(event(1, "queue_1"), event(3, "queue_1"))),
        QueueView("queue_2", "box-b", events=(event(2, "queue_2"), event(4, "queue_2"))),
    )
    found = history_of_cell(RunView("demo", from_now(0), queues, ()), "a")
    assert [moment.queue for moment in found] == ["queue_1", "queue_2"] * 2


def test_why_nobody_looks_into_a_file_is_told(run):
    bare = Finding("model.cbm", BYTES, facts={WHY_BYTES: "does not say how long it is"})
    publish(run, "a", (), bare)
    facts = " ".join(explanation(run.site, "a").facts)
    assert "1 bytes only" in facts and "model.cbm does not say how long it is" in facts


def test_claim_manifest_and_receipt_are_told(run):
    claim = Claim("a", "queue_1", "box-a", from_now(0))
    atomic.write_whole(run.site.tier.claim("a"), codec.to_document(claim))
    publish(run, "a")
    facts = "\n".join(explanation(run.site, "a").facts)
    assert "claim: queue_1 on box-a" in facts
    assert "on the tier: attempt 2 on box-a, release abababababab, 1 file, 1.5 MB" in facts
    assert "receipt: good: 1 loaded" in facts
    assert "in the results: none yet" in facts


def test_after_a_teardown_nothing_is_said_to_be_missing_on_the_tier(run):
    ended = Teardown("demo", "d", "remove", from_now(0), "typed", finished_at=from_now(0))
    run.project.results.root.mkdir(parents=True)
    atomic.write_whole(run.project.results.teardown, codec.to_document(ended))
    run.site.tier.root.rename(run.site.tier.root.with_name("gone"))
    facts = "\n".join(explanation(run.site, "a").facts)
    assert facts.count("not checked: the run was torn down") == 3
    assert "in the results: none yet" in facts


def test_bad_and_damaged_papers_are_told_and_hide_nothing(run):
    publish(run, "a", problems=("NaN in 'w'",))
    run.site.tier.claim("a").write_text("{")
    facts = "\n".join(explanation(run.site, "a").facts)
    assert "receipt: best.pth: NaN in 'w'" in facts
    assert "claim: cannot be read" in facts


@pytest.mark.parametrize(
    ("events", "is_alive", "command"),
    [
        ([], False, "invoke launch"),
        ([], True, "invoke watch"),
        ([cell_started("a")], True, "invoke logs --cell a --follow"),
        ([cell_started("a")], False, "invoke launch"),
        ([cell_failed("a")], False, "invoke logs --cell a"),
        ([cell_failed("a", is_final=True)], False, "invoke logs --cell a"),
        ([cell_failed("a")], True, "invoke drain --box box-a (then launch)"),
        ([cell_failed("a", is_final=True)], True, "invoke drain --box box-a (then launch)"),
        ([cell_verified("a")], False, "invoke pull"),
    ],
)
def test_the_next_command_depends_on_where_the_cell_is(run, events, is_alive, command):
    run.say("queue_1", agent_started(), *events)
    if is_alive:
        with held(run.site.tier.lock("queue_1")):
            assert str(explanation(run.site, "a").next.command) == command
    else:
        assert str(explanation(run.site, "a").next.command) == command


def test_what_is_the_matter_with_its_queue_is_told(run):
    run.say("queue_1", agent_started(), ("queue.stopped", {"reason": "the disk is full"}))
    facts = explanation(run.site, "b").facts
    assert "queue_1 is stopped: the disk is full" in facts


def test_a_cell_of_a_damaged_journal_is_unknown(run):
    run.site.tier.journal("queue_1").write_text("no journal\n")
    found = explanation(run.site, "a")
    assert (found.state, str(found.next.command)) == ("unknown", "invoke status")


def test_an_event_that_lacks_fields_or_is_new_is_told_as_far_as_it_goes():
    failed = tell_history(Event(1, "e", "t", "cell.failed", {"reason": "{failure}"}))
    assert failed.startswith("attempt ? failed after ? (?: {failure}); ")
    assert tell_history(Event(1, "e", "t", "cell.teleported", {"cell": "a"})) == "cell.teleported"
    passed = {"cell": "a", "reason": "a is claimed by all@b on b; it is skipped here"}
    assert tell_history(Event(1, "e", "t", "cell.skipped", passed)) == passed["reason"]


def test_gpus_that_idled_are_a_moment_of_the_cell() -> None:
    data = {"cell": "a", "attempt": 2, "percent": 3, "seconds": 1260}
    said = tell_history(Event(1, "e", "2026-01-02T03:04:05.000Z", "box.idle", data))
    assert said == "attempt 2: all GPUs idled for 21m00s; the busiest was at 3 %"


def test_names_in_brackets_and_escapes_stay_inert(run, capsys):
    text = "[bold]\x1b[2J"
    run.say("queue_1", agent_started(), ("box.warning", {"cell": "b", "what": "w", "text": text}))
    explain(run.project, cell="b")
    out = capsys.readouterr().out
    assert "configs/b.yaml [red], 3 epochs" in out
    assert "warning: [bold]\\x1b[2J" in out
    assert "\x1b" not in out


def test_json_of_a_cell_is_one_document(run, capsys):
    run.say("queue_1", agent_started(), cell_started("a"))
    assert explain(run.project, cell="a", as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"format", "cell", "state", "facts", "verdict", "history", "next"}
    assert found["verdict"] is None
    assert found["history"][0]["what"].startswith("attempt 1 started")


def test_json_of_a_cell_that_failed_has_the_class_the_evidence_and_what_to_type(run, capsys):
    told = {"class": "OUT_OF_MEMORY", "evidence": [{"line": 7, "text": "CUDA out of memory"}]}
    oom = ("cell.failed", cell_failed("a")[1] | {"failure": "M2"} | told)
    run.say("queue_1", agent_started(), cell_started("a"), oom)
    assert explain(run.project, cell="a", as_json=True) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert (verdict["id"], verdict["class"]) == ("M2", "OUT_OF_MEMORY")
    assert verdict["evidence"] == told["evidence"]
    assert verdict["type"].startswith("invoke launch")
    assert len(verdict["ladder"]) > 3


def test_an_unknown_cell_is_refused(run):
    with pytest.raises(InputError, match="the run demo has no cell 'nope'"):
        explain(run.project, cell="nope")


def test_what_would_fail_in_the_same_way_is_to_be_changed_first(run, capsys, monkeypatch):
    oom = ("cell.failed", cell_failed("a")[1] | {"failure": "M2", "reason": "CUDA out of memory"})
    run.say("queue_1", agent_started(), cell_started("a"), oom, queue_done())
    assert explain(run.project, cell="a") == 0
    said = capsys.readouterr()
    assert said.err.endswith(
        "next: invoke launch (first reduce the batch, the model or the epochs), or invoke down "
        "--abandon a --because '…'  (fix the cause first; unchanged, it would fail again)\n"
    )
    assert "type: " not in said.out, "two answers are none"
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    explain(run.project, cell="a")
    assert "请先减小 batch、模型或 epoch" in capsys.readouterr().err


def test_what_is_not_retried_is_not_said_to_be_retried(run, capsys):
    kind, data = cell_failed("a", is_final=True)
    run.say("queue_1", agent_started(), cell_started("a"), (kind, data | {"failure": "M2"}))
    assert explain(run.project, cell="a") == 0
    said = capsys.readouterr().out
    assert "not retried with this release" in said
    assert "what happens next: not retried with this release" in said
    assert "retries it" not in said
