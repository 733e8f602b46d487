"""`python -m boxcar.training.load_check` as a process that is forked, see door.py.

Two thirds of its start are the compiling of what the training's file holds. A file that differs
from ours in a byte is run by Python itself.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import door

MODULE = "boxcar.training.load_check"
_SHELL = """\
#!/bin/sh
if [ "$1 $2" = "-m {module}" ]; then
{ask}fi
exec {python} "$@"
"""


@functools.cache
def python() -> str:
    """An interpreter as ours, whose load checks are forked; one server for each process."""
    if not door.is_possible():
        return sys.executable
    folder = Path(_folder().name)
    shell = folder / "python"
    ask = door.ask(folder / "door")
    shell.write_text(_SHELL.format(module=MODULE, ask=ask, python=sys.executable))
    shell.chmod(0o755)
    words = [sys.executable, __file__, training_file(), str(folder / "door")]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _folder().server = server  # type: ignore[attr-defined]  (its stdin is open as long as we live)
    assert server.stdout and server.stdout.readline() == b"open\n"
    return str(shell)


def training_file() -> str:
    """Made anew: the server removes it that has loaded it."""
    from boxcar.laptop.release import archives

    with tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file:
        file.write(archives.build_training())
    return file.name


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="boxcar-check-")


# --- in the server


def load_all(training: str) -> None:
    """The modules of the load check that need no library, where `boxcar` is the agent's or ours."""
    import boxcar

    boxcar.__path__.append(f"{training}/boxcar")
    for name in zipfile.ZipFile(training).namelist():
        if name.startswith("boxcar/training/load_check/"):
            try:
                importlib.import_module(name.removesuffix(".py").replace("/", "."))
            except ImportError:
                continue


def taken(
    words: list[str], environment: dict[str, str], training: bytes
) -> Callable[[], object] | None:
    """The load check, where it is ours."""
    path = environment.get("PYTHONPATH", "")
    if words[1:] != ["-m", MODULE] or not path or Path(path).read_bytes() != training:
        return None
    return functools.partial(_check, path)


def _check(path: str) -> object:
    sys.path[:] = ["", path, *sys.path[1:]]  # as Python itself does it, for what is imported late
    main = importlib.import_module(f"{MODULE}.__main__")
    sys.argv = [str(main.__file__)]
    return main.main()


if __name__ == "__main__":
    data = Path(sys.argv[1]).read_bytes()
    load_all(sys.argv[1])
    Path(sys.argv[1]).unlink()
    door.serve_at(Path(sys.argv[2]), functools.partial(taken, training=data))
