"""`onbox answer` of a local box as a process that is forked, see forked.py.

Its server has loaded the agent's own file, by the interpreter's own options, and nothing else. What
is not that file, or another interpreter, is started as ever.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

if __name__ == "__main__":  # with -I no folder of ours is looked in
    sys.path.insert(0, str(Path(__file__).parent))

from forked import Forked, serve

TimeoutExpired = subprocess.TimeoutExpired
_OPTIONS = ("-I", "-S")
PYTHONS = {sys.executable}  # and what is none, but starts that one


def run(
    words: Sequence[str],
    *,
    input: bytes,
    timeout: float,
    env: dict[str, str],
    check: bool,
    **more: Any,
) -> subprocess.CompletedProcess[bytes]:
    """`subprocess.run` for the one call of boxes/ask_here.py."""
    if not _is_the_agents(words):
        return subprocess.run(words, input=input, timeout=timeout, env=env, check=check, **more)
    pipe = subprocess.PIPE
    with kind()(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env) as process:
        try:
            out, err = process.communicate(input, timeout)
        except TimeoutExpired:
            process.kill()
            process.wait()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def _is_the_agents(words: Sequence[str]) -> bool:
    from boxcar.laptop.release import archives

    if words[0] not in PYTHONS or tuple(words[1:3]) != _OPTIONS:
        return False
    return Path(words[3]).read_bytes() == archives.build_onbox()


@functools.cache
def kind() -> type[Forked[bytes]]:
    """Who forks before the first answer calls it, so that all share one server."""

    class ForkedAnswer(Forked[bytes]):
        SERVER = server_words(sys.executable, __file__)

    ForkedAnswer.start_server()
    return ForkedAnswer


def server_words(python: str, file: str) -> tuple[str, ...]:
    """The command line of a server that is this file, which calls `load_all` with its first word
    and removes what that names."""
    from boxcar.laptop.release import archives

    with tempfile.NamedTemporaryFile(suffix=".pyz", delete=False) as agent:
        agent.write(archives.build_onbox())
    return (python, *_OPTIONS, file, agent.name)


# --- in the server


def load_all(agent: str) -> None:
    """The modules of the agent's file."""
    import importlib

    # None of these counts with -I, so none can be another.
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        del os.environ[name]
    sys.path.insert(0, agent)
    door = importlib.import_module("onbox.answers.door")
    for name in ("onbox.__main__", *door.MODULES.values()):
        importlib.import_module(name)


def become(words: Sequence[str]) -> NoReturn:
    """`words` begins with the interpreter and its options."""
    sys.argv = list(words[3:])
    sys.path[0] = words[3]  # what is imported late
    from onbox.__main__ import main

    sys.exit(main())


if __name__ == "__main__":
    load_all(sys.argv[1])
    Path(sys.argv[1]).unlink()
    serve(become)
