"""A rented box that somebody else has root on, or that is broken: it costs nobody else anything."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest
from hosts import Hosts
from rented import Rented, hurry, rent

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.project import Project, open_project
from boxcar.shared.errors import InputError

TWO = {"q1": ["configs/a.json one"], "q2": ["configs/b.json one"]}
# Said instead of an answer, by what stands where the agent's file was.
FLOOD = """
import sys
while True: sys.stdout.write("BOXCAR-ANSWER " + "[" * 65536)
"""
DRIVES_THE_TERMINAL = r"""
import json
text = "\x1b]0;owned\x07\x1b[2J\u202e\x9b2J\ud800"
print("BOXCAR-ANSWER " + json.dumps({"error": {"kind": "InputError", "text": text}}))
"""
UNSEEN = set("\x1b\x07\u202e\x9b")
BOMB = """print("BOXCAR-ANSWER " + "[" * 1000000)"""
MOST_MEMORY_KIB = 400 * 1024


def project_of(run: Rented) -> Project:
    return open_project(run.root / "job.yaml", "rented")


def becomes_a_liar(hosts: Hosts, box: str, program: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", program)
    (path,) = hosts.seen(box, Hosts.data_dir / "boxcar").glob("onbox-*.pyz")
    path.write_bytes(buffer.getvalue())


def test_whatever_a_box_answers_the_others_are_seen(hosts: Hosts, tmp_path: Path) -> None:
    run = rent(hosts, tmp_path / "project", TWO)
    run.launch().ended(0)
    run.watch()
    for program, word in (
        (FLOOD, "box-a: printed more than"),
        (DRIVES_THE_TERMINAL, "owned"),
        (BOMB, "box-a: did not answer"),
    ):
        becomes_a_liar(hosts, "box-a", program)
        said = run.boxcar("status", "--json").ended(0)
        words = {queue["queue"]: queue["condition"] for queue in said.document["queues"]}
        assert words == {"q1": "done", "q2": "done"}, "the journals are known from before"
        assert word in str(said.document["problems"])
        assert not UNSEEN & set(said.out + said.err)
    becomes_a_liar(hosts, "box-a", DRIVES_THE_TERMINAL)
    refused = run.boxcar("down", typed="tiny").ended(1)
    assert "box-a does not answer" in refused.err and "nothing was removed" in refused.err
    assert not UNSEEN & set(refused.out + refused.err)


def test_a_box_that_prints_without_end_fills_no_memory(one_box: Hosts, tmp_path: Path) -> None:
    ssh = Ssh("box-a", Home(tmp_path), print)
    # What this process has by now, such as torch, the other one has too.
    already_kib = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    pid = os.fork()
    if pid == 0:
        # A process of its own, because the kernel only tells the most that one has ever had.
        try:
            ssh.run(["yes", "x" * 4096], timeout_s=20)
        finally:
            os._exit(0)
    _, _, used = os.wait4(pid, 0)
    ssh.close()
    assert used.ru_maxrss - already_kib < MOST_MEMORY_KIB


def test_the_verb_is_not_run_on_another_box_of_the_same_key(one_box: Hosts, tmp_path: Path) -> None:
    """Boxes that were made from one image may all have the same host key."""
    run = rent(one_box, tmp_path / "project", {"q1": TWO["q1"]})
    boxes = SshSite(project_of(run), print)
    canary = one_box.seen("box-a", Hosts.data_dir / "canary")
    boxes.refresh()
    boxes.run_program("box-a", ["touch", str(Hosts.data_dir / "canary")])
    assert canary.exists()
    canary.unlink()
    marker = one_box.seen("box-a", Hosts.data_dir / "boxcar" / "box.json")
    for other in (marker.read_text().replace("box-a", "box-z"), None):
        marker.unlink()
        if other:
            marker.write_text(other)
        with pytest.raises(InputError, match="a different box answers"):
            boxes.run_program("box-a", ["touch", str(Hosts.data_dir / "canary")])
        assert not canary.exists()
    boxes.close()


def test_a_cell_that_is_far_larger_than_it_was_published_fills_no_disk(
    one_box: Hosts, tmp_path: Path
) -> None:
    hurry(one_box)
    run = rent(one_box, tmp_path / "project", {"q1": TWO["q1"]})
    run.launch().ended(0)
    run.watch()
    model = run.tier / "cells" / "a" / "model.json"
    os.truncate(model, 400 << 20)
    said = run.boxcar("pull").ended(1)
    assert "bytes, but only" in said.err
    left = [path.stat().st_size for path in run.results.rglob("*") if path.is_file()]
    assert sum(left) < 1_000_000
