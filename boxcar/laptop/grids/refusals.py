"""What the queue files may not become: what `plan` or `push` would refuse is never written."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence

from boxcar.laptop.project import queue_files, resolve
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.laptop.queues import sync
from boxcar.shared.errors import InputError
from boxcar.shared.paths import DurablePaths


def refuse_what_plan_refuses(
    project: Project,
    queues: Sequence[QueueFile],
    after: Mapping[str, bytes],
    configs: Collection[str],
) -> None:
    """What is wrong already is said as `plan` says it; of what the grid would add, the first."""
    changed = [
        queue_files.with_data(queue, after[queue.name]) if queue.name in after else queue
        for queue in queues
    ]
    found = resolve.resolve_queues(project.root, project.job, project.profile, changed, configs)
    problems = [*found.doubts, *found.faults]
    if old := [one for one in problems if one in (*project.doubts, *project.faults)]:
        raise InputError(old)
    if problems:
        more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
        raise InputError(
            f"`plan` would refuse these lines: {problems[0].text}{more}. No file was changed"
        )


def refuse_what_push_refuses(
    tier: DurablePaths | None, queues: Sequence[QueueFile], after: Mapping[str, bytes]
) -> None:
    """Lines that would not come below all those of the tier, as far as it is known here."""
    problems = []
    for queue in queues:
        there = tier.queue(queue.name) if tier else None
        shared = sync.read_tier_queue(there) if there else None
        if queue.name in after and isinstance(
            sync.reconcile(after[queue.name], shared), sync.Diverged
        ):
            here, theirs = shlex.quote(str(queue.path)), shlex.quote(str(there))
            problems.append(
                f"{queue.file}: {there} holds lines that it lacks, and new ones come below them. "
                f"No file was changed; take that one first: cp {here} {here}.mine && "
                f"cp {theirs} {here}"
            )
    if problems:
        raise InputError(problems)
