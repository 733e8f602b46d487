"""A queue file with several boxes that share no durable tier: its lines are dealt out to a file for
each box, beside it, which is an ordinary queue from then on.

Dealt is dealt: a line that stands in one of these files, also behind a `#`, is never given to
another one by this; `move` does that, and knows what a box has begun.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.queue_files import QueueFile, read_queue_file
from boxcar.laptop.project.queues import cell_cost
from boxcar.laptop.project.queues.cell_cost import Sample
from boxcar.laptop.project.queues.sync import complete
from boxcar.shared.cell import cell_name
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import journal, queue_line
from boxcar.shared.files.plan import EACH_BOX, Cell
from boxcar.shared.sentence import _

HEAD = b"# dealt out by Boxcar"


def is_dealt(profile: Profile, queue: QueueFile) -> bool:
    return queue.is_pool and profile.durable_scope == EACH_BOX and not profile.is_cluster


def pools_of_job(job: Job, profile: Profile) -> dict[str, tuple[str, ...]]:
    """The files that are dealt out, each with the queues of its boxes."""
    if profile.durable_scope != EACH_BOX or profile.is_cluster:
        return {}
    pools = ((file, boxes) for file, boxes in job.queues.items() if not isinstance(boxes, str))
    return {
        file: tuple(Path(file_of_box(file, box)).stem for box in boxes) for file, boxes in pools
    }


def file_of_box(file: str, box: str) -> str:
    """`queues/all-box-a.txt` for the part of box-a in `queues/all.txt`."""
    path = Path(file)
    return str(path.with_name(f"{path.name.removesuffix('.txt')}-{box}.txt"))


def deal_out(
    root: Path, job: Job, profile: Profile, queues: Sequence[QueueFile]
) -> list[QueueFile]:
    """The queues, with one for each box in the place of a file that they share; as they would be
    once all lines are dealt out. Nothing is written.
    """
    found: list[QueueFile] = []
    for queue in queues:
        found += _of_boxes(root, job, queue) if is_dealt(profile, queue) else [queue]
    return found


def _of_boxes(root: Path, job: Job, pool: QueueFile) -> list[QueueFile]:
    parts = [_part(root, pool, box) for box in pool.queues.values()]
    known = {
        cell_name.same_name_key(line.name)
        for part in parts
        for line in (*part.queue.cells, *queue_line.commented_out(part.data))
    }
    new = [c for c in pool.queue.cells if cell_name.same_name_key(c.name) not in known]
    is_known = not any(part.unread for part in parts)  # else a line might be dealt twice
    given = _given(root, job, parts, new) if new and is_known else {}
    return [_with_lines(pool, part, given.get(part.name, ())) for part in parts]


def _part(root: Path, pool: QueueFile, box: str) -> QueueFile:
    file = file_of_box(pool.file, box)
    if (root / file).exists():
        return read_queue_file(root, file, box)
    data = HEAD + f" from {Path(pool.file).name}: write new lines there\n".encode()
    # Until it is written who looks for lines finds the file that has them.
    return QueueFile(Path(file).stem, {Path(file).stem: box}, file, pool.path, _NOTHING, data=data)


_NOTHING = queue_line.Queue()


def _given(
    root: Path, job: Job, parts: Sequence[QueueFile], new: Sequence[CellLine]
) -> dict[str, list[str]]:
    """By split's rule: the longest first, each to the box that ends it earliest."""
    lines = [*new, *(line for part in parts for line in part.queue.cells)]
    cells = [
        Cell(one.name, one.cfg, one.task, one.epochs or job.epochs or 1, "", one.index, None)
        for one in lines
    ]
    costs, _unit = cell_cost.costs_of_cells(cells, _measured(root), {}, {})
    amounts = {name: cost.amount for name, cost in costs.items()}
    busy = {part.name: sum(amounts[c.name] for c in part.queue.cells) for part in parts}
    speeds = dict.fromkeys((part.name for part in parts), 1.0)
    return cell_cost.lines_by_cost({c.name: amounts[c.name] for c in new}, speeds, busy)


def _measured(root: Path) -> Iterator[Sample]:
    """What earlier runs took, as far as their journals can be read; `split` names those that
    cannot.
    """
    for path in sorted((root / "results").glob("*/journal/*.jsonl")):
        with contextlib.suppress(BoxcarError, OSError, KeyError, TypeError):
            yield from cell_cost.samples(journal.read_journal(path).events)


def _with_lines(pool: QueueFile, part: QueueFile, names: Sequence[str]) -> QueueFile:
    """In the order of the file."""
    raw = pool.data.split(b"\n")
    lines = [line for line in pool.queue.cells if line.name in {*names}]
    data = part.data + b"".join(raw[line.number - 1].strip() + b"\n" for line in lines)
    places = {line.name: pool.at(line) for line in pool.queue.cells}
    return replace(part, data=data, queue=queue_line.parse_queue(data), places=places)


def faults_of_dealt(
    root: Path, job: Job, profile: Profile, queues: Sequence[QueueFile]
) -> Iterator[str]:
    """Cells that were dealt to a box which is not in the list any more."""
    for pool in queues:
        if not is_dealt(profile, pool):
            continue
        own = {file_of_box(pool.file, box) for box in pool.queues.values()}
        for path in sorted(pool.path.parent.glob(f"{pool.name}-*.txt")):
            file = str(Path(pool.file).with_name(path.name))
            if file in own or file in job.queues or not _is_ours(path):
                continue
            if cells := read_queue_file(root, file, pool.name).queue.cells:
                yield _(
                    "{at}: {box} is not in the list any more, but {n} {n:cell was|cells were} "
                    "dealt to it ({file}). Put it back, drain it, and move its cells to others",
                    at=job.at("queues", pool.file),
                    box=path.stem.removeprefix(f"{pool.name}-"),
                    n=len(cells),
                    file=file,
                )


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.read_bytes().startswith(HEAD)
    return False


def files_to_write(root: Path, queues: Sequence[QueueFile]) -> dict[Path, bytes]:
    """The parts whose files lack what was dealt to them: path -> content."""
    found = {}
    for queue in queues:
        path = root / queue.file
        if not queue.places or queue.unread:
            continue
        if not path.exists() or complete(path.read_bytes()) != queue.data:
            found[path] = queue.data
    return found
