"""`invoke verify`: the roster against the results, each artifact loaded; it writes the receipt.

A cell is verified when it was pulled, its manifest is the tier's, every file hashes as the manifest
says, and every artifact of the plan was loaded and looked at without a complaint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.project.project import Project
from boxcar.laptop.report import gather, report_page, run_report
from boxcar.laptop.report.run_report import Asked
from boxcar.laptop.results import compare, judge, results_folder
from boxcar.laptop.run import acceptance
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.roster import Missing, RosterCell
from boxcar.laptop.run.view import RunView
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.sites.site import Site
from boxcar.laptop.teardown.gate import tier_is_gone
from boxcar.laptop.verbs import verify_report
from boxcar.laptop.verbs.cell_facts import cell_facts
from boxcar.laptop.verbs.judged import Judged, judge_cells, measured_numbers
from boxcar.laptop.verbs.load_results import load_results
from boxcar.laptop.verbs.pull import pull_grown_journals, pull_receipt
from boxcar.laptop.verbs.report import asked_of
from boxcar.shared import paths, timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.disk import atomic, same_bytes
from boxcar.shared.errors import BoxcarError, DamagedError, message_of
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.load_child import Loaded
from boxcar.shared.message import Command


def verify(project: Project, *, allow_pickle: Sequence[str] = (), as_json: bool = False) -> int:
    """Returns 0 only where every cell is verified, dropped or abandoned, and nothing is doubtful.

    `allow_pickle` names artifacts that may run code when they are loaded, as `<cell>/<path>`, or as
    `<path>` for that file of every cell. Raises InputError for a name that fits nothing.
    """
    with open_site(project, show.say) as site:
        with show.waiting(Sentence("how_far.asking")):
            site.boxes.refresh()
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
        for sentence in found.sentences:
            show.say(sentence)
        page = _page(site)
        if as_json:
            show.json_document("verify", verify_report.verify_document(site, found, made, cells))
        else:
            verify_report.verify_report(site, made, cells, page, is_proven=is_proven)
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
            if same_bytes.has_same_bytes(
                site.tier.manifest(cell.name), site.results.manifest(cell.name)
            ):
                pull_receipt(site, cell.name)
    return compare.beside_the_manifests(site, cells)


def _unseen(site: Site) -> Iterator[Missing]:
    """What is not known of the boxes, and what to type once it is known that it never will be."""
    fixes = dict.fromkeys(site.boxes.tier_doubts(), tier_is_gone(site.plan.durable_dir))
    for doubt in site.boxes.doubts():
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
        show.say(Sentence("bring.aside", problem=error, file=aside))
        return {}
    return {cell.cell: cell for cell in earlier.cells}


def _tell_the_boxes(site: Site, view: RunView, made: RunReceipt) -> Iterator[Missing]:
    """Have kept what is proven here of cells that their boxes call failed; what could not be."""
    if not site.tier.root.exists():
        return
    views = {cell.name: cell for cell in view.cells}
    for verdict in made.cells:
        if not judge.is_due(views[verdict.cell], verdict):
            continue
        document = judge.document(site, verdict, made.made_at)
        try:
            judge.write_acceptance(site, views[verdict.cell], document)
        except (BoxcarError, OSError) as error:
            about = {"cell": verdict.cell, "why": message_of(error).text}
            yield Missing(None, Sentence("bring.box_not_told", **about), Command("verify"))
            continue
        about = {"cell": verdict.cell, "text": acceptance.sentence(document)}
        show.say(Sentence("story.and_not_again", **about))


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
        path = report_page.write_page(site.project, gather.report_of(site.project, asked))
    except (BoxcarError, OSError) as error:
        return Sentence("report.no_page", why=message_of(error).text)
    return Sentence("report.page", file=path)
