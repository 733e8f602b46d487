"""`invoke down`: the gate, the person's approval, and then the platform's meter-stop verb.

The approval is written down before anything is removed, so a `down` that was killed goes on when it
is run again, without asking, for as long as the results are those that were approved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from boxcar.laptop.common import show, units
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import compare, results_folder
from boxcar.laptop.run import roster
from boxcar.laptop.run.missing import Missing
from boxcar.laptop.teardown import end_local, end_over_ssh
from boxcar.laptop.teardown import give_up as giving_up
from boxcar.laptop.teardown.gate import (
    CONTINUED,
    GIVEN,
    TYPED,
    Approval,
    GateFacts,
    Open,
    decide,
    obstacles,
)
from boxcar.laptop.teardown.still_running import alive, kept_still
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import RunReceipt, Teardown


class Meter(Protocol):
    """What knows the platform's verb: the modules local_meter and ssh_meter."""

    MEND: str  # what to do about a problem

    def problems(self, project: Project) -> list[str]:
        """Why the verb would not be safe, in sentences."""

    def price(self, project: Project) -> list[str]:
        """What is lost, in sentences."""

    def stays(self, project: Project) -> list[str]:
        """What is kept beside the results, in sentences."""

    def stop(self, project: Project, done: dict[str, str], on_box: Callable[[str], None]) -> None:
        """Do it, but for the boxes that `done` names; `on_box` is told of each that has ended."""

    def to_do(self, project: Project) -> str | None:
        """What only the person can do, after it was done."""


def down(
    project: Project,
    *,
    abandon: Sequence[str] = (),
    gone: Sequence[str] = (),
    because: str | None = None,
    approve: str | None = None,
    as_json: bool = False,
) -> int:
    """Tear the run down, if the gate opens. Returns 1 where it does not, with what is missing.

    `abandon` names cells of the roster that are given up, `because` says why; both are written into
    the receipt. `gone` names boxes that will never answer again; they are not asked, and stand in
    the teardown. `approve` is the receipt's digest, or its first 12 characters or more; without it
    the person is asked. Raises InputError, and what the meter-stop verb raises.
    """
    giving_up.check_words(abandon, gone, because)
    with results_folder.hold(project):
        with show.waiting("asking the boxes"):
            project.boxes.refresh()
        begun = receipt.read_teardown(project.results.teardown)
        if begun and begun.finished_at:
            return _report(project, begun, (), as_json=as_json)
        project.boxes.give_up(gone)
        facts = _look(project)
        if abandon and because:
            facts = replace(facts, receipt=giving_up.abandon(project, facts, abandon, because))
        facts = _approved(project, facts, begun, approve)
        decision = decide(facts)
        if not isinstance(decision, Open):
            return _report(project, begun, decision.reasons, as_json=as_json)
        with kept_still(project) as living:
            if living:
                return _report(project, begun, living, as_json=as_json)
            lost = dict.fromkeys(gone, because or "")
            ended = _tear_down(project, _begin(project, facts, begun, lost))
        return _report(project, ended, (), as_json=as_json)


def _look(project: Project) -> GateFacts:
    """Everything that the gate wants to know, as it is now. Every pulled file is hashed."""
    found = roster.survey(project)
    receipt_, doubts = _read_receipt(project)
    unsafe = _meter(project).problems(project)
    return GateFacts(
        run=project.plan.run,
        cells=tuple(compare.gather(project, found.cells)),
        artifacts=tuple(artifact.path for artifact in project.plan.artifacts),
        doubts=(
            *found.doubts,
            *doubts,
            *compare.beside_the_manifests(project, found.cells),
            *(Missing(None, problem, _meter(project).MEND) for problem in unsafe),
        ),
        alive=alive(project, [cell.name for cell in found.cells]),
        is_tier_there=project.durable.root.exists(),
        receipt=receipt_,
        approval=None,
    )


def _read_receipt(project: Project) -> tuple[RunReceipt | None, list[Missing]]:
    try:
        return receipt.read_run(project.results.receipt), []
    except FileNotFoundError:
        return None, []
    except (OSError, DamagedError) as error:
        return None, [Missing(None, str(error), "invoke verify")]


def _approved(
    project: Project, facts: GateFacts, begun: Teardown | None, approve: str | None
) -> GateFacts:
    """The facts with the approval that there is; the person is asked only where it can help."""
    if begun and facts.receipt and begun.digest == facts.receipt.digest:
        return replace(facts, approval=Approval(CONTINUED, begun.digest))
    if obstacles(facts):
        return facts
    _show_price(project, facts)
    if approve is not None:
        return replace(facts, approval=Approval(GIVEN, approve))
    typed = show.ask(f"Type the run's name ({facts.run}) to approve {_verb(project)!r}: ")
    if not typed:
        return facts
    # The person took their time: all is looked at again, and what they read has to be true still.
    project.boxes.refresh()
    now = _look(project)
    is_same = facts.receipt and now.receipt and now.receipt.digest == facts.receipt.digest
    return replace(now, approval=Approval(TYPED, typed)) if is_same else now


def _show_price(project: Project, facts: GateFacts) -> None:
    """What will be lost, and what stays."""
    show.say(f"{_verb(project)!r} will {project.profile.meter_stop.does}. This is lost:")
    for sentence in _meter(project).price(project):
        show.say(f"  {sentence}")
    for verdict in facts.receipt.cells if facts.receipt else ():
        if verdict.because is not None:
            show.say(f"  the cell {verdict.cell}, abandoned because {verdict.because}")
    for note in roster.survey(project).notes:
        show.say(f"  {note}")
    size_bytes = results_folder.bytes_below(project.results.root)
    show.say(f"This stays: {project.results.root} ({units.size(size_bytes)})")
    for sentence in _meter(project).stays(project):
        show.say(f"  {sentence}")


def _begin(
    project: Project, facts: GateFacts, begun: Teardown | None, gone: dict[str, str]
) -> Teardown:
    """The approval, written down: of this teardown, or the one that is gone on with."""
    assert facts.receipt and facts.approval
    if begun and facts.approval.how == CONTINUED:
        show.say(f"going on with the teardown that was approved at {begun.approved_at}")
        return replace(begun, gone=begun.gone | gone)
    made = Teardown(
        run=facts.run,
        digest=facts.receipt.digest,
        verb=_verb(project),
        approved_at=timestamp.utc_now(),
        approved_by=facts.approval.how,
        gone=gone,
    )
    atomic.write_whole(project.results.teardown, codec.to_document(made))
    return made


def _tear_down(project: Project, begun: Teardown) -> Teardown:
    """Every box in its turn; each that has ended is written down, for a `down` that goes on."""
    now = begun

    def keep(**done: Any) -> None:
        nonlocal now
        now = replace(now, **done)
        atomic.write_whole(project.results.teardown, codec.to_document(now))

    def on_box(box: str) -> None:
        keep(boxes=now.boxes | {box: timestamp.utc_now()})

    _meter(project).stop(project, begun.boxes | begun.gone, on_box)
    # First: a tier that is there after the end would be that of a run that was launched anew.
    project.boxes.forget()
    keep(finished_at=timestamp.utc_now())
    return now


def _meter(project: Project) -> Meter:
    return end_local if project.is_local else end_over_ssh


def _verb(project: Project) -> str:
    return project.profile.meter_stop.verb


def _done(project: Project, teardown: Teardown) -> str:
    """What was done; where only the person can stop the meter, that is said each time."""
    when = f"{teardown.finished_at}, approval {short(teardown.digest)}"
    to_do = _meter(project).to_do(project)
    if to_do is None:
        return f"{teardown.verb}: done at {when}"
    return f"{teardown.verb}: Boxcar's part was done at {when}.\n{to_do}"


def _report(
    project: Project,
    teardown: Teardown | None,
    reasons: Sequence[Missing],
    *,
    as_json: bool,
) -> int:
    """Say how it ended, and return the exit code for it."""
    is_down = teardown is not None and teardown.finished_at is not None
    for row in reasons:
        show.say(f"{row.cell or 'the run'}: {row.what}. {row.command}")
    if teardown and is_down:
        show.say(_done(project, teardown))
        show.say(f"The results stay in {project.results.root}")
    else:
        show.say(f"refused, and nothing removed: {len(reasons)} thing(s) are missing")
    if as_json:
        show.json_document(
            {
                "run": project.plan.run,
                "is_down": is_down,
                "missing": list(reasons),
                "teardown": teardown,
                "results": str(project.results.root),
            }
        )
    return 0 if is_down else 1
