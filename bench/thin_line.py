"""A line of 200 ms and 1 MB/s to one box: the first launch, one after a changed line, a look.

The box is the tests' own namespace with a real sshd, behind a proxy. Beside each
stands what a person would type by hand. Bytes are those that the wire carried to the box.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.row import Row, no_value

DELAY_S, BYTES_PER_S = 0.1, 1_000_000  # each way
FILES, FILE_BYTES = 75, 8_800  # 0.65 MB of code
_TESTS = Path(__file__).resolve().parents[1] / "tests"
_PROXY = Path(__file__).with_name("thin_line_proxy.py")
_BOX = "box-a"
_CELL = "queue_1-1"  # as `add_cells` names it
# The box is made for this measurement, and gets a new key each time.
SSH = ["ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-q"]


def measure(folder: Path) -> list[Row]:
    import_tests()
    from hosts import NotPermitted

    try:
        return _rows(folder)
    except NotPermitted as reason:
        return [no_value("a thin line", f"no box of one's own here: {reason}")]


def import_tests() -> None:
    sys.path[:0] = [str(_TESTS), str(_TESTS / "box"), str(_TESTS / "e2e")]


def _rows(folder: Path) -> list[Row]:
    from hosts import boxes
    from rented import rent

    with boxes(folder / "hosts", [_BOX]) as hosts:
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{hosts.bin}{os.pathsep}{path}"
        try:
            queues = {"queue_1": ["configs/1.json recon 1"]}
            project = rent(hosts, folder / "project", queues, plain=[_BOX])
            write_code(project.root)
            with line(hosts, folder / "counts"):
                return _launches(project, folder / "counts")
        finally:
            os.environ["PATH"] = path


@contextlib.contextmanager
def line(
    hosts: Any, counts: Path, bytes_per_s: int = BYTES_PER_S, delay_s: float = DELAY_S
) -> Iterator[subprocess.Popen[bytes]]:
    """Every ssh of this machine to the boxes goes through the proxy, which hears signals."""
    plain = hosts.config.read_text()
    addresses = dict(enumerate(re.findall(r"HostName (\S+)", plain), 2299))
    ways = [f"{port}={address}:22" for port, address in addresses.items()]
    words = [sys.executable, str(_PROXY), str(counts), str(delay_s), str(bytes_per_s), *ways]
    with subprocess.Popen([*hosts.laptop(), *words]) as proxy:
        try:
            while not counts.exists():
                time.sleep(0.05)
            text = plain
            for port, address in addresses.items():
                text = text.replace(f"{address}\n", f"127.0.0.1\n  Port {port}\n")
            hosts.config.write_text(text)
            yield proxy
        finally:
            proxy.kill()
            hosts.config.write_text(plain)
            counts.unlink(missing_ok=True)


def write_code(root: Path, files: int = FILES, size_bytes: int = FILE_BYTES) -> None:
    for number in range(files):
        lines = (f"value_{number}_{at} = {at * number}\n" for at in range(100_000))
        text = ""
        while len(text) < size_bytes:
            text += next(lines)
        (root / f"module_{number}.py").write_text(text)


def _launches(project: Any, counts: Path) -> list[Row]:
    first = measured(counts, lambda: project.launch().ended(0))
    project.wait_for_agents()
    first_by_hand = measured(counts, lambda: by_hand(project.root))
    change_line(project)
    change_by_hand = measured(counts, lambda: by_hand(project.root))
    changed = measured(counts, lambda: project.launch().ended(0))
    project.wait_for_agents()
    add_cells(project)
    same = measured(counts, lambda: project.launch().ended(0))
    project.wait_for_agents()
    look = measured(counts, lambda: project.boxcar("status").ended(0))
    tail = measured(counts, lambda: project.boxcar("logs", _CELL).ended(0))
    bare = measured(counts, lambda: subprocess.run([*SSH, _BOX, "true"], check=True))
    hand, true = "rsync -a and ssh by hand", "ssh true"
    return [
        Row("first launch", first[0], "s", first_by_hand[0], hand),
        Row("first launch, sent", first[1] / 1e3, "kB", first_by_hand[1] / 1e3, hand),
        Row("first launch, turns", first[2], "", 30, "to reach"),
        Row("launch after a changed line, turns", changed[2], "", change_by_hand[2], hand),
        Row(
            "launch after a changed line", changed[0], "s", change_by_hand[0], hand, most_ratio=1.3
        ),
        Row("launch after a changed line, sent", changed[1] / 1e3, "kB", 43, "to reach"),
        Row("launch, nothing changed, turns", same[2], ""),
        Row("launch, nothing changed", same[0], "s"),
        Row("status, turns", look[2], "", bare[2], true),
        Row("status", look[0], "s", bare[0], true, most_ratio=1.1),
        Row("logs, turns", tail[2], "", bare[2], true),
        Row("logs", tail[0], "s", bare[0], true, most_ratio=1.1),
    ]


def change_line(project: Any) -> None:
    """Of code, with a new cell for each queue: one that is done is launched no more."""
    code = project.root / "module_1.py"
    code.write_text(code.read_text() + "changed = 1\n")
    add_cells(project)


def add_cells(project: Any) -> None:
    for path in (project.root / "queues").iterdir():
        number = len(path.read_text().splitlines())
        config = path.read_text().split()[0]
        project.append(path.stem, f"{config} recon 1 name={path.stem}-{number}")


def by_hand(root: Path) -> None:
    """Two connections: the code, then a program that starts something and says so."""
    words = ["rsync", "-a", "-e", shlex.join(SSH), f"{root}/", f"{_BOX}:/tmp/by_hand/"]
    subprocess.run(words, check=True)
    subprocess.run([*SSH, _BOX, "ls /tmp/by_hand >/tmp/ls.txt"], check=True)


def measured(counts: Path, act: Callable[[], object]) -> tuple[float, float, int]:
    """Seconds, the bytes that went to the box, and the turns of the line."""
    before = counted(counts)
    began = time.monotonic()
    act()
    took_s, after = time.monotonic() - began, counted(counts)
    return took_s, after[0] - before[0], after[2] - before[2]


def counted(counts: Path) -> list[int]:
    """Once the line is still: a connection may be ending."""
    time.sleep(1.0)
    return [int(word) for word in counts.read_text().split()]
