"""Start a run, or go on with it: push, hand over the secrets, start each queue's agent, look.

Launching again is harmless: an agent that runs is left alone, cells that are verified stay so, and
cells that failed are tried again. The last step is a look at what really runs, within a minute.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from boxcar.formats import codec, control, durable, lock, timestamp
from boxcar.formats.digest import short
from boxcar.formats.errors import InputError
from boxcar.laptop import job, local_box, push, show, view
from boxcar.laptop.project import Project

PROBE_S = 60.0
_LOOK_EVERY_S = 0.25
_LOG_LINES = 15


def launch(
    project: Project,
    *,
    start_index: int = 0,
    boxes: list[str] | None = None,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Launch the queues (of the named boxes, or all); 1 where one of them does not really run."""
    queues = _chosen(project, boxes, start_index)
    webhooks, warnings = job.resolve_webhooks(project.job, environ)
    secrets = job.resolve_secrets(project.job, environ)
    for warning in warnings:
        show.say(warning)
    push.check_queues(project)
    made, _ = push.send_release(project)
    push.send_queues(project)
    started: dict[str, subprocess.Popen[bytes]] = {}
    for queue in queues:
        if _has_agent(project, queue):
            _leave_alone(project, queue, made.digest)
            continue
        local_box.write_credentials(project, project.plan.queues[queue], secrets, webhooks)
        _ask_to_run(project, queue)
        started[queue] = local_box.start_agent(project, queue, made.digest, start_index)
    problems = _probe(project, started)
    if as_json:
        row = {"run": project.plan.run, "release": made.digest, "started": list(started)}
        show.json_document(row | {"problems": problems})
    return 1 if problems else 0


def _chosen(project: Project, boxes: list[str] | None, start_index: int) -> list[str]:
    known = project.plan.queues
    unknown = [box for box in boxes or [] if box not in known.values()]
    if unknown:
        raise InputError(f"there is no box {unknown[0]!r}; the job has {', '.join(known.values())}")
    if start_index < 0:
        raise InputError(f"--start-index counts cells from 0, found {start_index}")
    return [queue for queue, box in known.items() if not boxes or box in boxes]


def _has_agent(project: Project, queue: str) -> bool:
    """Whether an agent holds the queue. `watch` holds it too while it delivers late webhooks."""
    until = time.monotonic() + PROBE_S
    while lock.is_held(project.durable.lock(queue)) and time.monotonic() < until:
        session = view.look(project, timestamp.utc_now()).queue(queue).session
        if session is None or session.ended is None:
            return True
        time.sleep(_LOOK_EVERY_S)
    return lock.is_held(project.durable.lock(queue))


def _leave_alone(project: Project, queue: str, digest: str) -> None:
    session = view.look(project, timestamp.utc_now()).queue(queue).session
    if session and session.release != digest:
        show.say(
            f"{queue}: its agent is running and was left alone. It keeps release "
            f"{short(session.release)} until it ends; {short(digest)} is for the next launch"
        )
        return
    show.say(f"{queue}: its agent is running and was left alone")


def _ask_to_run(project: Project, queue: str) -> None:
    """Take back an earlier drain or stop."""
    durable.make_folder(project.durable.control_folder)
    wanted = control.Control(control.RUN, timestamp.utc_now())
    durable.write_whole(project.durable.control(queue), codec.to_document(wanted))


# --- the probe


def _probe(project: Project, started: dict[str, subprocess.Popen[bytes]]) -> list[str]:
    """Wait until every started agent has shown that it works; what is wrong, in sentences."""
    problems: list[str] = []
    waiting = dict(started)
    deadline = time.monotonic() + PROBE_S
    while waiting and time.monotonic() < deadline:
        for queue, agent in list(waiting.items()):
            told = _seen(project, queue, agent)
            if told is None:
                continue
            is_good, text = told
            show.say(f"{queue}: {text}")
            if not is_good:
                problems.append(f"{queue}: {text}")
            del waiting[queue]
        time.sleep(_LOOK_EVERY_S)
    for queue in waiting:
        problems.append(f"{queue}: nothing was seen of its agent within {PROBE_S:.0f} s")
        show.say(problems[-1])
    return problems


def _seen(project: Project, queue: str, agent: subprocess.Popen[bytes]) -> tuple[bool, str] | None:
    """Whether the agent works, and what it does; None while this cannot be told yet."""
    code = agent.poll()
    looked = view.look(project, timestamp.utc_now()).queue(queue)
    session = looked.session
    if code is not None:
        return _ended(project, queue, code, session.ended if session else None)
    if session is None or session.pid != agent.pid or session.ended:
        return None
    cell = looked.active
    if cell is None:
        return (True, "its agent runs and waits for lines") if project.plan.linger_s else None
    if _has_log(project.scratch(looked.box).log(cell)):
        return True, f"runs {cell} on {looked.box}"
    return None


def _ended(project: Project, queue: str, code: int, word: str | None) -> tuple[bool, str]:
    if word == "queue.done":
        return code == 0, "done" if code == 0 else "done, with failed cells: invoke status"
    log = project.scratch(project.plan.queues[queue]).agent_log(queue)
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:])
    return False, f"its agent ended with {code}. The end of {log}:\n{tail}"


def _has_log(log: Path) -> bool:
    """Whether the attempt has begun: its wrapper has set the stage and written its first line."""
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False
