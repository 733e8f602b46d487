from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_run import FILES, FinishedRun, make_run
from plans import make_plan

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.project import launches
from boxcar.laptop.results import results_folder, second_home
from boxcar.laptop.results.bring_checkpoint import here
from boxcar.laptop.results.second_home import (
    bring_live_checkpoint,
    bring_result,
    is_needed,
    look_into_second_home,
)
from boxcar.laptop.run.view import CellView
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError, TemporaryError
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.paths import DurablePaths, ResultPaths
from boxcar.shared.process.second_home_child import Child
from boxcar.shared.state import CellRecord, Verified
from boxcar.shared.wire import box_asks
from boxcar.training import second_home as program


@pytest.fixture(autouse=True)
def _without_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself; its start is tested with who starts it."""

    def ask(child: Child, request: dict[str, Any]) -> dict[str, Any]:
        return program.DOES[request["do"]](program.Home(request["url"]), request)

    monkeypatch.setattr(second_home.second_home_child, "ask", ask)


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """Its cells a and b were copied to the second home, and its tier is gone."""
    made: FinishedRun = make_run(tmp_path / "project")
    plan = replace(made.project.plan, second=f"file://{tmp_path}/second")
    made.project = replace(made.project, plan=plan)
    launches.append_launch(made.project.results, "local", "r1", ["q1"], is_smoked=True)
    shutil.copytree(made.site.tier.cells, second(made).cells)
    shutil.rmtree(made.site.tier.root)
    return made


def second(run: FinishedRun) -> DurablePaths:
    folder = str(run.project.plan.second).removeprefix("file://")
    return DurablePaths(Path(folder), run.project.plan.run)


def cell(name: str = "a", record: CellRecord | None = None) -> CellView:
    return CellView(name, "q1", "box-a", "c.yaml", "recon", 3, 0, record)


def bring(run: FinishedRun, record: CellRecord | None = None) -> None:
    found = look_into_second_home(run.site, ["a"])["a"].published
    assert found
    bring_result(run.site, cell(record=record), found)


def test_it_is_asked_only_where_one_is_named_and_the_tier_is_out_of_reach(
    run: FinishedRun,
) -> None:
    assert is_needed(run.site)
    run.site.tier.root.mkdir(parents=True)
    assert not is_needed(run.site)
    run.site.tier.root.rmdir()
    run.project = replace(run.project, plan=replace(run.project.plan, second=None))
    assert not is_needed(run.site)


def test_a_result_comes_to_where_a_pull_puts_it_and_is_written_down(run: FinishedRun) -> None:
    bring(run)
    assert {name: run.here("a", name).read_bytes() for name in FILES} == FILES
    sha256 = manifest.sha256(run.project.results.manifest("a"))
    assert results_folder.from_second_home(run.project.results) == {"a": sha256}
    assert not (run.project.results.partial / "a").exists()


def test_what_is_not_there_is_not_told_of(run: FinishedRun) -> None:
    assert list(look_into_second_home(run.site, ["a", "b", "c"])) == ["a", "b"]
    shutil.rmtree(second(run).durable_dir)
    assert look_into_second_home(run.site, ["a", "b"]) == {}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def _bit_in_a_key(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"cell"', b'"cemm"', 1))


def _leads_out(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"metrics.json"', b'"../etrics.js"', 1))


def _as_a_folder(path: Path) -> None:
    path.unlink()
    (path / "deep").mkdir(parents=True)


@pytest.mark.parametrize("spoil", [_cut, _bit_in_a_key, _leads_out, _as_a_folder])
def test_one_bad_manifest_is_named_and_hides_no_other(
    run: FinishedRun, spoil: Callable[[Path], None]
) -> None:
    spoil(second(run).manifest("a"))
    found = look_into_second_home(run.site, ["a", "b"])
    assert "a/manifest.json" in str(found["a"].problem) and found["a"].published is None
    assert found["b"].published and not found["b"].problem


@pytest.mark.parametrize("spoil", [_cut, _as_a_folder])
def test_one_bad_pointer_is_named_and_hides_no_result(
    run: FinishedRun, spoil: Callable[[Path], None], mirrored: Callable[[str, bytes], Resume]
) -> None:
    mirrored("2026-11-21T03:27:43.973Z", b"step 10")
    spoil(second(run).resume("c") / resume_pointer.FILE)
    found = look_into_second_home(run.site, ["a", "c"])
    assert "c/resume/resume.json" in str(found["c"].problem)
    assert found["a"].published


def test_a_file_that_is_not_as_its_manifest_says_is_no_result(run: FinishedRun) -> None:
    run.flip_byte(second(run).cell("a") / "weights.dat", 3)
    with pytest.raises(DamagedError, match=r"a: weights\.dat has SHA-256"):
        bring(run)
    (second(run).cell("a") / "weights.dat").unlink()
    with pytest.raises(DamagedError, match=r"a: weights\.dat is missing"):
        shutil.rmtree(run.project.results.partial)
        bring(run)
    assert not run.project.results.cell("a").exists()


def test_another_result_than_the_one_that_the_journal_names_is_refused(run: FinishedRun) -> None:
    verified = CellRecord(Verified(1, "2026-11-21T03:27:43.973Z", "0a" * 32))
    with pytest.raises(DamagedError, match="not the result that the event log names"):
        bring(run, verified)
    sha256 = manifest.sha256(second(run).manifest("a"))
    bring(run, CellRecord(Verified(1, "2026-11-21T03:27:43.973Z", sha256)))


def test_a_result_of_a_release_that_was_not_launched_from_here_is_refused(
    run: FinishedRun,
) -> None:
    (run.project.results.root / launches.LAUNCHES).unlink()
    with pytest.raises(DamagedError, match="Is it from an earlier run of this name"):
        bring(run)


def test_a_second_home_that_cannot_be_read_is_told(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*words: object) -> None:
        raise TemporaryError("s3://b: PermissionError: Forbidden")

    monkeypatch.setattr(second_home.second_home_child, "ask", broken)
    with pytest.raises(TemporaryError, match="Forbidden"):
        look_into_second_home(run.site, ["a"])


def test_a_live_checkpoint_comes_to_where_launch_takes_it_from(
    run: FinishedRun, mirrored: Callable[[str, bytes], Resume]
) -> None:
    pointer = mirrored("2026-11-21T03:27:43.973Z", b"step 10")
    lying = look_into_second_home(run.site, ["c"])["c"]
    assert (lying.published, lying.pointer) == (None, pointer)
    assert bring_live_checkpoint(run.site, cell("c"), pointer)
    assert here(run.site, "c") == pointer
    folder = run.project.results.resume("c")
    assert (folder / pointer.file.path).read_bytes() == b"step 10"
    assert not bring_live_checkpoint(run.site, cell("c"), pointer)
    older = replace(pointer, at="2026-11-21T03:00:00.000Z")
    assert not bring_live_checkpoint(run.site, cell("c"), older)


def test_a_live_checkpoint_that_is_damaged_takes_no_place(
    run: FinishedRun, mirrored: Callable[[str, bytes], Resume]
) -> None:
    pointer = mirrored("2026-11-21T03:27:43.973Z", b"step 10")
    run.flip_byte(second(run).resume("c") / pointer.file.path, 2)
    with pytest.raises(TemporaryError, match="SHA-256"):
        bring_live_checkpoint(run.site, cell("c"), pointer)
    assert here(run.site, "c") is None


@pytest.fixture
def mirrored(run: FinishedRun) -> Callable[[str, bytes], Resume]:
    """Cell c runs, and its live checkpoint was copied."""

    def mirror(at: str, data: bytes) -> Resume:
        folder = second(run).resume("c")
        folder.mkdir(parents=True)
        (folder / "1-7-latest.pth").write_bytes(data)
        file = FileRecord("1-7-latest.pth", len(data), digest.of_bytes(data))
        pointer = Resume("c", 1, at, "latest.pth", file)
        atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(pointer))
        return pointer

    return mirror


def test_without_a_second_home_nobody_is_asked() -> None:
    def ask(*words: Any, **more: Any) -> Any:
        pytest.fail("it was asked")

    assert second_home.check(ask, make_plan(), ["box-a"], "", {}) == []


def test_each_box_tries_it_below_the_run_s_name_and_has_a_row() -> None:
    asked: list[box_asks.TrySecondHome] = []

    def ask(box: str, question: Any, **more: Any) -> Any:
        asked.append(question)
        if box == "box-b":
            raise TemporaryError("box-b: the link is down")
        return box_asks.SecondHomeTried()

    plan = make_plan(second="s3://b/p", env={"HTTPS_PROXY": "x"})
    rows = second_home.check(ask, plan, ["box-a", "box-b"], "hook", {"AWS_ACCESS_KEY_ID": "k"})
    assert rows[0] == Row("box-a", "second home", "ok", "s3://b/p")
    assert (rows[1].verdict, str(rows[1].reason)[:23]) == ("refuse", "box-b: the link is down")
    assert {(one.url, one.hook) for one in asked} == {("s3://b/p/boxcar/digits", "hook")}
    assert asked[0].env == {"HTTPS_PROXY": "x"}
    assert asked[0].secrets == {"AWS_ACCESS_KEY_ID": "k"}
    assert "def main()" in asked[0].program


def test_a_damaged_record_is_no_word_for_anything(tmp_path: Path) -> None:
    results = ResultPaths(tmp_path, "tiny")
    results.root.mkdir()
    assert results_folder.from_second_home(results) == {}
    (results.root / results_folder.SECOND).write_text("{")
    with pytest.raises(DamagedError, match=results_folder.SECOND):
        results_folder.from_second_home(results)
