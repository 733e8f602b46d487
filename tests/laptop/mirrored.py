"""A run whose boxes keep their live checkpoints alone, and the newest of cell a."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_on_disk import RunOnDisk, agent_started, cell_started, make_run

from boxcar.laptop.results.bring_checkpoint import bring, due
from boxcar.shared.disk import atomic, digest
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.files.resume_pointer import Resume


def make_mirrored_run(root: Path) -> RunOnDisk:
    """Cell a is on its way, on a box whose tier goes with it."""
    made = make_run(root)
    plan = replace(made.project.plan, durable_scope=EACH_BOX)
    made.project = replace(made.project, plan=plan)
    made.say("queue_1", agent_started(), cell_started("a"))
    return made


def mirror(run: RunOnDisk, data: bytes, attempt: int = 1) -> Resume:
    """What the agent on the box keeps of cell a."""
    folder, name = run.site.tier.resume("a"), f"{attempt}-{len(data)}-latest.pth"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    file = FileRecord(name, len(data), digest.of_bytes(data))
    pointer = Resume("a", attempt, "2026-11-21T03:27:43.973Z", "latest.pth", file)
    atomic.write_whole(folder / resume_pointer.FILE, codec.to_document(pointer))
    return pointer


def bring_all(run: RunOnDisk) -> None:
    for one in due(run.site, run.look()):
        bring(run.site, one)
