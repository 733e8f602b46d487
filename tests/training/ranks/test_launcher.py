from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest
import torch.distributed.run
from ranks_at_work import free_port, run_ranks
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from waiting import LIMIT_S

from boxcar.shared.errors import InputError
from boxcar.training.ranks import launcher, ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.launcher import DistributedLauncher

ROOT = Path(__file__).resolve().parents[3]

# What a person would write, with DDP, that ends as args say.
SCRIPT = """
import os, signal, sys, torch
from boxcar.training import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.parallel.ddp import DDPWrapper
from boxcar.training.ranks.launcher import DistributedLauncher

torch.set_num_threads(1)
config = DistributedConfig(timeout_s=LIMIT_S, master_port=int(sys.argv[3]) or None,
    num_nodes=int(sys.argv[4]), node_rank=int(sys.argv[5]), master_addr=sys.argv[6])

def say(line):
    os.write(1, f"{line}\\n".encode())  # whole, beside the other ranks' lines

def train(args):
    global model
    what, code = args.split(":")
    ranks.join(config)
    if what == "ddp":
        model = DDPWrapper(torch.nn.Linear(4, 1), config).setup()
        model(torch.ones(2, 4)).sum().backward()
    say(f"trained, mean {ranks.all_reduce_metrics({'one': 1.0})['one']}")
    if what == "wait":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(code)))
        say("waits")
        signal.pause()
    sys.exit(int(code))

if __name__ == "__main__":
    DistributedLauncher(config, ranks_per_node=int(sys.argv[2])).launch(train, sys.argv[1])
""".replace("LIMIT_S", str(LIMIT_S))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def start(line: list[str], **popen: object) -> subprocess.Popen[str]:
    wanted = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    wanted["BOXCAR_OUT"] = str(next(Path(word).parent for word in line if word.endswith(".py")))
    return subprocess.Popen(
        line,
        env={k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | wanted,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **popen,
    )


def words(script: Path, end: str, ranks_here: int, *nodes: object) -> list[str]:
    rest = nodes or (0, 1, 0, "localhost")
    return [str(script), end, str(ranks_here), *map(str, rest)]


def test_the_environment_says_who_has_started_this() -> None:
    task = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    assert launcher.environment({}) == "manual"
    assert launcher.environment({"RANK": "0", "WORLD_SIZE": "2"}) == "torchrun"
    assert launcher.environment(task) == "slurm"
    # torchrun on each node, started by srun.
    assert launcher.environment(task | {"RANK": "0", "WORLD_SIZE": "2"}) == "torchrun"
    # One task that has all GPUs of its node.
    assert launcher.environment(task | {"SLURM_STEP_NUM_TASKS": "1"}) == "manual"


def test_one_rank_runs_in_this_process() -> None:
    seen = []
    alone = DistributedConfig(strategy="single")
    DistributedLauncher(alone).launch(lambda args: seen.append((os.getpid(), args)), Namespace(a=1))
    assert seen == [(os.getpid(), Namespace(a=1))]


def test_under_slurm_the_task_becomes_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.update(
        SLURM_PROCID="1",
        SLURM_LOCALID="1",
        SLURM_STEP_NUM_TASKS="2",
        SLURM_NODELIST="gpu[01-02]",
        SLURM_JOB_ID="7",
    )
    seen: list[str] = []
    assert DistributedLauncher(DistributedConfig()).detect_environment() == "slurm"
    DistributedLauncher(DistributedConfig()).launch(
        lambda _: seen.extend(os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")),
        None,
    )
    assert seen == ["1", "2", "gpu01"]


@pytest.mark.parametrize("code", [85, 42, 0])
def test_the_code_of_one_rank_is_that_of_the_script(code: int) -> None:
    try:
        DistributedLauncher(DistributedConfig(), 1).launch(sys.exit, code)
    except SystemExit as leaving:
        assert leaving.code == code
    else:
        assert code == 0


def fail(_: object) -> None:
    raise InputError("the config names no data")


def test_an_error_on_purpose_is_one_sentence_and_its_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as leaving:
        DistributedLauncher(DistributedConfig(), 1).launch(fail, None)
    assert leaving.value.code == 2
    assert "rank 0: the config names no data\n" in capfd.readouterr().err


def test_a_wrong_config_starts_nothing() -> None:
    with pytest.raises(InputError, match="did you mean 'ddp'"):
        DistributedLauncher(DistributedConfig(strategy="dpp"), 2).launch(fail, None)


def test_a_function_that_no_new_process_can_find_is_refused() -> None:
    with pytest.raises(InputError, match="train_fn must be a function at the top of a module"):
        DistributedLauncher(DistributedConfig(), 2).launch(lambda _: None, None)


def test_the_codes_of_the_ranks_are_one_code() -> None:
    assert launcher._exit_code({85}, otherwise=-15) == 85
    assert launcher._exit_code({1, 42, 85}, otherwise=1) == 42
    assert launcher._exit_code({2}, otherwise=2) == 2
    # Killed: as a shell says it.
    assert launcher._exit_code(set(), otherwise=-9) == 137
    assert launcher._exit_code(set(), otherwise=1) == 1


def say_the_mean_and_exit(args: Namespace) -> None:
    here = ranks.join(DistributedConfig(timeout_s=LIMIT_S))
    mean = ranks.all_reduce_metrics({"rank": here.rank})["rank"]
    (args.folder / str(here.rank)).write_text(str(mean))
    sys.exit(args.code)


def start_by_hand(args: Namespace) -> int:
    for name in ("RANK", "WORLD_SIZE"):
        del os.environ[name]
    # Forked ranks have torch already; test_started_from_a_script starts them as a user's are.
    launcher.LaunchConfig = functools.partial(launcher.LaunchConfig, start_method="fork")
    try:
        DistributedLauncher(DistributedConfig(), 2).launch(say_the_mean_and_exit, args)
    except SystemExit as leaving:
        return leaving.code
    return 0


@pytest.mark.parametrize("code", [0, 85])
def test_started_by_hand_the_ranks_meet_and_their_code_comes_through(
    tmp_path: Path, code: int
) -> None:
    assert run_ranks(1, start_by_hand, Namespace(folder=tmp_path, code=code)) == [code]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "0.5", "1": "0.5"}


def run_torchrun(line: list[str]) -> str:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        del os.environ[name]
    os.environ["PYTHONPATH"] = str(ROOT)
    with pytest.raises(ChildFailedError) as caught:
        torch.distributed.run.main(line[3:])
    return str(caught.value)


def test_under_torchrun_the_ranks_leave_with_their_own_code(script: Path) -> None:
    """And not with that of an abort in the interpreter's last moments, though DDP is still held."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    # Without the address ranks meet under the machine's own name, which may lead nowhere.
    options = ["--nnodes=1", "--nproc-per-node=2", "--local-addr=127.0.0.1"]
    line = [*torchrun, *options, *words(script, "ddp:42", 1)]
    (said,) = run_ranks(1, run_torchrun, line)
    # torchrun may send SIGTERM to the one while the other has left already.
    assert "exitcode  : 42" in said
    assert "SIGABRT" not in said


@pytest.mark.faults
def test_started_from_a_script_all_ranks_train_and_their_code_comes_through(script: Path) -> None:
    run = start([sys.executable, *words(script, "ddp:85", 2)])
    out, err = run.communicate(timeout=LIMIT_S)
    assert out == "trained, mean 1.0\n" * 2, err
    assert run.returncode == 85, err


@pytest.mark.faults
def test_a_signal_to_the_script_reaches_the_ranks_and_their_code_comes_back(script: Path) -> None:
    run = start([sys.executable, *words(script, "wait:85", 2)])
    assert run.stdout
    seen = [run.stdout.readline() for _ in range(4)]
    assert seen.count("waits\n") == 2
    run.terminate()
    _, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 85, err


@pytest.mark.faults
def test_two_nodes_that_are_started_by_hand_are_one_job(script: Path) -> None:
    port = free_port()
    nodes = [
        start([sys.executable, *words(script, "join:85", 1, port, 2, node, "127.0.1.1")])
        for node in (0, 1)
    ]
    for node in nodes:
        out, err = node.communicate(timeout=LIMIT_S)
        assert (out, node.returncode) == ("trained, mean 1.0\n", 85), err


@pytest.mark.faults
def test_a_rank_that_is_killed_ends_the_job(script: Path) -> None:
    run = start([sys.executable, *words(script, "wait:85", 2)])
    assert run.stdout
    while run.stdout.readline() != "waits\n":
        time.sleep(0.01)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    ranks_ = [pid for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(int(ranks_[0]), 9)
    _, err = run.communicate(timeout=LIMIT_S)
    # The other one was told by SIGTERM, and left as preempted: the same command goes on.
    assert run.returncode in (85, 137), err


def test_launch_leaves_the_ranks() -> None:
    DistributedLauncher(DistributedConfig(strategy="single")).launch(lambda _: ranks.join(), None)
    assert ranks._Here.joined is None
