"""The launcher of a cell over several pods: `begin.py lead SPEC torchrun ...`, in its pod.

It asks each follower whether it is ready, starts the torchrun of its own pod as they start theirs,
and leaves when all have ended. What ends one ends all: a stop, a node that failed, a pod that is
lost. Only it writes the cell's log, since two machines that append to one file of NFS lose lines.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import node_order
from boxcar.shared.files.attempt_spec import AttemptSpec, read_attempt_spec
from boxcar.shared.files.node_order import NodeOrder, NodeWord
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.process import exit_codes
from onbox.machine import process, terminal
from onbox.nodes import meeting
from onbox.nodes.meeting import Heard
from onbox.nodes.node_log import NodeLog

SAYS_AGAIN_S = 600.0
# A node that has failed has said why by then; and torchruns that are done leave together.
SETTLES_S = 2.0
LEAVES_S = 30.0


def main(path: Path, argv: Sequence[str]) -> int:
    try:
        return Lead(path, read_attempt_spec(path), argv).run()
    except (BoxcarError, OSError) as error:
        return terminal.say_error(error)


class Follower:
    """One other pod, as its words and its log tell of it."""

    def __init__(self, scratch: ScratchPaths, spec: AttemptSpec, node: int, order: str) -> None:
        self.node = node
        self._path, self._order = scratch.node_word(node), order
        self._log = NodeLog(scratch.node_log(spec.cell, spec.attempt, node))
        self._word: NodeWord | None = None
        self._process = ""
        self._heard = Heard(-1, time.monotonic())

    def hear_word(self, now: float) -> None:
        """What cannot be read for a moment counts as not said."""
        try:
            word = node_order.read_word(self._path)
        except (BoxcarError, OSError):
            return
        if word is not None:
            self._word, self._heard = word, self._heard.again(word.beat, now)

    @property
    def is_ready(self) -> bool:
        return self._speaks and self._word is not None and self._word.state == node_order.READY

    def begin(self) -> None:
        self._process = self._word.process if self._word else ""

    @property
    def rc(self) -> int | None:
        """None while it runs."""
        return self._word.rc if self._speaks and self._word else None

    def is_lost(self, now: float) -> bool:
        """Whether what it had started has ended with it."""
        if self._word is None or self._word.process != self._process:
            return True
        return self.rc is None and self._heard.is_lost(now)

    @property
    def _speaks(self) -> bool:
        return self._word is not None and self._word.order == self._order

    def print_log(self, *, is_last: bool = False) -> None:
        with contextlib.suppress(OSError):
            self._log.copy_to(sys.stdout.fileno(), is_last=is_last)


class Lead:
    def __init__(self, path: Path, spec: AttemptSpec, argv: Sequence[str]) -> None:
        self._spec, self._argv = spec, tuple(argv)
        self._scratch = ScratchPaths(Path(spec.data_dir), spec.run)
        self._id = f"{spec.cell}.{spec.attempt}.{secrets.token_hex(4)}"
        self._path, self._state, self._beat = path, node_order.GATHER, 0
        self._said_at = -meeting.BEAT_EVERY_S
        numbers = range(1, spec.nodes)
        self._followers = [Follower(self._scratch, spec, n, self._id) for n in numbers]
        self._is_told, self._failed = False, 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def run(self) -> int:
        """The exit code of the attempt, as a shell would give it."""
        self._scratch.nodes.mkdir(parents=True, exist_ok=True)
        if not self._gather():
            self._say(node_order.END)
            return 128 + signal.SIGTERM
        for one in self._followers:
            one.begin()
        self._say(node_order.GO)
        child = subprocess.Popen(
            self._argv,
            env=meeting.meets(os.environ, is_host=True),
            stdin=subprocess.DEVNULL,
            preexec_fn=process.die_with_parent,  # noqa: PLW1509  (no threads)
        )
        lost = self._follow(child)
        lost = self._let_end(child.returncode) or lost
        return self._code(child.returncode, lost)

    def _gather(self) -> bool:
        """Wait for all; False where a stop came before."""
        self._say(node_order.GATHER)
        says_at = time.monotonic() + 2 * meeting.BEAT_EVERY_S
        while not self._is_told:
            self._look()
            late = [one.node for one in self._followers if not one.is_ready]
            if not late:
                return True
            if time.monotonic() >= says_at:
                says_at = time.monotonic() + SAYS_AGAIN_S
                names = ", ".join(str(node + 1) for node in late)
                _tell(f"waits for node {names} of {self._spec.nodes}: no word from its pod yet")
            time.sleep(meeting.LOOK_EVERY_S)
        return False

    def _follow(self, child: subprocess.Popen[bytes]) -> bool:
        """Until the torchrun of this pod has ended; whether a pod was lost."""
        told_at: float | None = None
        failed_at: float | None = None
        lost = False
        while child.poll() is None:
            self._look()
            now = time.monotonic()
            if told_at is None:
                lost = self._tell_of_lost(now)
                if failed_at is None and (failed := self._failed_elsewhere()):
                    failed_at, self._failed = now, failed
                has_settled = failed_at is not None and now - failed_at > SETTLES_S
                if self._is_told or lost or has_settled:
                    told_at = now
                    self._say(node_order.END)
                    child.terminate()
            elif now - told_at > GRACE_S:
                child.kill()
            time.sleep(meeting.LOOK_EVERY_S)
        return lost

    def _let_end(self, rc: int) -> bool:
        """Wait for the other pods; whether one was lost."""
        until = time.monotonic() + (LEAVES_S if rc == 0 and not self._is_told else 0.0)
        lost: set[int] = set()
        while True:
            now = time.monotonic()
            self._look()
            lost |= {one.node for one in self._followers if one.rc is None and one.is_lost(now)}
            left = [one for one in self._followers if one.rc is None and one.node not in lost]
            if not left:
                break
            if now >= until and self._state != node_order.END:
                self._say(node_order.END)
            time.sleep(meeting.LOOK_EVERY_S)
        self._say(node_order.END)
        for one in self._followers:
            one.print_log(is_last=True)
        return bool(lost)

    def _code(self, rc: int, lost: bool) -> int:
        # This pod's ranks may have ended because those of another had failed.
        failed = self._failed or rc or self._failed_elsewhere()
        if lost and not self._is_told:
            return exit_codes.FAILED  # its log says why
        return failed if failed >= 0 else 128 - failed

    def _failed_elsewhere(self) -> int:
        return next((one.rc for one in self._followers if one.rc), exit_codes.DONE)

    def _tell_of_lost(self, now: float) -> bool:
        lost = [one.node for one in self._followers if one.is_lost(now)]
        for node in lost:
            _tell(f"node {node + 1} of {self._spec.nodes} is lost: its pod has ended or is silent")
        return bool(lost)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._said_at >= meeting.BEAT_EVERY_S:
            self._say(self._state)
        for one in self._followers:
            one.hear_word(now)
            one.print_log()

    def _say(self, state: str) -> None:
        """What cannot be written is said with the next beat."""
        self._state, self._said_at = state, time.monotonic()
        self._beat += 1
        nodes = self._spec.nodes
        order = NodeOrder(self._id, str(self._path), self._argv, nodes, state, self._beat)
        with contextlib.suppress(OSError):
            node_order.write_for_pods(self._scratch.node_order, order)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._is_told = True


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), f"boxcar: {text}\n".encode())
