"""Every artifact whose bytes are right, loaded, and which of them may run code."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.common import show
from boxcar.laptop.common.progress import THINGS
from boxcar.laptop.results import judge
from boxcar.laptop.results.judge import CellFacts
from boxcar.laptop.results.load import how_to_get_torch, load
from boxcar.laptop.sites.site import Site
from boxcar.shared import timestamp
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.files.receipt import CellVerdict, Finding
from boxcar.shared.load_child import Loaded, Manner


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
    for path, (_, at) in kept.items():
        show.say(Sentence("good_run.unpickled", file=path, at=at))
    left = [file for file in files if file.path not in kept]
    show.say(Sentence("good_run.loading", n=len(left)))
    with show.progress(Sentence("how_far.loading"), THINGS) as bar:
        part = bar.part(len(left))
        waiting = OrderedDict.fromkeys((file.path for file in left), True)
        part.doing = next(iter(waiting), "")
        one_at_a_time = threading.Lock()

        def on_finding(found: Finding) -> None:
            with one_at_a_time:
                part.add(int(waiting.pop(found.path, False)))  # once, though it be loaded again
                part.doing = next(iter(waiting), "")

        loaded = load(
            site.results.cells,
            left,
            Manner(tuple(allowed), said_as=said, on_finding=on_finding),
        )
    _say_hashed(loaded)
    findings = {path: finding for path, (finding, _) in kept.items()} | loaded.findings
    now = timestamp.utc_now()
    return replace(loaded, findings=findings), (
        {path: at for path, (_, at) in kept.items()} | dict.fromkeys(allowed, now)
    )


def _say_hashed(loaded: Loaded) -> None:
    if count := sum(finding.is_hashed for finding in loaded.findings.values()):
        show.say(Sentence("good_run.hashed", n=count, how=how_to_get_torch()))
