"""A job's data on rented boxes: real sshd, real rsync, real agents."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hosts import Hosts
from rented import Rented, on_the_wire_bytes, rent, without

SAY = """import os, pathlib, hashlib
_set = pathlib.Path(os.environ["BOXCAR_DATA"], "set")
print("data", hashlib.sha256(b"".join(p.read_bytes() for p in sorted(_set.iterdir()))).hexdigest())
"""
FILES, FILE_BYTES = 40, 100_000


def with_data(hosts: Hosts, root: Path, **more: object) -> Rented:
    run = rent(hosts, root, {"q1": ["configs/a.json one"]})
    fill(run, b"first")
    train = run.root / "train.py"
    train.write_text(SAY + train.read_text())
    run.write_job(data={"set": "sets/one"}, **more)
    return run


def fill(run: Rented, seed: bytes) -> str:
    """What a cell prints of it."""
    import hashlib

    folder = run.root / "sets" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    whole = hashlib.sha256()
    for number in range(FILES):
        data = hashlib.shake_128(seed + bytes([number])).digest(FILE_BYTES)
        (folder / f"{number:03}.bin").write_bytes(data)
        whole.update(data)
    return whole.hexdigest()


def store(run: Rented) -> Path:
    return run.box("box-a").parent / ".data"


def said(run: Rented, cell: str) -> str:
    return (run.tier / "cells" / cell / f"{cell}.log").read_text()


@pytest.mark.faults
def test_data_that_is_changed_leaves_alone_what_a_cell_trains_on(
    one_box: Hosts, tmp_path: Path
) -> None:
    run = with_data(one_box, tmp_path / "project")
    first = fill(run, b"first")
    run.hold("a", at=1)
    run.launch().ended(0)
    run.wait_for_step("box-a", "a", 1)
    second = fill(run, b"second")
    run.write_config("b", x=2)
    run.append("q1", "configs/b.json one")
    before = {path.name for path in store(run).iterdir()}
    refused = run.boxcar("push").ended(2)
    assert "data of the plan differs" in refused.err and "push --mixed" in refused.err
    assert {path.name for path in store(run).iterdir()} == before
    run.boxcar("push", "--mixed").ended(0)
    assert len(list(store(run).iterdir())) == 2 > len(before)
    run.let_go("a")
    run.wait_for_event("q1", "cell.verified", "b")
    assert f"data {first}" in said(run, "a")
    assert f"data {second}" in said(run, "b")

    listed = run.boxcar("data").ended(0)
    assert listed.out.count("whole") == 2
    sent = on_the_wire_bytes(one_box, "box-a")
    run.boxcar("push", "--mixed").ended(0)
    assert on_the_wire_bytes(one_box, "box-a") - sent < FILES * FILE_BYTES / 4, "it was sent again"


@pytest.mark.faults
@pytest.mark.parametrize("tool", ["rsync", "tar"])
def test_after_a_ctrl_c_the_same_command_goes_on(one_box: Hosts, tmp_path: Path, tool: str) -> None:
    if tool == "tar":
        without(one_box, "box-a", "rsync")
    run = with_data(one_box, tmp_path / "project")
    whole = fill(run, b"first")

    def come() -> int:
        return len(list(store(run).glob("*.part/files/*.bin"))) if store(run).is_dir() else 0

    one_box.slow("box-a", "8mbit")
    with run.start("push") as verb:
        run.wait_for("some files on the box", lambda: come() >= 2 or verb.poll() is not None)
        verb.send_signal(signal.SIGINT)
        verb.communicate()
    one_box.heal("box-a")
    assert not [path for path in store(run).iterdir() if not path.name.endswith(".part")]
    run.launch().ended(0)
    run.wait_for_event("q1", "cell.verified", "a")
    assert f"data {whole}" in said(run, "a")
    assert not [path for path in store(run).iterdir() if path.name.endswith(".part")]


@pytest.mark.faults
def test_data_that_was_damaged_on_the_box_starts_no_cell_until_it_is_sent_again(
    one_box: Hosts, tmp_path: Path
) -> None:
    run = with_data(one_box, tmp_path / "project")
    whole = fill(run, b"first")
    run.hold("a", at=1)
    run.write_config("b", x=2)
    run.append("q1", "configs/b.json one")
    run.launch().ended(0)
    run.wait_for_step("box-a", "a", 1)
    [file] = store(run).glob("*/files/007.bin")
    file.unlink()
    file.write_bytes(os.urandom(10))
    run.let_go("a")
    run.wait_for_event("q1", "queue.stopped")
    assert "cell.started" not in run.types("q1", "b")
    assert "DATA: set is not whole on box-a: 007.bin" in str(run.events("q1")[-1]), run.told()
    run.launch().ended(0)
    run.wait_for_event("q1", "cell.verified", "b")
    assert f"data {whole}" in said(run, "b")
