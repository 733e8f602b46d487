"""`invoke verify`: the roster against the results, each artifact loaded; it writes the receipt.

A cell is verified when it was pulled, its manifest is the tier's, every file hashes as the manifest
says, and every artifact of the plan was loaded and looked at without a complaint.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxcar.laptop.common import show, units
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.common.units import named_numbers
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.from_environment import known_secrets
from boxcar.laptop.project.project import Project
from boxcar.laptop.results import (
    accept,
    carried_words,
    compare,
    judge,
    results_folder,
)
from boxcar.laptop.results.compare import CompareOne
from boxcar.laptop.results.judge import CellFacts, how_checked, judge_cell, missing
from boxcar.laptop.results.load import how_to_get_torch, load
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Missing, Roster, RosterCell
from boxcar.laptop.run.state_words import state_sentence
from boxcar.laptop.run.view import DROPPED, RunView, accepted_sentence
from boxcar.laptop.teardown.gate import tier_is_gone
from boxcar.laptop.verbs.next_step import NextStep, next_step, sentence
from boxcar.laptop.verbs.pull_cells import pull_receipt
from boxcar.laptop.verbs.pull_journals import pull_grown_journals
from boxcar.laptop.verbs.report import asked_of
from boxcar.laptop.view.report import gather, report_page, run_report
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import names, paths, timestamp
from boxcar.shared.cell import terms
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import BoxcarError, Command, DamagedError, Message, message_of
from boxcar.shared.files import codec, manifest, receipt
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import (
    CellVerdict,
    Finding,
    RunReceipt,
    number_without_secrets,
    without_secrets,
)
from boxcar.shared.metrics import measure, result_files
from boxcar.shared.process.load_child import Loaded, Manner
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

# What verify says of one cell, with the numbers that the job names.


@dataclass(frozen=True)
class Judged:
    """One cell: what is there of it, what it lacks, and what the receipt says of it."""

    facts: CellFacts
    missing: tuple[Missing, ...]
    verdict: CellVerdict

    @property
    def state(self) -> str:
        if self.verdict.is_dropped:
            return DROPPED
        if not self.missing:
            return "verified"
        return self.facts.lack if self.verdict.because is None else "abandoned"

    @property
    def metrics(self) -> dict[str, float | None]:
        return result_files.of_result(self.verdict.metrics, self.verdict.findings)

    @property
    def release(self) -> str | None:
        return self.facts.pulled.manifest.release if self.facts.pulled else None

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.facts.pulled.manifest.warnings if self.facts.pulled else ()

    @property
    def doubt(self) -> str:
        """What marks its result."""
        return self.facts.pulled.manifest.doubt or "" if self.facts.pulled else ""

    @property
    def files(self) -> int:
        return len(self.facts.pulled.manifest.files) if self.facts.pulled else 0

    @property
    def size_bytes(self) -> int:
        """Without what is only carried."""
        files = self.facts.pulled.manifest.files if self.facts.pulled else ()
        return sum(file.size_bytes for file in files)


def judge_cells(
    site: Site,
    facts: CellFacts,
    findings: Sequence[Finding],
    earlier: CellVerdict | None,
    unpickled: Mapping[str, str],
) -> Judged:
    known = known_secrets(site.project.job, os.environ)
    findings = [without_secrets(one, known) for one in judge.vouched_by_box(facts, findings)]
    lacks = missing(
        facts,
        findings,
        artifacts=terms.terms_of_cell(site.plan, facts.cell).artifacts,
        is_tier_there=site.tier.root.exists(),
    )
    verdict = judge_cell(facts, lacks, findings, earlier.because if earlier else None)
    head = f"{facts.cell}/"
    good = {f"{head}{finding.path}" for finding in findings if finding.is_good}
    own = {path.removeprefix(head): at for path, at in unpickled.items() if path in good}
    return Judged(facts, lacks, replace(verdict, unpickled=own))


def measured_numbers(site: Site, cells: Sequence[Judged]) -> list[Judged]:
    """With the numbers that the job names, taken from what lies here and is as it was published."""
    whole = [(cell.facts.cell, cell.facts.pulled) for cell in cells if cell.facts.is_whole]
    left = [
        measure.Left(
            site.results.cell(name),
            site.results.cell(name) / f"{name}.log",
            pulled.manifest.log_begins_at_bytes,
        )
        for name, pulled in whole
        if pulled
    ]
    taken = measure.take_numbers(site.plan.metrics, left)
    found = dict(zip((name for name, _ in whole), taken, strict=True))
    known = known_secrets(site.project.job, os.environ)
    said = {
        cell: tuple(number_without_secrets(number, known) for number in numbers)
        for cell, numbers in found.items()
    }
    return [
        replace(cell, verdict=replace(cell.verdict, metrics=said.get(cell.facts.cell, ())))
        for cell in cells
    ]


# What verify says of a run, as a table and notes, or as one JSON document.


METRICS_SHOWN = 3


def verify_document(
    site: Site, found: Roster, made: RunReceipt, cells: Sequence[Judged]
) -> dict[str, Any]:
    """What `--json` prints. What a cell lacks comes with the command that fixes it."""
    return {
        "run": made.run,
        "receipt": str(site.results.receipt),
        "digest": made.digest,
        "is_full": made.is_full,
        "doubts": found.doubts,
        "strays": [str(stray) for stray in found.strays],
        "cells": [
            {
                "cell": cell.facts.cell,
                "queue": cell.facts.queue,
                "state": cell.state,
                "because": cell.verdict.because,
                "missing": cell.missing,
                "metrics": cell.metrics,
                "metric_notes": measure.notes(cell.verdict.metrics),
                "checked": how_checked(cell.verdict.findings),
                "files": cell.files,
                "size_bytes": cell.size_bytes,
                "carried": carried_words.carried_document(cell.facts.pulled),
                "release": cell.release,
                "warnings": cell.warnings,
                **({"doubt": cell.doubt} if cell.doubt else {}),
            }
            for cell in cells
        ],
    }


def verify_report(
    site: Site, made: RunReceipt, cells: Sequence[Judged], page: str, step: NextStep | None
) -> None:
    rows = [
        (
            cell.facts.cell,
            state_sentence(cell.state),
            how_checked(cell.verdict.findings),
            named_numbers(cell.metrics, METRICS_SHOWN),
            cell.files or None,
            units.size(cell.size_bytes) if cell.files else None,
            digest.short(cell.release) if cell.release else None,
        )
        for cell in cells
    ]
    columns = ("cell", "state", "checked", "metric", "files", "size", "release")
    title = _("{run}: results", run=made.run)
    show.table(title, columns, rows, first_to_go=("release", "files"))
    show.say_of_each(note for cell in cells for note in _notes_of_cell(cell, made.run))
    for said in carried_words.carried_sentences([c.facts.pulled for c in cells if c.facts.pulled]):
        show.say(said)
    settled = sum(cell.verdict.is_settled for cell in cells)
    papers = {"receipt": digest.short(made.digest), "file": site.results.receipt}
    has_dropped = any(cell.verdict.is_dropped for cell in cells)
    settled_id = (
        mark("{settled} of {n} cells are verified, dropped or abandoned; receipt {receipt}: {file}")
        if has_dropped
        else mark("{settled} of {n} cells are verified or abandoned; receipt {receipt}: {file}")
    )
    show.say(Sentence(settled_id, settled=settled, n=len(cells), **papers))
    show.say(Message(page, Command("report")))
    if step:
        show.say(sentence(step))


def _notes_of_cell(cell: Judged, run: str) -> Iterator[tuple[str, str | Message]]:
    name = cell.facts.cell
    for row in cell.missing:
        yield row.cell or run, row.message
    if cell.verdict.because is not None:
        yield name, _("abandoned because {because}", because=cell.verdict.because)
    if cell.verdict.is_dropped:
        yield name, _("dropped: it never ran, and its line is commented out")
    if cell.doubt:
        yield name, _("not certain: {doubt}", doubt=cell.doubt)
    for warning in cell.warnings:
        yield name, _("warning: {text}", text=warning)
    for metric, note in measure.notes(cell.verdict.metrics).items():
        yield name, _("{metric} unknown: {note}", metric=metric, note=note)


# Every artifact whose bytes are right, loaded, and which of them may run code.


def load_results(
    site: Site,
    facts: Sequence[CellFacts],
    earlier: Mapping[str, CellVerdict],
    allow_pickle: Sequence[str],
) -> tuple[Loaded, dict[str, str]]:
    """Load every artifact of the cells whose bytes are right, as `<cell>/<path>`; and which of them
    a person has allowed to run code, with the time.

    What was unpickled before is not unpickled again: it is the same result, byte by byte.
    """
    files, said = judge.to_be_loaded(site.plan, facts)
    allowed = judge.allowed([file.path for file in files], allow_pickle)
    modes = {file.path: file.load for file in files}
    kept = {
        path: one
        for cell in facts
        if (verdict := earlier.get(cell.cell))
        for path, one in judge.kept(cell, verdict).items()
        if path not in allowed and one[0].load == modes.get(path)
    }
    for path, (_finding, at) in kept.items():
        show.say(
            _("{file}: already unpickled at {at} with permission; not repeated", file=path, at=at)
        )
    left = [file for file in files if file.path not in kept]
    loaded = _load_behind_bar(site, left, Manner(tuple(allowed), said_as=said))
    _say_hashed(loaded)
    findings = {path: finding for path, (finding, _) in kept.items()} | loaded.findings
    now = timestamp.utc_now()
    return replace(loaded, findings=findings), (
        {path: at for path, (_, at) in kept.items()} | dict.fromkeys(allowed, now)
    )


def _load_behind_bar(site: Site, files: Sequence[Artifact], manner: Manner) -> Loaded:
    """As `load` does, with a sign of how far it is."""
    if files:
        show.say(_("loading {n} {n:artifact|artifacts}", n=len(files)))
    with show.progress(_("loading the files"), THINGS) as bar:
        part = bar.part(len(files))
        waiting = OrderedDict.fromkeys((file.path for file in files), True)
        part.doing = next(iter(waiting), "")
        one_at_a_time = threading.Lock()

        def on_finding(found: Finding) -> None:
            with one_at_a_time:
                part.add(int(waiting.pop(found.path, False)))  # once, though it be loaded again
                part.doing = next(iter(waiting), "")

        return load(site.results.cells, files, replace(manner, on_finding=on_finding))


def _say_hashed(loaded: Loaded) -> None:
    if count := sum(finding.is_hashed for finding in loaded.findings.values()):
        show.say(
            _(
                "no torch here: {n} {n:artifact|artifacts} only hashed. Only the {n:box has|boxes "
                "have} loaded {n:it|them}. To load {n:it|them} here, too: {how}",
                n=count,
                how=how_to_get_torch(),
            )
        )


# What lies here of each cell, compared behind a bar: what verify judges and the gate asks.


def cell_facts(
    site: Site, view: RunView, compare_one: CompareOne = manifest.compare_one
) -> list[CellFacts]:
    """The facts of each cell of the roster, every pulled file compared by `compare_one` behind a
    bar: hashed anew, unless that is another's.
    """
    for queue in view.queues:
        if queue.state is None:
            for problem in queue.problems:
                show.say(problem)
    cells = view.roster.cells
    with show.progress(_("hashing the files")) as bar:
        part = bar.part(sum(compare.size_bytes(site, cell.name) for cell in cells))

        def begun(cell: str) -> None:
            part.doing = cell

        return compare.gather(
            site,
            cells,
            view.failed,
            view.damaged,
            at_work={
                name
                for queue in view.queues
                if may_run(queue)
                for name in (queue.name, names.file_of(queue.name))
            },
            on_file=part.add,
            on_cell=begun,
            compare_one=compare_one,
        )


def verify(project: Project, *, allow_pickle: Sequence[str] = (), as_json: bool = False) -> int:
    """Returns 0 only where every cell is verified, dropped or abandoned, and nothing is doubtful.

    `allow_pickle` names artifacts that may run code when they are loaded, as `<cell>/<path>`, or as
    `<path>` for that file of every cell. Raises InputError for a name that fits nothing.
    """
    with open_site(project, show.say) as site:
        with show.waiting(_("asking the boxes")):
            site.refresh()
        with results_folder.hold(site):
            view = look_at_run(site, timestamp.utc_now())
            beside = _bring_beside(site, view.roster.cells)
            found, facts = view.roster, cell_facts(site, view)
            earlier = _earlier(site)
            loaded, unpickled = load_results(site, facts, earlier, allow_pickle)
            own = judge.by_cell(loaded.findings)
            cells = [
                judge_cells(site, cell, own.get(cell.cell, []), earlier.get(cell.cell), unpickled)
                for cell in facts
            ]
            cells = measured_numbers(site, cells)
            made = _write(site, cells, loaded)
            found = replace(
                found,
                doubts=(
                    *found.doubts,
                    *_tell_the_boxes(site, view, made),
                    *beside,
                    *_unseen(site),
                ),
            )
            is_proven = bool(made.is_full and made.cells and not found.doubts)
        show.say_of_each(("", said) for said in found.sentences)
        page = _page(site)
        if as_json:
            show.json_document("verify", verify_document(site, found, made, cells))
        else:
            verify_report(site, made, cells, page, next_step(view, site) if is_proven else None)
        return 0 if is_proven else 1


def _bring_beside(site: Site, cells: Sequence[RosterCell]) -> list[Missing]:
    """What the boxes have written since the pull: more of a journal, a receipt of which there is no
    copy yet. Another copy than the tier's is no older one, and is named.
    """
    if not compare.beside_the_manifests(site, cells):
        return []
    pull_grown_journals(site)
    for cell in cells:
        if (site.results.cell(cell.name) / paths.RECEIPT).exists():
            continue
        with contextlib.suppress(BoxcarError, OSError):  # said of each that stays behind
            if digest.has_same_bytes(
                site.tier.manifest(cell.name), site.results.manifest(cell.name)
            ):
                pull_receipt(site, cell.name)
    return compare.beside_the_manifests(site, cells)


def _unseen(site: Site) -> Iterator[Missing]:
    """What is not known of the boxes, and what to type once it is known that it never will be."""
    fixes = dict.fromkeys(site.tier_doubts(), tier_is_gone(site.plan.durable_dir))
    for doubt in site.doubts():
        yield Missing(None, doubt, fixes.get(doubt, Command("verify")))


def _earlier(site: Site) -> dict[str, CellVerdict]:
    """The verdicts of the receipt before: a cell stays abandoned while it is missing."""
    path = site.results.receipt
    try:
        earlier = receipt.read_run(path)
    except FileNotFoundError:
        return {}
    except DamagedError as error:
        aside = results_folder.set_aside(site.results, path)
        show.say(
            _(
                "{problem}. Moved to {file}. Re-run down --abandon for cells you had abandoned",
                problem=error,
                file=aside,
            )
        )
        return {}
    return {cell.cell: cell for cell in earlier.cells}


def _tell_the_boxes(site: Site, view: RunView, made: RunReceipt) -> Iterator[Missing]:
    """Have kept what is proven here of cells that their boxes call failed; what could not be."""
    if not site.tier.root.exists():
        return
    views = {cell.name: cell for cell in view.cells}
    for verdict in made.cells:
        if not accept.is_due(views[verdict.cell], verdict):
            continue
        document = accept.document(site, verdict, made.made_at)
        try:
            accept.write_acceptance(site, views[verdict.cell], document)
        except (BoxcarError, OSError) as error:
            about = {"cell": verdict.cell, "why": message_of(error).text}
            yield Missing(
                None,
                _(
                    "{cell} is verified here, but its box could not be told: {why}. A launch may "
                    "retrain it",
                    **about,
                ),
                Command("verify"),
            )
            continue
        about = {"cell": verdict.cell, "text": accepted_sentence(document)}
        show.say(_("{cell}: {text}; it is not retrained", **about))


def _write(site: Site, cells: Sequence[Judged], loaded: Loaded) -> RunReceipt:
    made = RunReceipt(
        run=site.plan.run,
        made_at=timestamp.utc_now(),
        cells=tuple(cell.verdict for cell in cells),
        extra={
            "loader": loaded.loader,
            "sandbox": list(loaded.sandbox),
            run_report.KEY: codec.encode(site.plan.metrics),
        },
    )
    atomic.write_whole(site.results.receipt, codec.to_document(made))
    return made


def _page(site: Site) -> str:
    """The report's page, written beside the receipt. Said, never raised: the receipt is there."""
    try:
        asked = asked_of(site.project, (), Asked(()))
        made = gather.report_of(site.project, asked)
        path = report_page.write_page(site.project, made, show.language())
    except (BoxcarError, OSError) as error:
        return _("the report's page was not written: {why}. Try again", why=message_of(error).text)
    return _("report: {file}. As a table", file=path)
