from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.init import job_text


def put(root: Path, name: str, size_bytes: int = 10) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size_bytes)


def test_what_git_ignores_stays_but_for_data_that_the_script_may_need(tmp_path: Path) -> None:
    put(tmp_path, "data/a.csv")
    put(tmp_path, "datasets/b.bin", 60_000_000)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "runs").mkdir()
    lines = ["*.pyc", "/data/", "datasets/", "inputs/", "!x"]
    assert job_text.text(tmp_path, lines).splitlines()[1:] == [
        "*.pyc",
        "# sent, because your script may need it: /data/",
        "datasets/",
        "inputs/",
        "!x",
        "runs/",
        "!data/**",
    ]


@pytest.mark.parametrize("line", ["data", "data/", "/data", "/data/*", "data/**"])
def test_a_folder_of_data_is_named_in_many_ways(tmp_path: Path, line: str) -> None:
    put(tmp_path, "data/a.jpg")
    assert f"need it: {line}\n*.jpg\n!data/**\n" in job_text.text(tmp_path, [line, "*.jpg"])


def test_a_folder_that_git_ignores_already_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    assert job_text.text(tmp_path, ["/wandb"]).count("wandb") == 1
