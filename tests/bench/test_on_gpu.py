"""`make gpu`, as far as it can be tried where no GPU is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.on_gpu import __main__ as on_gpu
from bench.on_gpu import gpu_page, gpu_parts


def test_the_pages_table_is_what_was_measured_last() -> None:
    page = gpu_page.PAGE.read_text(encoding="utf-8")
    table = page.partition(gpu_page.BEGIN)[2].partition(gpu_page.END)[0].strip()
    measured = json.loads(on_gpu.MEASURED.read_text())
    assert table == gpu_page.section(measured).strip()
    assert not measured["is_dry"]


def test_every_part_has_a_limit_and_all_fit_into_one_command() -> None:
    assert set(on_gpu.PARTS) == set(gpu_parts.PARTS)
    assert on_gpu.ALL_S < 6 * 60


def test_a_part_that_fails_is_a_row_with_its_reason(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(on_gpu.HERE), "BOXCAR_OUT": str(tmp_path)}
    env |= {"CUDA_VISIBLE_DEVICES": ""}
    part = on_gpu._run("cache", 60, tmp_path / "cache", env)
    (row,) = part["rows"]
    assert row["what"] == "latents through pinned memory"
    assert "torch sees no GPU here: try it with --dry" in row["reason"]


def test_a_part_that_takes_too_long_keeps_what_it_has(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(on_gpu.HERE), "BOXCAR_OUT": str(tmp_path)}
    part = on_gpu._run("tests", 0.1, tmp_path / "tests", env)
    assert [row["reason"] for row in part["rows"]] == ["took longer than 0 s"]


@pytest.mark.faults
def test_a_dry_run_has_a_value_in_every_row(tmp_path: Path) -> None:
    to = tmp_path / "gpu.json"
    words = [sys.executable, "-m", "bench.on_gpu", "--dry", "--json", str(to)]
    subprocess.run(words, cwd=on_gpu.HERE, check=True)
    found = json.loads(to.read_text())
    assert found["is_dry"]
    rows = [row for part in found["parts"].values() for row in part["rows"]]
    assert [row["what"] for row in rows if row["reason"]] == []
    assert len(rows) > 25
