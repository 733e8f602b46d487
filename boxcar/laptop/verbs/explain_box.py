"""`invoke explain --box NAME`: what a box had left over the last hours, as rows of small bars."""

from __future__ import annotations

import os
import sys

from boxcar.laptop.common import show, units
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.rentals import stopped_perhaps
from boxcar.laptop.verbs.pull_journals import pull_gauges
from boxcar.laptop.view.board.terminal_lines import sparkline
from boxcar.laptop.view.box_gauges import MOST_BYTES, gauges_of, read_lines
from boxcar.laptop.view.looks import Bars, glyphs_of_terminal
from boxcar.shared import timestamp
from boxcar.shared.disk.regular_file import read_plain
from boxcar.shared.errors import Command, Message
from boxcar.shared.sentence import _

BARS = 24
COLUMNS = ("gauge", "course", "least", "most", "last")


def tell_of_box(project: Project, box: str, *, as_json: bool = False) -> int:
    """Show the gauges of each agent of this box. Raises InputError for a box that is not there."""
    project.scratch(box)  # raises for one that is not in the plan
    with open_site(project, show.say) as site:
        with show.waiting(_("asking the boxes")):
            site.refresh()
        for text in stopped_perhaps(project, {box} & {*site.silent_boxes()}):
            show.say(text)
        found = {queue: read_lines(_newest(site, box, queue)) for queue in site.queues_on(box)}
    if as_json:
        told = [
            {"queue": queue, "gauge": one.name, "last": one.last, "values": one.values}
            for queue, lines in found.items()
            for one in gauges_of(lines)
        ]
        show.json_document("explain", {"run": project.plan.run, "box": box, "gauges": told})
        return 0
    levels = glyphs_of_terminal(sys.stdout.encoding, os.environ).levels
    for queue, lines in found.items():
        rows = [
            (one.name, sparkline(Bars(one.values), levels, BARS), one.least, one.most, one.last)
            for one in gauges_of(lines)
        ]
        if not rows:
            show.say(
                Message(
                    _(
                        "{box}: {queue} has no gauges yet; its agent writes a line a minute. Now",
                        box=box,
                        queue=queue,
                    ),
                    Command("status"),
                )
            )
            continue
        span_s = timestamp.seconds_between(lines[0]["at"], lines[-1]["at"])
        title = _("{box}, {queue}: the last {time}", box=box, queue=queue, time=units.about(span_s))
        show.table(title, COLUMNS, rows, names=("gauge",), first_to_go=("least", "most"))
    return 0


def _newest(site: Site, box: str, queue: str) -> bytes:
    """From the tier, where it can be read here; else its copy, brought now if the box answers."""
    name = site.tier.gauges(queue).name
    try:
        found = read_plain(site.tier.root, f"gauges/{name}")
        if found is None:
            pull_gauges(site, (box,))
            found = read_plain(site.results.root, f"gauges/{name}")
    except OSError:
        return b""
    return (found or b"")[-MOST_BYTES:]
