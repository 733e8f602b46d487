"""A results folder that cannot be written to is one sentence with advice."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from finished_run import FinishedRun, make_run

from boxcar.laptop.common import home
from boxcar.laptop.project import profile_choice
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.verify import verify
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import InputError


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return make_run(tmp_path)


def refuse(monkeypatch: pytest.MonkeyPatch, module: object, name: str, why: int) -> None:
    """As on a file system that is mounted read-only; root may write everywhere else."""

    def refused(path: Path, *words: object, **more: object) -> None:
        raise OSError(why, os.strerror(why), str(path))

    monkeypatch.setattr(module, name, refused)


@pytest.mark.parametrize("why", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("verb", [pull, verify])
def test_a_verb_that_keeps_results_says_what_helps(
    run: FinishedRun, monkeypatch: pytest.MonkeyPatch, why: int, verb: object
) -> None:
    refuse(monkeypatch, lock, "try_hold", why)
    with pytest.raises(
        InputError, match=f"{os.strerror(why)}. This machine.*Make it writable"
    ) as refused:
        verb(run.project)  # type: ignore[operator]
    assert str(run.project.results.root) in str(refused.value)


def test_so_does_the_first_verb_of_a_run(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, atomic, "make_folder", errno.EROFS)
    with pytest.raises(InputError, match=r"Read-only file system. This machine.*Make it writable"):
        profile_choice.remember_profile(run.project.results, "ssh", profile_choice.PUSHED)


def test_any_other_trouble_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), home.results_to(tmp_path):
        raise OSError(errno.ENOSPC, "full")
