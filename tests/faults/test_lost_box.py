"""A box with a tier of its own dies for good while a cell runs; another takes its alias."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "box"))

from hosts import NAMES, Hosts, NotPermitted, boxes
from proof import assert_pulled
from rented import rent

pytestmark = pytest.mark.faults


@pytest.fixture
def one_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    try:
        with boxes(tmp_path / "hosts", NAMES[:1]) as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")


def test_the_cell_continues_from_the_checkpoint_that_watch_had_brought_here(one_box, tmp_path):
    run = rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one 40"]}, has_tier=False)
    run.hold("a", at=30)
    run.launch().ended(0)
    pointer = run.results / "resume" / "a.json"
    with run.start("watch", "--every", "2s") as watching:
        run.wait_for("the checkpoint of a", pointer.exists)
        # Everything on the box is lost, and whoever looks sees another one.
        one_box.run("box-a", ["sh", "-c", f"rm -rf {Hosts.data_dir}/* {Hosts.data_dir}/.b*"])
        one_box.halt("box-a")
        watching.terminate()
        watching.communicate()
    one_box.boot("box-a")
    run.let_go("a")
    launched = run.launch().ended(0)
    assert "a: resumes on box-a from its checkpoint of" in launched.err
    run.boxcar("watch", "--every", "1s").ended(0)
    history = (run.box("box-a") / "cells/a/out/history.txt").read_text()
    assert history.startswith("start 30\n") and "step 40" in history
    run.boxcar("verify").ended(0)
    assert_pulled(run, ["a"])
    run.boxcar("watch", "--once-if-changed")
    assert not pointer.exists(), "nothing continues from it any more"
