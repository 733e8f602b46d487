from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

import pytest

from onbox.answers import audit
from onbox.machine import gpus


@pytest.fixture
def request_(tmp_path: Path) -> dict[str, Any]:
    return {
        "run": "tiny",
        "data_dir": str(tmp_path / "data"),
        "durable_dir": str(tmp_path / "durable"),
        "credentials": str(tmp_path / "system/credentials-tiny.json"),
        "training_python": sys.executable,
        "hook": "",
    }


def test_every_fact_of_this_machine_is_there_and_can_be_sent(tmp_path, request_):
    (tmp_path / "data").mkdir()
    facts = json.loads(json.dumps(audit.answer(request_)))
    assert facts["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert facts["hostname"] == os.uname().nodename
    assert facts["cpu_count"] == len(os.sched_getaffinity(0))
    assert facts["memory_total_bytes"] > 2**28
    assert facts["shm_size_bytes"] >= facts["shm_free_bytes"] > 0
    assert facts["bash"][0].isdigit()
    assert facts["tools"]["setsid"]
    assert facts["training"]["path"] == sys.executable
    assert {place["is_there"] for place in facts["places"].values()} == {True, False}
    assert facts["places"]["data"]["free_bytes"] > 0
    assert facts["has_run"] == {"data": False, "durable": False}


def test_an_audit_makes_nothing_and_leaves_nothing(tmp_path, request_):
    (tmp_path / "data").mkdir()
    audit.answer(request_)
    assert [path.name for path in tmp_path.rglob("*")] == ["data"]


def test_a_run_that_is_there_already_is_seen(tmp_path, request_):
    (tmp_path / "durable/boxcar/tiny").mkdir(parents=True)
    assert audit.answer(request_)["has_run"] == {"data": False, "durable": True}


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_that_it_will_lie_in(tmp_path):
    facts = audit.place(tmp_path / "a/b/c")
    assert facts["is_writable"]
    assert not facts["is_there"]
    assert facts["device"] == tmp_path.stat().st_dev


def test_a_file_in_the_place_of_a_folder_cannot_be_written_into(tmp_path):
    (tmp_path / "data").write_text("")
    for path in (tmp_path / "data", tmp_path / "data/below"):
        facts = audit.place(path)
        assert not facts["is_writable"]
        assert str(tmp_path / "data") in facts["problem"]


def test_what_the_kernel_keeps_read_only_is_not_writable_and_says_why():
    facts = audit.place(Path("/proc/sys"))
    assert not facts["is_writable"]
    assert facts["problem"].startswith("/proc/sys")
    assert facts["mount"].startswith("/proc")


def test_cuda_is_asked_only_where_there_is_a_gpu_and_a_torch(tmp_path, request_, monkeypatch):
    asked = tmp_path / "asked"
    python = tmp_path / "python"
    told = '{"packages": {"torch": "2.9"}, "has_cuda": true}'
    python.write_text(f"#!/bin/sh\necho x >> {asked}\necho '{told}'\n")
    python.chmod(0o755)
    request_["training_python"] = str(python)
    monkeypatch.setattr(gpus, "ask_nvidia_smi", list)
    assert audit.answer(request_)["training"]["packages"] == {"torch": "2.9"}
    assert asked.read_text() == "x\n"
    monkeypatch.setattr(gpus, "ask_nvidia_smi", lambda: [{"name": "A100"}])
    audit.answer(request_)
    assert asked.read_text() == "x\n" * 3
