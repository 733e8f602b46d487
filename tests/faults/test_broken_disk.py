"""A disk that fails once: the n-th fsync, write, rename or link says EIO or ENOSPC, n = 1, 2, 3, …

The agent may go on or end, as it likes; the next one ends right, and the journal is never damaged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from proof import assert_nothing_torn, assert_published_once
from straced import failing_at, skip_without_strace
from tiny_project import MakeProject, TinyProject

pytestmark = pytest.mark.faults
CELLS = ["a", "b"]
STEPS = 24
LAUNCHES = 2
# An agent whose every attempt meets the fault waits for minutes before the next one. It is told to
# leave then, as by a person.
PATIENCE_S = "30"


@pytest.fixture
def run(project: MakeProject) -> TinyProject:
    made = project({"q1": [f"configs/{cell}.json one" for cell in CELLS]})
    made.boxcar("push").ended(0)
    return made


def begin_again(run: TinyProject) -> None:
    """As after the push: what the agents made is removed."""
    shutil.rmtree(run.box("box-a"))
    for path in run.tier.iterdir():
        if path.is_dir() and path.name not in ("releases", "queues"):
            shutil.rmtree(path)


def assert_ends_right(run: TinyProject, what: str) -> None:
    # An attempt that met the fault itself may end the next agent too, which takes it over.
    codes = [run.agent("q1").returncode for _ in range(LAUNCHES)]
    assert codes[-1] == 0, f"{what}: the agents ended with {codes}. {run.told()}"
    assert_published_once(run, CELLS)
    assert_nothing_torn(run)
    begin_again(run)


@pytest.mark.usefixtures("tell")
@pytest.mark.parametrize(
    ("calls", "error"),
    [("fsync", "EIO"), ("fsync", "ENOSPC"), ("write", "ENOSPC"), ("rename,link", "EIO")],
)
def test_a_call_that_fails_once_costs_no_result(run, calls, error):
    skip_without_strace()
    ended = 0
    for number in range(1, STEPS + 1):
        said = run.agent("q1", (*failing_at(number, calls, error), "timeout", PATIENCE_S))
        ended += said.returncode != 0
        if run.box("box-a").exists():
            assert_ends_right(run, f"{calls} {number} fails with {error}")
    print(f"{calls} fails with {error}: {STEPS} places, {ended} of them ended the agent")
    assert ended > STEPS / 10


@pytest.mark.usefixtures("tell")
def test_a_disk_that_takes_half_a_line_costs_no_result(run):
    """A file-size limit makes the kernel write the part that fits, as a full disk does."""
    limits = range(300, 9000, 300)
    for size_bytes in limits:
        limit = ("prlimit", f"--fsize={size_bytes}:unlimited", "--")
        run.agent("q1", (*limit, "timeout", PATIENCE_S))
        if run.box("box-a").exists():
            assert_ends_right(run, f"no file above {size_bytes} bytes")
    print(f"{len(limits)} file-size limits")


# The unfinished copy has a name that strace can be told.
COPY = """
import sys
from pathlib import Path
from boxcar.shared.disk import checked_copy as copy, atomic as durable
durable.temporary_name = lambda path: path.with_name("unfinished")
copy.checked_copy(Path(sys.argv[1]), Path(sys.argv[2]), "x")
"""
# Some blocks, so that a call in the middle can fail.
SIZE_BYTES = 20 * 1024 * 1024
PLACES = 12


@pytest.mark.usefixtures("tell")
@pytest.mark.parametrize(
    "inject",
    [
        *("write:error=ENOSPC", "write:error=EIO", "write:retval=7"),
        *("readv:error=EIO", "readv:retval=0", "fsync:error=EIO", "fsync:error=ENOSPC"),
        *("openat:error=EIO", "rename:error=EIO", "fadvise64:error=EIO"),
    ],
)
def test_a_copy_is_whole_or_not_there(tmp_path, inject):
    """`retval` makes a call say something and do nothing: the disk lies, and is found out."""
    skip_without_strace()
    source, target = tmp_path / "source", tmp_path / "there" / "target"
    source.write_bytes(os.urandom(SIZE_BYTES))
    target.parent.mkdir()
    refused = 0
    for number in range(1, PLACES + 1):
        for old in (None, b"the copy before"):
            target.unlink(missing_ok=True)
            if old is not None:
                target.write_bytes(old)
            ended = copy_under(f"{inject}:when={number}", source, target)
            found = target.read_bytes() if target.exists() else None
            assert found == source.read_bytes() or (ended != 0 and found == old)
            refused += ended != 0
    print(f"{inject}: {2 * PLACES} copies, {refused} refused, each other one whole")
    assert refused, "nothing was ever made to fail"


def copy_under(inject: str, source: Path, target: Path) -> int:
    """The exit code of a checked copy to which this happens."""
    calls = inject.partition(":")[0]
    # Only what is done to these files, and not what Python does to start.
    touched = (source, target, target.with_name("unfinished"), target.parent)
    only = [word for path in touched for word in ("-P", str(path))]
    strace = ("strace", "-f", "-qq", "-o", "/dev/null", *only, "-e", f"trace={calls}")
    python = (sys.executable, "-c", COPY, str(source), str(target))
    command = [*strace, "-e", f"inject={inject}", *python]
    return subprocess.run(command, capture_output=True, check=False).returncode
