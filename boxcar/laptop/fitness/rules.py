"""What the facts of a box mean for the run: ok, warn or refuse, each with its reason. Pure.

A fact that is missing refuses nothing, unless the run cannot go on without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from boxcar.laptop.common import units
from boxcar.laptop.fitness import requirements
from boxcar.laptop.fitness.requirements import AskedPackages
from boxcar.laptop.project.resources import Card, Offer, Resources, is_family, refusals
from boxcar.shared.errors import Message
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.box_asks import OthersSeen
from boxcar.shared.wire.facts import Facts, Folder, Folders, TrainingPython

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
