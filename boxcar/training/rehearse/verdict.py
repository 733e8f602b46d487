"""What the comparison of the two runs means, and which state shows that it was not restored. Pure.

Differences spread: a lost optimizer changes the weights, and they change the loss. So only that is
named which shows it by itself: a count that began anew, the data order, and what differs alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boxcar.shared.sentence import Sentence, _, mark
from boxcar.training.rehearse.compare import Compared, Difference, is_rng
from boxcar.training.rehearse.curve import Curve, Order

BIT_EQUAL, WITHIN, DIFFERS = "bit-equal", "within tolerance", "differs"
NOT_PROVEN, FAILED = "not proven", "failed"

STEP_COUNTER = mark("step counter")
LOADER = mark("loader position")
EVERYTHING = mark("everything")


@dataclass(frozen=True)
class Killed:
    """One kill as it came: the last step before it, whether a resume file was there by then, and
    the first step that the next start reported.

    `is_restarted`: something was saved, and the next start counted its steps from the first again.
    """

    after_step: int | None
    was_saved: bool
    first_after: int | None
    is_restarted: bool = False


@dataclass(frozen=True)
class Evidence:
    """All that the two runs left. `files`: by name; `resume` is the name of the resume file."""

    files: Mapping[str, Compared]
    curve: Curve
    order: Order | None
    kills: tuple[Killed, ...]
    resume: str


@dataclass(frozen=True)
class Suspect:
    """A part of the state, and what speaks for it."""

    state: str
    why: str


@dataclass(frozen=True)
class Verdict:
    word: str
    suspects: tuple[Suspect, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)


def decide(evidence: Evidence) -> Verdict:
    """One word, whom to suspect, and what else a person should know."""
    if note := _not_repeatable(evidence):
        return Verdict(DIFFERS, (), (note,))
    if _is_anew(evidence):
        why = _("{file} existed after the kill, but the script started over", file=evidence.resume)
        return Verdict(NOT_PROVEN, (Suspect(Sentence(EVERYTHING), why),))
    if _is_equal(evidence):
        return _of_equal(evidence)
    unsaved = [kill for kill in evidence.kills if not kill.was_saved]
    if unsaved:
        return Verdict(DIFFERS, (Suspect(Sentence(EVERYTHING), _unsaved_why(evidence)),))
    return Verdict(DIFFERS, tuple(_suspects(evidence)))


def _of_equal(evidence: Evidence) -> Verdict:
    if any(not kill.was_saved for kill in evidence.kills):
        return Verdict(NOT_PROVEN, (), (_unsaved_why(evidence),))
    if evidence.resume not in evidence.files:
        why = _(
            "{file} is missing at the end: optimizer, scheduler, RNG not checked",
            file=evidence.resume,
        )
        return Verdict(NOT_PROVEN, (), (why,))
    return Verdict(WITHIN if _is_off(evidence) else BIT_EQUAL)


def _unsaved_why(evidence: Evidence) -> str:
    if evidence.resume in evidence.files:
        return _(
            "nothing was saved before the kill ({file} was missing): the cell started over; save "
            "more often, or make the run longer",
            file=evidence.resume,
        )
    return _(
        "nothing was saved before the kill ({file} was missing): the cell started over; the "
        "script never saves it",
        file=evidence.resume,
    )


def _not_repeatable(evidence: Evidence) -> str:
    first, order = evidence.curve.first, evidence.order
    where: str
    if first and first.start == 0:
        words = {"step": first.step, "name": first.name}
        where = _(
            "at step {step}, {name} {one} and {other}", one=first.whole, other=first.killed, **words
        )
    elif order and order.problem and order.start == 0:
        where = order.problem
    else:
        return ""
    return _(
        "the two runs differ before any kill ({where}): the cell is not reproducible, so its "
        "resume cannot be judged. Seed every generator, and look for work that depends on time",
        where=where,
    )


def _is_anew(evidence: Evidence) -> bool:
    """The steps were counted from the first again, and gave what they gave the first time."""
    is_restarted = any(kill.is_restarted for kill in evidence.kills)
    fractions = [d for d in _beyond(evidence.files.values()) if d.relative is not None]
    return is_restarted and not evidence.curve.first and not fractions


def _is_equal(evidence: Evidence) -> bool:
    curve = evidence.curve
    is_order_same = not (evidence.order and evidence.order.problem)
    is_curve_same = not (curve.first or curve.missing or curve.surplus)
    return is_order_same and is_curve_same and not any(_beyond(evidence.files.values()))


def _is_off(evidence: Evidence) -> bool:
    return evidence.curve.largest > 0 or any(c.differences for c in evidence.files.values())


def _beyond(files: Iterable[Compared]) -> list[Difference]:
    return [item for file in files for item in file.differences if not item.is_within]


def _suspects(evidence: Evidence) -> list[Suspect]:
    """Each part of the state once, with the first that speaks for it."""
    found = _restarted(evidence) or _by_order(evidence) or _by_resume_file(evidence)
    return list({suspect.state: suspect for suspect in reversed(found)}.values())[::-1]


def _restarted(evidence: Evidence) -> list[Suspect]:
    """The count of steps began again, and what was trained did not."""
    return [
        Suspect(
            Sentence(STEP_COUNTER),
            _("the first step after the kill is reported as {step}", step=kill.first_after),
        )
        for kill in evidence.kills
        if kill.is_restarted
    ]


def _by_order(evidence: Evidence) -> list[Suspect]:
    if evidence.order and evidence.order.problem:
        return [Suspect(Sentence(LOADER), evidence.order.problem)]
    if steps := evidence.curve.surplus:
        taken = _("it took {steps}, which the other run has not", steps=_steps(steps))
        return [Suspect(Sentence(LOADER), taken)]
    return []


def _steps(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return _("step {step}", step=steps[0])
    return _("step {step} and {n:,} more", step=steps[0], n=len(steps) - 1)


def _by_resume_file(evidence: Evidence) -> list[Suspect]:
    """Counts that are behind; and all that differs where no step of the training shows it."""
    compared = evidence.files.get(evidence.resume, Compared())
    beyond = _beyond([compared])
    is_alone = bool(evidence.curve.lines) and not evidence.curve.first
    return [
        Suspect(
            item.kind,
            _(
                "{path} is {killed}, uninterrupted {whole}",
                path=item.path,
                killed=item.killed,
                whole=item.whole,
            ),
        )
        for item in beyond
        if is_alone or (item.relative is None and (item.gap or 0) < 0 and not is_rng(item.path))
    ]
