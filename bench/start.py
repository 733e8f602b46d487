"""What a word on the command line costs before it does anything: CPU, because a busy machine makes
every wall time longer.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from bench.row import Row

ROUNDS = 5
BOXCAR = [sys.executable, "-c", "from boxcar.cli import program; program.run()"]
_BARE = [sys.executable, "-c", "pass"]
_INVOKE = [sys.executable, "-c", "import invoke"]


def measure(folder: Path) -> list[Row]:
    peers = {"python -c pass": _BARE, "import invoke": _INVOKE}
    peer_s = {name: cpu_s(words, folder) for name, words in peers.items()}
    return [
        Row(f"boxcar {word}", cpu_s([*BOXCAR, word], folder), "s of CPU", peer_s[name], name)
        for word in ("--version", "--help")
        for name in peers
    ]


def cpu_s(
    words: list[str], folder: Path, rounds: int = ROUNDS, ends: Collection[int] = (0,)
) -> float:
    """The least of some rounds, of the program and all that it starts. It ends with one of
    `ends`.
    """
    return min(_once_s(words, folder, ends) for _ in range(rounds))


def _once_s(words: list[str], folder: Path, ends: Collection[int]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in ends:
        raise RuntimeError(f"{words[-1]}: exit code {done.returncode}: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
