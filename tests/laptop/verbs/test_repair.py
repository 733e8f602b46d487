from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run
from flips import flipped
from run_on_disk import held

from boxcar.laptop.results import results_folder
from boxcar.laptop.verbs import repair as repair_verb
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.repair import repair
from boxcar.shared.errors import InputError
from boxcar.shared.files import attempt, codec, heartbeat, journal
from boxcar.shared.files.delivered import Cursor, Delivered
from boxcar.shared.files.heartbeat import Heartbeat
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.receipt import Accepted
from onbox.answers import repair as on_box


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedRun:
    """A run of one queue whose cells a and b are verified; the box answers in this process."""
    run = make_run(tmp_path)
    asked_in_process(monkeypatch)
    tier = run.site.tier
    for folder in tier.folders():
        folder.mkdir(parents=True, exist_ok=True)
    tier.journal("q1").unlink()
    log = Journal(tier.journal("q1"), {"run": "tiny", "queue": "q1", "box": "box-a"})
    log.append("agent.started", pid=1, release="r1", start_index=0)
    for cell in ("a", "b"):
        claim = attempt.Claim(cell, "q1", "box-a", log.append("cell.claimed", cell=cell).at)
        tier.claim(cell).write_bytes(codec.to_document(claim))
        log.append("cell.started", cell=cell, attempt=1)
        log.append("cell.succeeded", cell=cell, attempt=1, seconds=1.0)
        sha256 = run.site.tier.manifest(cell)
        about = {"cell": cell, "attempt": 1, "manifest_sha256": digest_of(sha256)}
        log.append("cell.synced", **about, size_bytes=1, files=1)
        log.append("cell.verified", **about, metrics={})
    beat = Heartbeat(
        "q1",
        "box-a",
        "r1",
        journal.read_journal(log.path).events[-1].at,
        1,
        "idle",
        journal=log.end,
    )
    tier.heartbeat("q1").write_bytes(codec.to_document(beat))
    return run


def asked_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from boxcar.laptop.places.local_site import LocalSite
    from boxcar.shared.wire.question import RunOnBox

    def ask(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        plan = self.plan
        where = RunOnBox(plan.run, plan.durable_dir, plan.box(box).data_dir)
        return on_box.answer(question, where)

    monkeypatch.setattr(LocalSite, "ask", ask)


def digest_of(path: Path) -> str:
    from boxcar.shared.disk import digest

    return digest.of_bytes(path.read_bytes())


def flip(path: Path, seed: int = 1) -> bytes:
    """Flip one bit of the file; what it was."""
    good = path.read_bytes()
    path.write_bytes(next(flipped(good, 1, seed)))
    return good


def write_accepted(run: FinishedRun) -> Path:
    path, sha256 = run.site.tier.accepted("a"), digest_of(run.site.tier.manifest("a"))
    made = Accepted("tiny", "a", sha256, "2026-11-22T11:00:00.000Z", ("data.pkl",), "0.1.0")
    path.write_bytes(codec.to_document(made))
    return path


def test_an_acceptance_that_nothing_proves_leads_to_verify_which_writes_it_anew(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    write_accepted(run).write_bytes(b"{")
    assert repair(run.project, is_to_write=True) == 1
    assert run.site.tier.accepted("a").read_bytes() == b"{"
    assert "verify" in capsys.readouterr().err


def kept(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*"))


def assert_put_back(run: FinishedRun, path: Path, good: bytes) -> None:
    bad = path.read_bytes()
    assert repair(run.project) == 1
    assert path.read_bytes() == bad and not kept(path), "without the flag nothing is changed"
    assert repair(run.project, is_to_write=True) == 0
    assert path.read_bytes() == good
    assert [each.read_bytes() for each in kept(path)] == [bad]
    assert repair(run.project) == 0


def test_where_nothing_is_damaged_nothing_is_said(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repair(run.project) == 0
    assert "nothing is damaged" in capsys.readouterr().err


FILES: dict[str, Callable[[FinishedRun], Path]] = {
    "journal": lambda run: run.site.tier.journal("q1"),
    "claim": lambda run: run.site.tier.claim("b"),
    "accepted": write_accepted,
    "manifest": lambda run: run.site.tier.manifest("a"),
    "plan": lambda run: run.write_release("r1", "a") / "plan.json",
    "release": lambda run: run.write_release("r1", "a") / "release.json",
}


@pytest.mark.parametrize("name", ["journal", "claim", "manifest"])
def test_one_flipped_bit_is_put_back_from_a_copy_or_the_journal(
    run: FinishedRun, name: str
) -> None:
    pull(run.project)
    path = FILES[name](run)
    assert_put_back(run, path, flip(path))


@pytest.mark.parametrize("name", ["accepted", "plan", "release"])
def test_one_flipped_bit_that_no_copy_proves_is_named_and_stays(
    run: FinishedRun, name: str
) -> None:
    path = FILES[name](run)
    flip(path)
    bad = path.read_bytes()
    assert repair(run.project, is_to_write=True) == 1
    assert path.read_bytes() == bad and not kept(path)


@pytest.mark.parametrize("name", ["journal", "manifest"])
@pytest.mark.parametrize("damage", [b"", b"rubbish\n", None])
def test_what_was_pulled_is_put_back(run: FinishedRun, name: str, damage: bytes | None) -> None:
    pull(run.project)
    path = FILES[name](run)
    good = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert repair(run.project, is_to_write=True) == 0
    assert path.read_bytes() == good


def test_a_release_is_put_back_from_where_it_was_built(run: FinishedRun) -> None:
    folder = run.write_release("r1", "a")
    good = (folder / "plan.json").read_bytes()
    here = run.project.root / ".boxcar" / "releases" / folder.name / "plan.json"
    here.parent.mkdir(parents=True)
    here.write_bytes(good)
    (folder / "plan.json").write_bytes(b"rubbish")
    assert_put_back(run, folder / "plan.json", good)


def test_a_journal_that_lost_its_tail_gets_it_back_from_the_laptop(run: FinishedRun) -> None:
    pull(run.project)
    path = run.site.tier.journal("q1")
    good = path.read_bytes()
    path.write_bytes(b"".join(good.splitlines(keepends=True)[:4]))
    assert_put_back(run, path, good)


def test_a_tail_that_nobody_has_is_said_and_is_not_made_up(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run.site.tier.journal("q1")
    cut = b"".join(path.read_bytes().splitlines(keepends=True)[:4])
    path.write_bytes(cut)
    assert repair(run.project, is_to_write=True) == 1
    assert path.read_bytes() == cut and not kept(path)
    said = capsys.readouterr()
    assert "missing" in said.err and "no good copy" in said.out


def test_a_claim_of_version_1_that_names_another_queue_is_put_right_from_the_journal(
    run: FinishedRun,
) -> None:
    path = run.site.tier.claim("b")
    path.write_bytes(
        b'{"format": "boxcar.claim/1", "cell": "b", "queue": "q3", "box": "box-a", "at": "x"}'
    )
    assert repair(run.project, is_to_write=True) == 0
    claim = attempt.read_claim(path)
    assert claim and (claim.queue, claim.box) == ("q1", "box-a")


def test_a_claim_that_a_power_cut_left_of_no_cell_is_no_damage_but_of_another_queue_it_is(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run.site.tier.claim("b")
    good = attempt.read_claim(path)
    assert good
    path.write_bytes(codec.to_document(replace(good, cell="")))
    assert repair(run.project, is_to_write=True) == 0
    assert "nothing is damaged" in capsys.readouterr().err
    path.write_bytes(codec.to_document(replace(good, cell="", queue="q3")))
    assert repair(run.project, is_to_write=True) == 0
    assert attempt.read_claim(path) == good


def test_a_claim_that_was_moved_and_not_begun_yet_is_no_damage(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = attempt.Claim("b", "q3", "box-b", "2099-01-01T00:00:00.000Z", moved_from="q1")
    run.site.tier.claim("b").write_bytes(codec.to_document(moved))
    assert repair(run.project, is_to_write=True) == 0
    assert "nothing is damaged" in capsys.readouterr().err
    assert attempt.read_claim(run.site.tier.claim("b")) == moved


def test_a_claim_that_is_gone_is_written_anew(run: FinishedRun) -> None:
    good = attempt.read_claim(run.site.tier.claim("b"))
    run.site.tier.claim("b").unlink()
    assert repair(run.project, is_to_write=True) == 0
    assert attempt.read_claim(run.site.tier.claim("b")) == good


def test_a_cursor_and_a_heartbeat_are_put_aside_and_written_anew_by_the_agent(
    run: FinishedRun,
) -> None:
    tier = run.site.tier
    tier.delivered("q1").write_bytes(codec.to_document(Delivered({"e": Cursor(3)})))
    for path in (tier.delivered("q1"), tier.heartbeat("q1")):
        path.write_bytes(path.read_bytes()[:-9])
        assert repair(run.project, is_to_write=True) == 0
        assert not path.exists() and kept(path)
    assert heartbeat.journal_end(tier.heartbeat("q1")) is None


def test_a_copy_of_another_run_of_this_name_is_not_put_back(run: FinishedRun) -> None:
    pull(run.project)
    path = run.site.tier.journal("q1")
    path.unlink()
    run.site.tier.heartbeat("q1").unlink()
    new = Journal(path, {"run": "tiny"})
    new.append("agent.started", pid=2, release="r1", start_index=0)
    before = path.read_bytes()
    for cell in ("a", "b"):
        run.site.tier.claim(cell).unlink()
    assert repair(run.project, is_to_write=True) == 0
    assert path.read_bytes() == before


def test_while_an_agent_runs_nothing_is_put_back(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    pull(run.project)
    path = run.site.tier.manifest("a")
    flip(path)
    bad = path.read_bytes()
    with held(run.site.tier.lock("q1")):
        assert repair(run.project, is_to_write=True) == 1
    assert path.read_bytes() == bad and not kept(path)
    assert "its agent is running, so nothing was put back" in capsys.readouterr().err


def test_the_document_says_what_is_damaged_and_what_proves_it(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(run.site.tier.claim("a"))
    assert repair(run.project, as_json=True) == 1
    (box,) = json.loads(capsys.readouterr().out)["boxes"]
    (damage,) = box["damages"]
    assert damage["path"] == "claims/a.json" and not damage["is_put_back"]
    assert damage["source"] == "the journal"


def test_nothing_is_written_through_a_link(run: FinishedRun, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    run.site.tier.claim("a").parent.rename(outside)
    run.site.tier.claim("a").parent.symlink_to(outside)
    flip(outside / "a.json")
    bad = (outside / "a.json").read_bytes()
    assert repair(run.project, is_to_write=True) == 1
    assert (outside / "a.json").read_bytes() == bad


def test_on_a_tier_that_is_out_of_sight_nothing_is_written(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    pull(run.project)
    tier = run.site.tier.durable_dir
    tier.rename(tier.with_name("unmounted"))
    capsys.readouterr()
    assert repair(run.project, is_to_write=True) == 1
    assert "is it mounted?" in capsys.readouterr().err
    assert not tier.exists()


def test_a_run_that_was_torn_down_is_left_alone(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_folder, "is_torn_down", lambda results: True)
    with pytest.raises(InputError, match="torn down"):
        repair(run.project)


def test_what_a_box_cannot_say_is_its_own_row(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*words: Any, **more: Any) -> Iterator[Any]:
        raise OSError(5, "Input/output error", "/tier")

    monkeypatch.setattr(repair_verb, "_ask", fail)
    assert repair(run.project) == 1
    assert "box-a: /tier: Input/output error" in capsys.readouterr().err


def test_a_journal_is_read_again_once_it_is_put_back(run: FinishedRun) -> None:
    pull(run.project)
    path = run.site.tier.journal("q1")
    good = journal.read_journal(path).events
    flip(path)
    repair(run.project, is_to_write=True)
    assert journal.read_journal(path).events == good


def test_what_only_a_repaired_journal_tells_is_put_back_with_it(run: FinishedRun) -> None:
    pull(run.project)
    files = [run.site.tier.journal("q1"), run.site.tier.manifest("a"), run.site.tier.claim("b")]
    good = [path.read_bytes() for path in files]
    for path in files:
        flip(path)
    assert repair(run.project, is_to_write=True) == 0
    assert [path.read_bytes() for path in files] == good


def test_a_manifest_is_named_too_while_its_journal_cannot_be_proven(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run.site.tier.journal("q1")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    run.site.tier.manifest("b").write_bytes(b"")
    assert repair(run.project, is_to_write=True) == 1
    said = capsys.readouterr()
    for name in ("journal/q1.jsonl", "cells/b/manifest.json"):
        assert f"{name}  " in said.out and f"{name}: " in said.err
    assert "Only a journal can prove what it was" in said.err
    assert "2 damaged files have no good copy here" in said.err
