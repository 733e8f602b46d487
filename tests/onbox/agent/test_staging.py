"""What a cell runs from, and what becomes of what it does to it."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
from pathlib import Path
from types import SimpleNamespace

from plans import make_plan
from waiting import LIMIT_S

from boxcar.shared import state
from boxcar.shared.disk import checked_copy
from boxcar.shared.files import manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.paths import ScratchPaths
from onbox.agent.staging import Staging


def test_a_full_disk_takes_back_what_verified_cells_left_beside_their_code(monkeypatch, tmp_path):
    scratch = ScratchPaths(tmp_path, "r")
    for cell in ("verified", "failed"):
        scratch.beside(cell).mkdir(parents=True)
    monkeypatch.setattr(checked_copy, "lack_of_room", lambda folder, sizes_bytes: "full")
    states = {"verified": state.Verified(1, "now", "0"), "failed": None}
    cells = {name: SimpleNamespace(state=one) for name, one in states.items()}
    said = []
    reporter = SimpleNamespace(
        state=lambda: SimpleNamespace(cells=cells), warn=lambda *words: said.append(words)
    )
    place = SimpleNamespace(plan=make_plan(), scratch=scratch, release=Path())
    Staging(place, None, reporter, lambda cell: None)._make_room([1])
    assert [(what, cell) for what, _, cell in said] == [("beside_removed", "verified")]
    assert [path.parent.name for path in scratch.cells.glob("*/beside")] == ["failed"]


def appended(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_wrapper_that_is_edited_on_the_tier_changes_no_later_cell(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    wrapper = run.release / "run_one.sh"
    wrapper.write_text(wrapper.read_text().replace("set -euo", "export EDITED=1\nset -euo", 1))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("b") == "verified"
    assert "EDITED" not in json.loads((run.out("b") / "environment.json").read_text())


def test_staged_code_that_somebody_edits_fails_the_cell_that_met_it_and_no_other(make_run):
    run = make_run({"a": {"gate": 1, "steps": 2}, "b": {}})
    agent = run.start()
    run.wait_for_step("a")
    code = run.scratch().code(run.release.name)
    appended(code / "train.py", "(out / 'edited').touch()\n")
    appended(run.scratch().wrapper(run.release.name) / "run_one.sh", "# edited\n")
    run.open_gate()
    assert agent.wait(LIMIT_S) == 1
    (failed,) = run.events("cell.failed")
    assert (failed.cell, failed.data["failure"]) == ("a", "CODE")
    assert "2 files of the release while it ran: train.py, run_one.sh" in failed.data["reason"]
    assert run.state("b") == "verified"
    assert not (run.out("b") / "edited").exists()
    assert run.result("b")


def test_a_cell_that_writes_into_the_release_fails_and_begins_anew_when_it_is_run_again(make_run):
    run = make_run({"a": {"appends": ["train.py"], "steps": 2}, "b": {}})
    assert run.finish() == 1
    assert run.state("a") == "failed"
    assert run.state("b") == "verified"
    assert not run.durable.manifest("a").exists()
    (kept,) = run.scratch().earlier.glob("a-*")
    (failed,) = run.events("cell.failed")
    assert f"What it left is kept in {kept}" in failed.data["reason"]
    assert json.loads((kept / "latest.json").read_text()) == {"step": 2}
    code = run.scratch().code(run.release.name)
    assert run.finish() == 1  # it is tried again, from the release's code and from step 0
    assert len(run.events("cell.started", cell="a")) == 2
    assert (code / "train.py").read_bytes() != (run.release / "code/train.py").read_bytes()
    again = sorted(run.scratch().earlier.glob("a-*"))[1]
    assert json.loads((again / "m.json").read_text()) == {"step": 2, "first": 0, "starts": 1}


def test_a_cell_that_changes_the_release_through_a_hard_link_fails_and_no_other(make_run):
    run = make_run({"a": {"links": "train.py"}, "b": {}})
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["failed", "verified"]
    assert run.life("a") == ["claimed", "started", "failed"]
    [failed] = run.events("cell.failed")
    assert failed.data["failure"] == "CODE"
    assert "1 file of the release while it ran: train.py" in failed.data["reason"]
    assert not run.durable.manifest("a").exists()
    assert list(run.scratch().earlier.glob("a-*"))
    code = run.scratch().code(run.release.name) / "train.py"
    assert code.read_bytes() == (run.release / "code/train.py").read_bytes()


def test_what_a_cell_adds_beside_its_code_is_named_and_seen_by_no_other_cell(make_run):
    run = make_run({"a": {"adds": ["data/x/one", "configs/new"]}, "b": {"adds": ["data/x/one"]}})
    assert run.finish() == 0
    first, second = run.warnings("code_added")
    assert "a left configs/new, data/ beside its code" in first
    assert "$BOXCAR_DATA_DIR" in first
    assert "b left data/ beside its code" in second
    assert manifest.read_manifest(run.durable.manifest("a")).warnings == (first,)
    assert (run.scratch().beside("a") / "configs/new").exists()
    for cell in "ab":
        assert (run.scratch().beside(cell) / "data/x/one").read_text() == "\n"
    code = run.scratch().code(run.release.name)
    assert {path.name for path in code.iterdir()} == {"train.py", "configs"}


def test_no_later_attempt_of_a_cell_sees_what_an_earlier_one_added(make_run):
    run = make_run({"a": {"adds": ["data/one"], "exits": [75, 0]}})
    assert run.finish() == 0
    assert run.events("cell.retried")
    assert (run.scratch().beside("a") / "data/one").read_text() == "\n"


def test_what_is_collected_is_carried_wherever_a_tracker_wrote_it_and_of_every_attempt(make_run):
    adds = ["wandb/run-1/log", "data/one"]
    run = make_run({"a": {"adds": adds, "exits": [75, 0]}}, collect=("wandb/",))
    assert run.finish() == 0
    made = manifest.read_manifest(run.durable.manifest("a"))
    assert {f.path for f in made.carried.files} == {"wandb/run-1/log", "wandb/run-1/log.1"}
    assert manifest.compare(run.durable.cell("a"), made.all_files) == []
    assert all("wandb" not in text for text in run.warnings("code_added"))
    assert {path.name for path in run.scratch().beside("a").iterdir()} == {"data"}


def test_what_nobody_moved_after_an_attempt_is_the_last_cells_before_the_next(make_run):
    run = make_run({"a": {}, "b": {"gate": 1, "adds": ["data/one"]}})
    first = run.start()
    run.wait_for_step("b")
    first.kill()
    first.wait(LIMIT_S)
    (run.scratch().code(run.release.name) / "late").write_text("of a that ended, or of b")
    run.open_gate()
    assert run.finish() == 0
    assert {path.name for path in run.scratch().beside("b").iterdir()} == {"late", "data"}


def test_an_artifact_that_was_written_beside_the_code_is_told_in_the_failure(make_run):
    run = make_run({"a": {"adds": ["m.json", "latest.json"], "writes": [None]}})
    assert run.finish() == 1
    (failed,) = run.events("cell.failed")
    assert failed.data["failure"] == "NO-ART"
    assert (
        "The script wrote it to ./m.json, beside its code: set workdir: out"
        in (failed.data["reason"])
    )
    (warning,) = run.warnings("code_added")
    assert "Nothing resumes from latest.json there: set workdir: out" in warning


def test_what_lies_there_without_any_attempt_is_kept_apart(make_run):
    run = make_run({"a": {}})
    code = run.scratch().code(run.release.name)
    (code / "data").mkdir(parents=True)
    assert run.finish() == 0
    (kept,) = run.scratch().earlier.glob("beside-*")
    assert (kept / "data").is_dir()
    (warning,) = run.warnings("code_added")
    assert warning == f"data/ lay beside the code before a; now in {kept}"


def test_bytecode_is_neither_a_warning_nor_ever_run(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}}, command=("-m", "train", "{cfg}", "{out}"))
    agent = run.start()
    run.wait_for_step("a")
    code = run.scratch().code(run.release.name)
    source, stamp = code / "train.py", (code / "train.py").stat()
    other = code.with_name("train.py")
    other.write_text("raise SystemExit('stale')".ljust(stamp.st_size, "#"))
    os.utime(other, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    py_compile.compile(str(other), importlib.util.cache_from_source(str(source)))
    run.open_gate()
    assert agent.wait(LIMIT_S) == 0
    assert run.state("b") == "verified"
    assert run.warnings("code_added") == []
    assert not list(code.rglob("__pycache__"))


def test_code_that_was_edited_between_two_agents_is_the_releases_again_and_that_is_said(make_run):
    run = make_run({"a": {}, "b": {"gate": 1, "on_term": 85}})
    first = run.start()
    run.wait_for_step("b")
    first.terminate()
    first.wait(LIMIT_S)
    appended(run.scratch().code(run.release.name) / "train.py", "raise SystemExit(1)\n")
    run.open_gate()
    assert run.finish() == 0
    assert run.state("b") == "verified"
    assert "train.py changed on this box's scratch before b" in run.warnings("code_restored")[0]


def test_a_cell_that_is_adopted_is_compared_too(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    first = run.start()
    run.wait_for_step("a")
    first.kill()
    first.wait(LIMIT_S)
    appended(run.scratch().code(run.release.name) / "train.py", "\n")
    second = run.start()
    run.wait_for("queue.started", count=2)
    run.open_gate()
    assert second.wait(LIMIT_S) == 1
    assert [run.state(cell) for cell in "ab"] == ["failed", "verified"]


LINKED = """
import json, sys
from pathlib import Path

config = json.loads(Path(sys.argv[1]).read_text())
if name := config.get("writes"):
    Path("data", name).write_text("[1, 2, 3]")
Path("m.json").write_text(json.dumps({"step": len(list(Path("data").glob("*.json")))}))
"""


def test_through_its_links_a_cell_reads_the_code_and_what_it_does_there_is_seen(make_run):
    run = make_run(
        {"a": {}, "b": {"writes": "more.json"}, "c": {"writes": "a.json"}, "d": {}},
        train=LINKED,
        workdir="out",
        links={"data": "configs"},
        artifacts=(Artifact("m.json"),),
        resume=None,
    )
    assert run.finish() == 1
    assert {cell: run.state(cell) for cell in "abcd"} == {
        "a": "verified", "b": "verified", "c": "failed", "d": "verified",
    }  # fmt: skip
    [added] = run.warnings("code_added")
    assert "configs/more.json" in added and (run.scratch().beside("b") / "configs").is_dir()
    [changed] = run.events("cell.failed", cell="c")
    assert changed.data["failure"] == "CODE" and "configs/a.json" in changed.data["reason"]
    assert [file.path for file in manifest.read_manifest(run.durable.manifest("d")).files] == [
        "d.log", "m.json",
    ]  # fmt: skip
    assert json.loads((run.durable.cell("d") / "m.json").read_text()) == {"step": 4}
