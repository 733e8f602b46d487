"""`make pictures`: the page of a real report, light and dark, as docs/pictures/report-*.png.

Three settings of the demo's segmentation are trained here with three seeds each, pulled and
verified; nothing on the page is made up. It is drawn by a Chromium that is on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.condition import may_run
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs.demo import prepare
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.report import asked_of
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.view.report import gather, report_page
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared import timestamp

HERE = Path(__file__).parent
SETTINGS = ("seg_baseline", "seg_no_skip", "seg_no_aug")
SEEDS = (1, 2, 3)
EPOCHS = 12
WIDTH = 1200  # pixels
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# What each part of a page needs at this width, in pixels: a browser draws no more than its window
# holds.
HEIGHTS = {"<h2": 128, "<tr": 37, "<li>": 26, "<figure": 240}


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
        while any(may_run(queue) for queue in look_at_run(site, timestamp.utc_now()).queues):
            time.sleep(1)


def _draw(project: Project) -> None:
    made = gather.report_of(project, asked_of(project, (), Asked(())))
    page = report_page.write_page(project, made, "en")
    for scheme in ("light", "dark"):
        target = HERE / f"report-{scheme}.png"
        _draw_page(page, target, is_dark=scheme == "dark")
        print(f"{target}: {target.stat().st_size:,} bytes")


def _draw_page(page: Path, target: Path, *, is_dark: bool) -> None:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"expected one of {', '.join(BROWSERS)} on this machine")
    text = page.read_text(encoding="utf-8")
    height = 190 + sum(each * text.count(part) for part, each in HEIGHTS.items())
    words = [browser, "--headless", "--disable-gpu", "--hide-scrollbars"]
    # Root has no user namespace to sandbox in; the page is our own, and runs nothing.
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    words += ["--blink-settings=preferredColorScheme=0"] if is_dark else []
    with tempfile.TemporaryDirectory() as profile:
        words += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}"]
        subprocess.run([*words, f"--screenshot={target}", page.as_uri()], check=True)


if __name__ == "__main__":
    sys.exit(main())
