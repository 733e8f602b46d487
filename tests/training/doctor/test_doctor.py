from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fsdp_on_cpu import HAS_FSDP_ON_CPU
from ranks_at_work import run_ranks

from boxcar.training.doctor import __main__ as doctor
from boxcar.training.doctor import doctor_box, doctor_ranks
from boxcar.training.hang import rank_dump
from boxcar.training.hang.rank_dump import RankDump
from boxcar.training.hang.stacks import CodeLine

MIB = 1024**2
NOT_TRIED = [] if HAS_FSDP_ON_CPU else ["FSDP and its checkpoint"]


def check_all(folder: str) -> None:
    doctor_ranks._be_a_rank(Path(folder), {"RANK": os.environ["RANK"]}, 30.0)


def test_two_real_ranks_join_talk_step_and_save(tmp_path: Path) -> None:
    run_ranks(2, check_all, str(tmp_path), env={"BOXCAR_OUT": str(tmp_path)})
    said = [doctor_ranks._said(tmp_path, rank) for rank in range(2)]
    rows = [doctor_ranks._row(name, [one[name] for one in said], []) for name in said[0]]
    assert [row.name for row in rows] == list(doctor_ranks.CHECKS)
    assert [row.name for row in rows if row.verdict != "ok"] == NOT_TRIED, rows
    assert all(row.verdict == "warn" for row in rows if row.name in NOT_TRIED), rows


@pytest.mark.faults
def test_the_doctor_starts_its_ranks_itself_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "boxcar.training.doctor", "--json", "--ranks", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    rows = {row["name"]: row["verdict"] for row in told["checks"]}
    expected = {name: "warn" if name in NOT_TRIED else "ok" for name in doctor_ranks.CHECKS}
    assert {name: rows[name] for name in doctor_ranks.CHECKS} == expected, told
    assert done.returncode == (0 if told["is_fit"] else 1)
    assert list(tmp_path.iterdir()) == []


def test_this_machine_gets_a_verdict_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    rows = doctor_box.rows(2)
    assert [row.name for row in rows] == [
        "torch",
        "cuda",
        "backends",
        "/dev/shm",
        "memory",
        "cpu",
        "open files",
        "port",
    ]
    assert all(row.advice for row in rows if row.verdict != "ok")
    assert rows[0].verdict == "ok"


JUDGED: dict[str, tuple[doctor_box.Row, str, str]] = {
    "an old torch": (doctor_box.judge_torch("2.3.1+cu121"), "bad", "2.4 or newer"),
    "a new torch": (doctor_box.judge_torch("2.13.0+cpu"), "ok", ""),
    "no GPU": (doctor_box.judge_gpus(None, [], False), "warn", "on the CPU"),
    "a GPU and torch for the CPU": (doctor_box.judge_gpus(None, [], True), "bad", "for CUDA"),
    "a driver that torch cannot use": (doctor_box.judge_gpus("12.6", [], True), "bad", "nvidia"),
    "GPUs": (doctor_box.judge_gpus("12.6", ["H100", "H100"], True), "ok", ""),
    "no gloo": (doctor_box.judge_backends(False, True, 0), "bad", "another build"),
    "GPUs without nccl": (doctor_box.judge_backends(True, False, 2), "bad", "nccl"),
    "docker's /dev/shm": (doctor_box.judge_shm(64 * MIB, 64 * MIB), "warn", "--shm-size"),
    "a full /dev/shm": (doctor_box.judge_shm(8192 * MIB, 10 * MIB), "warn", "a dead run"),
    "no /dev/shm": (doctor_box.judge_shm(None, None), "warn", "num_workers=0"),
    "a large /dev/shm": (doctor_box.judge_shm(8192 * MIB, 8000 * MIB), "ok", ""),
    "little memory": (doctor_box.judge_memory(512 * MIB), "warn", "fewer workers"),
    "much memory": (doctor_box.judge_memory(64_000 * MIB), "ok", ""),
    "a quota that nobody sees": (
        doctor_box.judge_cpus(64, 8.0, None, 2),
        "warn",
        "export OMP_NUM_THREADS=4",
    ),
    "too many threads": (doctor_box.judge_cpus(8, None, 8, 2), "warn", "OMP_NUM_THREADS=4"),
    "torchrun will set it": (doctor_box.judge_cpus(8, None, None, 2), "ok", ""),
    "one thread each is never too many": (doctor_box.judge_cpus(1, None, 1, 2), "ok", ""),
    "few files": (doctor_box.judge_files(1024, 1_048_576), "warn", "ulimit -n 65536"),
    "as many files as there are": (doctor_box.judge_files(1024, -1), "warn", "ulimit -n 65536"),
    "many files": (doctor_box.judge_files(65536, 65536), "ok", ""),
}


@pytest.mark.parametrize("case", JUDGED)
def test_the_verdict_on(case: str) -> None:
    row, verdict, words = JUDGED[case]
    assert row.verdict == verdict
    assert words in row.advice
    assert bool(row.advice) == (verdict != "ok")


def test_the_quota_of_a_container_is_read_in_both_spellings(tmp_path: Path) -> None:
    assert doctor_box.cpu_quota(tmp_path) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("250000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert doctor_box.cpu_quota(tmp_path) == 2.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert doctor_box.cpu_quota(tmp_path) is None


OK_ROW = {"what": "fine", "time_s": 0.1}
CLOSED = {"error": "RuntimeError: Connection closed by peer (x.py:1)", "time_s": 0.2}
UNABLE = {"not_tried": "FSDP on the CPU needs torch 2.7", "time_s": 0.1}
WRONG = {"error": "WrongError: 3 of 9 sums are wrong (y.py:2)", "time_s": 0.3}


@pytest.mark.parametrize(
    ("said", "codes", "verdict", "what"),
    [
        ([OK_ROW, OK_ROW], [0, 0], "ok", "fine"),
        # The echo of another rank's end is not the cause.
        ([CLOSED, WRONG], [1, 1], "bad", "rank 1: WrongError: 3 of 9 sums are wrong (y.py:2)"),
        ([OK_ROW, None], [1, -9], "bad", "rank 1 ended with -9"),
        ([OK_ROW, None], [1, None], "bad", "rank 1 hung and was killed"),
        ([None, None], [1, 1], "warn", "not reached"),
        ([UNABLE, UNABLE], [0, 0], "warn", "FSDP on the CPU needs torch 2.7"),
    ],
)
def test_one_rank_that_fails_makes_the_check_bad(
    said: list[Any], codes: list[int | None], verdict: str, what: str
) -> None:
    row = doctor_ranks._row("all_reduce", said, codes)
    assert (row.verdict, row.what) == (verdict, what)
    assert bool(row.advice) == (verdict != "ok")


def test_a_bad_check_ends_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = doctor_box.Row("torch", "bad", "2.3", "take a newer one", 0.5)
    monkeypatch.setattr(doctor_box, "rows", lambda world: [bad])
    monkeypatch.setattr(doctor_ranks, "rows", lambda world, gpus: [])
    assert doctor.main([]) == 1
    assert " ".join(capsys.readouterr().out.split()) == "bad torch 0.50 s 2.3: take a newer one"


def test_dumps_that_were_pulled_are_diagnosed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = CodeLine("/gone/train.py", 20, "train", "dist.barrier()", None, (19, "if rank == 0:"))
    there = CodeLine("/gone/train.py", 30, "train", "loss.backward()")
    for rank, (place, name) in enumerate([(here, "barrier"), (there, "gradient all_reduce")]):
        told = RankDump(rank, 2, "running", 7, "collective", name, places=(place,), host="a-box")
        rank_dump.write(tmp_path / "hang", told)
    for folder in (tmp_path, tmp_path / "hang"):
        assert doctor.main(["hang", str(folder)]) == 0
        assert "rank 0 is in barrier at train.py:20" in capsys.readouterr().out
    assert doctor.main(["hang", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "rank-conditional-collective"


def test_a_folder_without_dumps_is_a_wrong_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.main(["hang", str(tmp_path)]) == 2
    assert "found none" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["hang"], ["--ranks", "0"], ["hunt", "x"]])
def test_a_wrong_command_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        doctor.main(words)
    assert refused.value.code == 2
