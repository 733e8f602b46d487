from __future__ import annotations

from pathlib import Path

import pytest

from onbox.result.collect import move

WANTED = ("wandb/", "tb/", "outputs/wandb/", "lightning_logs/version_*/")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name in ("code", "out"):
        (tmp_path / name).mkdir()
    return tmp_path / "code"


def written(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def below(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_what_is_collected_goes_into_out_and_the_rest_stays(code: Path, tmp_path: Path) -> None:
    for name in ("wandb/run-1/a", "data/x", "outputs/wandb/b", "outputs/c", "tb"):
        written(code / name)
    written(code / "lightning_logs/version_0/d")
    added = ("wandb/", "data/", "outputs/", "lightning_logs/", "tb")
    assert move(code, added, WANTED, tmp_path / "out")
    assert below(tmp_path / "out") == {
        "wandb/run-1/a",
        "outputs/wandb/b",
        "lightning_logs/version_0/d",
        "tb",
    }
    assert below(code) == {"data/x", "outputs/c"}
    assert not move(code, ("data/", "outputs/"), WANTED, tmp_path / "out")


def test_a_later_attempts_logs_join_those_of_the_first(code: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written(out / "wandb/run-1/a", "first")
    (out / "wandb/latest").symlink_to("run-1")
    written(code / "wandb/run-1/a", "second")
    written(code / "wandb/run-2/a")
    (code / "wandb/latest").symlink_to("run-2")
    assert move(code, ("wandb/",), WANTED, out)
    assert (out / "wandb/run-1/a").read_text() == "first"
    assert (out / "wandb/run-1/a.1").read_text() == "second"
    assert (out / "wandb/run-2/a").exists() and not (code / "wandb").exists()


def test_where_the_release_has_the_folder_only_what_was_added_to_it_is_moved(
    code: Path, tmp_path: Path
) -> None:
    written(code / "wandb/shipped")
    written(code / "wandb/run-1/a")
    assert move(code, ("wandb/run-1/",), WANTED, tmp_path / "out")
    assert below(code) == {"wandb/shipped"} and below(tmp_path / "out") == {"wandb/run-1/a"}


def test_a_link_in_out_leads_nothing_elsewhere(code: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/wandb").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "out/outputs").symlink_to(tmp_path / "elsewhere")
    written(code / "wandb/a")
    written(code / "outputs/wandb/b")
    assert move(code, ("wandb/", "outputs/"), WANTED, tmp_path / "out")
    assert below(tmp_path / "elsewhere") == set()
    assert (tmp_path / "out/wandb.1/a").exists() and (code / "outputs/wandb/b").exists()


def test_through_an_out_that_is_itself_a_link_nothing_is_moved(code: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").rmdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    written(code / "wandb/a")
    assert not move(code, ("wandb/",), WANTED, tmp_path / "out")
    assert below(tmp_path / "elsewhere") == set() and (code / "wandb/a").exists()
