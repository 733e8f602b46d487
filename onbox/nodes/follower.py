"""What runs in the other pods of a queue: `onbox follow`. It starts the torchrun of its pod when
the lead of an attempt says so, and ends it with that attempt.

It holds nothing that would be lost: when it is started again it has forgotten all, and the lead
sees by its word that it is another process, and ends the attempt. Its own ranks died with it.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from boxcar.shared.cell import launch
from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.cell.launch import Machine
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import node_order
from boxcar.shared.files.attempt_spec import AttemptSpec, read_attempt_spec
from boxcar.shared.files.node_order import NodeOrder, NodeWord
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.process import exit_codes
from onbox.machine import process, secret_env
from onbox.nodes import meeting
from onbox.nodes.meeting import Heard


def run(scratch: ScratchPaths, node: int) -> int:
    """Until it is told to leave."""
    atomic.make_folder(scratch.nodes)
    process.adopt_orphans()
    one = _Follower(scratch, node, os.environ)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, one.hear)
    while not one.has_left:
        one.do_what_is_due()
        time.sleep(meeting.LOOK_EVERY_S)
    return 128 + signal.SIGTERM


class _Ranks:
    """The torchrun of this pod and all below it, in one attempt."""

    def __init__(
        self, order: NodeOrder, scratch: ScratchPaths, node: int, environ: Mapping[str, str]
    ) -> None:
        """Raises InputError, DamagedError, OSError before anything was started."""
        spec = read_attempt_spec(Path(order.spec))
        self.order, self._ends_at = order.id, math.inf
        self._cookie = process.cookie(str(scratch.root), spec.cell, spec.attempt)
        with scratch.node_log(spec.cell, spec.attempt, node).open("wb") as log:
            self._child = subprocess.Popen(
                order.argv,
                env=self._environment(spec, environ),
                cwd=spec.workdir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=process.die_with_parent,  # noqa: PLW1509  (no threads)
            )

    def _environment(self, spec: AttemptSpec, environ: Mapping[str, str]) -> dict[str, str]:
        machine = Machine(environ, lambda: 0)
        found = launch.environment(spec, machine, secret_env.read(spec.credentials))
        return {**meeting.meets(found, is_host=False), process.COOKIE: self._cookie}

    def tell(self, now: float) -> None:
        """To leave; once, and then it has its grace."""
        if self._ends_at == math.inf:
            self._ends_at = now + GRACE_S
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)

    def ended(self, now: float) -> int | None:
        """Its exit code once nothing of it is left; None while it runs."""
        if now > self._ends_at:
            process.signal_all(self._find(), signal.SIGKILL)
        rc = self._child.poll()
        if rc is not None:
            process.kill_all(self._find)
            process.has_children()
        return rc

    def _find(self) -> list[int]:
        return process.with_cookie(self._cookie)


class _Follower:
    def __init__(self, scratch: ScratchPaths, node: int, environ: Mapping[str, str]) -> None:
        self._scratch, self._node, self._environ = scratch, node, environ
        self._word = NodeWord(secrets.token_hex(8), "", node_order.IDLE, 0)
        self._said_at = -math.inf
        self._ranks: _Ranks | None = None
        self._lead = Heard(-1, time.monotonic())
        self._is_told = False

    @property
    def has_left(self) -> bool:
        return self._is_told and self._ranks is None

    def hear(self, number: int, frame: FrameType | None) -> None:
        self._is_told = True

    def do_what_is_due(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        with contextlib.suppress(BoxcarError, OSError):
            order = node_order.read_order(self._scratch.node_order)
            self._lead = self._lead.again(order.beat if order else -1, now)
            if self._ranks:
                self._watch(self._ranks, order, now)
            elif order and self._node < order.nodes:
                self._answer(order)
        if self._ranks:
            self._see_to_end(self._ranks, now)
        if now - self._said_at >= meeting.BEAT_EVERY_S:
            self._say(self._word.order, self._word.state, self._word.rc)

    def _answer(self, order: NodeOrder) -> None:
        """Only who was asked may begin: a lead that died has left its order behind."""
        mine = self._word.order == order.id
        if order.state == node_order.GATHER and not mine:
            self._say(order.id, node_order.READY)
        elif order.state == node_order.GO and mine and self._word.state == node_order.READY:
            self._begin(order)
        elif order.state == node_order.END and mine and self._word.state == node_order.READY:
            # It was over before this pod had looked again: nothing was started here.
            self._say(order.id, node_order.ENDED, -signal.SIGTERM)

    def _begin(self, order: NodeOrder) -> None:
        try:
            self._ranks = _Ranks(order, self._scratch, self._node, self._environ)
        except (BoxcarError, OSError) as error:
            self._say_why(order, error)
            self._say(order.id, node_order.ENDED, exit_codes.INPUT)
            return
        self._say(order.id, node_order.RUNS)

    def _say_why(self, order: NodeOrder, error: Exception) -> None:
        spec = read_attempt_spec(Path(order.spec))
        with self._scratch.node_log(spec.cell, spec.attempt, self._node).open("ab") as log:
            log.write(f"boxcar: node {self._node + 1}: {error}\n".encode())

    def _watch(self, ranks: _Ranks, order: NodeOrder | None, now: float) -> None:
        """Another attempt, the end of this one, or a lead that is silent."""
        is_over = order is None or order.id != ranks.order or order.state == node_order.END
        if is_over or self._lead.is_lost(now):
            ranks.tell(now)

    def _see_to_end(self, ranks: _Ranks, now: float) -> None:
        if self._is_told:
            ranks.tell(now)
        if (rc := ranks.ended(now)) is not None:
            self._ranks = None
            self._say(ranks.order, node_order.ENDED, rc)

    def _say(self, order: str, state: str, rc: int | None = None) -> None:
        """What cannot be written is said with the next beat."""
        last = self._word
        self._word = NodeWord(last.process, order, state, last.beat + 1, rc)
        self._said_at = time.monotonic()
        with contextlib.suppress(OSError):
            node_order.write_for_pods(self._scratch.node_word(self._node), self._word)
