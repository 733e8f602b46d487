from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from mirrored import bring_all, make_mirrored_run, mirror
from run_on_disk import RunOnDisk, cell_verified

from boxcar.laptop.results import bring_checkpoint
from boxcar.laptop.results.bring_checkpoint import Bringing, bring, due, here
from boxcar.shared.errors import BoxcarError, TemporaryError
from boxcar.shared.files import manifest


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_mirrored_run(tmp_path)


def files_here(run: RunOnDisk) -> dict[str, bytes]:
    folder = run.project.results.resume("a")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_newest_checkpoint_lies_here_and_takes_the_place_of_the_one_before(
    run: RunOnDisk,
) -> None:
    for data in (b"step 1", b"step 1000"):
        pointer = mirror(run, data)
        bring_all(run)
        assert here(run.site, "a") == pointer
        assert files_here(run) == {pointer.file.path: data}
        assert not manifest.compare_one(run.project.results.resume("a"), pointer.file)
    assert due(run.site, run.look()) == []


def test_what_is_not_as_the_box_said_changes_nothing_here(run: RunOnDisk) -> None:
    before = mirror(run, b"step 1")
    bring_all(run)
    newer = mirror(run, b"step 1000")
    (run.site.tier.resume("a") / newer.file.path).write_bytes(b"step 10X0")
    with pytest.raises(TemporaryError, match="the next update tries the newest one"):
        bring_all(run)
    assert here(run.site, "a") == before and files_here(run) == {before.file.path: b"step 1"}
    assert [one.pointer for one in due(run.site, run.look())] == [newer]


def test_a_checkpoint_that_was_replaced_meanwhile_is_left_for_the_next_look(run: RunOnDisk) -> None:
    [old] = [mirror(run, b"step 1")] and due(run.site, run.look())
    (run.site.tier.resume("a") / old.pointer.file.path).unlink()
    newer = mirror(run, b"step 1000")
    with pytest.raises(BoxcarError, match="No such file"):
        bring(run.site, old)
    bring_all(run)
    assert here(run.site, "a") == newer


def test_a_cell_that_lies_here_needs_none(run: RunOnDisk) -> None:
    mirror(run, b"step 1")
    bring_all(run)
    run.say("queue_1", cell_verified("a"))
    assert due(run.site, run.look()) == []
    with closing(Bringing(run.site, print)) as checkpoints:
        checkpoints.see(run.look())
        assert files_here(run)  # verified, but its result is on the box alone
        path = run.project.results.manifest("a")
        path.parent.mkdir(parents=True)
        path.touch()
        checkpoints.see(run.look())
    assert here(run.site, "a") is None and not run.project.results.resume("a").exists()


def test_who_looks_on_does_not_wait_and_hears_once_what_is_wrong(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(run, b"step 1")
    said: list[str] = []
    may_end = threading.Event()

    def fail(*anything: object) -> None:
        may_end.wait()
        raise TemporaryError("the connection was lost")

    monkeypatch.setattr(bring_checkpoint, "bring", fail)
    with closing(Bringing(run.site, said.append)) as checkpoints:
        checkpoints.see(run.look())
        checkpoints.see(run.look())  # at once, while the first is under way
        may_end.set()
        for _ in range(4):
            assert len(said) <= 1
            checkpoints.wait()
            checkpoints.see(run.look())
    assert said == ["the checkpoint of a was not copied here: the connection was lost"]


def test_the_end_of_the_watch_ends_a_copy_and_is_no_problem(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(run, b"step 1")
    begun, said = threading.Event(), list[str]()

    def copy(source: object, partial: object, **options: object) -> None:
        begun.set()
        while True:
            options["on_wait"]()  # type: ignore[operator]

    monkeypatch.setattr(bring_checkpoint.folders, "fetch_folder", copy)
    with closing(Bringing(run.site, said.append)) as checkpoints:
        checkpoints.see(run.look())
        begun.wait()
    assert here(run.site, "a") is None and said == []
