"""An attempt has ended: its evidence is gathered here, and judged in classify.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from boxcar.shared.cell import terms
from boxcar.shared.disk import checked_copy
from boxcar.shared.files.attempt import Done
from boxcar.shared.record import dataclass
from boxcar.shared.triage import own_rows
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.log_end import Tail
from onbox.cell import left_artifacts, log_tail, published
from onbox.judging import classify, saved
from onbox.judging.verdict import Action, Verdict
from onbox.machine import end_evidence
from onbox.place import Place


@dataclass(frozen=True)
class Looked:
    """What an attempt did to its release: `changed` files of it, `warnings` of what it added.

    `strays` are declared files that it wrote beside the code: declared path -> where it lay there.
    """

    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    strays: Mapping[str, str] = field(default_factory=dict)


def of_attempt(
    ran_at: Place, cell: str, done: Done | None, wrapper_rc: int | None, looked: Looked
) -> Verdict:
    """`ran_at` is the place of the release that it ran from; `done` None: it left no record.

    Raises DamagedError, OSError.
    """
    tail = log_tail.read(ran_at.scratch, cell)
    if done is None and published.stands(ran_at.durable, cell):
        return Verdict(Action.SUCCEED)
    lacking_room = checked_copy.lack_of_room(ran_at.scratch.root)
    if done is None:
        return classify.without_record(wrapper_rc, tail.text, lacking_room=lacking_room)
    if looked.changed:
        return classify.of_changed_code(looked.changed)
    found, its = left_artifacts.look(ran_at, cell), terms.of_cell(ran_at.plan, cell)
    return classify.classify(
        done,
        tail.text,
        found.missing,
        found.problem,
        lacking_room=lacking_room,
        launcher=its.launcher,
        strays=looked.strays,
        workdir=ran_at.plan.workdir,
        has_saved=saved.has_saved(ran_at.scratch.out(cell), its.resume, done),
        seen=_seen(ran_at, tail) if done.rc else classify.NOTHING_SEEN,
    )


def _seen(ran_at: Place, tail: Tail) -> Evidence:
    own = own_rows.match(ran_at.plan.signatures, tail.text, tail.begins_at_line)
    return replace(end_evidence.beside(tail), own=own)
