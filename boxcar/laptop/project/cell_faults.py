"""What of the cells does not go together: a line and its command, `after=`, the rules of `cells:`.

Pure, but for one look at the code folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.project import command_notes, job_values, metric_values, short_run
from boxcar.laptop.project.checks import bare_flags
from boxcar.laptop.project.duplicate_flags import notes_on_duplicate_flags
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.job_values import queue_name
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.profiles.schema import OWN_SCOPES
from boxcar.laptop.project.profiles.slurm_options import laid_over
from boxcar.laptop.project.queue_files import QueueFile, queue_lines
from boxcar.laptop.project.short_run import ShortRun
from boxcar.shared.cell import placeholders, terms
from boxcar.shared.cell.cell_name import nfc
from boxcar.shared.cell.own_words import NOTHING_OWN
from boxcar.shared.cell.said import is_script
from boxcar.shared.errors import some
from boxcar.shared.files.plan import EACH_BOX, IN_OUT, Cell, Plan
from boxcar.shared.sentence import _

# Which short run a cell has: the `smoke:` of its name in `cells:`, of a pattern, or the job's.
#
# Only a laptop tries cells, so the plan that a box reads knows nothing of it.


_MOST_NAMED = 3


def short_run_of_cell(job: Job, cell: str) -> ShortRun:
    return next((short for _, short in _of_rules(job, cell)), job.smoke)


def why_skipped(job: Job, cell: str) -> str | None:
    """The reason to leave the cell out; what the job says of it by name counts also here."""
    return short_run_of_cell(job, cell).why_skipped(cell) or job.smoke.why_skipped(cell)


def is_smoke_given(job: Job) -> bool:
    """Whether any cell's run is made short."""
    return job.smoke.is_given or any(
        rule.smoke is not None and rule.smoke.is_given for rule in job.cells.values()
    )


def cells_without_smoke(job: Job, cells: Iterable[str]) -> str:
    """That `smoke:` says nothing of some of these cells; '' where it speaks of each."""
    without = [cell for cell in cells if not short_run_of_cell(job, cell).is_given]
    if not without:
        return ""
    of = "" if not is_smoke_given(job) else f" of {some(without, _MOST_NAMED)}"
    return _("{job}: nothing here makes a run{of} short", job=job.at("smoke"), of=of)


def faults_of_smoke(job: Job, plan: Plan) -> Iterator[str]:
    """What of it speaks of nothing that is there."""
    yield from short_run.faults(plan, plan.cells, job.smoke, job.at("smoke"))
    yield from short_run.faults(plan, plan.cells, job.rehearse, job.at("rehearse"))
    for name, rule in job.cells.items():
        cells = [cell for cell in plan.cells if terms.rule_fits(name, cell.name)]
        # A pattern may be for lines that are appended later.
        if rule.smoke is not None and cells:
            yield from short_run.faults(plan, cells, rule.smoke, job.at("cells", name, "smoke"))


def quarrels_of_smoke(job: Job, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """A cell that two patterns give different ones, and both; not where its own name gives one."""
    given = [name for name, rule in job.cells.items() if rule.smoke is not None]
    for cell in plan.cells if any(map(terms.is_pattern, given)) else ():
        found = list(_of_rules(job, cell.name))
        if len(found) > 1 and terms.is_pattern(found[0][0]):
            for name, short in found[1:]:
                if short != found[0][1]:
                    yield cell.name, found[0][0], name


def _of_rules(job: Job, cell: str) -> Iterator[tuple[str, ShortRun]]:
    """Those of `cells:` that speak of the cell, the one that counts most first."""
    given = [(name, rule.smoke) for name, rule in job.cells.items() if rule.smoke is not None]
    for name, short in sorted(given, key=lambda one: terms.is_pattern(one[0])):
        if terms.rule_fits(name, cell):
            yield name, short


_NO_RESUME = _("the key 'resume', which names that file, is missing")
_MOST = 20  # of one kind: what is wrong with a thousand lines is one thing


def faults_of_cells(job: Job, plan: Plan, queues: Sequence[QueueFile]) -> Iterator[str]:
    """What has to be mended before anything is run."""
    yield from command_notes.faults_of_commands(job)
    yield from _misfits(plan, queues)
    yield from _after(plan, queues)
    yield from _quarrels(job, plan)
    yield from _smoke_quarrels(job, plan)
    yield from _unknown_names(job, queues)
    yield from _secret_variables(job)
    yield from _missing_resume(job, plan)
    yield from _misplaced_resume(job, plan)


def notes_on_cells(root: Path, job: Job, plan: Plan, queues: Sequence[QueueFile]) -> list[str]:
    """What is worth a look before a launch, though it may be meant."""
    names = {line.name for _, line in queue_lines(queues)}
    idle = [
        _("{job}: no cell's name matches this yet", job=job.at("cells", pattern))
        for pattern in job.cells
        if terms.is_pattern(pattern) and not any(terms.rule_fits(pattern, name) for name in names)
    ]
    return [
        *idle,
        *command_notes.notes_on_commands(root, job, plan),
        *notes_on_duplicate_flags(plan, queues),
        *bare_flags.notes(root / job.code, plan, [one[1] for one in queue_lines(queues)]),
        *(
            _("{head}: {text}", head=job.at("metrics", name), text=text)
            for name, text in metric_values.cutting_pattern(job.metrics)
        ),
        *_left_in_code(root, job, plan, queues),
    ]


def _misfits(plan: Plan, queues: Sequence[QueueFile]) -> Iterator[str]:
    fit = set[tuple[bool, str, bool]]()
    for queue, line in queue_lines(queues):
        shape = (line.has_config, line.task, bool(line.epochs))
        is_plain = line.own is NOTHING_OWN and not plan.rules
        if not (is_plain and shape in fit):
            found = [
                _("{head}: {text}", head=queue.at(line), text=text)
                for text in terms.misfits_of_line(plan, line)
            ]
            yield from found
            if is_plain and not found:  # nor will another line of which all of this is the same
                fit.add(shape)


def _quarrels(job: Job, plan: Plan) -> Iterator[str]:
    said = set[tuple[str, str, str]]()
    for cell in plan.cells if any(terms.is_pattern(rule.cells) for rule in plan.rules) else ():
        for key, one, other in terms.quarrels_of_rules(plan.rules, cell.name):
            if (key, one.cells, other.cells) not in said:
                said.add((key, one.cells, other.cells))
                yield _quarrel(job, key, one.cells, other.cells, cell.name)


def _smoke_quarrels(job: Job, plan: Plan) -> Iterator[str]:
    said = set[tuple[str, str]]()
    for cell, one, other in quarrels_of_smoke(job, plan):
        if (one, other) not in said:
            said.add((one, other))
            yield _quarrel(job, "smoke", one, other, cell)


def _quarrel(job: Job, key: str, one: str, other: str, cell: str) -> str:
    return _(
        "{job}: cells such as {cell} also match {one!r}, which gives another {key}. Name that "
        "cell, or make the patterns distinct",
        job=job.at("cells", other),
        key=key,
        one=one,
        cell=cell,
    )


def _unknown_names(job: Job, queues: Sequence[QueueFile]) -> Iterator[str]:
    if any(queue.unread or queue.queue.bad for queue in queues):
        return  # the cell may be one that was not understood
    names = {line.name for _, line in queue_lines(queues)}
    for name in job.cells:
        if nfc(name) not in names and not terms.is_pattern(name):
            near = did_you_mean(name, names)
            yield _(
                "{job}: no queue has a cell with this name{near}",
                job=job.at("cells", name),
                near=near,
            )


def _secret_variables(job: Job) -> Iterator[str]:
    for cells, rule in job.cells.items():
        for name in rule.env:
            if name in job.secrets:
                yield _(
                    "{job}: env.{name} is also listed under secrets; remove one",
                    job=job.at("cells", cells),
                    name=name,
                )


def _missing_resume(job: Job, plan: Plan) -> Iterator[str]:
    """Where a checkpoint is asked for that no key names, by the key that asks."""
    distinct = terms.terms_that_differ(plan, (cell.name for cell in plan.cells))
    without = [held for held in distinct if held.resume is None]
    commands = {held.command for held in without}
    asked = {("command",): job.command} | {
        ("cells", name, "command"): rule.command or () for name, rule in job.cells.items()
    }
    for place, command in asked.items():
        if command in commands and placeholders.takes(command, "resume"):
            yield _(
                "{job}: uses {{resume}}, but {no_resume}", job=job.at(*place), no_resume=_NO_RESUME
            )
    if job.resume_args and len(without) == len(distinct):
        yield (
            _(
                "{job}: is added only if there is a checkpoint to resume from, but {no_resume}",
                job=job.at("resume_args"),
                no_resume=_NO_RESUME,
            )
        )


def _misplaced_resume(job: Job, plan: Plan) -> Iterator[str]:
    """What is wrong for a thousand cells is one thing: the key that says it."""
    found = dict[str, None]()
    for holds in terms.terms_that_differ(plan, (cell.name for cell in plan.cells)):
        for key, words in (("command", holds.command), ("env", tuple(holds.env.values()))):
            if why := job_values.misplaced_pattern(holds.resume, words):
                found[_("{head}: {text}", head=job.at(key), text=why)] = None
    for key, words in (("smoke", job.smoke.add), ("rehearse", job.rehearse.add)):
        if why := job_values.misplaced_pattern(job.resume, words):
            found[_("{head}: {text}", head=job.at(key), text=why)] = None
    yield from found


# --- nodes


def faults_of_nodes(job: Job, profile: Profile, plan: Plan) -> Iterator[str]:
    """What keeps cells from running on several nodes, each once; only a cluster has these.

    Whether one of Kubernetes has JobSet, which they need there, audit and launch ask it.
    """
    asked = [name for name, rule in job.cells.items() if (rule.nodes or 1) > 1]
    if not asked:
        return
    at = job.at("cells", asked[0], "nodes")
    if not profile.is_cluster:
        yield _(
            "{at}: a cell on several nodes needs Slurm or Kubernetes, and {profile} has neither",
            at=at,
            profile=profile.name,
        )
        return
    if profile.slurm.container:
        yield _(
            "{at}: such a cell is started by srun, which the container does not have. Remove "
            "`container:`",
            at=at,
        )
    data = profile.storage.data
    if profile.storage.tiers[data].scope in OWN_SCOPES:
        yield _(
            "{at}: all nodes write into one {{out}}, but {data} (storage.data) is a separate disk "
            "on each node. Name one that all see: storage: {{data: boxes}}",
            at=at,
            data=data,
        )
    for name in asked:
        cells = [cell for cell in plan.cells if terms.rule_fits(name, cell.name) and cell.nodes > 1]
        yield from list(dict.fromkeys(_of_cells_over_nodes(job, profile, plan, name, cells)))


def _of_cells_over_nodes(
    job: Job, profile: Profile, plan: Plan, name: str, cells: list[Cell]
) -> Iterator[str]:
    own = {queue_name(file): options for file, options in job.slurm.queues.items()}
    for cell in cells:
        launcher = terms.terms_of_cell(plan, cell.name, cell.own).launcher
        if launcher != "torchrun":
            at = job.at("cells", name, "nodes")
            yield _(
                "{at}: needs launcher: torchrun for each node, found {launcher}",
                at=at,
                launcher=launcher,
            )
        said = [profile.slurm, job.slurm, *([own[cell.queue]] if cell.queue in own else [])]
        nodes = laid_over(*said).nodes if profile.is_slurm else None
        if nodes is not None and nodes < cell.nodes:
            yield (
                _(
                    "{job}: {cell} needs {nodes} nodes, but the job of {queue} asks for {given}. "
                    "Raise slurm: {{nodes: …}}, or remove it",
                    job=job.at("cells", name, "nodes"),
                    cell=cell.name,
                    nodes=cell.nodes,
                    queue=cell.queue,
                    given=nodes,
                )
            )


# --- after=


def _after(plan: Plan, queues: Sequence[QueueFile]) -> Iterator[str]:
    homes = {line.name: queue for queue, line in queue_lines(queues)}
    for queue, line in queue_lines(queues):
        for name in line.own.after:
            if name not in homes:
                near = did_you_mean(name, homes)
                yield _(
                    "{line}: after={name}: no queue has a cell with this name{near}",
                    line=queue.at(line),
                    name=name,
                    near=near,
                )
            elif plan.durable_scope == EACH_BOX and homes[name] is not queue:
                yield (
                    _(
                        "{line}: after={name}: that cell runs on {box}, whose disk {other_box} "
                        "cannot see. Put both into one queue",
                        line=queue.at(line),
                        name=name,
                        box=homes[name].boxes,
                        other_box=queue.boxes,
                    )
                )
    if circle := _circle(
        {line.name: line.own.after for _, line in queue_lines(queues) if line.own.after}
    ):
        yield _("after= is circular: {circle}", circle=" → ".join(circle))


def _circle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """The cells of one circle, its first again at the end; empty without one."""
    done: set[str] = set()
    for start in after:
        # In order, and asked of each step: a chain may be as long as a queue.
        path, steps = {start: None}, [iter(after[start])]
        while steps:
            name = next(steps[-1], None)
            if name is None:
                steps.pop()
                done.add(path.popitem()[0])
            elif name in path:
                circle = list(path)
                return [*circle[circle.index(name) :], name]
            elif name in after and name not in done:
                path[name] = None
                steps.append(iter(after[name]))
    return []


# --- workdir: out


def _left_in_code(root: Path, job: Job, plan: Plan, queues: Sequence[QueueFile]) -> Iterator[str]:
    """Words that are paths of the code folder, of a command that starts elsewhere."""
    if plan.workdir != IN_OUT:
        return
    code = (root / job.code).resolve()
    words = [word for command in _commands(plan) for word in command if not is_script(word)]
    for word in _elsewhere_than_linked(plan, _inside(code, words)):
        yield _(
            "{at}: if you mean that file, write {{code}}/{word}", at=_elsewhere(word), word=word
        )
    overrides = (word for _, line in queue_lines(queues) for word in line.overrides)
    for word in _elsewhere_than_linked(plan, _inside(code, overrides)):
        # A placeholder would stay as it is: overrides are literal.
        yield _(
            "{at}: if you mean that file, write {{code}}/{word} in command:",
            at=_elsewhere(word),
            word=word,
        )


def _elsewhere_than_linked(plan: Plan, words: Iterable[str]) -> list[str]:
    """Without those that a link of the same name leads to."""
    return [word for word in words if plan.links.get(head := word.split("/")[0]) != head]


def _elsewhere(word: str) -> str:
    return _(
        "{word} is in the code folder, but with workdir: out the command starts in {{out}}",
        word=word,
    )


def _inside(code: Path, words: Iterable[str]) -> list[str]:
    values = dict.fromkeys(word.rpartition("=")[2] for word in words)
    return list(islice((value for value in values if _is_inside(code, value)), _MOST))


def _commands(plan: Plan) -> Iterator[tuple[str, ...]]:
    yield plan.command
    yield from (rule.command for rule in plan.rules if rule.command)


def _is_inside(code: Path, word: str) -> bool:
    if word in ("", ".") or word.startswith(("/", "-", "..")) or "{" in word:
        return False
    try:
        return (code / word).exists()
    except (OSError, ValueError):
        return False


def takes_epochs(job: Job) -> bool:
    """Whether any command of the job does."""
    commands = (job.command, *(rule.command or () for rule in job.cells.values()))
    return any(placeholders.takes(command, "epochs") for command in commands)
