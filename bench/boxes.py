"""Three boxes over ssh: a look at all of them, beside the barest thing that ssh can do there.

The boxes are the tests' own namespaces with a real sshd each; nothing leaves this machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.row import Row

ROUNDS = 7
_TESTS = Path(__file__).resolve().parents[1] / "tests"


def measure(folder: Path) -> list[Row]:
    sys.path[:0] = [str(_TESTS / "box"), str(_TESTS / "e2e")]
    from hosts import NAMES, NotPermitted, boxes
    from rented import rent

    from boxcar.laptop.project.project import open_project

    try:
        with boxes(folder / "hosts", NAMES) as hosts:
            os.environ["PATH"] = f"{hosts.bin}{os.pathsep}{os.environ['PATH']}"
            lines = {f"queue_{at}": [f"configs/{at}.json recon 1"] for at in (1, 2, 3)}
            project = rent(hosts, folder / "project", lines)
            project.launch().ended(0)
            opened = open_project(project.root / "job.yaml", "rented")
            return _rows(opened, hosts)
    except NotPermitted as reason:
        print(f"no boxes of one's own here: {reason}", file=sys.stderr)
        return []


def _rows(project: Any, hosts: Any) -> list[Row]:
    from boxcar.laptop.common.home import Home
    from boxcar.laptop.sites.ssh.ssh_site import SshSite
    from boxcar.laptop.ssh.connection import Ssh

    connections = [Ssh(name, Home(project.root), print) for name in hosts.names]
    for one in connections:
        one.run(["true"])  # the control connection is open from here on
    site = SshSite.of(project, print)
    site.boxes.refresh()
    bare_s = _median_s(lambda: [one.run(["true"]) for one in connections])
    look_s = _median_s(site.boxes.refresh)
    peer = "three times `ssh box true` over open connections"
    cold_s = _median_s(lambda: _cold(project))
    return [
        Row("one look at three boxes", look_s, "s", bare_s, peer),
        Row("the same, connections included", cold_s, "s", bare_s, peer),
    ]


def _cold(project: Any) -> None:
    """As a verb does it that was just typed."""
    from boxcar.laptop.boxes.over_ssh import SshBoxes

    fresh = SshBoxes(project, print)
    fresh.refresh()
    fresh.close()


def _median_s(act: Callable[[], object]) -> float:
    took_s = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        act()
        took_s.append(time.monotonic() - began)
    return statistics.median(took_s)
