from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.trackers.exported_cell import PARTIAL, put_folder


def make(text: str, name: str = "run-1") -> object:
    def made(partial: Path) -> Path:
        (partial / name).mkdir()
        (partial / name / "log").write_text(text)
        return partial / name

    return made


def test_what_was_there_goes_once_the_new_one_is_whole(tmp_path: Path) -> None:
    place = "wandb/{}".format
    assert put_folder(tmp_path, make("one"), place, ()) == "wandb/run-1"  # type: ignore[arg-type]
    before = (tmp_path / "wandb").glob("run-*")
    assert put_folder(tmp_path, make("two", "run-2"), place, before) == "wandb/run-2"  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "wandb").iterdir()] == ["run-2"]
    assert not (tmp_path / PARTIAL).exists()


def test_one_that_was_killed_leaves_what_was_there(tmp_path: Path) -> None:
    def killed(partial: Path) -> Path:
        (partial / "half").touch()
        raise KeyboardInterrupt

    put_folder(tmp_path, make("one"), str, ())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        put_folder(tmp_path, killed, str, [tmp_path / "run-1"])
    assert (tmp_path / "run-1/log").read_text() == "one"
    put_folder(tmp_path, make("two"), str, ())  # type: ignore[arg-type]
    assert (tmp_path / "run-1/log").read_text() == "two" and not (tmp_path / PARTIAL).exists()
