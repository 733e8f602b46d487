"""An interpreter that has the agent's file unpacked and compiled, for tests that start it often.

Two thirds of such a start are the compiling of what the file holds. Answers, attempts and load
checks are forked, see door.py. Any other program, and any file that differs from ours in a byte, is
run by Python itself.
"""

from __future__ import annotations

import compileall
import functools
import io
import py_compile
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import door
import forked_attempt

from boxcar.laptop.release import archives

# The rest is seldom imported, and then from the file.
UNPACKED = ("boxcar/", "onbox/", "watchdog/")
SHELL = """\
#!/bin/sh
case "$4 $1 $2" in "answer -I -S" | "attempt -I -S" | *" -m boxcar.training.load_check")
{ask};; esac
case "$1 $2 $3" in "-I -S "*.pyz) shift 2; exec {python} -I -S {folder}/quick.py "$@" ;; esac
exec {python} "$@"
"""
QUICK = """\
import sys
from os.path import dirname, join
folder, sys.argv = dirname(sys.argv[0]), sys.argv[1:]
agent = sys.argv[0]
with open(agent, "rb") as one, open(join(folder, "agent.pyz"), "rb") as other:
    is_ours = one.read() == other.read()
if is_ours:
    sys.path[:0] = [join(folder, "unpacked"), agent]
    from onbox.__main__ import main
    sys.exit(main())
import runpy
runpy.run_path(agent, run_name="__main__")
"""


def install(seen: Path, folder: Path, python: str, at: Path) -> str:
    """Puts it where we see `seen` and where it is run as `folder`; the path of the interpreter.

    `python` is of the version that this process has; `at` is the door of what is forked there.
    """
    if not seen.exists():
        shutil.copytree(_made(), seen)
        _write_shell(seen / "python", python, folder, at)
    return str(folder / "python")


@functools.cache
def here() -> str:
    """The same for the boxes that are folders of this machine, where only attempts are forked by
    it; one for each process."""
    made = _made()
    at = forked_attempt.door_of(made / "unpacked", made / "agent.pyz")
    folder = tempfile.TemporaryDirectory(prefix="boxcar-quick-here-")
    here.folder = folder  # type: ignore[attr-defined]  (removed with this process)
    _write_shell(Path(folder.name, "python"), sys.executable, made, at or made / "no door")
    return str(Path(folder.name, "python"))


def _write_shell(shell: Path, python: str, folder: Path, at: Path) -> None:
    shell.write_text(SHELL.format(ask=door.ask(at), python=python, folder=folder))
    shell.chmod(0o755)


@functools.cache
def _made() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="boxcar-quick-")
    _made.folder = folder  # type: ignore[attr-defined]  (removed with this process)
    made, data = Path(folder.name), archives.build_onbox()
    (made / "agent.pyz").write_bytes(data)
    (made / "quick.py").write_text(QUICK)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.startswith(UNPACKED)]
        archive.extractall(made / "unpacked", names)
    # By their content, as a copy has other times.
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(made / "unpacked", quiet=2, invalidation_mode=unchecked)
    return made
