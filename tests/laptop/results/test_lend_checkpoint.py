from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mirrored import bring_all, make_mirrored_run, mirror
from run_on_disk import RunOnDisk, agent_started, cell_started

from boxcar.laptop.common.progress import Progress
from boxcar.laptop.results import lend
from boxcar.laptop.results.lend import lend_checkpoints
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import resume_pointer
from onbox.checkpoint.live_checkpoint import Mirror
from onbox.checkpoint.restored_checkpoint import restore

BAR = Progress("push")


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    return make_mirrored_run(tmp_path)


def lose_the_box(run: RunOnDisk) -> None:
    """A new one under its name, which has heard of nothing."""
    shutil.rmtree(run.site.tier.resume("a"))
    run.site.tier.journal("queue_1").unlink()


def test_a_new_box_continues_where_the_lost_one_was(run: RunOnDisk) -> None:
    pointer = mirror(run, b"step 1000")
    bring_all(run)
    lose_the_box(run)
    bar = Progress("push")
    [said] = lend_checkpoints(run.site, "queue_1", bar)
    assert bar.done == bar.total > 0
    assert said.startswith("a: resumes on box-a from its checkpoint of 2026-11-21T03:27:43")
    folder = run.site.tier.resume("a")
    assert resume_pointer.read_resume_pointer(folder) == pointer
    assert (folder / pointer.file.path).read_bytes() == b"step 1000"
    assert list(lend_checkpoints(run.site, "queue_1", BAR)) == []  # it is there by now


def test_a_box_that_tried_the_cell_knows_better(run: RunOnDisk) -> None:
    mirror(run, b"step 1000")
    bring_all(run)
    lose_the_box(run)
    run.say("queue_1", agent_started(), cell_started("a"))
    assert list(lend_checkpoints(run.site, "queue_1", BAR)) == []
    assert not run.site.tier.resume("a").exists()


def test_only_the_queue_of_the_cell_is_lent_it(run: RunOnDisk) -> None:
    mirror(run, b"step 1000")
    bring_all(run)
    lose_the_box(run)
    assert list(lend_checkpoints(run.site, "queue_2", BAR)) == []


def test_a_checkpoint_that_is_damaged_here_is_said_and_not_sent(run: RunOnDisk) -> None:
    pointer = mirror(run, b"step 1000")
    bring_all(run)
    lose_the_box(run)
    (run.project.results.resume("a") / pointer.file.path).write_bytes(b"step 10X0")
    [said] = lend_checkpoints(run.site, "queue_1", BAR)
    assert said.startswith("a: starts over")
    assert resume_pointer.read_resume_pointer(run.site.tier.resume("a")) is None


def test_what_does_not_arrive_whole_ends_the_launch_of_this_queue(
    run: RunOnDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror(run, b"step 1000")
    bring_all(run)
    lose_the_box(run)
    monkeypatch.setattr(lend.folders, "send_folder", lambda *ends, on_bytes: None)
    with pytest.raises(TemporaryError, match="did not reach box-a intact"):
        list(lend_checkpoints(run.site, "queue_1", BAR))


@pytest.mark.parametrize("resume", ["step_*.pt", "checkpoint-*/"])
def test_a_match_of_a_pattern_comes_to_a_new_box_under_its_own_name(
    run: RunOnDisk, tmp_path: Path, resume: str
) -> None:
    lost, new = tmp_path / "lost", tmp_path / "new"
    for step in (9, 10):
        (lost / f"checkpoint-{step}").mkdir(parents=True)
        for name in ("weights.pt", "trainer_state.json"):
            (lost / f"checkpoint-{step}" / name).write_text(f"{step} {name}")
        (lost / f"step_{step}.pt").write_text(f"{step}")
    tier = run.site.tier.resume("a")
    Mirror("a", 1, lost, resume, tier).flush(lambda size_bytes: None)
    bring_all(run)
    lose_the_box(run)
    [said] = lend_checkpoints(run.site, "queue_1", BAR)
    assert "resumes on box-a" in said
    new.mkdir()
    assert restore(tier, new, resume)
    names = [path.relative_to(new).as_posix() for path in sorted(new.rglob("*")) if path.is_file()]
    assert names == (
        ["checkpoint-10/trainer_state.json", "checkpoint-10/weights.pt"]
        if resume.endswith("/")
        else ["step_10.pt"]
    )
    assert all((new / name).read_bytes() == (lost / name).read_bytes() for name in names)
