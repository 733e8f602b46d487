"""What the agent's file answers in a rented box, its attempts and load checks, forked, see door.py.

A server that has their modules loaded goes into the box's namespaces and opens a door.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":  # with -I no folder of ours is looked in
    sys.path.insert(0, str(Path(__file__).parents[1]))

import door
import forked_answer
import forked_attempt
import forked_check
from forked import Forked, serve

DOOR = Path("/run/boxcar-door")  # gone with each end of the box
_NAMESPACES = ("uts", "ipc", "net", "pid", "mnt")  # the last hides where the others are found


def open_door(init_pid: int) -> subprocess.Popen[bytes] | None:
    """In the box whose first process this is, for as long as what is returned is kept."""
    if not door.is_possible():
        return None
    # Of Python's own the server has none.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = _kind()(["door", str(init_pid)], stdin=-1, stdout=-1, env=env)
    assert process.stdout and process.stdout.readline() == b"open\n"
    return process


@functools.cache
def _kind() -> type[Forked[bytes]]:
    words = forked_answer.server_words(str(Path(sys.base_prefix, "bin", "python3")), __file__)

    class ForkedBox(Forked[bytes]):
        SERVER = (*words, forked_check.training_file())

    return ForkedBox


# --- in the server


def _become(words: list[str], agent: bytes, training: bytes) -> None:
    _enter(int(words[1]))
    if os.fork():
        os._exit(0)
    door.serve_at(DOOR, functools.partial(_taken, agent=agent, training=training))


def _enter(init_pid: int) -> None:
    """Its namespaces; of pids that of what is forked from now on. Raises OSError."""
    places = [os.open(f"/proc/{init_pid}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    for place in places:
        door.checked(door.libc().setns(place, 0))
        os.close(place)
    platform._uname_cache = None  # the host's name, which somebody asked for on loading


def _taken(
    words: list[str], environment: dict[str, str], agent: bytes, training: bytes
) -> Callable[[], object] | None:
    is_answer = words[1:3] == ["-I", "-S"] and words[4:] == ["answer"]
    if is_answer and Path(words[3]).read_bytes() == agent:
        return functools.partial(forked_answer.become, words)
    if attempt := forked_attempt.taken(words, agent):
        return attempt
    return forked_check.taken(words, environment, training)


if __name__ == "__main__":
    files = [Path(word) for word in sys.argv[1:3]]
    agent, training = (file.read_bytes() for file in files)
    forked_answer.load_all(sys.argv[1])
    forked_attempt.load_all()
    forked_check.load_all(sys.argv[2])
    door.libc()
    for file in files:
        file.unlink()
    serve(functools.partial(_become, agent=agent, training=training))
