from __future__ import annotations

import os
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.places import local_site
from boxcar.laptop.places.local_site import RunFolder
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared import timestamp
from boxcar.shared.errors import BoxcarError, DamagedError
from boxcar.shared.files.receipt import Teardown


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path)


def _steps(run: FinishedRun) -> Steps:
    path = run.root / "teardown.json"
    return Steps(path, Teardown("tiny", "ab" * 32, "remove", timestamp.utc_now(), "typed"))


def _problems(run: FinishedRun) -> list[str]:
    return run.site.end_problems()


def test_secrets_go_first_and_the_durable_tier_last(run: FinishedRun) -> None:
    assert [path.name for path in run.site.credentials_files()] == ["credentials-tiny.json"] * 2
    assert [folder.what for folder in run.site.run_folders()] == [
        "scratch of box-a",
        "scratch of box-b",
        "durable tier",
    ]


def test_everything_is_gone_afterwards_and_again_is_harmless(run: FinishedRun) -> None:
    assert _problems(run) == []
    run.site.end_boxes(_steps(run))
    assert not [path for path in (run.root / ".boxcar").rglob("*") if path.is_file()]
    run.site.end_boxes(_steps(run))


def test_a_half_removed_folder_does_not_keep_its_name(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_site.shutil, "rmtree", die)
    with pytest.raises(KeyboardInterrupt):
        run.site.end_boxes(_steps(run))
    scratch = run.site.run_folders()[0]
    assert scratch.aside.is_dir() and not scratch.path.exists()
    monkeypatch.undo()
    run.site.end_boxes(_steps(run))
    assert not scratch.aside.exists()


def test_links_that_a_training_left_are_removed_and_not_followed(run: FinishedRun) -> None:
    outside = run.root / "datasets"
    outside.mkdir()
    (outside / "images").write_text("images")
    out = run.project.scratch("box-a").out("a")
    (out / "data").symlink_to(outside)
    (out / "latest").symlink_to(outside / "images")
    assert _problems(run) == []
    run.site.end_boxes(_steps(run))
    assert (outside / "images").read_text() == "images"


@pytest.mark.parametrize("where", ["boxcar", "boxcar/tiny", "boxcar/tiny/cells", "boxcar/tiny/x",
                                   "boxcar/tiny/cells/a"])  # fmt: skip
@pytest.mark.parametrize("which", [0, 2])
def test_a_link_where_boxcar_makes_none_is_refused(
    run: FinishedRun, which: int, where: str
) -> None:
    base = run.site.run_folders()[which].base
    moved = run.root / "moved"
    if (base / where).exists():
        (base / where).rename(moved)
    else:
        moved.mkdir()
    (base / where).symlink_to(moved)
    (moved / "precious").write_text("precious")
    assert len(_problems(run)) == 1
    with pytest.raises(DamagedError, match="symbolic link"):
        run.site.end_boxes(_steps(run))
    assert (moved / "precious").exists()


def test_a_linked_base_is_the_persons_own_choice(run: FinishedRun) -> None:
    """Such as /root/data, which is a link to a larger disk on many platforms."""
    base = run.site.tier.durable_dir
    base.rename(run.root / "disk")
    base.symlink_to(run.root / "disk")
    assert _problems(run) == []
    run.site.end_boxes(_steps(run))
    assert not run.site.tier.root.exists()


def test_results_that_would_be_removed_are_noticed(run: FinishedRun) -> None:
    inside = run.site.tier.root / "results"
    inside.mkdir()
    (run.root / "results").symlink_to(inside)
    assert len(_problems(run)) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"env": {}}', b"machine x login y"])
def test_a_file_that_is_no_credentials_of_ours_stays(run: FinishedRun, content: bytes) -> None:
    path = run.site.credentials_files()[0]
    path.write_bytes(content)
    (problem,) = _problems(run)
    assert str(path) in problem


def test_linked_credentials_stay(run: FinishedRun) -> None:
    path = run.site.credentials_files()[0]
    path.rename(run.root / "elsewhere.json")
    path.symlink_to(run.root / "elsewhere.json")
    assert len(_problems(run)) == 1


def test_a_run_name_cannot_lead_out_of_the_base(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="leads out of"):
        print(RunFolder("scratch", tmp_path, "../other").path)


def test_what_cannot_be_removed_is_said(run: FinishedRun) -> None:
    folder = run.site.run_folders()[0]
    folder.aside.write_text("a file, where a folder is expected")
    with pytest.raises(BoxcarError, match="cannot be removed"):
        run.site.end_boxes(_steps(run))
    assert os.path.lexists(folder.aside)
