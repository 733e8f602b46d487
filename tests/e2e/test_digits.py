"""The example of the checkout: its own job with real torchrun, and the demo from end to end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from living import kill_all, living
from proof import assert_as_manifest, assert_published_once
from tiny_project import BOXCAR, TinyProject, environment
from waiting import LIMIT_S

from boxcar.laptop.verbs.demo import prepare

pytest.importorskip("torch")

CHECKOUT = Path(__file__).parents[2]
RUN = "digits-ablation"


# --- the checkout's own job


@pytest.mark.faults
def test_the_checkouts_own_job_runs_as_it_stands(tmp_path):
    """As in the checkout, which is copied so that this run leaves nothing in it."""
    root = tmp_path / "checkout"
    for name in ("tasks.py", "job.yaml"):
        root.mkdir(exist_ok=True)
        shutil.copy(CHECKOUT / name, root)
    shutil.copytree(CHECKOUT / "queues", root / "queues")
    shutil.copytree(CHECKOUT / "examples/digits", root / "examples/digits")
    planned = json.loads(invoke(root, "plan", "--json").stdout)
    assert len(planned["cells"]) >= 8 and len(planned["queues"]) == 2
    assert {cell["task"] for cell in planned["cells"]} == {
        "reconstruction", "segmentation", "detection",
    }  # fmt: skip
    # Of all these, one epoch of one cell of each queue: one rank here, two there.
    short = {"queue_1": "seg_baseline", "queue_2": "det_two_ranks"}
    tasks = {cell["cell"]: cell["task"] for cell in planned["cells"]}
    for queue, cell in short.items():
        line = f"configs/{cell}.yaml {tasks[cell]} 1\n"
        (root / "queues" / f"{queue}.txt").write_text(line)
    assert invoke(root, "launch").returncode == 0
    watched = invoke(root, "watch", "--json")
    assert watched.returncode == 0, watched.stderr
    run = TinyProject(root, RUN)
    assert_published_once(run, short.values())
    ranks = {
        e["data"]["cell"]: e["data"]["nproc"] for e in run.all_events() if "nproc" in e["data"]
    }
    assert ranks == {"seg_baseline": 1, "det_two_ranks": 2}
    last = json.loads(watched.stdout.splitlines()[-1])  # a line each round
    metrics = {cell["cell"]: cell["metrics"] for cell in last["cells"]}
    assert 0 <= metrics["seg_baseline"]["dice"] <= 1 and 0 <= metrics["det_two_ranks"]["map50"] <= 1


def invoke(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(
        command,
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


# --- the demo


@dataclass(frozen=True)
class Demo:
    """What `boxcar demo` said, and where it worked."""

    folder: Path
    code: int
    out: str
    err: str

    @property
    def results(self) -> Path:
        return self.folder / "boxcar-demo" / "results" / RUN

    @property
    def cells(self) -> int:
        """How many its queue files name."""
        files = (self.folder / "boxcar-demo" / "queues").glob("*.txt")
        lines = [line for file in files for line in file.read_text().splitlines()]
        return sum(not line.startswith("#") for line in lines)

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The rows of its report: cell, the name of its number, the number."""
        found: list[tuple[str, str, str]] = []
        name = ""
        for line in self.out.splitlines():
            fields = re.split(r"\s{2,}", line.strip())
            if fields[:2] == ["cell", "n"]:
                name = fields[2].split()[0]  # behind it stands which way is better
            elif name and len(fields) > 2:
                found.append((fields[0], name, fields[2].split()[0]))
            else:
                name = ""
        return found


# A cell with one rank and one with two, for as long as it takes to learn something.
SHORT = {"queue_1": ["recon_baseline reconstruction 1"], "queue_2": ["det_two_ranks detection 2"]}


@pytest.fixture(scope="session", params=["short", pytest.param("whole", marks=pytest.mark.faults)])
def demo(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    announce: Callable[[str], None],
) -> Iterator[Demo]:
    """The demo, once, with the run's name as a person's answer; it goes on in a shorter project of
    its own making, or begins in an empty folder."""
    announce(f"`boxcar demo`, {request.param}, for a minute or more; some tests wait for it")
    folder = tmp_path_factory.mktemp("demo")
    if request.param == "short":
        shorten(prepare(folder / "boxcar-demo"))
    try:
        said = subprocess.run(
            [BOXCAR, "demo"],
            cwd=folder,
            env=environment(),
            input=f"{RUN}\n",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        yield Demo(folder, said.returncode, said.stdout, said.stderr)
    finally:
        kill_all(folder)


def shorten(project: Path) -> None:
    for queue, lines in SHORT.items():
        text = "".join(f"configs/{line.replace(' ', '.yaml ', 1)}\n" for line in lines)
        (project / "queues" / f"{queue}.txt").write_text(text)


def test_the_demo_ends_well(demo):
    assert demo.code == 0, demo.out + demo.err
    assert "Traceback" not in demo.out + demo.err
    assert [n for n in range(1, 5) if f"[{n}/4]" in demo.err] == [1, 2, 3, 4]


def test_it_ends_with_a_report_in_which_every_cell_has_a_real_number(demo):
    assert len(demo.rows) == demo.cells >= len(SHORT)
    for cell, name, number in demo.rows:
        # Better than a script that learnt nothing: dB above noise, overlap above chance.
        assert float(number) > {"psnr_db": 10, "dice": 0.3, "map50": 0.05}[name], cell
    assert str(demo.results / "report.html") in demo.err
    page = (demo.results / "report.html").read_text(encoding="utf-8")
    # The best of a column stands in <strong>.
    assert all(re.search(rf"{number}</(td|strong)>", page) for _, _, number in demo.rows)


def test_its_webhooks_were_printed_as_they_came(demo):
    printed = demo.out + demo.err
    for type_ in ("queue.started", "cell.started", "cell.synced", "cell.verified", "queue.done"):
        told = [line for line in printed.splitlines() if "webhook" in line and type_ in line]
        assert len(told) >= (2 if type_.startswith("queue") else demo.cells), type_


def test_its_receipt_is_full_and_speaks_of_what_lies_there(demo):
    receipt = json.loads((demo.results / "receipt.json").read_bytes())
    assert {cell["cell"] for cell in receipt["cells"]} == {row[0] for row in demo.rows}
    assert not any(cell["missing"] for cell in receipt["cells"])
    for cell in receipt["cells"]:
        found = assert_as_manifest(demo.results / "cells" / cell["cell"])
        assert {file["path"] for file in found["files"]} > {"best.pth", "metrics.json"}
    assert str(demo.results / "receipt.json") in demo.err


def test_one_of_its_cells_ran_with_two_ranks_and_the_queues_side_by_side(demo):
    events = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in (demo.results / "journal").glob("*.jsonl")
    }
    assert sorted(events) == ["queue_1", "queue_2"]
    started = [e["data"] for queue in events.values() for e in queue if e["type"] == "cell.started"]
    assert sorted(data["nproc"] for data in started)[-2:] == [1, 2]
    assert len({data["box"] for data in started}) == 2
    first, second = ((queue[0]["at"], queue[-1]["at"]) for queue in events.values())
    assert first[0] < second[1] and second[0] < first[1]


def test_a_notebook_reads_its_cells_and_numbers(demo):
    code = (
        "import boxcar, json, sys; run = boxcar.run(sys.argv[1])\n"
        "print(json.dumps([boxcar.runs(), run.cells(), run.metrics()]))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, RUN], cwd=demo.folder, env=environment(), capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (said.returncode, said.stderr) == (0, "")
    runs, cells, numbers = json.loads(said.stdout)
    assert (runs[0]["run"], runs[0]["state"]) == (RUN, "torn down")
    assert {cell["cell"]: cell["state"] for cell in cells} == {
        name: "verified" for name, _metric, _number in demo.rows
    }
    found = {one["cell"]: one for one in numbers}
    for name, metric, number in demo.rows:
        assert found[name]["numbers"][metric] == pytest.approx(float(number), rel=0.01)
        assert found[name]["settings"]["lr"] == 0.01 and found[name]["lack"] is None


def test_its_teardown_removed_all_but_the_results(demo):
    teardown = json.loads((demo.results / "teardown.json").read_bytes())
    assert teardown["approved_by"] == "typed" and teardown["finished_at"]
    local = demo.folder / "boxcar-demo" / ".boxcar" / "local"
    assert not [path for path in local.rglob("*") if path.is_file()]
    assert not living(demo.folder)
