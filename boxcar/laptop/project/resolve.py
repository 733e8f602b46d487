"""Job, profile and queue files to the plan that the box reads, and to all that is wrong with them.

Decides from the files and touches nothing. Not checked here: what lies on the durable tier already
(`push` does).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.profiles import survival
from boxcar.laptop.profiles.profile import Profile
from boxcar.laptop.project import command_words
from boxcar.laptop.project.command_words import Placeholder
from boxcar.laptop.project.config_files import ConfigFiles
from boxcar.laptop.project.job import Job, queue_name
from boxcar.laptop.queues.sync import complete
from boxcar.shared import cadence
from boxcar.shared.errors import InputError
from boxcar.shared.files import queue_line
from boxcar.shared.files.plan import GRACE_S, Artifact, Box, Cell, Plan
from boxcar.shared.files.queue_line import CellLine, Queue
from boxcar.shared.message import Message

# To look for the nearest name of thousands, thousands of times, would take hours.
MOST_HINTS = 20


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


@dataclass(frozen=True)
class Resolved:
    """The plan of all cells that are known, and the local queue file of each queue.

    `doubts` are lines and files that hide which cells were asked for. `faults` are what else has to
    be mended before anything is run from these files; a run that was launched goes on without.
    """

    plan: Plan
    queue_files: dict[str, Path]
    doubts: tuple[Message, ...]
    faults: tuple[Message, ...]


def resolve(root: Path, job: Job, profile: Profile) -> Resolved:
    """What the files say. Raises InputError where they do not even say where the run lives."""
    queues = [_read(root, file, box) for file, box in job.queues.items()]
    configs = ConfigFiles(root / job.code)
    homeless = [
        *_twin_queues(job, queues),
        *_colon_in_the_tier(profile.durable_dir(root)),
        *survival.problems(profile),
    ]
    doubts = [*_unread_queues(job, queues), *_bad_lines(queues), *_twin_cells(queues)]
    faults = [
        *_no_cells(job, queues),
        *_wrong_code(root, job),
        *_wrong_configs(root, job, queues, configs),
        *_missing_epochs(job, queues),
        *_missing_resume(job),
        *_unknown_exceptions(job, queues),
    ]
    if homeless:
        raise InputError([*homeless, *doubts, *faults])
    return Resolved(
        _plan(root, job, profile, queues, configs),
        {queue.name: queue.path for queue in queues},
        tuple(map(Message, doubts)),
        tuple(map(Message, faults)),
    )


def _read(root: Path, file: str, box: str) -> QueueFile:
    name, path = queue_name(file), root / file
    try:
        with path.open("rb") as opened:
            # One byte more than is allowed, so that the parser says it; never a whole device.
            data = opened.read(queue_line.LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        why = f"the queue file is not there{_nearest_file(path)}"
        return QueueFile(name, box, file, path, Queue(()), why)
    except OSError as error:
        why = f"the queue file cannot be read: {error.strerror}"
        return QueueFile(name, box, file, path, Queue(()), why)
    return QueueFile(name, box, file, path, queue_line.parse(complete(data)))


def _twin_queues(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    names: dict[str, str] = {}
    boxes: dict[str, str] = {}
    for queue in queues:
        at = job.at("queues", queue.file)
        # Folded, because two names may be one file on a laptop's disk.
        first = names.setdefault(queue.name.casefold(), queue.file)
        if first != queue.file:
            yield f"{at}: has the same queue name {queue.name!r} as {first}: rename one"
        first = boxes.setdefault(queue.box.casefold(), queue.file)
        if first != queue.file:
            yield (
                f"{at}: the box {queue.box!r} has the queue {first} already, and a box runs one "
                "queue at a time: join the two files, or name another box"
            )


def _unread_queues(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    for queue in queues:
        if queue.unread:
            yield f"{job.at('queues', queue.file)}: {queue.unread}"


def _bad_lines(queues: Sequence[QueueFile]) -> Iterator[str]:
    for queue in queues:
        yield from (f"{queue.file}:{line.number}: {line.reason}" for line in queue.queue.bad)


def _no_cells(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    if not any(queue.unread or queue.queue.lines for queue in queues):
        files = ", ".join(job.queues)
        yield f"{job.at('queues')}: no cell yet; write <cfg> <task> [epochs], one per line: {files}"


def _twin_cells(queues: Sequence[QueueFile]) -> Iterator[str]:
    first_use: dict[str, tuple[QueueFile, CellLine]] = {}
    for queue, line in _lines(queues):
        key = queue_line.same_name_key(line.name)
        other, first = first_use.setdefault(key, (queue, line))
        # Twins within one file are bad lines already.
        if other is not queue:
            yield (
                f"{queue.at(line)}: the cell {line.name!r} is already in {other.at(first)}; "
                "two cells cannot share a name: rename one config, or take one line out"
            )


def _wrong_code(root: Path, job: Job) -> Iterator[str]:
    code = root / job.code
    if not code.is_dir():
        yield f"{job.at('code')}: there is no folder {code}"
        return
    script = next(filter(_is_script, job.command), None)
    if script and not _is_file_of(code, script):
        near = _nearest_file(code / script)
        yield f"{job.at('command')}: there is no script {script!r} in the code folder {code}{near}"


def _wrong_configs(
    root: Path, job: Job, queues: Sequence[QueueFile], configs: ConfigFiles
) -> Iterator[str]:
    code = root / job.code
    if not code.is_dir():
        return  # _wrong_code says it
    found = [(queue, line, configs.find(line.cfg)) for queue, line in _lines(queues)]
    for queue, line, names in found:
        if len(names) > 1:
            yield (
                f"{queue.at(line)}: the config {line.cfg!r} is two files of {code}, whose names "
                "differ only in their Unicode form: rename one"
            )
    missing = [(queue, line) for queue, line, names in found if not names]
    for queue, line in missing:
        near = _nearest_file(code / line.cfg) if len(missing) <= MOST_HINTS else ""
        yield f"{queue.at(line)}: there is no config {line.cfg!r} in {code}{near}"


def _colon_in_the_tier(durable_dir: str) -> Iterator[str]:
    # The training's zip lies there and is found through PYTHONPATH, whose parts a colon divides.
    if ":" in durable_dir:
        yield f"{durable_dir}: a durable tier's path holds no ':'; move the project's folder"


def _missing_epochs(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    if job.epochs is None and _takes(job, "epochs"):
        for queue, line in _lines(queues):
            if line.epochs is None:
                yield (
                    f"{queue.at(line)}: the command takes {{epochs}}, but the line gives none; "
                    "write them as the third field, or epochs: in job.yaml"
                )


def _missing_resume(job: Job) -> Iterator[str]:
    if job.resume is None and _takes(job, "resume"):
        yield f"{job.at('command')}: takes {{resume}}, but no key 'resume' says which file that is"


def _unknown_exceptions(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    if any(queue.unread or queue.queue.bad for queue in queues):
        return  # the cell may be one that was not understood
    names = {line.name for _, line in _lines(queues)}
    for name in job.cells:
        if queue_line.nfc(name) not in names:
            near = did_you_mean(name, names)
            yield f"{job.at('cells', name)}: no queue has a cell of this name{near}"


def _plan(
    root: Path, job: Job, profile: Profile, queues: Sequence[QueueFile], configs: ConfigFiles
) -> Plan:
    return Plan(
        run=job.name,
        profile=profile.name,
        durable_dir=profile.durable_dir(root),
        durable_scope=profile.durable_scope,
        full_disk_s=profile.storage.full_disk_s,
        interrupted_every_s=_interrupted_every_s(profile),
        grace_s=GRACE_S if profile.spot.grace_s is None else profile.spot.grace_s,
        boxes=tuple(_box(root, job, profile, queue.box) for queue in queues),
        queues={queue.name: queue.box for queue in queues},
        cells=tuple(_cells(job, queues, configs)),
        command=job.command,
        launcher=job.launcher,
        nproc=job.nproc_per_node,
        cell_nproc=_cell_nproc(job),
        epochs=_default_epochs(job),
        artifacts=tuple(Artifact(item.path, item.keys) for item in job.artifacts),
        resume=job.resume,
        scratch=job.scratch,
        env=profile.network.env | job.env,
        secrets=job.secrets,
        linger_s=job.linger_s,
        agent_python=profile.agent_python,
        training_python=profile.training_python,
    )


def _interrupted_every_s(profile: Profile) -> float:
    if profile.spot.interrupted_every_s is not None:
        return profile.spot.interrupted_every_s
    return cadence.PRIOR_S if profile.spot.is_available else cadence.ON_DEMAND_PRIOR_S


def _box(root: Path, job: Job, profile: Profile, name: str) -> Box:
    return Box(name, profile.data_dir(root, name), profile.credentials(root, name, job.name))


def _cells(job: Job, queues: Sequence[QueueFile], configs: ConfigFiles) -> Iterator[Cell]:
    """One for each name: of twins, which are a doubt, the first."""
    names = set[str]()
    for queue, line in _lines(queues):
        if queue_line.same_name_key(line.name) not in names:
            names.add(queue_line.same_name_key(line.name))
            yield _cell(job, queue, line, configs)


def _cell(job: Job, queue: QueueFile, line: CellLine, configs: ConfigFiles) -> Cell:
    return Cell(
        name=line.name,
        # As it lies here, which is what a script opens; a config that is gone is a fault.
        cfg=next(iter(configs.find(line.cfg)), line.cfg),
        task=line.task,
        # 1 where the command takes none: otherwise _missing_epochs has refused it.
        epochs=line.epochs or job.epochs or 1,
        queue=queue.name,
        index=line.index,
        nproc=_cell_nproc(job).get(line.name, job.nproc_per_node),
    )


def _default_epochs(job: Job) -> int | None:
    """1 for a command that takes no epochs: then no line needs any, here and on the box."""
    return job.epochs or (None if _takes(job, "epochs") else 1)


def _is_script(word: str) -> bool:
    """Whether a word of the command is a file that has to be there: not tasks/{task}.py."""
    return word.endswith(".py") and not word.startswith("-") and "{" not in word


def _takes(job: Job, name: str) -> bool:
    return any(Placeholder(name) in command_words.parse_word(word) for word in job.command)


def _cell_nproc(job: Job) -> dict[str, int]:
    return {queue_line.nfc(name): exception.nproc_per_node for name, exception in job.cells.items()}


def _lines(queues: Sequence[QueueFile]) -> Iterator[tuple[QueueFile, CellLine]]:
    for queue in queues:
        yield from ((queue, line) for line in queue.queue.cells)


def _is_file_of(folder: Path, relative: str) -> bool:
    path = Path(relative)
    try:
        return not path.is_absolute() and ".." not in path.parts and (folder / path).is_file()
    except OSError:
        return False  # a name that is too long for any file


def _nearest_file(path: Path) -> str:
    try:
        names = [item.name for item in path.parent.iterdir()]
    except OSError:
        return f": there is no folder {path.parent}"
    return did_you_mean(path.name, names)
