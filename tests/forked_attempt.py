"""An attempt that an agent starts, as a process that is forked, see door.py.

Three quarters of its start are the loading of modules. One that a test starts by itself, without an
agent, is started as ever: the test signals what it has started.
"""

from __future__ import annotations

import functools
import importlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":  # with -I no folder of ours is looked in
    sys.path.insert(0, str(Path(__file__).parent))

import door
import forked_answer

_LOADED = ("onbox.__main__", "onbox.attempt.attempt", "boxcar.shared.files.attempt_spec")
# What tests put beside an interpreter of their own, and it runs in the place of the agent's file.
HURRIED = "hurried.py"


@functools.cache
def door_of(*loaded: Path) -> Path | None:
    """Of a server that has loaded the modules from there; None where there can be none."""
    if not door.is_possible():
        return None
    at = Path(_folder().name, f"door-{len(_servers)}")
    words = [sys.executable, "-I", "-S", __file__, str(at), *map(str, loaded)]
    _servers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    out = _servers[-1].stdout
    assert out and out.readline() == b"open\n"
    return at


# Their stdins are open for as long as we live.
_servers: list[subprocess.Popen[bytes]] = []


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="boxcar-attempt-")


# --- in the server


def load_all() -> None:
    for name in _LOADED:
        importlib.import_module(name)


def taken(words: list[str], agent: bytes | None = None) -> Callable[[], object] | None:
    """The attempt, where an agent started it: that runs the wrapper which it has staged. None where
    its program is to be that of this agent's file, and is not."""
    if words[1:3] != ["-I", "-S"] or words[4:5] != ["attempt"] or "/wrapper/" not in words[3]:
        return None
    is_ours = agent is None or _is_unpacked(agent, Path(words[3]).parents[1])
    return functools.partial(_become, words) if is_ours else None


def _is_unpacked(agent: bytes, program: Path) -> bool:
    return all((program / name).read_bytes() == data for name, data in _sources(agent).items())


@functools.cache
def _sources(agent: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(agent)) as archive:
        names = [name for name in archive.namelist() if name.startswith(("boxcar/", "onbox/"))]
        return {name: archive.read(name) for name in names if name.endswith(".py")}


def _become(words: list[str]) -> None:
    script = Path(words[0]).with_name(HURRIED)
    if not script.exists():
        forked_answer.become(words)
    sys.argv = [str(script), *words[3:]]
    exec(compile(script.read_bytes(), str(script), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    sys.path[:0] = sys.argv[2:]
    load_all()
    file = next((Path(path).read_bytes() for path in sys.argv[2:] if path.endswith(".pyz")), None)
    door.serve_at(Path(sys.argv[1]), lambda words, environment: taken(words, file))
