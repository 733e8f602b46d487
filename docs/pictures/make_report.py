"""`make pictures`: the page of a real report, light and dark, as docs/pictures/report-*.png.

Three settings of the demo's segmentation are trained here with three seeds each, pulled and
verified; nothing on the page is made up. It is drawn by a Chromium that is on this machine.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.report import gather, picture, write_page
from boxcar.laptop.report.run_report import Asked
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look
from boxcar.laptop.sites.open_site import open_site
from boxcar.laptop.verbs.demo import prepare
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.report import asked_of
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp

HERE = Path(__file__).parent
SETTINGS = ("seg_baseline", "seg_no_skip", "seg_no_aug")
SEEDS = (1, 2, 3)
EPOCHS = 12
WIDTH = 1200  # pixels


def main() -> int:
    os.environ["LC_ALL"] = "C.UTF-8"
    folder = Path(tempfile.mkdtemp(prefix="boxcar-pictures-"))
    try:
        project = _project(prepare(folder / "digits"))
        launch(project)
        _wait_for_the_end(project)
        pull(project)
        verify(project)
        _draw(project)
    finally:
        shutil.rmtree(folder)
    return 0


def _project(root: Path) -> Project:
    """The demo's, with a config for each setting and seed."""
    lines: list[str] = []
    for setting in SETTINGS:
        text = (root / f"examples/digits/configs/{setting}.yaml").read_text()
        for seed in SEEDS:
            name = f"{setting}_seed{seed}"
            changed = "\n".join(
                f"seed: {seed}" if line.startswith("seed:") else line for line in text.splitlines()
            )
            (root / f"examples/digits/configs/{name}.yaml").write_text(f"{changed}\n")
            lines.append(f"configs/{name}.yaml segmentation {EPOCHS}\n")
    for number, name in enumerate(("queue_1", "queue_2")):
        (root / "queues" / f"{name}.txt").write_text("".join(lines[number::2]))
    job = (root / "job.yaml").read_text()
    job = job[: job.index("# What single cells")] + job[job.index("# For queue lines") :]
    job = job[: job.index("# Where news")]
    (root / "job.yaml").write_text(job.replace("launcher: torchrun", "launcher: python"))
    return open_project(root / "job.yaml", "local")


def _wait_for_the_end(project: Project) -> None:
    with open_site(project, show.say) as site:
        while any(may_run(queue) for queue in look(site, timestamp.utc_now()).queues):
            time.sleep(1)


def _draw(project: Project) -> None:
    page = write_page.write(project, gather.report_of(project, asked_of(project, (), Asked(()))))
    for scheme in ("light", "dark"):
        drawn = picture.of_page(page, width=WIDTH, is_dark=scheme == "dark")
        target = HERE / f"report-{scheme}.png"
        shutil.copy(drawn, target)
        print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
