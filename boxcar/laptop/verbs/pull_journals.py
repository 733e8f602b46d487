"""The journals and gauges to the laptop: after the teardown they lie nowhere else."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.hosts import folders
from boxcar.laptop.places.site import Site
from boxcar.laptop.results import (
    compare,
    results_folder,
)
from boxcar.laptop.run import run_journals
from boxcar.laptop.verbs.pull_cells import FAILED, PULLED, Outcome
from boxcar.shared.disk import atomic, checked_copy
from boxcar.shared.errors import (
    BoxcarError,
    message_of,
    words_of,
)
from boxcar.shared.files import journal
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.sentence import _

_NOT_THERE = re.compile(r"No such file or directory|no such folder")


def pull_journals(site: Site) -> list[Outcome]:
    journals = sorted(site.tier.journals.glob("*.jsonl"))
    return [_pull_journal(site, path) for path in journals]


def pull_grown_journals(site: Site) -> None:
    """Those of which the copy here is the beginning, or that have no copy yet."""
    for path in sorted(site.tier.journals.glob("*.jsonl")):
        with contextlib.suppress(OSError):
            here = site.results.journals / path.name
            if not here.exists() or path.read_bytes().startswith(here.read_bytes()):
                _pull_journal(site, path)


def _pull_journal(site: Site, source: Path) -> Outcome:
    """A checked copy of what the journal holds now. A damaged one comes too where there is no copy
    yet, and is said.
    """
    here = site.results.journals / source.name
    try:
        compare.refuse_link(source.parent, source.name)
        atomic.make_folder(here.parent)
        if here.exists():
            # What is here may be the only good copy: repair puts it back.
            run_journals.read_whole_journal(site, source.stem)
            data, kept = source.read_bytes(), here.read_bytes()
            if data == kept:  # each line of it was read just now, with its check
                return Outcome(source.name, PULLED, None, len(kept))
            # A run that was launched anew begins its journal anew; the old one is kept.
            if not data.startswith(kept):
                results_folder.set_aside(site.results, here)
        copied = checked_copy.checked_copy(source, here, source.name)
        journal.read_journal(here)
    except (BoxcarError, OSError) as error:
        return Outcome(source.name, FAILED, show.typed(message_of(error)))
    return Outcome(source.name, PULLED, None, copied.size_bytes)


def pull_gauges(site: Site, boxes: Sequence[str] = ()) -> None:
    """What the boxes had left, minute by minute. Nothing is decided by it, so a tier of an older
    agent, which has none, is no news, and what cannot come is only said.
    """
    on_tier = str(site.project.on_tier.gauges_folder)
    for box in boxes or dict.fromkeys(box.name for box in site.plan.boxes):
        if site.is_out_of_reach(box):
            continue
        try:
            folders.fetch_folder(site.folder_on(box, on_tier), site.results.gauges)
        except (BoxcarError, OSError) as error:
            if not _NOT_THERE.search(str(error)):
                show.say(_("{box}: its gauges did not come: {why}", box=box, why=words_of(error)))
        if site.plan.durable_scope != EACH_BOX:
            return
