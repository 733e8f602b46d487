"""Much over a line of 200 ms: a first launch with many files, results while the line is cut three
times, and a changed line for three boxes that share the line.

The boxes and the line are those of `thin_line`. Beside each stands what a person would type.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.row import Row, no_value
from bench.thin_line import (
    BYTES_PER_S,
    SSH,
    by_hand,
    change_line,
    import_tests,
    line,
    measured,
    write_code,
)

# Bytes of code, its files, bytes of results.
SIZES, LONG_SIZES = (10_000_000, 500, 50_000_000), (100_000_000, 5_000, 1_000_000_000)
RESULTS_BYTES_PER_S = 5_000_000
# Bytes of data, its files; the line is 50 ms both ways together.
DATA, DATA_BYTES_PER_S, DATA_DELAY_S = (200_000_000, 2_000), 20_000_000, 0.025
CUTS = (0.25, 0.5, 0.75)
SMALL_CELLS, SMALL_BYTES = 5, 2_000_000
_BOXES = ("box-a", "box-b", "box-c")
_WEIGHTS = """
(out / "weights.bin").write_bytes(os.urandom(config["bytes"]))
"""


def measure(folder: Path) -> list[Row]:
    import_tests()
    from hosts import NotPermitted

    try:
        return [
            *_many_files(folder / "files"),
            *_cuts(folder / "cuts"),
            *_boxes(folder / "boxes"),
            *_data(folder / "data"),
        ]
    except NotPermitted as reason:
        return [no_value("bulk over a thin line", f"no box of one's own here: {reason}")]


@contextmanager
def _rented(folder: Path, names: tuple[str, ...], **job: Any) -> Iterator[Any]:
    from hosts import boxes
    from rented import rent

    folder.mkdir()
    with boxes(folder / "hosts", names) as hosts:
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{hosts.bin}{os.pathsep}{path}"
        try:
            queues = {f"queue_{at}": [f"configs/{at}.json recon 1"] for at, _ in enumerate(names)}
            yield rent(hosts, folder / "project", queues, plain=list(names), **job)
        finally:
            os.environ["PATH"] = path


def _many_files(folder: Path) -> list[Row]:
    size_bytes, files, _ = SIZES
    with _rented(folder, _BOXES[:1]) as project, line(project.hosts, folder / "counts"):
        write_code(project.root, files, size_bytes // files)
        hand = measured(folder / "counts", lambda: by_hand(project.root))
        ours = measured(folder / "counts", lambda: project.launch().ended(0))
        project.wait_for_agents()
    what = f"first launch, {size_bytes // 10**6} MB of code in {files} files"
    name = "rsync -a and ssh by hand"
    return [
        Row(what, ours[0], "s", hand[0], name, most_ratio=1.1),
        Row(f"{what}, sent", ours[1] / 1e6, "MB", hand[1] / 1e6, name),
    ]


def _data(folder: Path) -> list[Row]:
    """A push of data for the first time, with the release and all questions; each file is read by
    the box, and is on its disk, before it ends.
    """
    size_bytes, files = DATA
    counts, there = folder / "counts", "/tmp/box/data/by_hand"
    with _rented(folder, _BOXES[:1], data={"set": "set"}) as project:
        source = project.root / "set"
        source.mkdir()
        for number in range(files):
            (source / f"{number:05}.bin").write_bytes(os.urandom(size_bytes // files))
        project.boxcar("audit")  # the box is met, and the files are read, as by hand
        rsync = ["rsync", "-a", "-e", shlex.join(SSH), f"{source}/", f"{_BOXES[0]}:{there}/"]
        with line(project.hosts, counts, DATA_BYTES_PER_S, DATA_DELAY_S):
            hand_s = measured(counts, lambda: subprocess.run(rsync, check=True))[0]
            ours_s = measured(counts, lambda: project.boxcar("push").ended(0))[0]
    what = f"push of {size_bytes // 10**6} MB of data in {files} files at 20 MB/s and 50 ms"
    return [Row(what, ours_s, "s", hand_s, "rsync -a by hand", most_ratio=1.1)]


def _cuts(folder: Path) -> list[Row]:
    size_bytes = SIZES[2]
    counts, here = folder / "counts", folder / "by_hand"
    artifacts = ["metrics.json", {"path": "weights.bin", "load": "bytes"}]
    with _rented(folder, _BOXES[:1], artifacts=artifacts) as project:
        _ask_for_weights(project, size_bytes)
        project.launch().ended(0)
        project.wait_for_agents()
        there = str(project.tier / "cells").partition("/root")[2]
        rsync = ["rsync", "-a", "--partial", "-e", shlex.join(SSH), f"{_BOXES[0]}:{there}/", here]

        def pull_by_hand() -> None:
            while subprocess.run(rsync, check=False).returncode:
                pass

        with line(project.hosts, counts, RESULTS_BYTES_PER_S) as proxy:
            with _cut(proxy, counts, size_bytes):
                hand_s = measured(counts, pull_by_hand)[0]
            with _cut(proxy, counts, size_bytes):
                ours_s = measured(counts, lambda: project.boxcar("pull").ended(0))[0]
    what = f"{size_bytes // 10**6} MB of results at 5 MB/s, the line cut three times"
    return [Row(what, ours_s, "s", hand_s, "rsync --partial in a loop", most_ratio=1.05)]


def _ask_for_weights(project: Any, size_bytes: int) -> None:
    train = project.root / "train.py"
    train.write_text(train.read_text() + _WEIGHTS)
    sizes = [size_bytes - SMALL_CELLS * SMALL_BYTES, *[SMALL_BYTES] * SMALL_CELLS]
    for at, size in enumerate(sizes):
        (project.root / "configs" / f"{at}.json").write_text(json.dumps({"bytes": size}))
    lines = "".join(f"configs/{at}.json recon 1\n" for at, _ in enumerate(sizes))
    (project.root / "queues" / "queue_0.txt").write_text(lines)


@contextmanager
def _cut(proxy: subprocess.Popen[bytes], counts: Path, size_bytes: int) -> Iterator[None]:
    """The line breaks where so much of it has come."""
    before, is_over = _came(counts), threading.Event()

    def watch() -> None:
        for share in CUTS:
            while _came(counts) - before < share * size_bytes and not is_over.wait(0.02):
                pass
            proxy.send_signal(signal.SIGUSR1)

    cutting = threading.Thread(target=watch)
    cutting.start()
    yield
    is_over.set()
    cutting.join()


def _came(counts: Path) -> int:
    words = counts.read_text().split()
    return int(words[1]) if len(words) == 3 else 0


def _boxes(folder: Path) -> list[Row]:
    took = {n: _changed_line(folder.with_name(f"boxes_{n}"), _BOXES[:n]) for n in (1, 3)}
    one, three = took[1], took[3]
    most = 1.1 * three[0][1] / BYTES_PER_S
    return [
        Row(
            "first launch, three boxes on one line", three[0][0], "s", most, "their bytes, and 10 %"
        ),
        Row(
            "launch after a changed line, three boxes",
            three[1][0],
            "s",
            one[1][0],
            "one box",
            most_ratio=1.3,
        ),
    ]


def _changed_line(folder: Path, names: tuple[str, ...]) -> list[tuple[float, float, int]]:
    """A first launch, and one after a line of code was changed."""
    found = []
    with _rented(folder, names, has_tier=False) as project, line(project.hosts, folder / "counts"):
        write_code(project.root)
        for _turn in range(2):
            found.append(measured(folder / "counts", lambda: project.launch().ended(0)))
            project.wait_for_agents()
            change_line(project)
            time.sleep(1)
    return found
