"""What cells side by side do to one another, by real processes and a pretended driver."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import waiting

from boxcar.shared.paths import ScratchPaths
from onbox.agent import neighbours
from onbox.agent.neighbours import GpuUsers, say_memory_kill, say_trespasses
from onbox.machine import process

ROWS = [{"uuid": f"GPU-{n}"} for n in range(4)]


def test_a_cell_that_computes_on_anothers_gpu_is_named_with_whom_it_slows_down():
    own = {"a": ("0",), "b": ("1",), "c": ("2",)}
    [(cell, text)] = say_trespasses(own, {"a": {"0", "1", "3"}, "b": {"1"}})
    assert cell == "a"
    assert text.startswith("a computes on GPU 1, 3 too, though it has 0 for itself")
    assert text.endswith("It slows down b")


def test_slices_of_a_card_are_not_told_apart_and_so_not_blamed():
    assert say_trespasses({"a": ("MIG-x",)}, {"a": {"0"}}) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_who_computes_where_is_asked_beside_the_loop_and_of_this_run_alone():
    env = {**os.environ, "BOXCAR_RUN": "mine", "BOXCAR_CELL": "a"}
    words = [sys.executable, "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen(words, env=env, **pipes) as mine,
        subprocess.Popen(words, env=env | {"BOXCAR_RUN": "yours"}, **pipes) as yours,
    ):
        mine.stdout.readline(), yours.stdout.readline()
        told = [("GPU-2", mine.pid), ("GPU-3", yours.pid), ("GPU-9", mine.pid)]
        users = GpuUsers("mine", ROWS, lambda: told)
        found = []
        waiting.until(lambda: found.extend(users.look({"a": ("0",)})) or found)
        mine.communicate(b"\n"), yours.communicate(b"\n")
    [(cell, text)] = found
    assert cell == "a" and "computes on GPU 2 too" in text


def test_where_no_gpu_has_a_name_nobody_is_asked():
    users = GpuUsers("mine", [], lambda: pytest.fail("asked"))
    assert users.look({"a": ("0",)}) == []


def test_a_kill_for_memory_names_all_that_ran_with_their_peaks():
    text = say_memory_kill([("a", 11 * 2**30), ("b", None), ("c", 2**29)])
    assert "while 3 cells ran side by side" in text
    assert "a 11.0 GiB, b, c 0.5 GiB" in text


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_peak_of_a_cell_that_runs_on_is_that_of_its_largest_process(tmp_path):
    scratch = ScratchPaths(tmp_path, "mine")
    env = {**os.environ, process.COOKIE: process.cookie(str(scratch.root), "b", 2)}
    holds = "held = bytearray(64 << 20); held[::4096] = b'x' * len(held[::4096]); del held"
    words = [sys.executable, "-c", f"{holds}; print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=env, **pipes) as running:
        running.stdout.readline()
        found = neighbours._peak_bytes(scratch, "b", 2)
        running.communicate(b"\n")
    assert found and found > 64 << 20
