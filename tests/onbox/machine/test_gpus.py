from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from onbox.machine import gpus
from onbox.machine.gpus import Gpus


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`driver("echo '[]'")`: a device is there, and the child that is asked does this."""

    def answer(text: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        (tmp_path / "nvidiactl").touch()
        monkeypatch.setattr(sys, "executable", str(script))
        monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "nvidiactl",))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return answer


@pytest.mark.parametrize(
    ("visible", "count"),
    [("0", 1), ("0,1,3", 3), ("", 0), ("-1", 0), ("GPU-8932f937-d72c,", 1), (" 0 , 1 ", 2)],
)
def test_the_gpus_are_those_that_a_training_would_see(monkeypatch, visible, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.count() == count


def test_without_a_choice_they_are_those_that_the_driver_names(driver):
    driver("""echo '[{"name": "A100"}, {"name": "A100"}]'""")
    assert gpus.count() == 2


@pytest.mark.parametrize("text", ["echo nothing", "exit 1", "kill -9 $$", "echo '[]'; exit 3"])
def test_a_driver_that_breaks_whoever_asks_names_none(driver, text):
    driver(text)
    assert gpus.ask_child() == []


def test_a_driver_that_hangs_whoever_asks_holds_nobody_up(driver, monkeypatch):
    monkeypatch.setattr(gpus, "TIMEOUT_S", 0.2)
    driver("exec sleep 600")
    assert gpus.ask_child() == []  # the time limit of the test is the assertion


def test_without_a_device_nobody_is_asked(driver, monkeypatch, tmp_path):
    driver(f"touch {tmp_path}/asked")
    monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "none",))
    assert gpus.ask_child() == []
    assert not (tmp_path / "asked").exists()


def test_the_last_answer_stands_until_it_is_time_to_ask_again(monkeypatch):
    answers = [[{"name": "first"}], [{"name": "second"}]]
    one = Gpus(lambda: answers.pop(0))
    assert [one.read(), one.read()] == [[{"name": "first"}]] * 2
    monkeypatch.setattr(gpus, "EVERY_S", 0.0)
    one = Gpus(lambda: answers.pop(0))
    assert one.read() == [{"name": "second"}]


def test_where_no_driver_is_there_are_no_rows():
    assert isinstance(gpus.rows(), list)


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`smi("echo ...")`: there is an nvidia-smi, and it does this."""

    def answer(text: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return answer


def test_the_drivers_own_program_names_them_where_the_library_does_not(smi):
    smi(
        """echo 'NVIDIA A100-SXM4-80GB, 7, 1024, 81920, 41'; echo 'Tesla T4, [N/A], 0, 15360, 30'"""
    )
    first, second = gpus.ask_nvidia_smi()
    assert first["name"] == "NVIDIA A100-SXM4-80GB"
    assert first["memory_total_bytes"] == 80 * 2**30
    assert first["memory_used_bytes"] == 2**30
    assert (first["utilization_percent"], first["temperature_c"]) == (7, 41)
    assert "utilization_percent" not in second


@pytest.mark.parametrize(
    "text",
    ["echo 'No devices were found'", "exit 9", "exec sleep 600", "echo 'a, b, c, d, e'; exit 1"],
)
def test_a_program_that_names_no_gpu_counts_none(smi, monkeypatch, text):
    monkeypatch.setattr(gpus, "TIMEOUT_S", 0.2)
    smi(text)
    assert gpus.ask_nvidia_smi() == []
