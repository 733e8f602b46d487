from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from ranks_at_work import RanksFailed, free_port, run_ranks
from waiting import LIMIT_S

from boxcar.shared.errors import InputError
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks import preemption as module
from boxcar.training.ranks import ranks
from boxcar.training.ranks.preemption import EXIT_PREEMPTED, MOST_STEPS, SIGNALS, Preemption


@pytest.fixture(autouse=True)
def _handlers() -> object:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_only_sets_a_flag(number: signal.Signals) -> None:
    preemption = Preemption()
    assert not preemption.should_stop()
    os.kill(os.getpid(), number)
    assert preemption.should_stop()
    assert preemption.should_stop()


def test_it_leaves_with_85_and_is_deaf_from_then_on() -> None:
    with pytest.raises(SystemExit) as leaving:
        Preemption().exit()
    assert leaving.value.code == EXIT_PREEMPTED == 85
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 2


def test_in_a_thread_it_is_refused() -> None:
    said: list[Exception] = []

    def make() -> None:
        try:
            Preemption()
        except InputError as error:
            said.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert "make it there" in str(said[0])


def stop_when_one_is_told(told: int, at_step: int, pause_s: float) -> tuple[int, int]:
    """The step at which it stopped, and how often it asked."""
    me = ranks.join()
    module.PAUSE_S = pause_s
    preemption = Preemption()
    step, questions, ask = 0, 0, preemption._ask

    def count() -> None:
        nonlocal questions
        questions += 1
        ask()

    preemption._ask = count  # type: ignore[method-assign]
    while not preemption.should_stop():
        step += 1
        if (me.rank, step) == (told, at_step):
            os.kill(os.getpid(), signal.SIGTERM)
    ranks.leave()
    return step, questions


@pytest.mark.parametrize("told", [0, 2])
def test_all_ranks_stop_at_the_same_step_when_one_is_told(told: int) -> None:
    """Steps that are not short: the answer is there at the next."""
    assert run_ranks(3, stop_when_one_is_told, told, 7, 0.0) == [(8, 8)] * 3


def test_short_steps_ask_seldom_and_stop_together() -> None:
    """Of a step without an end to its pause all ranks leave out as many as they may."""
    [first, *others] = run_ranks(3, stop_when_one_is_told, 1, 100, 1e9)
    assert others == [first] * 2
    step, questions = first
    assert 100 < step <= 100 + MOST_STEPS + 1
    assert questions <= step / MOST_STEPS + 3


def go_on_without_the_other() -> None:
    me = ranks.join()
    preemption = Preemption()
    for _ in range(3):
        preemption.should_stop()
    if me.rank:
        os._exit(7)
    for _ in range(2 * MOST_STEPS):
        preemption.should_stop()


def test_a_rank_that_has_gone_is_an_error_and_no_hang() -> None:
    with pytest.raises(RanksFailed, match="another rank has left") as failed:
        run_ranks(2, go_on_without_the_other)
    assert failed.value.codes == [1, 7]


SCRIPT = """
import sys, time
from pathlib import Path
sys.path[:0] = [str(Path(sys.argv[2]))]
import test_preemption
test_preemption.train(Path(sys.argv[1]))
"""


def train(out: Path) -> None:
    """Saves when it is told to leave; rank 1 says when it may be told."""
    torch.set_num_threads(1)
    me = ranks.join()
    state = TrainingState(model=torch.nn.Linear(2, 2))
    checkpointer, preemption = Checkpointer(out, state), Preemption()
    checkpointer.load_latest()
    while not preemption.should_stop():
        state.step += 1
        if state.step == 50:
            (out / f"ready-{me.rank}").touch()
    checkpointer.save()
    (out / f"stopped-{me.rank}").write_text(str(state.step))
    preemption.exit()


def test_two_processes_end_with_85_at_the_same_step_and_with_a_saved_state(tmp_path: Path) -> None:
    """Whole processes, whose interpreters end by themselves; only one of them gets the signal."""
    port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    env = os.environ | port | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(Path(__file__).parent)]
    both = [
        subprocess.Popen(command, env=env | {"RANK": rank, "LOCAL_RANK": rank}) for rank in "01"
    ]
    while not (tmp_path / "ready-0").exists() or not (tmp_path / "ready-1").exists():
        assert all(process.poll() is None for process in both)
        threading.Event().wait(0.02)
    both[1].send_signal(signal.SIGTERM)
    while not (tmp_path / "stopped-0").exists() or not (tmp_path / "stopped-1").exists():
        threading.Event().wait(0.005)
    while any(process.poll() is None for process in both):
        for process in both:
            process.send_signal(signal.SIGTERM)  # torchrun's, also while the interpreter ends
        threading.Event().wait(0.001)
    assert [process.wait(LIMIT_S) for process in both] == [85, 85]
    one, two = ((tmp_path / f"stopped-{rank}").read_text() for rank in (0, 1))
    assert one == two
    assert torch.load(tmp_path / "latest.pth", weights_only=True)["step"] == int(one)
