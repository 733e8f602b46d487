"""Boxes over ssh, one to eight: a look at all of them, beside the barest thing ssh can do there.

The boxes are the tests' own namespaces with a real sshd each; nothing leaves this machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase as LETTERS
from typing import Any

from bench.row import Row, no_value

NUMBERS, ROUNDS = (1, 3, 8), 5
_TESTS = Path(__file__).resolve().parents[1] / "tests"
_PEER = "ssh true, connections open"  # short: a legend has it


def measure(folder: Path) -> list[Row]:
    sys.path[:0] = [str(_TESTS), str(_TESTS / "box"), str(_TESTS / "e2e")]
    from hosts import NotPermitted

    try:
        return [row for number in NUMBERS for row in _of_number(folder / str(number), number)]
    except NotPermitted as reason:
        return [no_value("a look at boxes", f"no boxes of one's own here: {reason}")]


def _of_number(folder: Path, number: int) -> list[Row]:
    from hosts import boxes
    from rented import rent

    from boxcar.laptop.project.project import open_project

    with boxes(folder / "hosts", [f"box-{letter}" for letter in LETTERS[:number]]) as hosts:
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{hosts.bin}{os.pathsep}{path}"
        try:
            lines = {f"queue_{at}": [f"configs/{at}.json recon 1"] for at in range(1, number + 1)}
            project = rent(hosts, folder / "project", lines, plain=hosts.names)
            project.launch().ended(0)
            return _rows(open_project(project.root / "job.yaml", "rented"), hosts, number)
        finally:
            os.environ["PATH"] = path


def _rows(project: Any, hosts: Any, number: int) -> list[Row]:
    from boxcar.laptop.common.home import Home
    from boxcar.laptop.hosts.connection import Ssh
    from boxcar.laptop.places.ssh_site import SshSite

    connections = [Ssh(name, Home(project.root), print) for name in hosts.names]
    for one in connections:
        one.run(["true"])  # the control connection is open from here on
    site = SshSite(project, print)
    site.refresh()
    bare_s = _median_s(lambda: [one.run(["true"]) for one in connections])
    look_s = _median_s(site.refresh)
    cold_s = _median_s(lambda: _cold(project))
    return [
        Row(f"a look, {number} boxes", look_s, "s", bare_s, _PEER),
        Row(f"a look, connections included, {number} boxes", cold_s, "s", bare_s, _PEER),
    ]


def _cold(project: Any) -> None:
    """As a verb does it that was just typed."""
    from boxcar.laptop.places.ssh_site import SshSite

    fresh = SshSite(project, print)
    fresh.refresh()
    fresh.close()


def _median_s(act: Callable[[], object]) -> float:
    took_s = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        act()
        took_s.append(time.monotonic() - began)
    return statistics.median(took_s)
