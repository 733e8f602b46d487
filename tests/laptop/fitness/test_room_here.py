"""A full disk of this machine is told with numbers, before anything is sent there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_project import TinyProject, make_project

from boxcar.laptop.fitness import space
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.plan import plan
from boxcar.shared.disk import checked_copy
from boxcar.shared.disk.mounts import DiskRoom
from boxcar.shared.errors import NoRoomError

QUEUES = {"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]}


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    return make_project(tmp_path / "project", QUEUES)


def opened(tiny: TinyProject) -> Project:
    return open_project(tiny.root / "job.yaml", "local")


def fill(monkeypatch: pytest.MonkeyPatch, full: Path, free_bytes: int = 4096) -> None:
    """As if the file system of `full` had so much left."""
    real = checked_copy.disk_room

    def disk_room(folder: Path) -> DiskRoom:
        if not folder.is_relative_to(full):
            return real(folder)
        return DiskRoom(1 << 30, free_bytes, free_bytes, 1000, 500)

    monkeypatch.setattr(checked_copy, "disk_room", disk_room)


def test_a_disk_with_room_is_not_named(tmp_path: Path) -> None:
    assert space.folders_without_room({"scratch": tmp_path / "not there yet"}) == []


def test_plan_says_with_numbers_which_disk_is_full(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(opened(tiny), as_json=False) == 0
    box = Path(opened(tiny).plan.box("box-a").data_dir)
    box.mkdir(parents=True)
    fill(monkeypatch, box)
    assert plan(opened(tiny), as_json=False) == 1
    said = capsys.readouterr().err
    assert f"scratch of box-a: {box}: 0.0 MB are free, 67.1 MB are needed" in said
    assert "box-b" not in said


@pytest.mark.parametrize("place", ["scratch of box-a", "durable tier"])
def test_launch_refuses_a_full_disk_before_anything_is_sent(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    project = opened(tiny)
    full = Path(project.plan.box("box-a").data_dir) if "box" in place else project.on_tier.root
    full.mkdir(parents=True)
    fill(monkeypatch, full)
    with pytest.raises(NoRoomError, match=f"{place}: .*0.0 MB are free"):
        launch(project, environ={})
    assert not any(tiny.local.rglob("release.json")) and not any(full.rglob("*"))


def test_a_box_that_is_not_launched_may_be_full(
    tiny: TinyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = opened(tiny)
    full = Path(project.plan.box("box-a").data_dir)
    full.mkdir(parents=True)
    fill(monkeypatch, full)
    assert launch(project, boxes=["box-b"], environ={}) == 0
    tiny.wait_for_agents()
