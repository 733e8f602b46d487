from __future__ import annotations

import pytest

from boxcar.laptop.habits import ignore_text


def test_what_git_ignores_stays_but_for_data_that_the_script_may_need() -> None:
    lines = ["*.bin", "*.pt", "data/"]
    found = ignore_text.text(lines, {1: 200_000, 3: 60_000_000}, usual=["wandb/", "runs/"])
    assert found.splitlines()[2:] == [
        "# shipped, as your script may need it (200.0 kB of data): *.bin",
        "*.pt",
        "data/",
        "wandb/",
        "runs/",
    ]


def test_a_folder_that_git_ignores_already_is_named_once() -> None:
    assert ignore_text.text(["/wandb"], {}, usual=["wandb/"]).count("wandb") == 1


@pytest.mark.parametrize(
    ("path", "is_data"), [("data/a.bin", True), ("Datasets/x/*.npy", True), ("out/a.pt", False)]
)
def test_data_lies_where_people_put_it(path: str, is_data: bool) -> None:
    assert ignore_text.is_data(path) == is_data


def test_a_folder_of_data_is_shipped_whole_whatever_else_git_ignores() -> None:
    found = ignore_text.text(["/data/", "*.jpg", "d*/"], {1: 100, 3: 5}, usual=[])
    assert found.splitlines()[2:] == [
        "# shipped, as your script may need it (100 B of data): /data/",
        "*.jpg",
        "# shipped, as your script may need it (5 B of data): d*/",
        "!data/**",
    ]
