"""A queue's agent as a process that is forked from one that has its modules loaded, see forked.py.

The run's own wrapper says what is to be started, as ever: it starts an interpreter, and the words
and the environment that this one gets are those of the agent.
"""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":  # with -I no folder of ours is looked in
    sys.path.insert(0, str(Path(__file__).parents[1]))

from forked import Forked, serve

# Where an interpreter that is to be the agent writes what it got, and ends.
TOLD = "FORKED_AGENT_TOLD"
_LOADED = (
    *("onbox.__main__", "onbox.agent.agent", "onbox.queue.next_cell", "onbox.attempt.stage"),
    *("onbox.machine.credentials", "onbox.machine.place", "onbox.webhooks.deliver"),
    *("onbox.attempt.attempt", "onbox.checkpoint.live_checkpoint"),
)


@functools.cache
def kind(unpacked: Path) -> type[Forked[bytes]]:
    """As `Popen(["bash", WRAPPER, *words], env=..., ...)`, in a session of its own."""

    class ForkedAgent(Forked[bytes]):
        SERVER = (sys.executable, "-I", "-S", __file__, str(unpacked))

    return ForkedAgent


# --- in the server


def _load_all(unpacked: str) -> None:
    # A box's environment says nothing of these, and what is asked of us has that of a box.
    for name in [name for name in os.environ if name.startswith(("PYTHON", "LANG", "LC_"))]:
        del os.environ[name]
    sys.path.insert(0, unpacked)
    for name in _LOADED:
        importlib.import_module(name)


def _become(words: Sequence[str]) -> None:
    os.setsid()
    told, write = os.pipe()
    told_at = {**os.environ, TOLD: f"/dev/fd/{write}"}
    with subprocess.Popen(list(words), env=told_at, pass_fds=[write]) as wrapper:
        os.close(write)
        with os.fdopen(told, "rb") as pipe:
            said = os.fsdecode(pipe.read()).split("\0")[:-1]
    if not said:
        sys.exit(wrapper.returncode)
    at = said.index("")
    script, sys.argv = said[0], said[:at]
    os.environ.clear()
    os.environ.update(pair.split("=", 1) for pair in said[at + 1 :])
    os.environ.pop(TOLD)
    exec(compile(Path(script).read_bytes(), script, "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    _load_all(sys.argv[1])
    serve(_become)
