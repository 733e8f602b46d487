"""What verbs cost as a run grows: CPU at some numbers of cells. The run is written here as its
agents would have left it: real files, no agent. `--long` takes larger numbers, for which a quarter
of an hour is too short.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, no_value
from bench.start import BOXCAR, cpu_s
from boxcar.laptop.project.project import Project, open_project
from boxcar.shared import paths, timestamp
from boxcar.shared.disk import digest
from boxcar.shared.files import codec, journal_chain
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.receipt import CellReceipt, Finding

# Verbs that bring or hash files write that many first.
SIZES = {"plan": (10, 1000, 10_000), "status": (10, 1000, 10_000), "results": (10, 1000)}
LONG_SIZES = {
    "plan": (10, 1000, 10_000, 100_000),
    "status": (10, 1000, 10_000, 100_000),
    "results": (10, 1000, 10_000, 100_000),
}
# What is typed to see what `down` costs until it would begin.
_DOWN = ["down", "--approve", "0" * 12]
_JOB = """\
name: growth
code: code
command: cell.py {out}
launcher: python
nproc_per_node: 1
queues: {queue.txt: box-a}
artifacts: [m.json]
"""
_DATA = b'{"loss": 0.5}'
# No peer: what the larger number would cost if each further cell cost as much as before.
STRAIGHT = "a straight line through both"
AT = "2026-11-20T10:00:00.000Z"


def measure(folder: Path) -> list[Row]:
    rows = []
    for cells in sorted({size for sizes in SIZES.values() for size in sizes}):
        project = _project(folder / str(cells), cells)
        for verb, sizes in SIZES.items():
            if cells in sizes:
                rows += _rows(project, verb, cells)
    return _with_growth(rows)


def _rows(project: Project, verb: str, cells: int) -> list[Row]:
    if verb == "plan":
        return [_row("plan", cells, cpu_s([*BOXCAR, "plan"], project.root, 1))]
    publish(project, cells)
    words = {"status": ["status"]}
    if verb == "results":
        words = {
            **{name: ["pull"] for name in ("pull, first", "pull, again", "pull, nothing new")},
            **{"verify": ["verify"], "report": ["report"], "down, until it asks": _DOWN},
        }
    return [
        _row(name, cells, cpu_s([*BOXCAR, *typed], project.root, 1, ends=(0, 1)))
        for name, typed in words.items()
    ]


def _row(what: str, cells: int, value_s: float) -> Row:
    return Row(f"{what}, {cells} cells", value_s, "s of CPU")


def _with_growth(rows: list[Row]) -> list[Row]:
    """Each beside what it would cost if it grew with the cells alone from the smaller run."""
    found = {row.what: row.value for row in rows}
    made = []
    for row in rows:
        what, _, count = row.what.removesuffix(" cells").rpartition(", ")
        smaller = [size for size in (10, 1000) if f"{what}, {size} cells" in found]
        base, mid = found[f"{what}, 10 cells"], found.get(f"{what}, 1000 cells")
        if int(count) <= 1000 or mid is None or len(smaller) < 2:
            made.append(row)
            continue
        straight_s = base + (mid - base) / 990 * (int(count) - 10)
        made.append(Row(row.what, row.value, row.unit, straight_s, STRAIGHT))
    return made or [no_value("growth", "nothing was measured")]


def _project(folder: Path, cells: int) -> Project:
    (folder / "code").mkdir(parents=True)
    (folder / "code/cell.py").write_text("pass\n")
    (folder / "job.yaml").write_text(_JOB)
    (folder / "code/c.json").write_text("{}")
    (folder / "queue.txt").write_text(queue(cells))
    return open_project(folder / "job.yaml", "local")


def queue(cells: int) -> str:
    """A grid over one config."""
    return "".join(f"c.json t name={name} lr={at}\n" for at, name in enumerate(_names(cells)))


def _names(cells: int) -> list[str]:
    return [f"c{number:06d}" for number in range(cells)]


def publish(project: Project, cells: int) -> None:
    """What the agent would have left of all cells, verified."""
    tier = project.on_tier
    if tier.journal("queue").exists():
        return
    for folder in tier.folders():
        folder.mkdir(parents=True, exist_ok=True)
    tier.queue("queue").write_text(queue(cells))
    digests = {name: _publish_cell(project, name) for name in _names(cells)}
    tier.journal("queue").parent.mkdir(exist_ok=True)
    tier.journal("queue").write_bytes(b"".join(_lines(project.plan.run, digests)))


def _publish_cell(project: Project, name: str) -> str:
    folder = project.on_tier.cell(name)
    folder.mkdir(parents=True)
    (folder / "m.json").write_bytes(_DATA)
    made = Manifest(
        run=project.plan.run, cell=name, queue="queue", box="box-a", release="ab" * 32, attempt=1,
        task="t", cfg="c.json", epochs=1, started_at=AT, ended_at=AT,
        files=(FileRecord("m.json", len(_DATA), digest.of_bytes(_DATA)),),
    )  # fmt: skip
    data = codec.to_document(made)
    (folder / paths.MANIFEST).write_bytes(data)
    sha256 = digest.of_bytes(data)
    seen = CellReceipt(
        project.plan.run,
        name,
        1,
        sha256,
        AT,
        (Finding("m.json", "json", facts={"numbers": {"loss": 0.5}}),),
    )
    (folder / paths.RECEIPT).write_bytes(codec.to_document(seen))
    return sha256


def _lines(run: str, digests: dict[str, str]) -> Iterator[bytes]:
    before = journal_chain.OF_NOTHING
    for seq, (type_, data) in enumerate(_events(digests), 1):
        common = {"run": run, "queue": "queue", "box": "box-a"}
        line = Event(seq, f"evt_{seq}", timestamp.utc_now(), type_, common | data).to_line(before)
        before = Event.check_of(line)
        yield line


def _events(digests: dict[str, str]) -> Iterator[tuple[str, dict[str, object]]]:
    yield "agent.started", {"pid": 1, "release": "ab" * 32}
    for at, (name, sha256) in enumerate(digests.items()):
        cell: dict[str, object] = {"cell": name, "attempt": 1}
        line = {"task": "t", "cfg": "c.json", "epochs": 1, "overrides": [f"lr={at}"]}
        yield "cell.claimed", cell
        yield "cell.started", cell | line
        yield "cell.succeeded", cell | {"seconds": 1.0}
        yield "cell.synced", cell | {"manifest_sha256": sha256, "files": 1, "bytes": len(_DATA)}
        yield "cell.verified", cell | {"manifest_sha256": sha256, "metrics": {"loss": 0.5}}
    yield "queue.done", {"verified": len(digests), "failed": 0}
