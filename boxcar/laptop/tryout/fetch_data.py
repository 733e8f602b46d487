"""The job's data that comes from a URL, on this machine: fetched once, by the code that a box has.

A try needs what its cells read. It lies in `.boxcar/fetched/` and may be removed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.common.progress import Part, Progress
from boxcar.laptop.project import data_of_job
from boxcar.laptop.project.project import Project
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import Command, InputError, TemporaryError
from boxcar.shared.files import codec, fetched_data
from boxcar.shared.files.fetched_data import PROBLEM
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.paths import DataPaths
from boxcar.shared.sentence import _

_LOOK_EVERY_S = 0.2
ShowProgress = Callable[[str], contextlib.AbstractContextManager[Progress]]


@contextlib.contextmanager
def unseen(what: str) -> Iterator[Progress]:
    """Nobody is told how far it is."""
    yield Progress(what)


def fetch_data(
    project: Project, python: str, training_zip: Path, progress: ShowProgress = unseen
) -> dict[str, Path]:
    """The folder of each name. Raises InputError for what cannot be had, TemporaryError where
    another one fetches it now.
    """
    urls = data_of_job.urls_of(project.job)
    store = DataPaths(Home(project.root).fetched)
    lacking = [one for one in urls if fetched_data.find_data(store, one) is None]
    if lacking:
        with progress(_("data from its URL")) as bar:
            parts = [bar.part(0, one.name) for one in lacking]
            for one, part in zip(lacking, parts, strict=True):
                _fetch(store, one, part, [python, str(training_zip)])
    found = {one.name: fetched_data.find_data(store, one) for one in urls}
    return {name: store.files(one.digest) for name, one in found.items() if one}


def _fetch(store: DataPaths, one: DataUrl, part: Part, program: list[str]) -> None:
    folder = store.of_url(fetched_data.key_of(one))
    atomic.make_folder(folder)
    held = lock.try_hold(folder / "lock")
    if held is None:
        raise TemporaryError(
            _("data {name}: another smoke fetches it now", name=one.name), Command("smoke")
        )
    try:
        child = _start(store, one, folder, program, held)
        try:
            while child.poll() is None:
                if now := fetched_data.read_progress(folder):
                    part.total = max(part.total, now.total_bytes, now.done_bytes)
                    part.at(now.done_bytes)
                time.sleep(_LOOK_EVERY_S)
        except BaseException:  # Ctrl-C: what has come is kept
            child.send_signal(signal.SIGTERM)
            child.wait()
            raise
    finally:
        os.close(held)
    part.end()
    if child.returncode:
        raise InputError(
            _(
                "data {name} cannot be fetched: {problem}",
                name=one.name,
                problem=_problem(folder, child.returncode),
            )
        )


def _start(
    store: DataPaths, one: DataUrl, folder: Path, program: list[str], held: int
) -> subprocess.Popen[bytes]:
    python, training_zip = program
    request = {"base": str(store.base), "box": "-", "url": codec.encode(one)}
    with (folder / "log").open("wb") as out:
        child = subprocess.Popen(
            [python, "-m", "boxcar.training.fetch.to_store"],
            env={
                **os.environ,
                "PYTHONPATH": training_zip,
            },  # a store's package reads its keys there
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
            pass_fds=(held,),
        )
    assert child.stdin is not None
    with child.stdin:
        child.stdin.write(json.dumps(request).encode())
    return child


def _problem(folder: Path, returncode: int) -> str:
    for path in (folder / PROBLEM, folder / "log"):
        if path.exists() and (said := path.read_text(errors="replace").strip()):
            return said.splitlines()[-1]
    return _("ended with {rc}", rc=returncode)
