from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared import state
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec, manifest, resume_pointer
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import Box, Plan
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.process import second_home_child
from onbox.agent import second_home
from onbox.agent.second_home import SecondHome
from onbox.machine.place import Place
from onbox.queue.reporter import PackedEvents, Reporter

NOW = "2026-11-21T02:00:00.000Z"
WEIGHTS = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_home, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(second_home, "TICK_S", 0.01)
    monkeypatch.setattr(second_home, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(second_home_child, "_LOOK_EVERY_S", 0.01)


@pytest.fixture
def place(tmp_path: Path, archives: Any) -> Place:
    plan = Plan(
        run="r", profile="local", durable_dir=str(tmp_path / "tier"),
        boxes=(Box("b", str(tmp_path / "b"), str(tmp_path / "c.json")),), queues={"q": "b"},
        cells=(), command=(), launcher="python", nproc=1, cell_nproc={}, epochs=None,
        artifacts=(), resume="latest.pth", scratch=(), env={}, secrets=(), linger_s=0,
        agent_python=sys.executable, training_python=sys.executable,
        second=f"file://{tmp_path}/second",
    )  # fmt: skip
    release = tmp_path / ("0" * 64)
    release.mkdir()
    (release / archives.training).write_bytes(archives.files[archives.training])
    tier = DurablePaths(tmp_path / "tier", "r")
    for folder in tier.folders():
        folder.mkdir(parents=True)
    return Place(
        plan, release, archives.training, "q", "b", tier, ScratchPaths(tmp_path / "b", "r")
    )


@pytest.fixture
def reporter(place: Place) -> Reporter:
    common = {"run": "r", "queue": "q", "box": "b"}
    return Reporter(Journal(place.durable.journal("q"), common), None)


@pytest.fixture
def home(place: Place, reporter: Reporter) -> Iterator[SecondHome]:
    made = SecondHome(place, reporter)
    yield made
    made.close()


def publish(
    place: Place, reporter: Reporter, cell: str, attempt: int = 1, name: str = "best.pth"
) -> None:
    """What the settler leaves of a cell, up to its being synced."""
    folder = place.durable.cell(cell)
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(WEIGHTS)
    file = FileRecord(name, len(WEIGHTS), digest.of_bytes(WEIGHTS))
    made = Manifest("r", cell, "q", "b", "0" * 64, attempt, "t", "c.json", 3, NOW, NOW, (file,))
    atomic.write_whole(folder / "manifest.json", codec.to_document(made))
    reporter.say("cell.started", cell=cell, attempt=attempt, cfg="c.json", task="t", epochs=3)
    about = {"cell": cell, "attempt": attempt, "manifest_sha256": sha256(place, cell)}
    reporter.say("cell.synced", **about, size_bytes=len(WEIGHTS), files=1)


def verify(place: Place, reporter: Reporter, cell: str) -> None:
    about = {"cell": cell, "attempt": 1, "manifest_sha256": sha256(place, cell)}
    reporter.say("cell.verified", **about, metrics={})


def sha256(place: Place, cell: str) -> str:
    return manifest.sha256(place.durable.manifest(cell))


def mirror(place: Place, reporter: Reporter, cell: str, step: bytes) -> Resume:
    """What the agent mirrors while the cell runs."""
    reporter.say("cell.started", cell=cell, attempt=1, cfg="c.json", task="t", epochs=3)
    folder = place.durable.resume(cell)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"1-{step.decode()}-latest.pth"
    (folder / name).write_bytes(step)
    made = Resume(cell, 1, NOW, "latest.pth", FileRecord(name, len(step), digest.of_bytes(step)))
    atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(made))
    for other in folder.iterdir():
        if other.name not in (name, resume_pointer.FILE):
            other.unlink()
    return made


def second(place: Place) -> DurablePaths:
    return DurablePaths(Path(str(place.plan.second).removeprefix("file://")), "r")


def copied(reporter: Reporter) -> dict[str, str]:
    found = reporter.newest("cell.copied")
    return {cell: event.data["manifest_sha256"] for cell, event in found.items()}


def warnings(reporter: Reporter) -> list[str]:
    return [event.data["what"] for event in reporter.state().warnings]


def test_a_published_cell_is_copied_whole_and_said_once(place, reporter, home):
    publish(place, reporter, "a")
    assert home.left() == ["a"]
    home.start()
    until(lambda: home.left() == [])
    there = second(place).cell("a")
    assert (there / "best.pth").read_bytes() == WEIGHTS
    assert manifest.sha256(there / "manifest.json") == sha256(place, "a")
    assert copied(reporter) == {"a": sha256(place, "a")}
    data = reporter.newest("cell.copied")["a"].data
    assert (data["url"], data["size_bytes"], data["files"]) == (place.plan.second, len(WEIGHTS), 1)
    assert isinstance(reporter.state().cell("a").state, state.Synced)
    assert warnings(reporter) == []


def test_what_is_copied_is_read_once_and_another_result_of_it_is_copied(
    place, reporter, home, monkeypatch
):
    publish(place, reporter, "a")
    home.start()
    until(lambda: home.left() == [])
    home.close()
    with monkeypatch.context() as patch:
        patch.setattr(PackedEvents, "__getitem__", lambda *args: pytest.fail("it was read again"))
        assert home.left() == []
    publish(place, reporter, "a", attempt=2)
    assert home.left() == ["a"]


def test_the_next_agent_copies_what_the_last_one_did_not(place, reporter):
    publish(place, reporter, "a")
    verify(place, reporter, "a")
    publish(place, reporter, "b")
    reporter.say("cell.copied", cell="b", manifest_sha256=sha256(place, "b"), url=place.plan.second)
    assert SecondHome(place, reporter).left() == ["a"]
    elsewhere = replace(place, plan=replace(place.plan, second="file:///elsewhere"))
    assert SecondHome(elsewhere, reporter).left() == ["a", "b"]
    publish(place, reporter, "b", attempt=2)
    assert SecondHome(place, reporter).left() == ["a", "b"]


def test_live_checkpoints_go_there_and_leave_with_the_verified_cell(place, reporter, home):
    mirror(place, reporter, "a", b"10")
    home.start()
    until(lambda: home.left() == [])
    pointer = mirror(place, reporter, "a", b"20")
    until(lambda: home.left() == [])
    folder = second(place).resume("a")
    assert resume_pointer.read_resume_pointer(folder) == pointer
    assert sorted(path.name for path in folder.iterdir()) == [pointer.file.path, "resume.json"]
    assert (folder / pointer.file.path).read_bytes() == b"20"
    publish(place, reporter, "a")
    verify(place, reporter, "a")
    home.try_to_the_end(lambda: None, lambda: False)
    assert not folder.exists()
    assert copied(reporter)
    assert second(place).manifest("a").exists()


def test_what_was_published_below_the_live_checkpoints_name_stays_when_that_leaves(
    place, reporter, home
):
    """Agents of before took a script's files there."""
    pointer = mirror(place, reporter, "a", b"10")
    home.start()
    until(lambda: home.left() == [])
    publish(place, reporter, "a", name="resume/best.pth")
    until(lambda: "a" in copied(reporter))
    folder = second(place).resume("a")
    assert (folder / pointer.file.path).exists()
    verify(place, reporter, "a")
    home.try_to_the_end(lambda: None, lambda: False)
    assert [path.name for path in folder.iterdir()] == ["best.pth"]
    assert (folder / "best.pth").read_bytes() == WEIGHTS


def test_a_failure_is_said_once_and_tried_again(place, reporter, home, monkeypatch):
    asked: list[Any] = []
    monkeypatch.setattr(second_home_child, "ask", cannot(asked))
    publish(place, reporter, "a")
    home.start()
    until(lambda: len(asked) > 2)
    assert warnings(reporter) == ["copy_failed"]
    [warning] = reporter.state().warnings
    assert warning.data["text"].startswith("s3://x is out of reach; retried later")
    monkeypatch.setattr(second_home_child, "ask", lambda *words: {})
    until(lambda: home.left() == [])
    assert copied(reporter)


def test_one_cell_that_cannot_be_copied_keeps_no_other(place, reporter, home, monkeypatch):
    def ask(child: Any, request: Any, *words: Any) -> Any:
        return {} if request["url"].endswith("/b") else cannot([])()

    monkeypatch.setattr(second_home_child, "ask", ask)
    publish(place, reporter, "a")
    publish(place, reporter, "b")
    home.start()
    until(lambda: copied(reporter))
    assert list(copied(reporter)) == ["b"]


def test_at_the_end_what_is_left_is_waited_for_and_said(place, reporter, home, monkeypatch):
    publish(place, reporter, "a")
    asked: list[Any] = []
    monkeypatch.setattr(second_home, "LAST_TRY_S", 0.1)
    monkeypatch.setattr(second_home_child, "ask", cannot(asked))
    home.start()
    home.try_to_the_end(lambda: None, lambda: False)
    assert asked
    assert warnings(reporter) == ["copy_failed", "not_copied"]
    assert (
        reporter.state().warnings[-1].data["text"].startswith("a: not completely copied to file://")
    )


def test_who_asks_the_agent_to_stop_does_not_wait_for_a_copy(place, reporter, home, monkeypatch):
    publish(place, reporter, "a")
    monkeypatch.setattr(second_home_child, "ask", cannot([]))
    home.start()
    home.try_to_the_end(lambda: pytest.fail("it waited"), lambda: True)
    assert "not_copied" in warnings(reporter)  # what the copy itself says may come after it


def test_a_tier_that_cannot_be_read_ends_nothing(place, reporter, home):
    mirror(place, reporter, "a", b"10")
    (place.durable.resume("a") / resume_pointer.FILE).write_bytes(b"{")
    home.start()
    until(lambda: warnings(reporter) == ["copy_failed"])
    home.try_to_the_end(lambda: None, lambda: False)


def test_the_secrets_are_in_the_environment_of_the_child_alone(place, reporter, home, monkeypatch):
    path = Path(place.plan.boxes[0].credentials)
    path.write_text('{"env": {"AWS_SECRET_ACCESS_KEY": "s3cret"}}')
    path.chmod(0o600)
    given: list[Any] = []
    monkeypatch.setattr(second_home_child, "ask", lambda *words: given.append(words))
    publish(place, reporter, "a")
    home.start()
    until(lambda: given)
    child, request, _ = given[0]
    assert child.environment["AWS_SECRET_ACCESS_KEY"] == "s3cret"
    assert "s3cret" not in f"{request} {child.argv} {child}"


def cannot(asked: list[Any]) -> Callable[..., Any]:
    def ask(*words: Any) -> Any:
        asked.append(words)
        raise TemporaryError("s3://x is out of reach")

    return ask
