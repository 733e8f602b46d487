"""A script's `--help`, run because a person said so: in a copy of its code, and bounded.

It runs what stands at the top of the script and of all that it imports. This is no sandbox: what
the user may read it may read. It gets no GPU, no secret of the environment, a home and a folder
that are thrown away, and where this system lets a user do that no network; after TIMEOUT_S it is
ended, with all that it started.
"""

from __future__ import annotations

import functools
import os
import shutil
import site
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from boxcar.laptop.common import run_program
from boxcar.laptop.release import code_files
from boxcar.shared.errors import reason_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, quotation

TIMEOUT_S = 60.0
# Code and configs: a --help needs no data.
_MOST_FILE_BYTES = 1 << 20
_LONGEST_WORD = 200
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME")
_ITS_OWN = {
    "CUDA_VISIBLE_DEVICES": "",
    "COLUMNS": "200",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "MPLBACKEND": "Agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}
_ALONE = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True)
class Said:
    """`problem` says why there is no help text to rely on; '' where it ended by itself with 0."""

    text: str
    problem: str = ""


def run(root: Path, python: str, words: Sequence[str]) -> Said:
    """`words` are the script's path below `root` and what comes behind it, such as `--help`.

    Raises InputError where the code cannot be listed, OSError where it cannot be copied.
    """
    with tempfile.TemporaryDirectory(prefix="boxcar-help-") as folder:
        copy, home = Path(folder, "code"), Path(folder, "home")
        _copy(root, copy)
        home.mkdir()
        command = [*_alone(), python, *words]
        try:
            done = run_program.run(
                command, b"", TIMEOUT_S, cwd=copy, environment=_environment(os.environ, home)
            )
        except subprocess.TimeoutExpired:
            return Said("", _("did not end within {seconds:g} s and was ended", seconds=TIMEOUT_S))
        except run_program.TooMuchSaid:
            return Said("", _("printed without end and was ended"))
        except OSError as error:
            why = reason_of(error)
            return Said("", _("could not be started with {python}: {why}", python=python, why=why))
    text = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
    if not done.returncode:
        return Said(text, "")
    last = quotation(_last_line(text))
    return Said(text, _("ended with {code}: {last}", code=done.returncode, last=last))


def _copy(root: Path, copy: Path) -> None:
    for file in code_files.take_snapshot(root).files:
        if file.source.stat().st_size <= _MOST_FILE_BYTES:
            to = copy / file.path
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.source, to)


def _environment(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    kept = {name: environ[name] for name in _KEPT if name in environ}
    # What was installed with `pip install --user` is found by the home.
    user_base = {"PYTHONUSERBASE": site.getuserbase()}
    return {**kept, **user_base, **_ITS_OWN, "HOME": str(home), "TMPDIR": str(home)}


@functools.cache
def _alone() -> tuple[str, ...]:
    """Without a network, and ended to the last process; many systems do not let a user."""
    try:
        tried = subprocess.run([*_ALONE, "true"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return () if tried.returncode else _ALONE


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_WORD] if lines else "it said nothing"
