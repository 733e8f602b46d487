from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_ssh import FakeSsh
from finished_run import FILES, RUN, FinishedRun, keep_run, make_run, steps_until_end
from run_on_disk import held
from waiting import until

from boxcar.laptop.hosts import folders
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import Unreachable
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project import launches
from boxcar.laptop.results import bring_cell, hashed_before, results_folder
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.verify import cell_facts
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.files import codec, journal
from boxcar.shared.files.receipt import CellReceipt

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path)


def _is_right(run: FinishedRun, cell: str) -> bool:
    """Whether the copy is the tier's, byte for byte, and holds nothing else."""
    wanted = {name: (run.site.tier.cell(cell) / name).read_bytes() for name in FILES}
    wanted[paths.MANIFEST] = run.site.tier.manifest(cell).read_bytes()
    return run.snapshot(run.project.results.cell(cell)) == wanted


def _replaced(run: FinishedRun) -> list[Path]:
    return sorted((run.project.results.root / "replaced").glob("*"))


def test_pull_brings_what_was_published_and_nothing_else(run: FinishedRun) -> None:
    for name in ("resume/latest.pth", "notes.txt", ".weights.dat.abcd.part"):
        path = run.site.tier.cell("a") / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    assert pull(run.project) == 0
    assert _is_right(run, "a") and _is_right(run, "b")
    assert not _replaced(run)


def test_a_result_in_doubt_is_said_each_time(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.publish("a", doubt="12 of 100 epochs")
    for _ in range(2):
        assert pull(run.project, as_json=True) == 0
        told = capsys.readouterr()
        assert "a: not certain: 12 of 100 epochs" in told.err
        cells = {row["cell"]: row["doubt"] for row in json.loads(told.out)["cells"]}
        assert cells == {"a": "12 of 100 epochs", "b": None}


def test_pull_takes_folders_and_unusual_names(run: FinishedRun) -> None:
    files = {"#1/a b.bin": b"1", "sub/deep/ü.bin": b"2", "-rf": b"3", "empty": b""}
    run.publish("a", files)
    assert pull(run.project) == 0
    found = run.snapshot(run.project.results.cell("a"))
    assert {name: found[name] for name in files} == files


def test_what_is_here_and_right_is_not_pulled_again(run: FinishedRun) -> None:
    pull(run.project)
    before = {path: path.stat().st_ino for path in run.project.results.cell("a").iterdir()}
    assert pull(run.project) == 0
    assert {path: path.stat().st_ino for path in run.project.results.cell("a").iterdir()} == before


def test_a_cell_that_is_not_published_yet_is_named(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.site.tier.manifest("b").unlink()
    assert pull(run.project) == 0
    told = capsys.readouterr().err
    assert "not published yet: b" in told and "1 of 2 cells here" in told
    assert not run.project.results.cell("b").exists()


def test_where_a_cell_failed_the_next_command_says_why(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.site.tier.manifest("b").unlink()
    pull(run.project)
    assert "1 of 2 cells here" in (told := capsys.readouterr().err)
    assert told.endswith("the others are not published yet. To see why: invoke status\n")
    failed = {"cell": "b", "attempt": 1, "failure": "PY", "reason": "r", "seconds": 1.0}
    run.say("q1", ("cell.failed", failed | {"is_final": True, "release": "r1"}))
    pull(run.project)
    assert capsys.readouterr().err.endswith("1 cell failed. Why: invoke explain --cell b\n")


def test_a_verified_cell_whose_manifest_is_gone_was_not_pulled(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    verified = {"cell": "b", "attempt": 1, "manifest_sha256": "ab" * 32}
    run.say("q1", ("cell.verified", verified))
    run.site.tier.manifest("b").unlink()
    assert pull(run.project) == 1
    told = capsys.readouterr().err
    assert "b was not pulled: its event log says verified, but its manifest is gone" in told
    assert "not published yet" not in told


def test_a_cell_that_was_asked_for_and_is_not_published_is_exit_1(run: FinishedRun) -> None:
    run.site.tier.manifest("b").unlink()
    assert pull(run.project, cells=["b"]) == 1
    assert pull(run.project, cells=["a"]) == 0


def test_one_cell_can_be_pulled_alone(run: FinishedRun) -> None:
    assert pull(run.project, cells=["b"]) == 0
    assert _is_right(run, "b") and not run.project.results.cell("a").exists()


def test_an_unknown_cell_is_an_input_error(run: FinishedRun) -> None:
    with pytest.raises(InputError, match=r"no cell 'bb'; it has: a, b"):
        pull(run.project, cells=["bb"])
    assert not run.project.results.root.exists()


def test_a_missing_tier_is_an_input_error(run: FinishedRun) -> None:
    shutil.rmtree(run.site.tier.root)
    with pytest.raises(InputError, match=r"never launched from this machine.*invoke launch"):
        pull(run.project)
    run.site.results.root.mkdir(parents=True)
    (run.site.results.root / launches.LAUNCHES).write_text("{}\n")
    with pytest.raises(InputError, match="is not mounted"):
        pull(run.project)


@pytest.mark.parametrize("name", [*FILES, paths.MANIFEST])
def test_a_damaged_copy_is_replaced_and_kept(run: FinishedRun, name: str) -> None:
    pull(run.project)
    run.flip_byte(run.here("a", name), 7)
    damaged = run.here("a", name).read_bytes()
    assert pull(run.project) == 0
    assert _is_right(run, "a")
    assert [(path / name).read_bytes() for path in _replaced(run)] == [damaged]


def test_a_cell_that_was_published_again_replaces_the_older_copy(run: FinishedRun) -> None:
    pull(run.project)
    run.publish("a", FILES | {"weights.dat": b"better"}, attempt=2)
    assert pull(run.project) == 0
    assert _is_right(run, "a")
    assert [(path / "weights.dat").read_bytes() for path in _replaced(run)] == [
        FILES["weights.dat"]
    ]


@pytest.mark.parametrize("name", list(FILES))
def test_a_tier_that_differs_from_its_manifest_is_not_believed(
    run: FinishedRun, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run.flip_byte(run.site.tier.cell("a") / name, 3)
    assert pull(run.project) == 1
    assert not run.project.results.cell("a").exists()
    assert _is_right(run, "b")
    told = capsys.readouterr().err
    assert "a was not pulled" in told and name in told and "1 of 2 cells here" in told


def test_a_file_that_the_tier_has_lost_is_named(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.site.tier.cell("a") / "weights.dat").unlink()
    assert pull(run.project) == 1
    assert "weights.dat" in capsys.readouterr().err


def test_a_carried_file_that_the_tier_has_lost_is_named_and_the_result_comes(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.publish("a", carried={"wandb/run.wandb": b"log", "tb/events": b"x"})
    (run.site.tier.cell("a") / "wandb/run.wandb").unlink()
    assert pull(run.project) == 1
    told = capsys.readouterr().err
    assert "a: 1 extra file missing or not as published: wandb/run.wandb" in told
    assert "2 of 2 cells here" in told and run.here("a", "tb/events").exists()


def test_the_manifest_of_another_cell_is_not_believed(run: FinishedRun) -> None:
    shutil.copy(run.site.tier.manifest("b"), run.site.tier.manifest("a"))
    assert pull(run.project) == 1
    assert not run.project.results.cell("a").exists()


def test_the_manifest_of_another_run_is_not_believed(run: FinishedRun) -> None:
    run.publish("a", run="other")
    assert pull(run.project) == 1
    assert not run.project.results.cell("a").exists()


def test_a_damaged_manifest_is_said_and_stops_no_other_cell(run: FinishedRun) -> None:
    run.site.tier.manifest("a").write_bytes(b"{")
    assert pull(run.project) == 1
    assert _is_right(run, "b")


def test_the_cells_receipt_comes_along_and_follows_the_tiers(run: FinishedRun) -> None:
    def write(attempt: int) -> bytes:
        made = CellReceipt("tiny", "a", attempt, "0" * 64, timestamp.utc_now(), ())
        run.site.tier.receipt("a").write_bytes(codec.to_document(made))
        return codec.to_document(made)

    first = write(1)
    pull(run.project)
    assert run.here("a", paths.RECEIPT).read_bytes() == first
    second = write(2)
    pull(run.project)
    assert run.here("a", paths.RECEIPT).read_bytes() == second
    assert not _replaced(run)


def test_the_journals_come_along(run: FinishedRun) -> None:
    pull(run.project)
    journal.Journal(run.site.tier.journal("q1"), {}).append("agent.stopped")
    assert pull(run.project) == 0
    for queue in ("q1", "q2"):
        here = run.project.results.journals / f"{queue}.jsonl"
        assert here.read_bytes() == run.site.tier.journal(queue).read_bytes()
    assert not _replaced(run)


def test_a_journal_that_began_anew_does_not_replace_the_old_one(run: FinishedRun) -> None:
    pull(run.project)
    old = run.site.tier.journal("q1").read_bytes()
    run.site.tier.journal("q1").unlink()
    journal.Journal(run.site.tier.journal("q1"), {}).append("agent.started")
    assert pull(run.project) == 0
    assert [path.read_bytes() for path in _replaced(run)] == [old]


@pytest.mark.parametrize("kept_bytes", [0, 40, -9])
def test_a_journal_that_lost_its_tail_does_not_replace_the_copy(
    run: FinishedRun, capsys: pytest.CaptureFixture[str], kept_bytes: int
) -> None:
    pull(run.project)
    path = run.site.tier.journal("q1")
    here = run.project.results.journals / "q1.jsonl"
    old = path.read_bytes()
    assert old.count(b"\n") == 1
    path.write_bytes(old[:kept_bytes])
    assert pull(run.project) == 1
    assert here.read_bytes() == old and not _replaced(run)
    assert "its last event is missing: invoke repair" in capsys.readouterr().err


def test_a_damaged_journal_is_copied_and_said(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run.site.tier.journal("q1")
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    assert pull(run.project) == 1
    assert (run.project.results.journals / "q1.jsonl").read_bytes() == path.read_bytes()
    assert "line 1 is damaged" in capsys.readouterr().err


def test_json_is_one_document_on_stdout(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.site.tier.manifest("b").unlink()
    pull(run.project, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert {cell["cell"]: cell["state"] for cell in said["cells"]} == {
        "a": "pulled",
        "b": "not published",
    }


def test_a_pull_beside_another_does_nothing(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.project.results.root.mkdir(parents=True)
    fd = lock.try_hold(run.project.results.root / ".lock")
    assert fd is not None
    monkeypatch.setattr(results_folder, "WAIT_S", 0.0)
    with pytest.raises(TemporaryError, match="another pull"):
        pull(run.project)
    os.close(fd)
    assert pull(run.project) == 0


def test_pull_ends_right_wherever_it_was_killed(tmp_path: Path) -> None:
    """Before every ninth of its file operations, with an older copy that has to give way."""

    made = make_run(tmp_path / "project")
    pull(made.project)
    made.publish("a", FILES | {"weights.dat": b"better"}, attempt=2)
    pulled = keep_run(made, tmp_path / "copy")
    rounds = 0
    for die_at in range(1, 1000, 9):
        run = pulled()
        steps = steps_until_end(lambda run=run: pull(run.project), run.root, die_at)
        assert pull(run.project) == 0
        assert _is_right(run, "a") and _is_right(run, "b")
        kept = [path for path in _replaced(run) if path.name.startswith("a-")]
        assert [(path / "weights.dat").read_bytes() for path in kept] == [FILES["weights.dat"]]
        rounds += 1
        if steps is not None:
            break
    assert rounds > 5


def test_pull_ends_right_when_it_is_killed_while_rsync_works(tmp_path: Path) -> None:
    files = {f"weights-{n}.dat": os.urandom(1_000_000) for n in range(12)}
    run = make_run(tmp_path, cells=("a",))
    run.publish("a", files)
    for wait_s in (0.02, 0.04, 0.06, 0.1, 0.15):
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os._exit(pull(run.project))
        time.sleep(wait_s)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert pull(run.project) == 0
    found = run.snapshot(run.project.results.cell("a"))
    assert found == files | {paths.MANIFEST: run.site.tier.manifest("a").read_bytes()}


def _slow_rsync(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Half a megabyte a second. The file that it gives has a line of words for each one."""
    folder.mkdir()
    said = folder / "said"
    text = f'#!/bin/sh\necho "$*" >>{said}\nexec {shutil.which("rsync")} --bwlimit=500k "$@"\n'
    (folder / "rsync").write_text(text)
    (folder / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return said


def test_ctrl_c_leaves_what_came_and_the_next_pull_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C that rsync does not hear, as where a program sends it."""
    run = make_run(tmp_path, cells=("a", "b"))
    files = {"weights.dat": os.urandom(2_000_000)}
    run.publish("a", files)
    run.site.tier.manifest("b").unlink()
    partial = run.project.results.partial / "a"
    with monkeypatch.context() as slow:
        _slow_rsync(tmp_path / "bin", slow)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                os._exit(pull(run.project))
            except KeyboardInterrupt:
                os._exit(130)
        until(lambda: folders.bytes_below(partial) > 300_000)
        os.kill(pid, signal.SIGINT)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert not run.project.results.cell("a").exists()
    assert 200_000 < folders.bytes_below(partial) < 2_000_000
    assert pull(run.project, cells=["a"]) == 0
    found = run.snapshot(run.project.results.cell("a"))
    assert found == files | {paths.MANIFEST: run.site.tier.manifest("a").read_bytes()}


def test_a_rate_is_one_for_all_and_rsync_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, cells=("a", "b", "c"))
    at_once, most = [], []
    fetch = bring_cell.fetch_cell

    def watched(site: Any, wanted: Any, *rest: Any) -> Any:
        at_once.append(wanted.cell)
        most.append(len(at_once))
        try:
            time.sleep(0.05)
            return fetch(site, wanted, *rest)
        finally:
            at_once.remove(wanted.cell)

    monkeypatch.setattr("boxcar.laptop.verbs.pull_cells.fetch_cell", watched)
    monkeypatch.setattr(bring_cell, "SMALL_BYTES", 10)
    said = _slow_rsync(tmp_path / "bin", monkeypatch)
    assert pull(run.project, most_kib_s=4000) == 0
    assert max(most) == 1
    assert said.read_text().count("--bwlimit=4000") == 3


def test_the_smallest_come_first_and_are_said_in_the_plans_order(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run.publish("a", {"weights.dat": bytes(50_000)})
    order: list[str] = []
    fetch = bring_cell.fetch_cell
    monkeypatch.setattr(
        "boxcar.laptop.verbs.pull_cells.fetch_cell",
        lambda site, wanted, *rest: (order.append(wanted.cell), fetch(site, wanted, *rest))[1],
    )
    monkeypatch.setattr(bring_cell, "SMALL_BYTES", 10)
    pull(run.project, most_kib_s=100_000, as_json=True)
    assert order == ["b", "a"]
    document = json.loads(capsys.readouterr().out)
    assert [cell["cell"] for cell in document["cells"]] == ["a", "b"]


def test_a_box_that_went_away_is_not_waited_for_once_a_cell(
    run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]
    tried: list[str] = []

    def fetch(site: Any, wanted: Any, *rest: Any) -> None:
        tried.append(wanted.cell)
        raise Unreachable("box-z", "no answer")

    monkeypatch.setattr(LocalSite, "published_folder", lambda site, cell: there)
    monkeypatch.setattr("boxcar.laptop.verbs.pull_cells.fetch_cell", fetch)
    monkeypatch.setattr(bring_cell, "SMALL_BYTES", 10)
    assert pull(run.project, most_kib_s=1) == 1  # one at a time
    assert tried == ["a"]


def test_with_the_tier_gone_the_second_home_gives_the_results_and_verify_counts_them(
    run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(run.project.plan, second=f"file://{tmp_path}/second")
    run.project = replace(run.project, plan=plan)
    launches.append_launch(run.project.results, "local", "r1", ["q1"], is_smoked=True)
    wanted = run.snapshot(run.site.tier.cell("a"))
    there = tmp_path / "second" / "boxcar" / RUN
    shutil.copytree(run.site.tier.cell("a"), there / "cells" / "a")
    shutil.rmtree(run.site.tier.root)
    assert pull(run.project) == 0
    said = capsys.readouterr().err
    assert f"a: pulled from the second copy at file://{tmp_path}/second" in said
    assert "not published yet: b" in said
    assert run.snapshot(run.project.results.cell("a")) == wanted
    run.site.tier.root.mkdir(parents=True)  # a new box, which has nothing of it
    [a, _] = cell_facts(run.site, look_at_run(run.site, timestamp.utc_now()))
    assert a.tier_sha256 == a.manifest_sha256


def test_a_second_home_out_of_reach_is_said_and_nothing_else_suffers(
    run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second").write_text("a file in its place")
    plan = replace(run.project.plan, second=f"file://{tmp_path}/second")
    run.project = replace(run.project, plan=plan)
    pull(run.project)
    launches.append_launch(run.project.results, "local", "r1", ["q1"], is_smoked=True)
    shutil.rmtree(run.site.tier.root)
    capsys.readouterr()
    assert pull(run.project) == 1
    said = capsys.readouterr().err
    assert "a, b were not pulled: the second copy could not be checked: " in said
    assert run.project.results.manifest("a").exists()


def test_one_damaged_manifest_in_the_second_home_hides_no_other_cell(
    run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(run.project.plan, second=f"file://{tmp_path}/second")
    run.project = replace(run.project, plan=plan)
    launches.append_launch(run.project.results, "local", "r1", ["q1"], is_smoked=True)
    there = tmp_path / "second" / "boxcar" / RUN / "cells"
    shutil.copytree(run.site.tier.cells, there)
    (there / "a" / paths.MANIFEST).write_bytes(b"{")
    shutil.rmtree(run.site.tier.root)
    assert pull(run.project) == 1
    said = capsys.readouterr().err
    assert f"a was not pulled: file://{tmp_path}/second: a/manifest.json" in said
    assert "not published" not in said and "1 of 2 cells here" in said
    assert run.project.results.manifest("b").exists()


def test_a_cell_that_was_dropped_is_not_waited_for(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.site.tier.manifest("b").unlink()
    run.write_queue("q1", "configs/a.yaml recon 3 name=a\n#configs/b.yaml recon 3 name=b\n")
    assert pull(run.project) == 0
    said = capsys.readouterr().err
    assert "dropped, so not pulled: b\n" in said and "not published" not in said
    root = run.project.results.root
    assert said.endswith(f"1 of 1 cell here: {root}. Next: invoke verify\n")
    assert pull(run.project, cells=["b"]) == 1, "this one was asked for"


def test_verify_is_not_named_while_a_box_still_checks_what_it_published(
    run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    started = {"box": "box-a", "pid": 7, "release": "r1", "start_index": 0, "python": "3.12"}
    run.say("q1", ("agent.started", started), *_published("b"))
    with held(run.site.tier.lock("q1")):
        assert pull(run.project) == 0
        said = capsys.readouterr().err
        assert said.endswith("is still being checked by its box: b. In a moment: invoke pull\n")
    assert pull(run.project) == 0
    assert capsys.readouterr().err.endswith("Next: invoke verify\n"), "nobody is at work there"


def _published(cell: str) -> list[tuple[str, dict[str, Any]]]:
    common = {"cell": cell, "attempt": 1}
    line = {"cfg": f"configs/{cell}.yaml", "task": "recon", "epochs": 3, "nproc": 1}
    ended = {"rc": 0, "seconds": 1.0, "release": "r1", "files": 2, "size_bytes": 1}
    return [("cell.started", common | line), ("cell.succeeded", common | ended)]


def test_a_pull_with_nothing_new_hashes_nothing_that_has_not_changed_since(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_ns = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(hashed_before.time, "time_ns", lambda: later_ns)
    assert pull(run.project) == 0
    assert pull(run.project) == 0
    hashed: list[Path] = []
    of_file = digest.of_file
    monkeypatch.setattr(
        digest, "of_file", lambda path, **o: (hashed.append(path), of_file(path, **o))[1]
    )
    assert pull(run.project) == 0
    assert not [path for path in hashed if path.is_relative_to(run.project.results.cells)]
    run.flip_byte(run.here("a", "weights.dat"), 7)
    assert pull(run.project) == 0 and _is_right(run, "a")
    assert len(_replaced(run)) == 1
