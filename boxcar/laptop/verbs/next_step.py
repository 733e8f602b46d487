"""The one command that brings a run on, decided from the view of it and from the results here."""

from __future__ import annotations

from dataclasses import dataclass

from boxcar.laptop.results.results_folder import is_torn_down
from boxcar.laptop.run.view import CellView, RunView
from boxcar.laptop.sites.site import Site
from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import manifest, receipt
from boxcar.shared.paths import ResultPaths


@dataclass(frozen=True)
class NextStep:
    """What to type next, or None where nothing is left to do; and why."""

    command: str | None
    because: str


def next_step(view: RunView, site: Site) -> NextStep:
    """The one command that brings the run on, from the view and from the results here."""
    results = site.results
    # Where the tier is there again, the run was launched anew after its teardown.
    if not site.tier.root.exists() and is_torn_down(results):
        return NextStep(None, f"the run was torn down; its results are in {results.root}")
    return _next_for_queues(view) or _next_for_results(view, results)


def sentence(step: NextStep) -> str:
    return f"next: {step.command}  ({step.because})" if step.command else f"next: {step.because}"


def _next_for_queues(view: RunView) -> NextStep | None:
    words = {queue.name: queue.condition.word for queue in view.queues}
    for trouble, step in (
        ("damaged", NextStep(None, "{} damaged: mend what is said above, nothing else is safe")),
        ("unknown", NextStep("invoke status", "{} not readable now: look again, decide nothing")),
        (
            "unreachable",
            NextStep(
                "invoke status",
                "{} out of reach, which is not dead: look again later, and at the platform's "
                "console (balance, power, a new port)",
            ),
        ),
        ("trainer dead", NextStep("invoke stop", "{} without a trainer: stop it, launch it again")),
        ("agent dead", NextStep("invoke launch", "{} without an agent: it goes on where it was")),
    ):
        if named := [name for name, word in words.items() if word == trouble]:
            are = f"{', '.join(named)} {'is' if len(named) == 1 else 'are'}"
            return NextStep(step.command, step.because.format(are))
    if any(queue.is_alive for queue in view.queues):
        return NextStep("invoke watch", "agents are at work; nothing has to be done")
    unfinished = [cell for cell in view.cells if cell.word not in ("verified", "failed")]
    if unfinished:
        return NextStep("invoke launch", f"{len(unfinished)} cell(s) have not been run to the end")
    return None


def _next_for_results(view: RunView, results: ResultPaths) -> NextStep:
    failed = [cell.name for cell in view.cells if cell.word == "failed"]
    if _is_settled(view, results):
        return NextStep("invoke down", "every cell is settled; the boxes may go when you say so")
    if missing := [cell.name for cell in view.cells if is_missing_here(cell, results)]:
        return NextStep("invoke pull", f"{len(missing)} verified cell(s) are not here yet")
    if failed:
        return NextStep(
            f"invoke explain --cell {failed[0]}", f"{len(failed)} cell(s) failed and need a person"
        )
    return NextStep("invoke verify", "every cell is here; load each before anything is torn down")


def _is_settled(view: RunView, results: ResultPaths) -> bool:
    """Whether the receipt speaks of this roster and these manifests, and leaves nothing open."""
    # A receipt that cannot be read settles nothing: verify makes it anew.
    try:
        found = receipt.read_run(results.receipt)
    except (OSError, DamagedError):
        return False
    seen = {verdict.cell: verdict.manifest_sha256 for verdict in found.cells}
    return found.is_full and all(
        cell.name in seen and _manifest_sha256(cell) in (None, seen[cell.name])
        for cell in view.cells
    )


def is_missing_here(cell: CellView, results: ResultPaths) -> bool:
    """Whether a verified cell does not lie in the results. Others have nothing to be pulled."""
    sha256 = _manifest_sha256(cell)
    try:
        return sha256 is not None and manifest.sha256(results.manifest(cell.name)) != sha256
    except OSError:
        return True


def _manifest_sha256(cell: CellView) -> str | None:
    now = cell.record.state if cell.record else None
    return now.manifest_sha256 if isinstance(now, state.Verified) else None
