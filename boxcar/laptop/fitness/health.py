"""Whether a box's cards are sound and free, and its torch has code for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.common import units
from boxcar.laptop.fitness.rules import ALL, Row, Told
from boxcar.shared.sentence import _, chained, mark
from boxcar.shared.triage.xids import is_of_card
from boxcar.shared.wire.facts import Facts, TrainingPython

DIRTY_BYTES = 1 << 30
FEW_PROCESSES = 1000
# Distributions beside torch of which another version gives other numbers.
CHANGES_NUMBERS = ("flash-attn", "transformers", "bitsandbytes", "numpy")
_BUILT = re.compile(r"(sm|compute)_(\d+)([af]?)")


def judge_health(told_by_box: Mapping[str, Told]) -> Iterator[Row]:
    facts_of = {box: told.facts for box, told in told_by_box.items() if told.facts}
    for box, facts in facts_of.items():
        yield from _cards(box, facts, has_others=_has_others(told_by_box[box]))
        yield from _architecture(box, facts.training)
        yield from _driver(box, facts)
        yield from _processes(box, facts)
    yield from _alike({box: facts.training for box, facts in facts_of.items()})


def _has_others(told: Told) -> bool:
    """Whether it is known who uses the cards; that has a row of its own."""
    return bool(told.others and (told.others.runs or told.others.strangers))


def _cards(box: str, facts: Facts, *, has_others: bool) -> Iterator[Row]:
    problems = []
    for index, card in enumerate(facts.gpus):
        if card.ecc_errors:
            problems.append(
                _(
                    "GPU {index}: {n} memory {n:error|errors} that nothing corrected: numbers may "
                    "be wrong; restart the box or take another",
                    index=index,
                    n=card.ecc_errors,
                )
            )
        if card.xid is not None and is_of_card(card.xid):
            problems.append(
                _(
                    "GPU {index}: the driver has reported Xid {xid}, an error of the card itself: "
                    "restart the box, or take another one",
                    index=index,
                    xid=card.xid,
                )
            )
        if card.slowed_by:
            problems.append(
                _(
                    "GPU {index} is slowed down: {reasons}, at {heat} °C",
                    index=index,
                    reasons=", ".join(card.slowed_by),
                    heat="?" if card.temperature_c is None else card.temperature_c,
                )
            )
        used_bytes = card.memory_used_bytes or 0
        if used_bytes >= DIRTY_BYTES and not has_others:
            problems.append(
                _(
                    "GPU {index}: {size} are in use, and no process of this box is seen: somebody "
                    "outside its container, or left by a dead one",
                    index=index,
                    size=units.size(used_bytes),
                )
            )
    if problems:
        said = chained(mark("{first}; {second}"), problems)
        yield Row(box, "GPU health", "warn", _("not sound"), said)


def _architecture(box: str, training: TrainingPython) -> Iterator[Row]:
    lacking = sorted(
        {one for one in training.capabilities if not has_code(one, training.built_for)}
    )
    if lacking:
        why = _(
            "this torch has no code for a card of compute capability {cards}: its first kernel "
            "fails. Install a build for it, or rent another card",
            cards=", ".join(lacking),
        )
        yield Row(box, "CUDA", "refuse", " ".join(training.built_for), why)


# The oldest driver of Linux that runs programs built for a CUDA of this major version, by NVIDIA's
# "CUDA minor version compatibility" (docs.nvidia.com/deploy/cuda-compatibility).
_OLDEST_DRIVER = {11: (450, 80), 12: (525, 60), 13: (580, 65)}


def _driver(box: str, facts: Facts) -> Iterator[Row]:
    """Only where torch cannot use the card: a data centre's card may have a package beside an old
    driver that makes it do.
    """
    training, drivers = facts.training, [card.driver for card in facts.gpus if card.driver]
    major = (training.cuda or "").partition(".")[0]
    if training.has_cuda is not False or not drivers or not major.isdigit():
        return
    has, needs = _numbers(drivers[0]), _OLDEST_DRIVER.get(int(major))
    if needs and has and has < needs:
        why = _(
            "older than CUDA {cuda} of this torch needs ({needs}). Take a torch for an older CUDA, "
            "or an image or box with a newer driver",
            cuda=training.cuda or "",
            needs=".".join(map(str, needs)),
        )
        yield Row(box, "driver", "refuse", drivers[0], why)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def has_code(capability: str, built_for: Sequence[str]) -> bool:
    """Whether a torch that was built for these (sm_80, compute_90, sm_90a) runs on a card of this
    capability (9.0): by machine code of its major version that is not newer, or by PTX, which the
    driver translates for any newer card. Doubt is a yes.
    """
    found = [_BUILT.fullmatch(one) for one in built_for]
    if not built_for or not all(found):
        return True  # of another maker, or spelled in a new way
    major, minor = (int(part) for part in capability.split("."))
    for one in found:
        assert one
        kind, (at_major, at_minor), only = one[1], divmod(int(one[2]), 10), one[3]
        if only:  # a: that card alone; f: its family
            is_fit = at_major == major and (at_minor == minor or only == "f")
        elif kind == "sm":
            is_fit = at_major == major and at_minor <= minor
        else:
            is_fit = (at_major, at_minor) <= (major, minor)
        if is_fit:
            return True
    return False


def _processes(box: str, facts: Facts) -> Iterator[Row]:
    limit = facts.processes_limit
    left = None if limit is None else limit - (facts.processes or 0)
    if left is not None and left < FEW_PROCESSES:
        why = _(
            "threads count, too: data loaders and libraries may fail to start one. Use fewer "
            "workers, or set OMP_NUM_THREADS"
        )
        yield Row(box, "processes", "warn", _("{n} left of {limit}", n=left, limit=limit), why)


def _alike(training: Mapping[str, TrainingPython]) -> Iterator[Row]:
    """What changes numbers between boxes, where both say it."""
    told = {box: _versions(one) for box, one in training.items()}
    names = dict.fromkeys(name for versions in told.values() for name in versions)
    differ = []
    for name in names:
        each = {box: versions[name] for box, versions in told.items() if versions.get(name)}
        if len({*each.values()}) > 1:
            differ.append(f"{name} ({', '.join(f'{box}: {at}' for box, at in each.items())})")
    if differ:
        why = _(
            "these change numbers: keep what you compare on boxes that have the same, or make "
            "them alike by requirements: and install: yes"
        )
        yield Row(ALL, "versions alike", "warn", "; ".join(differ), why)


def _versions(training: TrainingPython) -> dict[str, str | None]:
    beside = {name: training.requirements.get(name) for name in CHANGES_NUMBERS}
    return {**training.packages, "CUDA": training.cuda, **beside}
