"""Start a queue's agent so that it runs on without us, and keep on record how.

By tmux where the profile asks for it and the box has it, else in a session of its own. Both outlive
the ssh connection; nohup would not do, because torchrun takes SIGHUP back.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from boxcar.shared import environment, paths, timestamp
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import Command, InputError, TemporaryError
from boxcar.shared.files import codec, release
from boxcar.shared.files.control import AgentStart
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from boxcar.shared.wire.run_asks import RUNNING, SETSID, TMUX, Started
from onbox.machine import place, process, set_up_marks

# Relative, because the path of a socket may have 107 bytes. On scratch, because only this box sees
# it; a server of our own, because people type `tmux kill-server`.
SOCKET = "tmux"
TMUX_S = 10.0
STARTER_S = 20.0
WORKS_S = 10.0
_LOOK_EVERY_S = 0.05


def answer(question: run_asks.Start, run: RunOnBox) -> Started:
    """Start the agent of the queue from the release, unless one runs, which is left alone.

    The control file is not looked at: who asks for this wants it to run.
    """
    made = plan_of(run.tier.release(question.digest))
    wanted = AgentStart(
        run=run.run,
        queue=question.queue,
        box=place.box_of(made, question.queue),
        release=question.digest,
        durable_dir=run.durable_dir,
        start_index=question.start_index,
        start_cell=question.start_cell,
        detach=question.detach,
        env=environment.clean_environment(os.environ),
        at=timestamp.utc_now(),
    )
    again = None
    if question.sets_up_again:
        again = set_up_marks.digest_of(made, run.tier.release(question.digest) / release.CODE)
    return start(wanted, run.scratch, again)


def start(wanted: AgentStart, scratch: ScratchPaths, set_up_again: str | None = None) -> Started:
    """Start the agent as `wanted` says, unless one runs. Of two who start at once, one does.
    `set_up_again`: the digest of a set-up that it does anew.

    The record is durable before anything is started, so no agent runs that a reboot would end for
    good. Raises TemporaryError where somebody else is at it and does not come to an end.
    """
    atomic.make_folder(scratch.root)
    tier = DurablePaths(paths.on_box(wanted.durable_dir), wanted.run)
    wrapper = file_of(tier.release(wanted.release), release.RUN_QUEUE)
    log = scratch.agent_log(wanted.queue)
    starter = lock.hold(log, STARTER_S)
    if starter is None:
        raise TemporaryError(_("{log}: somebody else is starting this agent; try again", log=log))
    try:
        if lock.is_held(tier.lock(wanted.queue)):
            return Started(RUNNING, None)
        if set_up_again:
            set_up_marks.forget(scratch.set_ups, set_up_again)
        atomic.write_whole(scratch.start(wanted.queue), codec.to_document(wanted))
        command = ["bash", str(wrapper), wanted.queue, str(wanted.start_index)]
        command += [wanted.start_cell] if wanted.start_cell else []
        started = _by_tmux(wanted, log, command) or _by_setsid(wanted, log, command)
        _wait_until_it_works(tier.lock(wanted.queue), started)
        return started
    finally:
        os.close(starter)


def plan_of(folder: Path) -> Plan:
    """The release's plan. Raises InputError where it is not there, and DamagedError."""
    file_of(folder, release.PLAN)
    return release.read_plan(folder)


def file_of(folder: Path, name: str) -> Path:
    """A file of the release. Raises InputError where it is not there."""
    path = folder / name
    if not path.is_file():
        raise InputError(
            _(
                "{path}: is not there. Is the durable tier mounted? If it is, send the release",
                path=path,
            ),
            Command("push"),
        )
    return path


def _by_tmux(wanted: AgentStart, log: Path, command: list[str]) -> Started | None:
    """In a tmux session; None where that is not wanted, or does not work here."""
    if wanted.detach[:1] != (TMUX,) or shutil.which("tmux", path=wanted.env.get("PATH")) is None:
        return None
    done = _tmux(wanted, log.parent, [*_in_session(wanted, log), *command])
    if done is None or done.returncode:
        why = done.stderr.strip() if done else f"no answer in {TMUX_S:.0f} s"
        print(f"tmux could not start {wanted.queue}, using setsid instead: {why}", file=sys.stderr)
        return None
    pid = done.stdout.strip()
    return Started(TMUX, int(pid) if pid.isdigit() else None)


def _in_session(wanted: AgentStart, log: Path) -> list[str]:
    """What the session runs: the whole environment, and all output to the log.

    A tmux server gives its sessions the environment that it was started with; `env -i` gives them
    ours, and old servers have no `-e`. No secret is in it. Several words are run without a shell.
    """
    # stdin stays the terminal: tmux ends a session whose terminal nobody has open.
    shell = 'exec "$@" >>"$0" 2>&1'
    env = [f"{name}={value}" for name, value in wanted.env.items()]
    return ["env", "-i", *env, "bash", "-c", shell, str(log)]


def _tmux(
    wanted: AgentStart, folder: Path, words: list[str]
) -> subprocess.CompletedProcess[str] | None:
    session = f"boxcar-{wanted.run}-{wanted.queue}".replace(".", "_").replace(":", "_")
    # -f: what a person has in a tmux.conf is meant for a person's sessions.
    head = ["tmux", "-S", SOCKET, "-f", "/dev/null", "new-session", "-d", "-s", session]
    try:
        return subprocess.run(
            [*head, "-P", "-F", "#{pane_pid}", "--", *map(_for_tmux, words)],
            cwd=folder,
            env=wanted.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TMUX_S,
        )
    except subprocess.TimeoutExpired:
        return None


def _for_tmux(word: str) -> str:
    """A word that ends in `;` would end tmux's command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word


def _by_setsid(wanted: AgentStart, log: Path, command: list[str]) -> Started:
    with log.open("ab") as output:
        agent = subprocess.Popen(
            command,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=wanted.env,
        )
    return Started(SETSID, agent.pid)


def _wait_until_it_works(path: Path, started: Started) -> None:
    """Until it holds its queue, or has ended: who comes next must see it. No error after that."""
    until = time.monotonic() + WORKS_S
    while time.monotonic() < until and not lock.is_held(path):
        if started.pid is not None and process.start_time(started.pid) is None:
            return
        time.sleep(_LOOK_EVERY_S)
