"""`python -m bench [NAME ...] [--long] [--json FILE] [--compare OLD.json]`: the measurements that
are run before each release, with `--long` all, or those that are named.

Each part runs in a process of its own: one that fails is a line with its reason, what libraries
print goes into a log, and the others go on.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import compare
from bench.row import COLUMNS, Row, no_value, of_document
from boxcar.laptop.common import show
from boxcar.shared import timestamp

# Each is a module with `measure(folder)`. In this order, so that what is short comes first.
BENCHES = (
    "start",
    "copies",
    "small_files",
    "load_check",
    "loader",
    "journals",
    "growth",
    "page",
    "agent",
    "gap",
    "gap_growth",
    "slurm_gap",
    "ready_gap",
    "proven_queue",
    "pool",
    "slots",
    "mirror",
    "boxes",
    "thin_line",
    "thin_line_bulk",
    "thin_line_watch",
    "cluster_scale",
    "training_saves",
    "training",
    "training_on_gpu",
)
# Of what no change to the runner makes slower; the others together take a quarter of an hour.
WHERE_NAMED = ("training_equal", "latent_cache")
PART_TIMEOUT_S = 600
_END_S = 30
_TAIL = 200


def main() -> int:
    words = _words()
    if words.one:
        return _measure(words.names[0], Path(words.one), is_long=words.long)
    there_are = (*BENCHES, *WHERE_NAMED)
    names = words.names or (there_are if words.long else BENCHES)
    if unknown := [name for name in names if name not in there_are]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(there_are)}", file=sys.stderr)
        return 2
    # Where a shell or an image switches that off, each start of a verb would compile it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, list[Row]] = {}
    for name in names:
        show.say(f"measuring {name} …")
        began_s = time.monotonic()
        found[name] = _in_a_process(name, is_long=words.long)
        title = f"{name}, in {time.monotonic() - began_s:.0f} s"
        show.table(title, COLUMNS, [row.fields for row in found[name]])
    document = {
        "at": timestamp.utc_now(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "parts": {name: [row.document for row in rows] for name, rows in found.items()},
    }
    if words.json:
        Path(words.json).write_text(json.dumps(document, indent=1) + "\n")
    if words.compare:
        old = json.loads(Path(words.compare).read_text())
        changes = compare.changes(old, document)
        show.table("beside the older figures", compare.COLUMNS, changes)
    return 0


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(BENCHES)}; and {', '.join(WHERE_NAMED)}"
    )
    parser.add_argument("--json", help="write the figures into this file")
    parser.add_argument("--compare", help="a file of --json: say what became slower")
    parser.add_argument(
        "--long", action="store_true", help="all parts, with larger sizes where a part has any"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(name: str, to: Path, *, is_long: bool = False) -> int:
    module = importlib.import_module(f"bench.{name}")
    if is_long and hasattr(module, "LONG_SIZES"):
        module.SIZES = module.LONG_SIZES
    with tempfile.TemporaryDirectory(prefix="boxcar-bench-", dir=Path.cwd()) as folder:
        rows = module.measure(Path(folder))
        to.write_text(json.dumps([row.document for row in rows]))
    return 0


def _in_a_process(name: str, *, is_long: bool = False) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="boxcar-bench-log-") as folder:
        to, log = Path(folder, "rows.json"), Path(folder, "log")
        command = [sys.executable, "-m", "bench", name, "--one", str(to)]
        command += ["--long"] if is_long else []
        with log.open("wb") as file:
            part = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
            try:
                code = part.wait(None if is_long else PART_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                _end(part)
                return [no_value(name, f"took longer than {PART_TIMEOUT_S} s")]
        # torch may abort at the end of a process whose work is done.
        if to.exists():
            return [of_document(one) for one in json.loads(to.read_text())]
        said = log.read_text(errors="replace").strip().splitlines() or [f"exit code {code}"]
        return [no_value(name, said[-1][:_TAIL])]


def _end(part: subprocess.Popen[bytes]) -> None:
    """As by Ctrl-C: the agent of its run is detached, and would go on without it."""
    part.send_signal(signal.SIGINT)
    try:
        part.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(part.pid, signal.SIGKILL)
        part.wait()


if __name__ == "__main__":
    sys.exit(main())
