"""What the comparison of the two runs means, and which state was probably not restored. Pure.

Differences spread: a lost optimizer changes the weights, and they change the loss. So the cause is
looked for where nothing but a cause shows: counters that began anew, RNG states, data order, and at
which step the losses part. What was equal is never named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boxcar.training.rehearse import state_kinds
from boxcar.training.rehearse.compare import Compared, Difference
from boxcar.training.rehearse.curve import Curve, Order

BIT_EQUAL, WITHIN, DIFFERS = "bit-equal", "within tolerance", "differs"
NOT_PROVEN, FAILED = "not proven", "failed"

STEP_COUNTER = "step counter"
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
    """All that the two runs left. `files`: by name; `resume` is the name of the resume file.

    `step_gap`: how many steps lie between two reports; with 1 the first step after a resume is
    seen by itself.
    """

    files: Mapping[str, Compared]
    curve: Curve
    order: Order | None
    kills: tuple[Killed, ...]
    resume: str
    step_gap: int | None = None


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
        why = f"{evidence.resume} was there after the kill, and the script began anew all the same"
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
        why = (
            f"{evidence.resume} is not there at the end: optimizer, scheduler and RNG were not seen"
        )
        return Verdict(NOT_PROVEN, (), (why,))
    return Verdict(WITHIN if _is_off(evidence) else BIT_EQUAL)


def _unsaved_why(evidence: Evidence) -> str:
    is_ever = evidence.resume in evidence.files
    more = "; save more often, or make the run longer" if is_ever else "; the script never saves it"
    return (
        f"nothing was saved before the kill ({evidence.resume} was not there): the cell began "
        f"anew{more}"
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
        f"the two runs part before any kill ({where}): the cell is not repeatable, so nothing can "
        "be said of its resume. Seed every generator, and look for work that depends on time"
    )


def _is_anew(evidence: Evidence) -> bool:
    """The steps were counted from the first again, and gave what they gave the first time."""
    is_restarted = any(kill.is_restarted for kill in evidence.kills)
    weights = [d for d in _beyond(evidence.files.values()) if d.kind == state_kinds.MODEL]
    return is_restarted and not evidence.curve.first and not weights


def _is_equal(evidence: Evidence) -> bool:
    curve = evidence.curve
    is_order_same = not (evidence.order and evidence.order.problem)
    is_curve_same = not (curve.first or curve.missing or curve.surplus)
    return is_order_same and is_curve_same and not any(_beyond(evidence.files.values()))


def _is_off(evidence: Evidence) -> bool:
    return evidence.curve.largest > 0 or any(c.differences for c in evidence.files.values())


def _beyond(files: Iterable[Compared]) -> list[Difference]:
    return [item for file in files for item in file.differences if not item.is_within]


# --- whom to suspect


def _suspects(evidence: Evidence) -> list[Suspect]:
    found = _restarted(evidence) or [
        *_by_order(evidence),
        *_by_counters(evidence),
        *_by_rate(evidence),
        *_by_rng(evidence),
        *_alone(evidence),
    ]
    if found:
        named: dict[str, Suspect] = {}
        for suspect in found:
            named.setdefault(suspect.state, suspect)
        return list(named.values())
    return _by_first_step(evidence)


def _restarted(evidence: Evidence) -> list[Suspect]:
    """The count of steps began again, and what was trained did not."""
    kill = next((kill for kill in evidence.kills if kill.is_restarted), None)
    if kill is None:
        return []
    why = f"the first step after the kill is reported as {kill.first_after} again"
    return [Suspect(STEP_COUNTER, why)]


def _by_order(evidence: Evidence) -> list[Suspect]:
    problem = evidence.order.problem if evidence.order else ""
    if problem:
        return [Suspect(state_kinds.LOADER, problem)]
    if evidence.curve.surplus:
        steps = _numbers(evidence.curve.surplus)
        return [
            Suspect(state_kinds.LOADER, f"steps were taken that the other run has not: {steps}")
        ]
    return []


def _by_counters(evidence: Evidence) -> list[Suspect]:
    """Counts of the state itself: one that is behind began anew after the kill."""
    states = {
        state_kinds.OPTIMIZER: state_kinds.OPTIMIZER,
        state_kinds.SCHEDULER: state_kinds.SCHEDULER,
        state_kinds.SCALER: state_kinds.SCALER,
        state_kinds.LOADER: state_kinds.LOADER,
        state_kinds.COUNTER: STEP_COUNTER,
    }
    return [
        Suspect(states[item.kind], f"{item.path} is {item.killed}, uninterrupted {item.whole}")
        for item in _beyond(evidence.files.values())
        if item.kind in states and item.relative is None and item.gap is not None and item.gap < 0
    ]


def _by_rate(evidence: Evidence) -> list[Suspect]:
    rates = [item for item in _beyond(evidence.files.values()) if item.kind == state_kinds.RATE]
    if not rates:
        return []
    why = f"{rates[0].path} is {rates[0].killed}, uninterrupted {rates[0].whole}"
    return [Suspect(state_kinds.SCHEDULER, why + _unheld(evidence, state_kinds.SCHEDULER))]


def _by_rng(evidence: Evidence) -> list[Suspect]:
    """RNG states drift also where more or other steps were taken: then they prove nothing."""
    is_other_way = bool(_by_order(evidence)) or bool(evidence.curve.missing)
    differing = [item for item in _beyond(evidence.files.values()) if item.kind == state_kinds.RNG]
    if not differing or is_other_way:
        return []
    return [
        Suspect(
            state_kinds.RNG, f"{differing[0].path} differs at the end, after equally many steps"
        )
    ]


def _alone(evidence: Evidence) -> list[Suspect]:
    """What nothing else depends on, and differs while the weights are the same."""
    beyond = _beyond(evidence.files.values())
    met = {item.kind for item in beyond}
    if state_kinds.MODEL in met or evidence.curve.first:
        return []
    return [
        Suspect(kind, f"{next(item.path for item in beyond if item.kind == kind)} differs alone")
        for kind in (state_kinds.EMA, state_kinds.SCALER, state_kinds.OPTIMIZER)
        if kind in met
    ]


def _by_first_step(evidence: Evidence) -> list[Suspect]:
    """Nothing shows by itself: what the first step after the resume needed, or what it left."""
    first = evidence.curve.first
    after = evidence.kills[-1].first_after if evidence.kills else None
    states: tuple[str, ...]
    if first is None or after is None or evidence.step_gap != 1:
        states, when = (
            (state_kinds.OPTIMIZER, state_kinds.SCHEDULER, state_kinds.RNG, state_kinds.LOADER),
            "the end differs",
        )
    elif first.step > after:
        states = (state_kinds.OPTIMIZER, state_kinds.SCHEDULER, state_kinds.SCALER)
        when = f"step {after} after the kill is equal and step {first.step} is not"
    else:
        states = (state_kinds.MODEL, state_kinds.RNG, state_kinds.LOADER)
        when = f"already the first step after the kill, {after}, differs"
    return _absent(evidence, states, when) or [Suspect(_most_likely(evidence, states), when)]


def _absent(evidence: Evidence, states: Iterable[str], when: str) -> list[Suspect]:
    """Of those that could explain it, what the resume file does not even hold."""
    held = _held(evidence)
    if not held:
        return []
    # A training without a scaler, and one without a scheduler, have none to save: an optimizer
    # without memory is rarer, and every loader has a position.
    wanted = [kind for kind in states if kind not in held and kind not in (state_kinds.SCALER,)]
    if evidence.order is not None and not evidence.order.problem:
        wanted = [kind for kind in wanted if kind != state_kinds.LOADER]
    if state_kinds.OPTIMIZER in wanted:
        wanted = [state_kinds.OPTIMIZER]
    return [Suspect(kind, when + _unheld(evidence, kind)) for kind in wanted]


def _most_likely(evidence: Evidence, states: Iterable[str]) -> str:
    met = {item.kind for item in _beyond(evidence.files.values())}
    return next((kind for kind in states if kind in met), next(iter(states)))


def _unheld(evidence: Evidence, kind: str) -> str:
    held = _held(evidence)
    return f"; {evidence.resume} holds no {kind}" if held and kind not in held else ""


def _held(evidence: Evidence) -> frozenset[str]:
    compared = evidence.files.get(evidence.resume)
    return compared.kinds if compared else frozenset()


def _numbers(steps: Iterable[int]) -> str:
    listed = list(steps)
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(map(str, listed[:5])) + more
