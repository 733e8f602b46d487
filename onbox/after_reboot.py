"""`onbox resume`: start again, exactly as before, what ran on this box when it went down.

What @reboot, onstart.sh and the entry point of a container call. Harmless at any other time: an
agent that runs is left alone, and what has come to its end is not begun again.

Not covered: a durable tier that is mounted only after this was called.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boxcar.shared import paths, state
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, Command, Message
from boxcar.shared.files import control, journal
from boxcar.shared.files.control import AgentStart
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.process import end_reason
from boxcar.shared.record import dataclass
from boxcar.shared.state import Session
from boxcar.shared.wire.run_asks import RUNNING
from onbox.answers import start
from onbox.machine import deadline_mark


@dataclass(frozen=True)
class Go:
    """Start it again."""


@dataclass(frozen=True)
class Leave:
    """Do nothing, now."""

    why: str


@dataclass(frozen=True)
class Forget:
    """There is nothing left to go on with: the record goes."""

    why: str


def decide(
    was: AgentStart, session: Session | None, wanted: str, *, is_held: bool
) -> Go | Leave | Forget:
    """What is to be done about an agent that was started, from its journal's last session."""
    if is_held:
        return Leave("its agent is running")
    if session and session.at >= was.at:
        if session.box != was.box:
            return Forget(f"it continues on {session.box}")
        # A shutdown sends a signal to all.
        if session.ended and session.by != end_reason.SIGNAL:
            return Forget(f"it has ended: {session.reason or session.ended}")
    if wanted != control.RUN:
        return Leave(f"it was asked to {wanted}")
    return Go()


def resume(data_dir: Path) -> Iterator[str]:
    """Go through what was started here; one sentence for each queue, and for the
    deadline of a rented box. Raises nothing.
    """
    for scratch in paths.scratches(data_dir):
        if told := deadline_mark.lay_again(scratch):
            yield f"{scratch.run}: {told}"
        for queue in scratch.started():
            try:
                told = _resume(scratch, queue)
            except (BoxcarError, OSError) as error:
                told = f"was not resumed: {error}"
            yield f"{scratch.run}: {queue}: {told}"


def _resume(scratch: ScratchPaths, queue: str) -> str:
    was = control.read_agent_start(scratch.start(queue))
    tier = DurablePaths(paths.on_box(was.durable_dir), was.run)
    session = state.replay(journal.read_journal(tier.journal(queue)).events).session
    wanted = control.wanted(tier.control(queue))
    step = decide(was, session, wanted, is_held=lock.is_held(tier.lock(queue)))
    if isinstance(step, Go):
        if left := _without_secrets(was, tier):
            return f"is not started: {left}"
        by = start.start(was, scratch).by
        return f"started again ({by})" if by != RUNNING else "its agent is running"
    if isinstance(step, Forget):
        scratch.start(queue).unlink(missing_ok=True)
        return f"is not started again: {step.why}"
    return f"is left alone: {step.why}"


def _without_secrets(was: AgentStart, tier: DurablePaths) -> Message | None:
    """Why the agent would run without what its cells need: some platforms wipe the system disk."""
    made = start.plan_of(tier.release(was.release))
    credentials = paths.on_box(made.box(was.box).credentials)
    if not made.secrets or credentials.exists():
        return None
    gone = f"its secrets are gone ({credentials}). Send them again from your machine"
    return Message(gone, Command("launch"))
