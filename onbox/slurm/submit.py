"""Submit queues to Slurm, each at most once, whatever happens between two lines.

The intent is made once on the tier, with a token that the job's comment will hold. From then on,
until the outcome is written down, whoever comes next asks squeue for the token instead of
submitting again. A task of the run that waits or runs is left alone.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, Command, InputError, TemporaryError
from boxcar.shared.files import codec, queue_line, resume_pointer
from boxcar.shared.paths import DurablePaths
from boxcar.shared.sentence import _
from boxcar.shared.slurm import job_comment, submitted
from boxcar.shared.slurm.job_comment import Comment
from boxcar.shared.slurm.submitted import Submit
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import process
from onbox.slurm import commands, squeue

# After that slurmctld has taken a job or never will: its own messages time out long before.
SETTLED_S = 120.0
# Over what the script asks for: to load artifacts takes no GPU and one core.
_TO_PROVE = ("--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--gres=none")
# In sbatch's own words: the job may have been taken all the same.
_UNSURE = ("timed out", "zero bytes", "transport", "unexpected message", "communication")


def answer(question: cluster_asks.SlurmSubmit, run: RunOnBox) -> cluster_asks.SlurmSubmitted:
    """Raises InputError where Slurm refuses, TemporaryError where it is silent, where somebody else
    submits at this moment, and where it is not known whether the job was taken.
    """
    tier = run.tier
    script = tier.release(question.digest) / question.script
    if not script.is_file():
        raise InputError(
            _("{script}: is not there: send the release", script=script), Command("push")
        )
    for folder in (tier.slurm_submit("x").parent, run.scratch.root):
        atomic.make_folder(folder)
    settle(tier)
    queues = _tasks_of(tier, question.queues) if question.is_per_cell else None
    intent = _intent(question, queues or question.queues)
    if not atomic.create_once(tier.slurm_intent, codec.to_document(intent)):
        raise TemporaryError(
            _("somebody else submits {run} at this moment", run=tier.run), Command("status")
        )
    try:
        held = {task.queue for task in squeue.look_now(tier).tasks if task.waits or task.has_nodes}
        mine = {index: name for index, name in intent.queues.items() if name not in held}
        left_alone = tuple(dict.fromkeys(q for q in intent.queues.values() if q in held))
        if not mine:
            return cluster_asks.SlurmSubmitted(None, (), left_alone)
        job = _submit(tier, replace(intent, queues=mine), question)
    finally:
        _take_back(tier, intent)
    return cluster_asks.SlurmSubmitted(job, tuple(dict.fromkeys(mine.values())), left_alone)


def settle(tier: DurablePaths) -> None:
    """Find out what came of a submit whose outcome nobody wrote down.

    Raises TemporaryError while that cannot be known.
    """
    left = submitted.read_submit(tier.slurm_intent)
    if left is None:
        return
    age_s = timestamp.seconds_between(left.at, timestamp.utc_now())
    is_ours = left.host == os.uname().nodename
    is_at_it = is_ours and process.start_time(left.pid) == left.started
    if is_at_it or (not is_ours and 0 <= age_s < SETTLED_S and not left.is_sent):
        raise TemporaryError(
            _("somebody else submits {run} at this moment", run=tier.run), Command("status")
        )
    if left.is_sent:
        job = _job_of(tier, left.token)
        if job is None and age_s < SETTLED_S:
            raise TemporaryError(
                _(
                    "whether Slurm has taken what was submitted at {at} shows {settled_s:.0f} s "
                    "after it; nothing is submitted twice. Then",
                    at=left.at,
                    settled_s=SETTLED_S,
                ),
                Command("launch"),
            )
        if job is not None:
            _note(tier, left, job)
    tier.slurm_intent.unlink(missing_ok=True)


def _intent(question: cluster_asks.SlurmSubmit, queues: Mapping[str, str]) -> Submit:
    return Submit(
        token=secrets.token_hex(8),
        release=question.digest,
        script=question.script,
        queues=dict(queues),
        at=timestamp.utc_now(),
        host=os.uname().nodename,
        pid=os.getpid(),
        started=process.start_time(os.getpid()) or "",
    )


def _submit(tier: DurablePaths, intent: Submit, question: cluster_asks.SlurmSubmit) -> str:
    atomic.write_whole(tier.slurm_intent, codec.to_document(replace(intent, is_sent=True)))
    ran = commands.run("sbatch", *_words(tier, intent, question))
    said = ran.out.strip().split(";")[0]
    job = said if ran.code == 0 and said.isdigit() else _job_of(tier, intent.token)
    if job is None:
        if ran.code == 0 or any(word in ran.said.lower() for word in _UNSURE):
            raise TemporaryError(
                _(
                    "sbatch did not say whether Slurm has taken the job: {said}. Nothing is "
                    "submitted twice; in two minutes",
                    said=ran.said,
                ),
                Command("launch"),
            )
        # Refused, which is an outcome: the intent can be taken back.
        unsent = codec.to_document(replace(intent, is_sent=False))
        atomic.write_whole(tier.slurm_intent, unsent)
        raise InputError(_("Slurm refuses {script}: {said}", script=intent.script, said=ran.said))
    _note(tier, intent, job)
    squeue.forget(tier)
    return job


def _words(tier: DurablePaths, intent: Submit, question: cluster_asks.SlurmSubmit) -> list[str]:
    release = tier.release(intent.release)
    tier_id = job_comment.tier_id(str(tier.root))
    comment = Comment(tier.run, tier_id, intent.release, intent.token)
    begins = [
        word
        for begin in question.begins
        if begin.queue in intent.queues.values()
        for word in (begin.queue, str(begin.start_index), begin.start_cell or "")
    ]
    return [
        "--parsable",
        f"--array={','.join(intent.queues)}{'%1' if question.is_per_cell else ''}",
        f"--comment={comment}",
        # Of a path Slurm fills in what follows a %.
        f"--output={_literal(tier.slurm)}/%A_%a.out",
        f"--chdir={tier.root}",
        *_lead_option(release / intent.script, tier, question.most_lead_s),
        *(_TO_PROVE if are_only_to_prove(tier, intent.queues.values()) else ()),
        str(release / intent.script),
        str(release),
        *begins,
    ]


def _literal(path: Path) -> str:
    return str(path).replace("%", "%%")


def _job_of(tier: DurablePaths, token: str) -> str | None:
    """The array that squeue has under this token. Raises TemporaryError where it is silent."""
    return next((row.array for row in squeue.rows(tier) if row.comment.token == token), None)


def _note(tier: DurablePaths, record: Submit, job: str) -> None:
    noted = replace(record, is_sent=True, job=job)
    atomic.write_whole(tier.slurm_submit(record.token), codec.to_document(noted))


def _take_back(tier: DurablePaths, intent: Submit) -> None:
    """The intent of ours, unless it was sent and nobody knows what came of it."""
    try:
        left = submitted.read_submit(tier.slurm_intent)
    except BoxcarError:
        return
    is_noted = tier.slurm_submit(intent.token).exists()
    if left and left.token == intent.token and (is_noted or not left.is_sent):
        tier.slurm_intent.unlink(missing_ok=True)


# --- A queue whose tasks run one cell each: as many tasks as it has cells that nobody has checked
# yet. They run one at a time, because a queue has one agent. Which cell a task runs is found when
# it starts, by claim: lines may be appended, moved or commented out until then.

# Sites allow 1001 in an array unless they say otherwise; the next launch submits the rest.
MOST = 1000


def _tasks_of(tier: DurablePaths, queues: Mapping[str, str]) -> dict[str, str]:
    """The queue of each task, by index. Raises OSError, DamagedError; ValueError for two queues."""
    [queue] = queues.values()
    cells = queue_line.parse_queue(tier.queue(queue).read_bytes()).cells
    tasks = sum(not tier.receipt(cell.name).exists() for cell in cells)
    return dict.fromkeys(map(str, range(min(MOST, max(1, tasks)))), queue)


# --- Queues in which nothing is left but to load published artifacts: their agent was lost before.
# Whoever starts there next loads them where they lie.


def are_only_to_prove(tier: DurablePaths, queues: Iterable[str]) -> bool:
    """Raises OSError, DamagedError."""
    return all(_is_only_to_prove(tier, queue) for queue in set(queues))


def _is_only_to_prove(tier: DurablePaths, queue: str) -> bool:
    try:
        lines = tier.queue(queue).read_bytes()
    except FileNotFoundError:
        return False
    cells = [cell.name for cell in queue_line.parse_queue(queue_line.with_last_line(lines)).cells]
    return all(tier.manifest(cell).exists() for cell in cells) and not all(
        tier.receipt(cell).exists() for cell in cells
    )


# --- How long before its time limit a queue is asked to leave: long enough for what its
# checkpoints took to be copied, so that the last one is not lost. The batch script has a lead from
# what the plan knows; a launch that finds checkpoints of this run on the tier asks for more where
# they need it.

_OF_SCRIPT = re.compile(r"^#SBATCH --signal=B:USR1@(\d+)$", re.MULTILINE)
# The script saves, and the agent copies that; and Slurm's signal may come late by a half minute.
_TIMES = 3
_SLACK_S = 30.0


def _lead_option(script: Path, tier: DurablePaths, most_s: int | None) -> list[str]:
    """The option of sbatch, none where the script's own lead is enough."""
    own = _OF_SCRIPT.search(script.read_text())
    copied_s = max(_copied_s(tier), default=None)
    if own is None or copied_s is None:
        return []
    wanted_s = lead_s(int(own[1]), copied_s, most_s)
    return [f"--signal=B:USR1@{wanted_s}"] if wanted_s > int(own[1]) else []


def lead_s(own_s: int, copied_s: float, most_s: int | None) -> int:
    """`own_s` is the script's, `copied_s` the longest copy, `most_s` what the limit leaves."""
    wanted_s = int(_TIMES * copied_s + _SLACK_S)
    return max(own_s, wanted_s if most_s is None else min(wanted_s, most_s))


def _copied_s(tier: DurablePaths) -> Iterable[float]:
    for path in tier.cells.glob(f"*/{resume_pointer.FOLDER}/{resume_pointer.FILE}"):
        try:
            pointer = resume_pointer.read_file(path)
        except (BoxcarError, OSError):
            continue  # another verb says what is wrong with it
        if pointer and pointer.seconds is not None:
            yield pointer.seconds
