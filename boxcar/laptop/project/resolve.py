"""Job, profile and queue files to the plan that the box reads, and to all that is wrong with them.

Decides from the files and touches nothing. Not checked here: what lies on the durable tier already
(`push` does).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from boxcar.laptop.common import home
from boxcar.laptop.project import (
    cell_faults,
    cells_at_once,
    data_of_job,
    dealt_queues,
    idle_end,
    job_values,
    queue_files,
    set_up,
)
from boxcar.laptop.project.cell_faults import takes_epochs
from boxcar.laptop.project.job import CellException, Job
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.queue_files import (
    ConfigFiles,
    QueueFile,
    bad_lines,
    nearest_file,
    queue_lines,
)
from boxcar.laptop.triage import failures_file
from boxcar.shared.artifacts import cadence, resume_match
from boxcar.shared.cell import cell_name, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.duration import GRACE_S
from boxcar.shared.cell.said import is_script
from boxcar.shared.errors import InputError, Message
from boxcar.shared.files.plan import IN_OUT, LOG, Artifact, Box, Cell, Plan, Rule
from boxcar.shared.files.release import RUN_ONE
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# What does not go with the job's `links`: each is a name below {out} for a folder of the code.


def link_faults(root: Path, job: Job, plan: Plan) -> Iterator[str]:
    for text in _faults(root / job.code, plan):
        yield _("{at}{text}", at=f"{job.at('links')}: ", text=text)


def _faults(code: Path, plan: Plan) -> Iterator[str]:
    if plan.links and plan.workdir != IN_OUT:
        yield _(
            "links are made in {{out}}, but the command starts in the code folder, which has "
            "those folders. Write workdir: out, or remove links"
        )
    for folder in plan.links.values():
        if not (code / folder).is_dir() and code.is_dir():
            yield _("there is no folder {name!r} in the code folder {code}", name=folder, code=code)
    for key, path in _named(plan):
        name = resume_match.parts(path)[0]
        if name in plan.links:
            yield _(
                "{name!r} is a link to the code, but {key} looks for {path!r} in it: nothing "
                "written through a link counts as a result",
                name=name,
                key=key,
                path=path,
            )


def _named(plan: Plan) -> Iterator[tuple[str, str]]:
    """What the job looks for below {out}, by the key that names it, each once."""
    found = dict[tuple[str, str], None]()
    for held in terms.terms_that_differ(plan, (cell.name for cell in plan.cells)):
        found |= {("artifacts", item.path): None for item in held.artifacts}
        found |= {("resume", held.resume): None} if held.resume else {}
    found |= {("collect", path): None for path in plan.collect}
    found |= {("scratch", path): None for path in plan.scratch}
    found |= {("metrics", one.of): None for one in plan.metrics if one.source != LOG}
    yield from found


# What only a template holds that fills the words itself.
_OLD_TEMPLATE = "{{ words }}"
# To look for the nearest name of thousands, thousands of times, would take hours.
MOST_HINTS = 20


@dataclass(frozen=True)
class Resolved:
    """The plan of all cells that are known, and the local queue file of each queue; `to_deal`: the
    files of boxes that lack lines which were dealt out to them, with what they are to hold.

    `doubts` are lines and files that hide which cells were asked for. `faults` are what else has to
    be mended before anything is run from these files; a run that was launched goes on without.
    """

    plan: Plan
    queue_files: dict[str, Path]
    to_deal: dict[Path, bytes]
    doubts: tuple[Message, ...]
    faults: tuple[Message, ...]
    take_notes: Callable[[], tuple[str, ...]] = tuple

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is worth a look. Worked out for who asks: it reads code."""
        return self.take_notes()


def resolve(root: Path, job: Job, profile: Profile) -> Resolved:
    """What the files say. Raises InputError where they do not even say where the run lives."""
    return resolve_queues(root, job, profile, queue_files.queue_files_of_job(root, job))


def resolve_queues(
    root: Path,
    job: Job,
    profile: Profile,
    queues: Sequence[QueueFile],
    promised: Collection[str] = (),
) -> Resolved:
    """What they would say with these queue files, and with the configs that were promised."""
    configs = ConfigFiles(root / job.code, promised)
    shared, queues = queues, dealt_queues.deal_out(root, job, profile, queues)
    files = [*shared, *(queue for queue in queues if queue not in shared)]
    homeless = [
        *_twin_queues(job, queues),
        *_colon_in_the_tier(profile.durable_dir(root)),
        *survival.survival_problems(profile),
    ]
    head = _head(root, job, profile, queues)
    plan = replace(head, cells=tuple(_cells(head, queues, configs)))
    of_folder = [*_wrong_code(root, job), *_own_wrapper(root, job), *_old_template(root)]
    doubts = [*_unread_queues(job, files), *bad_lines(files), *_twin_cells(queues)]
    faults = [
        *of_folder,
        *set_up.faults(root, job),
        *data_of_job.faults(root, job),
        *dealt_queues.faults_of_dealt(root, job, profile, shared),
        *_no_cells(job, shared),
        *_wrong_configs(root, job, queues, configs),
        *link_faults(root, job, plan),
        *cell_faults.faults_of_cells(job, plan, queues),
        *cell_faults.faults_of_nodes(job, profile, plan),
        *cells_at_once.faults_of_gpus(job, plan),
    ]
    if not doubts:  # a cell that was not understood may be the one that is meant
        faults += cell_faults.faults_of_smoke(job, plan)
    if homeless:
        raise InputError([*homeless, *doubts, *faults])
    return Resolved(
        plan,
        {queue.name: queue.path for queue in queues},
        dealt_queues.files_to_write(root, queues),
        tuple(map(Message, doubts)),
        tuple(map(Message, faults)),
        lambda: tuple(cell_faults.notes_on_cells(root, job, plan, queues)),
    )


def _twin_queues(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    names: dict[str, str] = {}
    boxes: dict[str, str] = {}
    for queue in queues:
        at = job.at("queues", queue.file)
        # Folded, because two names may be one file on a laptop's disk.
        first = names.setdefault(queue.name.casefold(), queue.file)
        if first != queue.file:
            yield _(
                "{at}: has the same queue name {queue!r} as {first}: rename one",
                at=at,
                queue=queue.name,
                first=first,
            )
        for box in queue.queues.values():
            first = boxes.setdefault(box.casefold(), queue.file)
            if first != queue.file:
                yield _(
                    "{at}: the box {box!r} already has the queue {first}, and a box runs one "
                    "queue at a time. Merge the two files, or name another box",
                    at=at,
                    box=box,
                    first=first,
                )


def _unread_queues(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    for queue in queues:
        if queue.unread:
            yield _said(job.at("queues", queue.file), queue.unread)


def _said(place: str, text: str) -> str:
    return _("{at}{text}", at=f"{place}: ", text=text)


def _no_cells(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    if not any(queue.unread or queue.queue.lines for queue in queues):
        said = _(
            "no cells yet. Write one line for each, <cfg> <task> [epochs], in {files}",
            files=", ".join(job.queues),
        )
        yield _said(job.at("queues"), said)


def _twin_cells(queues: Sequence[QueueFile]) -> Iterator[str]:
    first_use: dict[str, tuple[QueueFile, CellLine]] = {}
    # Twins within one file are bad lines already.
    for queue, line in queue_lines(queues) if len(queues) > 1 else ():
        key = cell_name.same_name_key(line.name)
        other, first = first_use.setdefault(key, (queue, line))
        if other is not queue:
            twin = _(
                "the cell {name!r} is already in {other}. Give one of the two another name with "
                "name=..., or remove a line",
                name=line.name,
                other=other.at(first),
            )
            yield _said(queue.at(line), twin)


def _wrong_code(root: Path, job: Job) -> Iterator[str]:
    code = root / job.code
    if not code.is_dir():
        yield _("{job}: there is no folder {code}", job=job.at("code"), code=code)
        return
    script = next(filter(is_script, job.command), None)
    if script and not _is_file_of(code, script):
        near = nearest_file(code, script)
        said = _(
            "there is no script {name!r} in the code folder {code}{near}",
            name=script,
            code=code,
            near=near,
        )
        yield _said(job.at("command"), said)


def _wrong_configs(
    root: Path, job: Job, queues: Sequence[QueueFile], configs: ConfigFiles
) -> Iterator[str]:
    code = root / job.code
    if not code.is_dir():
        return  # _wrong_code says it
    found = [
        (queue, line, configs.find(line.cfg))
        for queue, line in queue_lines(queues)
        if line.has_config
    ]
    for queue, line, names in found:
        if len(names) > 1:
            yield (
                _(
                    "{line}: the config {cfg!r} matches two files of {code}, whose names differ "
                    "only in Unicode form. Rename one",
                    line=queue.at(line),
                    cfg=line.cfg,
                    code=code,
                )
            )
    missing = [(queue, line) for queue, line, names in found if not names]
    for queue, line in missing:
        near = nearest_file(code, line.cfg) if len(missing) <= MOST_HINTS else ""
        said = _("there is no config {name!r} in {code}{near}", name=line.cfg, code=code, near=near)
        if not {".", "/"} & {*line.cfg}:  # a word of a shell, such as python
            said = _(
                "{said}. A line is <config> <task> [epochs], not a command; - means no config",
                said=said,
            )
        yield _said(queue.at(line), said)


def _colon_in_the_tier(durable_dir: str) -> Iterator[str]:
    # The training's zip lies there and is found through PYTHONPATH, whose parts a colon divides.
    if ":" in durable_dir:
        yield _(
            "{durable_dir}: the path of a durable tier cannot have a ':'. Move the project's "
            "folder",
            durable_dir=durable_dir,
        )


def _head(root: Path, job: Job, profile: Profile, queues: Sequence[QueueFile]) -> Plan:
    """The plan without its cells."""
    return Plan(
        run=job.name,
        profile=profile.name,
        durable_dir=profile.durable_dir(root),
        durable_scope=profile.durable_scope,
        full_disk_s=profile.storage.full_disk_s,
        mirror_bytes_per_s=_mirror_bytes_per_s(profile),
        interrupted_every_s=_interrupted_every_s(profile),
        second=profile.storage.second,
        grace_s=GRACE_S if profile.spot.grace_s is None else profile.spot.grace_s,
        boxes=tuple(_box(root, job, profile, box) for box in job.boxes),
        queues={name: box for queue in queues for name, box in queue.queues.items()},
        cells=(),
        command=job.command,
        launcher=job.launcher,
        nproc=job.nproc_per_node,
        cell_nproc={},
        gpus_per_cell=job.gpus_per_cell,
        slots=job.slots,
        backfill=job.backfill,
        gpu_free_below_bytes=job.gpu_free_below,
        rules=tuple(_rule(name, rule) for name, rule in job.cells.items()),
        epochs=_default_epochs(job),
        artifacts=_artifacts(job),
        metrics=tuple(metric.planned(name) for name, metric in job.metrics.items()),
        signatures=failures_file.read_failures_file(root),
        collect=job.collect,
        links=dict(job.links),
        data=dict.fromkeys(data_of_job.folders_of(job), ""),
        data_urls=data_of_job.urls_of(job),
        is_data_on_tier=bool(job.data) and profile.keeps_data_on_tier,
        resume=job.resume,
        resume_args=job.resume_args,
        workdir=job.workdir,
        time_s=job.time,
        scratch=job.scratch,
        env=dict(profile.network.env),
        job_env=dict(job.env),
        secrets=job.secrets,
        linger_s=job.linger_s,
        agent_python=profile.agent_python,
        training_python=set_up.training_python(job, profile),
        setup=job.setup,
        requirements=job.requirements,
        install=job.install,
        setup_time_s=job.setup_time,
        ends_stalled=job.when_stalled == "end",
        ends_at_nan=job.when_nan == "end",
        idle_end=idle_end.of_job(job, profile),
    )


def _rule(name: str, rule: CellException) -> Rule:
    return Rule(
        cells=cell_name.nfc(name),
        env=dict(rule.env),
        command=rule.command,
        launcher=rule.launcher,
        nproc=rule.nproc_per_node,
        time_s=rule.time,
        artifacts=None if rule.artifacts is None else _artifacts(rule),
        resume=rule.resume,
        nodes=rule.nodes,
    )


def _artifacts(asked: Job | CellException) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(item.path, item.keys, item.load, item.take) for item in asked.artifacts or ()
    )


def _interrupted_every_s(profile: Profile) -> float:
    if profile.spot.interrupted_every_s is not None:
        return profile.spot.interrupted_every_s
    return cadence.PRIOR_S if profile.spot.is_available else cadence.ON_DEMAND_PRIOR_S


def _mirror_bytes_per_s(profile: Profile) -> float | None:
    most = profile.storage.mirror.bandwidth_mb_s
    return None if most is None else most * 1e6


def _box(root: Path, job: Job, profile: Profile, name: str) -> Box:
    return Box(name, profile.data_dir(root, name), profile.credentials(root, name, job.name))


def _cells(plan: Plan, queues: Sequence[QueueFile], configs: ConfigFiles) -> Iterator[Cell]:
    """One for each name: of twins, which are a doubt, the first."""
    if len(queues) == 1:  # which has no twins
        yield from (_cell(plan, queue, line, configs) for queue, line in queue_lines(queues))
        return
    names = set[str]()
    for queue, line in queue_lines(queues):
        key = cell_name.same_name_key(line.name)
        if key not in names:
            names.add(key)
            yield _cell(plan, queue, line, configs)


def _cell(plan: Plan, queue: QueueFile, line: CellLine, configs: ConfigFiles) -> Cell:
    # As it lies here, which is what a script opens; a config that is gone is a fault.
    cfg = next(iter(configs.find(line.cfg)), line.cfg) if line.has_config else line.cfg
    holds = terms.terms_of_cell(plan, line.name, line.own)
    return Cell(
        name=line.name,
        cfg=cfg,
        task=line.task,
        # 1 where the command takes none: otherwise a fault was found.
        epochs=line.epochs or plan.epochs or 1,
        queue=queue.name,
        index=line.index,
        nproc=holds.nproc,
        own=line.own,
        overrides=line.overrides,
        nodes=holds.nodes,
    )


def _default_epochs(job: Job) -> int | None:
    """1 for a command that takes no epochs: then no line needs any, here and on the box."""
    return job.epochs or (None if takes_epochs(job) else 1)


def _own_wrapper(root: Path, job: Job) -> Iterator[str]:
    """Who has a script of that name might think that it is the one that is run."""
    if job.run and (root / job.code / job_values.SCRIPT).exists():
        yield (
            _(
                "{job}: {script} is the name of Boxcar's own wrapper, so the one in the code "
                "folder would never run. Give it another name",
                job=job.at("run"),
                script=job_values.SCRIPT,
            )
        )


def _old_template(root: Path) -> Iterator[str]:
    template = root / "templates" / f"{RUN_ONE}.j2"
    if template.is_file() and _OLD_TEMPLATE in template.read_text(errors="replace"):
        yield (
            _(
                "{file}: run_one.sh now gets a cell's words as arguments and has no placeholders. "
                "Put your changes into a copy of {path}",
                file=template,
                path=home.assets_root() / "templates" / template.name,
            )
        )


def _is_file_of(folder: Path, relative: str) -> bool:
    path = Path(relative)
    try:
        return not path.is_absolute() and ".." not in path.parts and (folder / path).is_file()
    except OSError:
        return False  # a name that is too long for any file
