"""An attempt at work in a process of its own, with no agent around it, and what came of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from waiting import until

from boxcar.shared.cell import launch
from boxcar.shared.files import attempt
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.paths import ScratchPaths
from onbox.attempt import attempt as program
from onbox.machine import process


class Begun:
    """Of rank 0 `folder` gets pid0, a line in told0 for each SIGTERM, and saved0."""

    def __init__(
        self,
        folder: Path,
        spec: AttemptSpec,
        env: Mapping[str, str] | None = None,
        *,
        argv: Sequence[str] = (),
    ) -> None:
        """`argv`: a launcher of a test's in the place of the one that is said."""
        self.folder, self.spec = folder, spec
        self.scratch = ScratchPaths(Path(spec.data_dir), spec.run)
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.environ |= env or {}
                if argv:
                    _stand_in(argv)
                code = program.run(spec)
            finally:
                os._exit(code)

    def tell(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.pid, number)

    def ended(self) -> Done:
        until(lambda: os.waitpid(self.pid, os.WNOHANG)[0])
        self.pid = 0
        found = attempt.read_done(self.scratch.done(self.spec.cell, self.spec.attempt))
        assert found
        return found

    def end(self) -> None:
        """Whatever of it is left."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        cookie = process.cookie(str(self.scratch.root), self.spec.cell, self.spec.attempt)
        process.end_all(lambda: process.with_cookie(cookie), 0)

    @property
    def log(self) -> str:
        return self.scratch.log(self.spec.cell).read_text()

    def wait_for(self, *names: str) -> None:
        paths = [self.folder / name for name in names]
        until(lambda: all(path.exists() and path.read_text() for path in paths), names)

    def told(self, rank: int = 0) -> int:
        return len((self.folder / f"told{rank}").read_text().splitlines())

    def has_saved(self, rank: int = 0) -> bool:
        return (self.folder / f"saved{rank}").exists()


def _stand_in(argv: Sequence[str]) -> None:
    start = launch.start
    launch.start = lambda *what: replace(start(*what), argv=tuple(argv))


# A rank, or a script that is started alone: CODE SAVES_S [--ends], with which it ends at once.
SCRIPT = """\
import os, signal, sys, time
words = [word for word in sys.argv[1:] if not word.startswith("--local_rank")]
name, code, saves_s = os.environ.get("RANK", "0"), int(words[0]), float(words[1])
is_told = []

def hear(number, frame):
    is_told.append(number)
    with open(f"told{name}", "a") as file:
        file.write("SIGTERM\\n")

signal.signal(signal.SIGTERM, hear)
with open(f"pid{name}", "w") as file:
    file.write(str(os.getpid()))
while not is_told and "--ends" not in words:
    time.sleep(0.01)
until = time.monotonic() + saves_s
while time.monotonic() < until:
    time.sleep(0.01)
open(f"saved{name}", "w").close()
sys.exit(code)
"""

# Small launchers like real ones, with two ranks.
RANKS = """\
import os, signal, subprocess, sys, time
me = {name: os.environ[name] for name in os.environ if name != "RANK"}
# A rank may be told before its launcher would hear of it: one that came meanwhile waits.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
ranks = [
    subprocess.Popen([sys.executable, *sys.argv[1:]], env=me | {
        "RANK": str(n), "LOCAL_RANK": str(n), "WORLD_SIZE": "2", "MASTER_PORT": "1"},
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]))
    for n in range(2)
]
"""
# As torchrun: each rank is told, and waited for.
HANDS_ON = f"""\
{RANKS}
signal.signal(signal.SIGTERM, lambda *_: [rank.terminate() for rank in ranks])
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
sys.exit(max(rank.wait() for rank in ranks))
"""
# As deepspeed's launch: told to end, it ends one rank after the other, and leaves with 1.
ONE_BY_ONE = f"""\
{RANKS}
def end(*_):
    for rank in ranks:
        rank.terminate()
        try:
            rank.wait(0.5)
        except subprocess.TimeoutExpired:
            rank.kill()
    sys.exit(1)

signal.signal(signal.SIGTERM, end)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
sys.exit(max(rank.wait() for rank in ranks) % 256)
"""
# As accelerate with one rank, which starts a process and waits for it.
DIES_AT_ONCE = """\
import subprocess, sys
sys.exit(subprocess.Popen([sys.executable, *sys.argv[1:]]).wait())
"""
SHELL = '#!/bin/bash\nexport ITS_OWN=1\n"$@"\necho "it is through"\n'
