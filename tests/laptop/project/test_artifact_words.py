from __future__ import annotations

import pytest

from boxcar.laptop.project import job_values


def test_keys_of_what_is_not_loaded_are_refused() -> None:
    with pytest.raises(ValueError, match="load: bytes does not load it"):
        job_values.refuse_odd_artifact("best.pth", keys=["model"], load="bytes", take="all")


def test_the_newest_of_a_plain_path_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a pattern, such as"):
        job_values.refuse_odd_artifact("best.pth", keys=[], load="safe", take="newest")


@pytest.mark.parametrize("load", ["safe", "trusted", "bytes"])
@pytest.mark.parametrize("path", ["checkpoints/*.ckpt", "checkpoint-?/"])
def test_a_pattern_takes_each_of_them(path: str, load: str) -> None:
    job_values.refuse_odd_artifact(path, keys=[], load=load, take="newest")
