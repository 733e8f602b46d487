"""What the facts of a box mean for the run: ok, warn or refuse, each with its reason. Pure.

A fact that is missing refuses nothing, unless the run cannot go on without it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from boxcar.laptop.common import units
from boxcar.laptop.fitness import requirements
from boxcar.laptop.fitness.requirements import AskedPackages
from boxcar.laptop.project.cells_at_once import cells_at_once
from boxcar.laptop.project.resources import Card, Offer, Range, Resources, is_family, refusals
from boxcar.shared.cell import terms
from boxcar.shared.disk import checked_copy
from boxcar.shared.errors import Command, Message
from boxcar.shared.files.plan import SHARED, Cell, Plan
from boxcar.shared.record import dataclass, replace
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.box_asks import OthersSeen
from boxcar.shared.wire.facts import Facts, Folder, Folders, TrainingPython

# Whether what a run will write on this machine has any room at all, before something is sent.


def folders_without_room(folders: Mapping[str, Path]) -> list[str]:
    """A sentence with numbers for each full disk, by what lies there. Raises OSError."""
    found = {what: checked_copy.lack_of_room(nearest_folder(at)) for what, at in folders.items()}
    return [f"{what}: {lack}" for what, lack in found.items() if lack]


def nearest_folder(folder: Path) -> Path:
    """The folder, or the one above it where it will be made."""
    return next(step for step in (folder, *folder.parents) if step.is_dir())


Verdict = Literal["ok", "warn", "refuse"]

SMALL_SHM_BYTES = 64 * 2**20  # what a container has that nobody gave more
LITTLE_MEMORY_BYTES = 4 * 10**9
SKEW_S, LONG_SKEW_S = 30.0, 3600.0
OLDEST_BASH = (4, 2)
ALL = "all"
# What each launcher is a module of.
_PACKAGES = {"torchrun": "torch", "accelerate": "accelerate", "deepspeed": "deepspeed"}


@dataclass(frozen=True)
class Row:
    """One line of the table. `box` is ALL for what concerns several boxes together."""

    box: str
    what: str
    verdict: Verdict
    found: str
    reason: str | Message = ""


@dataclass(frozen=True)
class Told:
    """What a box said of itself (`onbox/answers/audit.py`); without facts, why it said nothing.

    `skew_s` is how far its clock is ahead of the laptop's, at least. `others`: who else is on it,
    where it said so.
    """

    facts: Facts | None
    skew_s: float = 0.0
    why: str = ""
    others: OthersSeen | None = None


@dataclass(frozen=True)
class Wanted:
    """What the run needs of every box. `detach`: the primitives, the preferred one first."""

    launcher: str
    detach: tuple[str, ...]
    has_mounted_tier: bool  # shared by boxes, which each have to have it there
    resources: Resources = field(default_factory=Resources)
    packages: AskedPackages = AskedPackages()
    hook: str = ""  # the profile's shell text, which comes before the training's Python
    # The boxes that were seen to read what each of them wrote on the durable tier.
    sharing: frozenset[str] = frozenset()


def judge(told_by_box: Mapping[str, Told], wanted: Wanted) -> list[Row]:
    """All rows of all boxes; budget and tier probe have their own."""
    rows = []
    for box, told in told_by_box.items():
        if told.facts is None:
            rows.append(Row(box, "box", "refuse", _("no answer"), told.why))
            continue
        rows.append(_clock(box, told))
        for rule in _RULES:
            rows += rule(box, told.facts, wanted)
    return rows


def _clock(box: str, told: Told) -> Row:
    apart_s = abs(told.skew_s)
    if apart_s <= SKEW_S:
        return Row(box, "clock", "ok", _("in sync"))
    which = mark("{time} ahead") if told.skew_s > 0 else mark("{time} behind")
    why = _("times in its event log are off by this much: set its clock, or allow for it")
    if apart_s > LONG_SKEW_S:
        why = _(
            "{why}. At this offset webhooks are rejected as too old, and TLS may fail on the box",
            why=why,
        )
    found = Sentence(which, time=units.duration(apart_s))
    return Row(box, "clock", "warn", found, why)


# --- what it computes with


def _gpus(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    wish, rows = wanted.resources.gpu, facts.gpus
    broken = [row.problem for row in rows if row.problem is not None]
    cards = [Card(row.name, row.memory_total_bytes) for row in rows if row.name is not None]
    slices = sum(len(row.mig) for row in rows)
    if broken:
        found = _("no answer from {n} of {all}", n=len(broken), all=len(rows))
        yield Row(box, "GPU", "warn", found, broken[0])
    if not rows:
        yield _no_gpu(box, facts, wanted)
    elif cards:
        named = [card for card in cards if not wish or _is_wished(wish.name, card)]
        offer = Offer(tuple(cards), len(named))
        reasons = refusals(Resources(gpu=wish), offer)
        yield Row(
            box, "GPU", "refuse" if reasons else "ok", _listed(cards, slices), "; ".join(reasons)
        )


def _no_gpu(box: str, facts: Facts, wanted: Wanted) -> Row:
    if wanted.resources.gpu:
        why = _(
            "the job requires a GPU (resources: gpu): rent a box that has one, or drop the "
            "requirement"
        )
        if facts.tools.get("nvidia-smi"):
            why = _(
                "{why}. nvidia-smi is installed but lists no GPU: the driver may be broken", why=why
            )
        return Row(box, "GPU", "refuse", _("none"), why)
    return Row(box, "GPU", "warn", _("none"), _("training will use the CPU"))


def _is_wished(names: tuple[str, ...], card: Card) -> bool:
    return not names or any(is_family(name, card.name) for name in names)


def _listed(cards: list[Card], slices: int) -> str:
    names: dict[str, int] = {}
    for card in cards:
        memory = f" {units.size(card.memory_bytes)}" if card.memory_bytes else ""
        names[card.name + memory] = names.get(card.name + memory, 0) + 1
    listed = ", ".join(f"{count} x {name}" for name, count in names.items())
    return _("{cards}, {n} MIG {n:slice|slices}", cards=listed, n=slices) if slices else listed


def _interpreter(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    training = facts.training
    if training.problem is not None or training.path is None:
        problem = training.problem or _("it does not report its version")
        reason = _(
            "{problem}; set the Python that has the training packages in the profile: env: "
            "{{training_python: …}}",
            problem=problem,
        )
        yield Row(box, "training Python", "refuse", _("not found"), reason)
        return
    found = f"{training.path} ({training.version})"
    yield Row(box, "training Python", "ok", found)
    yield from _packages(box, training, wanted)
    asked, has = wanted.packages, training.requirements
    for told in requirements.judge_packages(training.version or "", has, asked):
        yield Row(box, "requirements", *told)
    yield from _cuda(box, training, wanted)


def _packages(box: str, training: TrainingPython, wanted: Wanted) -> Iterator[Row]:
    launched_by, missing = _PACKAGES.get(wanted.launcher), _("not found")
    for name in sorted({"torch", launched_by or "torch"}):
        version = training.packages.get(name)
        if version:
            yield Row(box, name, "ok", version)
        elif name == launched_by:
            about = {"launcher": wanted.launcher, "python": training.path}
            yield Row(
                box,
                name,
                "refuse",
                missing,
                _("the launcher {launcher} needs it; install it for {python}", **about),
            )
        else:
            yield Row(
                box,
                name,
                "warn",
                missing,
                _("artifacts that need it are only hashed on the box, not loaded"),
            )


def _cuda(box: str, training: TrainingPython, wanted: Wanted) -> Iterator[Row]:
    if training.cuda_problem is not None:
        yield Row(box, "CUDA", "warn", _("unknown"), training.cuda_problem)
    elif training.has_cuda is False:
        verdict: Verdict = "refuse" if wanted.resources.gpu else "warn"
        built = _("built for {what}", what=training.cuda or _("the CPU"))
        yield Row(
            box,
            "CUDA",
            verdict,
            built,
            _("this torch cannot use the GPU: it was built for the CPU, or for a newer driver"),
        )
    elif training.has_cuda:
        yield Row(box, "CUDA", "ok", str(training.cuda))


def _memory(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    limits = [facts.memory_limit_bytes, facts.memory_total_bytes]
    known = [limit for limit in limits if limit]
    if known:
        is_little = min(known) < LITTLE_MEMORY_BYTES
        reason = (
            _("too little for training with data workers; cells may be killed") if is_little else ""
        )
        verdict: Verdict = "warn" if is_little else "ok"
        yield Row(box, "memory", verdict, units.size(min(known)), reason)


def _cpu(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    quota, count = facts.cpu_quota_cores, facts.cpu_count
    if quota is not None and quota < 1:
        found = _("{share} of {n} {n:core|cores}", share=f"{quota:.2g}", n=count)
        yield Row(
            box, "CPU", "warn", found, _("less than one core: data loading will slow the GPU down")
        )
    elif quota is not None and quota < count:
        yield Row(
            box, "CPU", "ok", _("{share} of {n} {n:core|cores}", share=f"{quota:.3g}", n=count)
        )
    else:
        yield Row(box, "CPU", "ok", _("{n} {n:core|cores}", n=count))


def _host_name(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    """Gloo, which connects ranks on a CPU, looks up the box's own name."""
    if facts.hostname_problem is None:
        yield Row(box, "host name", "ok", _("resolves"))
        return
    reason = _(
        "the box cannot resolve its own host name ({problem}), so ranks may hang while "
        'connecting; run there: echo "127.0.0.1 $(uname -n)" >> /etc/hosts',
        problem=facts.hostname_problem,
    )
    yield Row(box, "host name", "warn", _("does not resolve"), reason)


def _shm(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    size_bytes = facts.shm_size_bytes
    if size_bytes is None:
        return
    found = units.size(size_bytes)
    reasons = refusals(Resources(shm=wanted.resources.shm), Offer(shm_bytes=size_bytes))
    if not reasons and size_bytes > SMALL_SHM_BYTES:
        yield Row(box, "/dev/shm", "ok", found)
        return
    reason = _(
        "{why}; rent a box with a larger /dev/shm (docker: --shm-size; Kubernetes: an "
        "emptyDir with medium: Memory at /dev/shm), or set num_workers: 0",
        why=reasons[0] if reasons else _("so small that DataLoader workers die with 'Bus error'"),
    )
    yield Row(box, "/dev/shm", "refuse" if reasons else "warn", found, reason)


# --- where it writes


def _places(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    names = {"data": "data tier", "durable": "durable tier", "credentials": "credentials"}
    for key, name in names.items():
        folder: Folder = getattr(facts.places, key)
        kind = folder.file_system or _("unknown file system")
        found = _("{folder} ({file_system})", folder=folder.path, file_system=kind)
        if not folder.is_writable:
            problem = folder.problem or _("reason unknown")
            yield Row(box, name, "refuse", found, _("not writable: {problem}", problem=problem))
        elif key == "durable" and (row := _not_mounted(box, found, facts.places, wanted)):
            yield row
        elif key == "credentials" and _is_on_shared_tier(box, facts.places, wanted):
            yield Row(
                box,
                name,
                "refuse",
                found,
                _(
                    "secrets would be on the shared tier; set another credentials file in the "
                    "profile"
                ),
            )
        else:
            yield Row(box, name, "ok", found)


def seems_unmounted(folders: Folders) -> bool:
    """Whether the durable tier lies on what the box has anyway: its system, its home or its disk.

    A bind mount is a mount of its own too; the device would not tell.
    """
    durable = folders.durable
    others = {"/", folders.credentials.mount, folders.data.mount}
    return durable.mount in others and durable.mount != durable.path


def _not_mounted(box: str, found: str, folders: Folders, wanted: Wanted) -> Row | None:
    """A shared tier is a mount of its own, or was seen to be one place for several boxes."""
    mount, is_shared = folders.durable.mount, box in wanted.sharing
    if not wanted.has_mounted_tier or not seems_unmounted(folders):
        return None
    if mount == "/" and is_shared:
        return Row(
            box,
            "durable tier",
            "warn",
            found,
            _("other boxes see it, but it is on this box's system disk and is lost with the box"),
        )
    if mount == "/":
        return Row(
            box,
            "durable tier",
            "refuse",
            found,
            _(
                "not mounted: this is the box's system disk, so results would be lost with the "
                "box. Attach the shared storage (often only possible when renting or starting the "
                "box)"
            ),
        )
    if is_shared or mount != folders.credentials.mount:
        return None
    reason = _(
        "probably not mounted: {mount} also holds the credentials, so it seems to be the box's "
        "own disk, and results would be lost with the box. Attach the shared storage (often only "
        "possible when renting or starting the box). If {mount} is the shared storage, set "
        "another credentials file in the profile",
        mount=mount,
    )
    return Row(box, "durable tier", "refuse", found, reason)


def _is_on_shared_tier(box: str, folders: Folders, wanted: Wanted) -> bool:
    """Not where the tier itself seems to be missing: then that is what is said."""
    mounts = {folders.credentials.mount, folders.durable.mount}
    is_one = wanted.has_mounted_tier and len(mounts) == 1 and not mounts & {"/", None}
    return is_one and (box in wanted.sharing or not seems_unmounted(folders))


# --- what it is worked with


def _tools(box: str, facts: Facts, wanted: Wanted) -> Iterator[Row]:
    tools = facts.tools
    if not tools.get("rsync"):
        yield Row(
            box,
            "rsync",
            "warn",
            _("not found"),
            _("files are sent by tar over ssh: a dropped connection restarts the whole file"),
        )
    yield from _bash(box, facts)
    # The others are no programs of the box.
    asked = [name for name in wanted.detach if name in run_asks.DETACH_WAYS]
    there = [name for name in asked if tools.get(name)]
    if not asked:
        return
    if not there:
        lacking = _("missing: {names}", names=", ".join(asked))
        yield Row(
            box,
            "detach",
            "refuse",
            lacking,
            _("the agent would end with the ssh connection; install tmux"),
        )
    elif there[0] != asked[0]:
        reason = _(
            "{wanted} is not installed; {there} works too, but has no screen to attach to",
            wanted=asked[0],
            there=there[0],
        )
        yield Row(box, "detach", "warn", there[0], reason)
    else:
        yield Row(box, "detach", "ok", there[0])


def _bash(box: str, facts: Facts) -> Iterator[Row]:
    version = facts.bash
    if version is None:
        yield Row(
            box, "bash", "refuse", _("not found"), _("the wrapper scripts need it; install bash")
        )
        return
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_BASH:
        yield Row(
            box,
            "bash",
            "warn",
            version,
            _("the wrapper scripts are not tested on such an old version"),
        )


_RULES = (_gpus, _interpreter, _memory, _cpu, _host_name, _shm, _places, _tools)


# Will it fit? Bytes and inodes that the cells still need, against what the tiers have left. Pure.
#
# A box's data tier holds every cell that runs there until the box is gone; the durable tier holds
# every result, and while a cell runs, its last checkpoint once more. Nothing is ever made smaller
# to fit: a person decides.


# Release, staged code, journals, logs: what a run takes besides its cells.
OWN_BYTES, OWN_FILES = 64 * 2**20, 500
# Manifest, receipt, claim, records of attempts: what a cell has besides what it writes.
FILES_A_CELL = 10
FILE_SYSTEM_SHARE = 0.05
_PLACES = {
    ("data",): mark("data"),
    ("durable",): mark("durable"),
    ("data", "durable"): mark("data and durable"),
}


@dataclass(frozen=True)
class Measured:
    """Bytes and files: what one cell was seen to write below {out}, or what many will; the most
    memory that one took, what of that is shared memory, and the code that each has for itself where
    several run side by side (0: not known).
    """

    size_bytes: int
    files: int
    memory_bytes: int = 0
    shm_bytes: int = 0
    code_bytes: int = 0


@dataclass(frozen=True)
class Load:
    """What will come to one place, and the file system that it comes to."""

    box: str
    place: str
    device: Hashable
    folder: Folder
    need: Measured


def check_space(
    told_by_box: Mapping[str, Told],
    plan: Plan,
    measured: Measured | None,
    wished: Range | None = None,
    verified: Container[str] = (),
) -> list[Row]:
    """A row for each file system. `wished` is resources: disk; `measured` is believed before it.

    `verified` cells are where they belong and need nothing more.
    """
    left = [cell for cell in plan.cells if cell.name not in verified]
    loads = list(_loads(told_by_box, plan, left, measured or Measured(0, 0)))
    groups: dict[Hashable, list[Load]] = {}
    for load in loads:
        groups.setdefault(load.device, []).append(load)
    share = len(left) / max(1, len(plan.cells))
    guess_bytes = int(wished.least * share) if wished and not measured else 0
    rows = [_row(group, wished, guess_bytes) for group in groups.values()]
    return rows if measured or wished or not left else [*rows, _unknown(left)]


def _loads(
    told_by_box: Mapping[str, Told], plan: Plan, left: Sequence[Cell], one: Measured
) -> Iterator[Load]:
    facts_by_box = {box: told.facts for box, told in told_by_box.items() if told.facts}
    own = _cells_by_box(plan, left, facts_by_box)
    beside = {
        box: max(1, cells_at_once(plan, facts.gpus_for_cells))
        for box, facts in facts_by_box.items()
    }
    for box, facts in facts_by_box.items():
        need = _need(own[box], one)
        size_bytes = need.size_bytes + (beside[box] - 1) * one.code_bytes
        yield from _load(box, "data", facts, replace(need, size_bytes=size_bytes))
    has_mirror = any(terms.terms_of_cell(plan, cell.name).resume for cell in left)
    mirrors = {box: min(beside[box], len(own[box])) if has_mirror else 0 for box in facts_by_box}
    if plan.durable_scope != SHARED:
        for box, facts in facts_by_box.items():
            yield from _load(box, "durable", facts, _need(own[box], one, mirrors=mirrors[box]))
        return
    # All look at one file system; who sees the least left is believed.
    durable = {box: facts.places.durable for box, facts in facts_by_box.items()}
    free = {box: one.free_bytes for box, one in durable.items() if one.free_bytes is not None}
    for box in sorted(free, key=lambda box: free[box])[:1]:
        name = box if len(facts_by_box) == 1 else ALL
        yield from _load(
            name, "durable", facts_by_box[box], _need(left, one, mirrors=sum(mirrors.values()))
        )


def room_of_box(plan: Plan, one: Measured) -> int:
    """Bytes for the cells of the box that has most of them: on its data tier, and once more where
    its durable tier is its own.
    """
    most = max(_cells_by_box(plan, plan.cells).values(), key=len, default=[])
    copies = 1 if plan.durable_scope == SHARED else 2
    return copies * _need(most, one, mirrors=1).size_bytes


def _cells_by_box(
    plan: Plan, cells: Sequence[Cell], boxes: Iterable[str] = ()
) -> dict[str, list[Cell]]:
    """Of a pool even shares."""
    own: dict[str, list[Cell]] = {box: [] for box in boxes}
    for cell in cells:
        pool = plan.boxes_of_files[cell.queue]
        own.setdefault(pool[cell.index % len(pool)], []).append(cell)
    return own


def _need(cells: Sequence[Cell], one: Measured, *, mirrors: int = 0) -> Measured:
    """What these cells will write, and the checkpoints of so many that run at a time."""
    count = len(cells) + mirrors
    files = OWN_FILES + count * one.files + len(cells) * FILES_A_CELL
    return Measured(OWN_BYTES + count * one.size_bytes, files)


def _load(box: str, place: str, facts: Facts, need: Measured) -> Iterator[Load]:
    folder: Folder = getattr(facts.places, place)
    if folder.free_bytes is None:
        return  # that it cannot be read has a row of its own
    device = (facts.hostname, facts.boot_id, folder.device)
    yield Load(box, place, device, folder, need)


def _row(group: Sequence[Load], wished: Range | None, guess_bytes: int) -> Row:
    folders = [load.folder for load in group]
    free_bytes = min(folder.free_bytes or 0 for folder in folders)
    inodes = [folder.free_inodes for folder in folders if folder.free_inodes is not None]
    reasons = [
        *_too_small(group, wished),
        *_too_few_bytes(free_bytes, sum(load.need.size_bytes for load in group)),
        *_too_few_inodes(inodes, sum(load.need.files for load in group)),
    ]
    verdict: Verdict = "refuse" if reasons else "ok"
    if not reasons and free_bytes < guess_bytes:
        verdict = "warn"
        reasons = [
            _(
                "the remaining cells may need {size} (resources: disk)",
                size=units.size(guess_bytes),
            )
        ]
    places = Sentence(_PLACES[tuple(sorted({load.place for load in group}))])
    free = units.size(free_bytes)
    found = _("{size} free", size=free)
    if inodes:
        found = _("{size} free, {inodes:,} inodes", size=free, inodes=min(inodes))
    boxes = {load.box for load in group}
    box = group[0].box if len(boxes) == 1 else ALL
    reason = reasons[0] if len(reasons) == 1 else "; ".join(reasons)
    return Row(box, _("room: {places}", places=places), verdict, found, reason)


def _too_small(group: Sequence[Load], wished: Range | None) -> list[str]:
    """The wish is for the whole disk, of which a file system keeps some for itself."""
    data = [load.folder.size_bytes or 0 for load in group if load.place == "data"]
    if wished is None or not data or min(data) >= wished.least * (1 - FILE_SYSTEM_SHARE):
        return []
    return [
        _(
            "the disk has {size}, but the job requires {text}: expand it",
            size=units.size(min(data)),
            text=wished.text,
        )
    ]


def _too_few_bytes(free_bytes: int, needs_bytes: int) -> list[str]:
    if free_bytes >= needs_bytes:
        return []
    return [
        _(
            "{size} are needed: free some space, expand the disk, or remove cells from the queue",
            size=units.size(needs_bytes),
        )
    ]


def _too_few_inodes(inodes: Sequence[int], needs_files: int) -> list[str]:
    if not inodes or min(inodes) >= needs_files:
        return []
    return [
        _(
            "{needs_files:,} inodes are needed: delete or pack small files, or remove cells from "
            "the queue. A larger disk does not always have more inodes",
            needs_files=needs_files,
        )
    ]


def _unknown(left: Sequence[Cell]) -> Row:
    reason = Message(
        _(
            "only Boxcar's own files were counted; set resources: {{disk: 100GB}} in job.yaml, or "
            "measure the cells"
        ),
        Command("smoke"),
    )
    return Row(ALL, "room", "warn", _("{n} {n:cell|cells} of unknown size", n=len(left)), reason)
