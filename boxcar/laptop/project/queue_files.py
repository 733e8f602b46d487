"""The queue files of a job, as they lie here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import queue_name
from boxcar.laptop.queues.sync import complete
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.files import queue_line
from boxcar.shared.files.queue_line import Queue
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class QueueFile:
    """One entry of `queues`; `file` as it stands there, `unread` is why its file was not read."""

    name: str
    box: str
    file: str
    path: Path
    queue: Queue
    unread: str = ""

    def at(self, line: CellLine) -> str:
        return f"{self.file}:{line.number}"


def of_job(root: Path, job: Job) -> list[QueueFile]:
    return [read(root, file, box) for file, box in job.queues.items()]


def with_data(queue: QueueFile, data: bytes) -> QueueFile:
    """The file as it would be with this content."""
    return replace(queue, queue=queue_line.parse(complete(data)), unread="")


def read(root: Path, file: str, box: str) -> QueueFile:
    name, path = queue_name(file), root / file
    try:
        with path.open("rb") as opened:
            # One byte more than is allowed, so that the parser says it; never a whole device.
            data = opened.read(queue_line.LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        why = f"the queue file is not there{nearest_file(path)}"
        return QueueFile(name, box, file, path, Queue(()), why)
    except OSError as error:
        why = f"the queue file cannot be read: {error.strerror}"
        return QueueFile(name, box, file, path, Queue(()), why)
    return QueueFile(name, box, file, path, queue_line.parse(complete(data)))


def lines(queues: Sequence[QueueFile]) -> Iterator[tuple[QueueFile, CellLine]]:
    for queue in queues:
        yield from ((queue, line) for line in queue.queue.cells)


def nearest_file(path: Path) -> str:
    """What is said of a file that is not there: the nearest name beside it."""
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return f": there is no folder {path.parent}"
    return did_you_mean(path.name, names)
