"""Which jobs of ours Slurm has: one squeue for all queues of the run, and none within 30 s, unless
an agent has ended in them or one is about to be started.

`-t all` shows what has ended a few minutes ago as well; without accounting it is gone after that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, DamagedError, TemporaryError, message_of
from boxcar.shared.files import codec
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.slurm import job_comment, lease, submitted
from boxcar.shared.slurm.job_comment import Comment
from boxcar.shared.slurm.submitted import FRESH_S, Seen, Task
from boxcar.shared.wire import cluster_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.slurm import commands

# The comment last: it is the only part that may hold anything.
_FORMAT = "%F|%K|%i|%T|%S|%N|%r|%k"
_PARTS = 8


@dataclass(frozen=True)
class Row:
    """A line of squeue whose comment is ours. `index` is that of the array."""

    array: str
    index: str
    task: str
    state: str
    start_at: str | None
    node: str
    reason: str
    comment: Comment


def answer(question: cluster_asks.SlurmLook, run: RunOnBox) -> cluster_asks.SlurmLooked:
    seen = look(run.tier, is_exact=question.is_exact)
    return cluster_asks.SlurmLooked(seen.at, seen.tasks, seen.problem)


def look(tier: DurablePaths, *, is_exact: bool = False) -> Seen:
    """What is known, from squeue where nobody has asked it a moment ago. Raises InputError."""
    seen = submitted.read_seen_jobs(tier.slurm_seen)
    now = timestamp.utc_now()
    # What was said at a time ahead was said before the clock was set back.
    is_fresh = seen and seen.at <= now and timestamp.seconds_between(seen.at, now) < FRESH_S
    if seen and is_fresh and not is_exact and not _has_ended_since(tier, seen):
        return seen
    try:
        return look_now(tier)
    except TemporaryError as error:
        return _keep(tier, Seen(timestamp.utc_now(), problem=message_of(error).text))


def _has_ended_since(tier: DurablePaths, seen: Seen) -> bool:
    """Whether an agent has said itself that it is over, of a job that still had nodes then, or that
    waited and has been through since.
    """
    with contextlib.suppress(DamagedError):
        for task in seen.tasks:
            folder = tier.slurm_leases(task.queue) if task.queue else None
            owner = lease.newest(folder)[1] if folder and (task.has_nodes or task.waits) else None
            if owner and owner.ended_at and (task.has_nodes or owner.ended_at > seen.at):
                return True
    return False


def look_now(tier: DurablePaths) -> Seen:
    """What squeue says at this moment. Raises TemporaryError where it is silent."""
    found = rows(tier)
    # Each record once: that of a thousand queues names all of them.
    queues = {token: _queues(tier, token) for token in {row.comment.token for row in found}}
    tasks = tuple(
        Task(
            task=row.task,
            queue=queues[row.comment.token].get(row.index),
            state=row.state,
            reason=row.reason,
            start_at=row.start_at,
            node=row.node,
            release=row.comment.release,
        )
        for row in found
    )
    return _keep(tier, Seen(timestamp.utc_now(), tasks))


def forget(tier: DurablePaths) -> None:
    """What was said is no more so, because we have changed it."""
    tier.slurm_seen.unlink(missing_ok=True)


def rows(tier: DurablePaths) -> list[Row]:
    """All tasks of the run that squeue has. Raises TemporaryError."""
    words = ("--me", "-h", "-r", "-t", "all", "-n", job_comment.job_name(tier.run), "-o", _FORMAT)
    ran = commands.run("squeue", *words)
    if ran.code:
        raise TemporaryError(_("Slurm does not answer: {said}", said=ran.said))
    return list(parse(ran.out, tier))


def parse(text: str, tier: DurablePaths) -> Iterator[Row]:
    """The lines of jobs whose comment names this run on this tier; another job is not ours."""
    own = job_comment.tier_id(str(tier.root))
    for line in text.splitlines():
        parts = line.split("|", _PARTS - 1)
        comment = job_comment.read_comment(parts[-1]) if len(parts) == _PARTS else None
        if comment and (comment.run, comment.tier) == (tier.run, own):
            array, index, task, state, start, node, reason, _ = parts
            yield Row(array, index, task, state, _utc(start), node, reason, comment)


def _queues(tier: DurablePaths, token: str) -> Mapping[str, str]:
    """By index, as the record of that submit says, also where it has no outcome yet."""
    with contextlib.suppress(DamagedError):
        for path in (tier.slurm_submit(token), tier.slurm_intent):
            record = submitted.read_submit(path)
            if record and record.token == token:
                return record.queues
    return {}


def _utc(text: str) -> str | None:
    """Slurm says the login node's own time, without its zone."""
    try:
        return timestamp.utc(datetime.fromisoformat(text).astimezone(timezone.utc))
    except ValueError:
        return None  # N/A, or Unknown


def _keep(tier: DurablePaths, seen: Seen) -> Seen:
    # A tier without room costs only the next look its answer.
    with contextlib.suppress(OSError, BoxcarError):
        if tier.root.is_dir():
            atomic.make_folder(tier.slurm)
            atomic.write_whole(tier.slurm_seen, codec.to_document(seen))
    return seen
