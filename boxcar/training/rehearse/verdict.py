"""What the comparison of the two runs means, and which state shows that it was not restored. Pure.

Differences spread: a lost optimizer changes the weights, and they change the loss. So only that is
named which shows it by itself: a count that began anew, the data order, and what differs alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boxcar.training.rehearse.compare import Compared, Difference, is_rng
from boxcar.training.rehearse.curve import Curve, Order

BIT_EQUAL, WITHIN, DIFFERS = "bit-equal", "within tolerance", "differs"
NOT_PROVEN, FAILED = "not proven", "failed"

STEP_COUNTER = "step counter"
LOADER = "loader position"
EVERYTHING = "everything"


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
        why = f"{evidence.resume} existed after the kill, but the script started over"
        return Verdict(NOT_PROVEN, (Suspect(EVERYTHING, why),))
    if _is_equal(evidence):
        return _of_equal(evidence)
    unsaved = [kill for kill in evidence.kills if not kill.was_saved]
    if unsaved:
        return Verdict(DIFFERS, (Suspect(EVERYTHING, _unsaved_why(evidence)),))
    return Verdict(DIFFERS, tuple(_suspects(evidence)))


def _of_equal(evidence: Evidence) -> Verdict:
    if any(not kill.was_saved for kill in evidence.kills):
        return Verdict(NOT_PROVEN, (), (_unsaved_why(evidence),))
    if evidence.resume not in evidence.files:
        why = f"{evidence.resume} is missing at the end: optimizer, scheduler, RNG not checked"
        return Verdict(NOT_PROVEN, (), (why,))
    return Verdict(WITHIN if _is_off(evidence) else BIT_EQUAL)


def _unsaved_why(evidence: Evidence) -> str:
    is_ever = evidence.resume in evidence.files
    more = "; save more often, or make the run longer" if is_ever else "; the script never saves it"
    return (
        f"nothing was saved before the kill ({evidence.resume} was missing): the cell "
        f"started over{more}"
    )


def _not_repeatable(evidence: Evidence) -> str:
    first, order = evidence.curve.first, evidence.order
    if first and first.start == 0:
        where = f"at step {first.step}, {first.name} {first.whole} and {first.killed}"
    elif order and order.problem and order.start == 0:
        where = order.problem
    else:
        return ""
    return (
        f"the two runs differ before any kill ({where}): the cell is not reproducible, so its "
        "resume cannot be judged. Seed every generator, and look for work that depends on time"
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
        Suspect(STEP_COUNTER, f"the first step after the kill is reported as {kill.first_after}")
        for kill in evidence.kills
        if kill.is_restarted
    ]


def _by_order(evidence: Evidence) -> list[Suspect]:
    if evidence.order and evidence.order.problem:
        return [Suspect(LOADER, evidence.order.problem)]
    if steps := evidence.curve.surplus:
        more = f", and {len(steps) - 1} more" if len(steps) > 1 else ""
        return [Suspect(LOADER, f"it took step {steps[0]}{more}, which the other run has not")]
    return []


def _by_resume_file(evidence: Evidence) -> list[Suspect]:
    """Counts that are behind; and all that differs where no step of the training shows it."""
    compared = evidence.files.get(evidence.resume, Compared())
    beyond = _beyond([compared])
    is_alone = bool(evidence.curve.lines) and not evidence.curve.first
    return [
        Suspect(item.kind, f"{item.path} is {item.killed}, uninterrupted {item.whole}")
        for item in beyond
        if is_alone or (item.relative is None and (item.gap or 0) < 0 and not is_rng(item.path))
    ]
