"""`make pictures`: the board of a real run, as docs/pictures/board.svg.

The digits of the demo are trained here, in two queues on two local boxes, one cell of which cannot
be read and fails. The picture is what `watch` shows once cells of all kinds are there; nothing on
it is made up. The run is stopped and its folder removed afterwards.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.demo import prepare
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import rows_of_run
from boxcar.laptop.verbs.stop import stop
from boxcar.laptop.view.board.focus import Focus
from boxcar.laptop.view.board.layout import layout
from boxcar.laptop.view.board.terminal_lines import paint_lines
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, history_after_look
from boxcar.laptop.view.looks import UNICODE
from boxcar.laptop.view.run_rows import RunRows
from boxcar.shared import timestamp

WIDTH, HEIGHT = 96, 20
PICTURE = Path(__file__).with_name("board.svg")
QUEUES = {
    "queue_1.txt": """\
configs/seg_baseline.yaml segmentation 4
configs/recon_baseline.yaml reconstruction 40
configs/seg_no_aug.yaml segmentation 600
configs/recon_small_latent.yaml reconstruction 60
""",
    "queue_2.txt": """\
configs/det_no_aug.yaml detection 4
configs/det_wide.yaml detection 16
configs/det_baseline.yaml detection 1000
configs/seg_no_skip.yaml segmentation 15
""",
}


def main() -> int:
    os.environ["LC_ALL"] = "C.UTF-8"
    show.remember_flags("", "", program="boxcar")  # as a person would have to type the commands
    folder = Path(tempfile.mkdtemp(prefix="boxcar-pictures-"))
    root = prepare(folder / "digits")
    for name, text in QUEUES.items():
        (root / "queues" / name).write_text(text)
    wide = (root / "examples/digits/configs/det_baseline.yaml").read_text()
    (root / "examples/digits/configs/det_wide.yaml").write_text(
        wide.replace("width: 8", "width: 8e")
    )
    job = (root / "job.yaml").read_text()
    job = re.sub(r"cells:\n.*\n|notify:\n.*\n", "", job)
    (root / "job.yaml").write_text(job.replace("launcher: torchrun", "launcher: python"))
    project = open_project(root / "job.yaml", "local")
    launch(project)
    try:
        _save(_watched(project))
    finally:
        stop(project)
        _wait_for_the_end(project)
        shutil.rmtree(folder)
    return 0


def _watched(project: Project) -> RunRows:
    """The first look with cells that are verified, failed, running for a while, and queued."""
    history = NOTHING_SEEN
    with open_site(project, show.say) as site:
        while True:
            site.refresh()
            view = look_at_run(site, timestamp.utc_now())
            history = history_after_look(history, view)
            found = rows_of_run(
                site, view, next_step(view, site), history, at_work="agents are running"
            )
            found = replace(found, facts=replace(found.facts, glyphs=UNICODE))
            states = {word for word, _ in found.counts}
            has_curve = any(len(row.curve) > 2 for row in found.under_way)
            if {"verified", "running", "failed", "queued"} <= states and has_curve:
                return found
            if not any(may_run(queue) for queue in view.queues):
                raise SystemExit("the run ended before there was a picture to take")
            time.sleep(1)


def _save(found: RunRows) -> None:
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(paint_lines(layout(found, WIDTH, HEIGHT, Focus())))
    # A picture fetches no font from anywhere.
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="boxcar watch", code_format=plain, unique_id="board")
    PICTURE.write_text(svg.replace("\xa0", "&#160;"), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


def _wait_for_the_end(project: Project) -> None:
    """Nothing is removed below an agent that still writes."""

    def is_at_work(site: Site) -> bool:
        site.refresh()
        return any(may_run(queue) for queue in look_at_run(site, timestamp.utc_now()).queues)

    with open_site(project, show.say) as site:
        while is_at_work(site):
            time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
