"""The queue files of a job, as they lie here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import queue_name, queues_of_file
from boxcar.laptop.project.queues.sync import complete
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import stored_names
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import reason_of
from boxcar.shared.files import queue_line
from boxcar.shared.files.queue_line import Queue
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Which file of the code folder a queue line's config is, whatever form its name is stored in.


class ConfigFiles:
    """Looks each folder and each config up once: a queue may name thousands of files in one folder,
    and one config in a hundred thousand lines.

    `promised` are paths that count as if they were there.
    """

    def __init__(self, code: Path, promised: Collection[str] = ()) -> None:
        self._code = code
        self._promised = frozenset(promised)
        self._names: dict[str, dict[str, list[str]]] = {}
        self._found: dict[str, list[str]] = {}

    def find(self, cfg: str) -> list[str]:
        """The files that `cfg` (as `config_path` spells it) may mean, by the names they lie under.

        None where it is not there, and more than one where two names differ only in their form.
        """
        if cfg not in self._found:
            self._found[cfg] = [cfg] if cfg in self._promised else self._stored(cfg)
        return self._found[cfg]

    def _stored(self, cfg: str) -> list[str]:
        found = [""]
        for part in cfg.split("/"):
            found = [
                f"{folder}/{name}" if folder else name
                for folder in found
                for name in self._listed(folder).get(part, ())
            ]
        return [name for name in found if (self._code / name).is_file()]

    def _listed(self, folder: str) -> dict[str, list[str]]:
        if folder not in self._names:
            try:
                self._names[folder] = stored_names(
                    path.name for path in (self._code / folder).iterdir()
                )
            except OSError:
                self._names[folder] = {}
        return self._names[folder]


MOST_LINES_NAMED = 3


@dataclass(frozen=True)
class QueueFile:
    """One entry of `queues`; `file` as it stands there, `unread` is why its file was not read.
    `name` is the file's, and `queues` are those that go by it, with their boxes. `data` is what it
    holds; `places`: where lines stand that were dealt out from another file, by cell.
    """

    name: str
    queues: dict[str, str]
    file: str
    path: Path
    queue: Queue
    unread: str = ""
    data: bytes = b""
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_pool(self) -> bool:
        return self.name not in self.queues

    @property
    def boxes(self) -> str:
        return ", ".join(self.queues.values())

    def at(self, line: CellLine) -> str:
        return self.places.get(line.name, f"{self.file}:{line.number}")


def queue_files_of_job(root: Path, job: Job) -> list[QueueFile]:
    return [
        read_queue_file(root, file, boxes, in_use=job.queues) for file, boxes in job.queues.items()
    ]


def with_data(queue: QueueFile, data: bytes) -> QueueFile:
    """The file as it would be with this content."""
    data = complete(data)
    return replace(queue, queue=queue_line.parse_queue(data), unread="", data=data)


def read_queue_file(
    root: Path, file: str, boxes: str | tuple[str, ...], *, in_use: Collection[str] = ()
) -> QueueFile:
    """`in_use`: the queue files of the job, none of which is meant by a name that is not there."""
    name, queues, path = queue_name(file), queues_of_file(file, boxes), root / file
    try:
        with regular_file.open_followed(path) as opened:
            # One byte more than is allowed, so that the parser says it; never a whole device.
            data = opened.read(queue_line.LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        why = _(
            "the queue file does not exist{near}. Write one with lines <cfg> <task> [epochs], or "
            "remove it here",
            near=nearest_file(root, file, in_use),
        )
        return QueueFile(name, queues, file, path, Queue(), why)
    except OSError as error:
        why = _("the queue file cannot be read: {why}", why=reason_of(error))
        return QueueFile(name, queues, file, path, Queue(), why)
    data = complete(data)
    return QueueFile(name, queues, file, path, queue_line.parse_queue(data), data=data)


def queue_lines(queues: Sequence[QueueFile]) -> Iterator[tuple[QueueFile, CellLine]]:
    for queue in queues:
        yield from ((queue, line) for line in queue.queue.cells)


def bad_lines(queues: Sequence[QueueFile]) -> Iterator[str]:
    """Why lines cannot be read. One mistake that a script wrote into 400 lines is said once."""
    for queue in queues:
        alike: dict[str, list[int]] = {}
        for line in queue.queue.bad:
            alike.setdefault(line.reason, []).append(line.number)
        for reason, (first, *more) in alike.items():
            text = _and_in(reason, more)
            yield _("{at}{text}", at=f"{queue.file}:{first}: ", text=text)


def _and_in(reason: str, more: Sequence[int]) -> str:
    if len(more) > MOST_LINES_NAMED:
        return _(
            "{text}. The same on {n} more lines, the last is line {line}",
            text=reason,
            n=len(more),
            line=more[-1],
        )
    for line in more:
        reason = _("{text}. The same on line {line}", text=reason, line=line)
    return reason


def nearest_file(root: Path, file: str, in_use: Collection[str] = ()) -> str:
    """What is said of a file that is not there: the nearest one beside it that is not in use.

    Names are compared without their ending, in which all configs are alike.
    """
    folder = Path(file).parent
    try:
        beside = [folder / item.name for item in (root / folder).iterdir()]
    except OSError:
        return _(": no folder {folder}", folder=root / folder)
    there = {path.stem: str(path) for path in beside if path.suffix == Path(file).suffix}
    used = {Path(one) for one in in_use}
    free = [stem for stem, path in there.items() if Path(path) not in used]
    return did_you_mean(Path(file).stem, free, there)
