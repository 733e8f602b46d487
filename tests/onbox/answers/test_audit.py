from __future__ import annotations

import json
import os
import pwd
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.wire import box_asks, envelope
from boxcar.shared.wire.box_asks import TierProbe, TierProbed
from boxcar.shared.wire.facts import Facts, Gpu, HasRun
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import audit, tier_check
from onbox.machine import gpus


@pytest.fixture
def run(tmp_path: Path) -> RunOnBox:
    return RunOnBox("tiny", str(tmp_path / "durable"), str(tmp_path / "data"))


@pytest.fixture
def question(tmp_path: Path) -> box_asks.Audit:
    credentials = str(tmp_path / "system/credentials-tiny.json")
    return box_asks.Audit(credentials, training_python=sys.executable, hook="")


def test_every_fact_of_this_machine_is_there_and_can_be_sent(tmp_path, question, run):
    (tmp_path / "data").mkdir()
    told = json.dumps(codec.encode(audit.answer(question, run)))
    facts = codec.decode(Facts, json.loads(told), "here")
    assert facts.user == pwd.getpwuid(os.getuid()).pw_name
    assert facts.hostname == os.uname().nodename
    assert facts.cpu_count == len(os.sched_getaffinity(0))
    assert facts.memory_total_bytes > 2**28
    assert facts.shm_size_bytes >= facts.shm_free_bytes > 0
    assert facts.bash[0].isdigit()
    assert facts.tools["setsid"]
    assert facts.training.path == sys.executable
    assert facts.places.data.is_there and not facts.places.durable.is_there
    assert facts.places.data.free_bytes > 0
    assert facts.has_run == HasRun(data=False, durable=False)


def test_an_audit_makes_nothing_and_leaves_nothing(tmp_path, question, run):
    (tmp_path / "data").mkdir()
    audit.answer(question, run)
    assert [path.name for path in tmp_path.rglob("*")] == ["data"]


def test_a_run_that_is_there_already_is_seen(tmp_path, question, run):
    (tmp_path / "durable/boxcar/tiny").mkdir(parents=True)
    assert audit.answer(question, run).has_run == HasRun(data=False, durable=True)


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_that_it_will_lie_in(tmp_path):
    facts = audit.place(tmp_path / "a/b/c")
    assert facts.is_writable
    assert not facts.is_there
    assert facts.device == tmp_path.stat().st_dev


def test_a_file_in_the_place_of_a_folder_cannot_be_written_into(tmp_path):
    (tmp_path / "data").write_text("")
    for path in (tmp_path / "data", tmp_path / "data/below"):
        facts = audit.place(path)
        assert not facts.is_writable
        assert str(tmp_path / "data") in facts.problem


def test_what_the_kernel_keeps_read_only_is_not_writable_and_says_why():
    facts = audit.place(Path("/proc/sys"))
    assert not facts.is_writable
    assert facts.problem.startswith("/proc/sys")
    assert facts.mount.startswith("/proc")


def test_cuda_is_asked_only_where_there_is_a_gpu_and_a_torch(tmp_path, question, run, monkeypatch):
    asked = tmp_path / "asked"
    python = tmp_path / "python"
    told = '{"packages": {"torch": "2.9"}, "has_cuda": true}'
    python.write_text(f"#!/bin/sh\necho x >> {asked}\necho '{told}'\n")
    python.chmod(0o755)
    question = replace(question, training_python=str(python))
    monkeypatch.setattr(gpus, "ask_nvidia_smi", list)
    assert audit.answer(question, run).training.packages == {"torch": "2.9"}
    assert asked.read_text() == "x\n"
    monkeypatch.setattr(gpus, "ask_nvidia_smi", lambda: [{"name": "A100"}])
    audit.answer(question, run)
    assert asked.read_text() == "x\n" * 3


@pytest.mark.parametrize("said", ['{"packages": []}', '{"path": 3}', '{"has_cuda": "yes"}'])
def test_what_another_program_prints_is_no_training_python(tmp_path, question, run, said):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{said}'\n")
    python.chmod(0o755)
    facts = audit.answer(replace(question, training_python=str(python)), run)
    assert f"{python}: " in facts.training.problem and "expected" in facts.training.problem


def test_a_driver_that_tells_nonsense_is_a_problem_of_the_gpu(question, run, monkeypatch):
    monkeypatch.setattr(gpus, "ask_nvidia_smi", lambda: [{"name": 3}])
    problem = "the GPU's driver: name: expected str, found int"
    assert audit.answer(question, run).gpus == (Gpu(problem=problem),)


def test_a_host_name_that_has_no_address_is_said_with_the_reason(monkeypatch):
    def unknown(name, port):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(audit.socket, "getaddrinfo", unknown)
    assert "Name or service not known" in audit._hostname_problem("box-a")
    monkeypatch.setattr(audit.socket, "getaddrinfo", lambda name, port: [])
    assert audit._hostname_problem("box-a") is None


def test_a_resolver_that_hangs_holds_up_no_audit(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(audit, "_RESOLVE_TIMEOUT_S", 0.01)
    monkeypatch.setattr(audit.socket, "getaddrinfo", lambda name, port: answers.wait())
    assert "no answer" in audit._hostname_problem("box-a")
    answers.set()


# --- the tier


TOKEN = "0123456789abcdef"
Ask = Callable[..., TierProbed]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def ask(step: str, durable_dir: Path = tmp_path, **words: Any) -> TierProbed:
        places = {"run": "tiny", "durable_dir": str(durable_dir), "data_dir": str(tmp_path)}
        what = {"step": step, "token": TOKEN, "name": "box-x", "names": []}
        data = json.dumps({"ask": "tier_probe", **places, **what, **words}).encode()
        question, run = envelope.read_question(data)
        assert isinstance(question, TierProbe)
        return tier_check.answer(question, run)

    return ask


def test_what_one_box_wrote_another_reads_byte_for_byte(ask):
    written = ask("write", name="box-a").sha256
    assert ask("read", names=["box-a"]) == TierProbed(files={"box-a": written})


def test_two_boxes_and_two_probes_never_write_the_same(ask):
    told = [
        ask("write", name=name, token=token).sha256
        for name in ("box-a", "box-b")
        for token in (TOKEN, "f" * 16)
    ]
    assert len(set(told)) == 4


def test_what_was_changed_on_the_way_is_read_as_another(ask, tmp_path):
    written = ask("write", name="box-a").sha256
    path = next(tmp_path.rglob("from-box-a"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert ask("read", names=["box-a"]).files["box-a"] not in (written, None)


def test_a_tier_of_ones_own_has_nothing_from_the_others(ask, tmp_path):
    ask("write", name="box-a", durable_dir=tmp_path / "one")
    told = ask("read", names=["box-a"], durable_dir=tmp_path / "other")
    assert told == TierProbed(files={"box-a": None})


def test_of_all_who_claim_at_once_one_wins_and_all_read_its_name(ask):
    ask("write", name="box-0")
    names = [f"box-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda name: ask("claim", name=name), names))
    winners = [name for name, said in zip(names, told, strict=True) if said.has_won]
    assert len(winners) == 1
    assert ask("owner") == TierProbed(owner=winners[0])


def test_cleaning_removes_all_of_it_and_nothing_of_the_runs(ask, tmp_path):
    ask("write", name="box-a")
    assert ask("clean") == TierProbed()
    assert not (tmp_path / "boxcar/tiny").exists()
    ask("write", name="box-a")
    (tmp_path / "boxcar/tiny/queues").mkdir()
    ask("clean")
    ask("clean")
    assert [path.name for path in (tmp_path / "boxcar/tiny").iterdir()] == ["queues"]


def test_a_tier_that_cannot_be_written_is_a_problem_in_words(ask, tmp_path):
    (tmp_path / "boxcar").write_text("")
    assert "boxcar" in ask("write", name="box-a").problem


@pytest.mark.parametrize(
    "words",
    [
        {"step": "write", "name": "../box"},
        {"step": "write", "name": ""},
        {"step": "read", "names": ["a", "/etc/passwd"]},
        {"step": "read", "names": [3]},
        {"step": "claim", "name": "a/b"},
        {"step": "remove"},
        {"step": "clean", "token": "../../.."},
        {"step": "clean", "token": ""},
        {"step": "clean", "token": "0123"},
        {"step": "clean", "run": "../other"},
    ],
)
def test_what_could_leave_the_probes_folder_is_refused(ask, tmp_path, words):
    with pytest.raises(InputError):
        ask(**words)
    assert list(tmp_path.iterdir()) == []
