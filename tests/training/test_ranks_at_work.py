"""The ranks that other tests stand on: a failure on one of them must never pass."""

from __future__ import annotations

import functools
import os
import signal
import time
from pathlib import Path

import pytest
import ranks_at_work
from ranks_at_work import RanksFailed, run_ranks


def sum_over_ranks(number: int) -> tuple[int, float]:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.tensor(float(number + dist.get_rank()))
    dist.all_reduce(value)
    return dist.get_rank(), value.item()


def visible_gpus() -> str | None:
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def fail_on_rank_1() -> None:
    if os.environ["RANK"] == "1":
        raise ValueError("planted")


def die_on_rank_0() -> None:
    if os.environ["RANK"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)


def never_end() -> None:
    time.sleep(600)


def leave_with_85() -> None:
    raise SystemExit(85)


def test_ranks_meet_and_return_what_they_found() -> None:
    assert run_ranks(2, sum_over_ranks, 5) == [(0, 11.0), (1, 11.0)]


def test_one_group_after_the_other() -> None:
    assert [len(run_ranks(world, sum_over_ranks, 0)) for world in (1, 3)] == [1, 3]


def test_the_traceback_of_a_rank_is_shown() -> None:
    with pytest.raises(RanksFailed, match="ValueError: planted") as failed:
        run_ranks(2, fail_on_rank_1)
    assert failed.value.codes == [0, 1]


def test_a_killed_rank_is_no_success() -> None:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(2, die_on_rank_0)
    assert failed.value.codes == [-9, 0]


def test_ranks_that_never_end_are_ended() -> None:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(2, never_end, timeout_s=0.3)
    assert failed.value.codes == [-9, -9]


def interrupt_and_stay(pids: Path, interrupted: int) -> None:
    (pids / str(os.getpid())).touch()
    os.kill(interrupted, signal.SIGUSR1)
    time.sleep(600)


def say_who(number: int) -> int:
    return number + int(os.environ["RANK"])


def test_an_interrupted_test_leaves_no_rank_and_no_answer_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that has loaded nothing, and starts at once: it is ended here, and begun anew.
    server = functools.cache(functools.partial(ranks_at_work.start_server, ["pytest"]))
    monkeypatch.setattr(ranks_at_work, "server", server)
    ranks_at_work._connection.cache_clear()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_ranks(1, interrupt_and_stay, tmp_path, os.getpid())
    finally:
        signal.signal(signal.SIGUSR1, before)
    (pid,) = (int(path.name) for path in tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert run_ranks(1, say_who, 5) == [5]
    ranks_at_work._connection(os.getpid()).end()
    ranks_at_work._connection.cache_clear()
    server().process.communicate()


def test_an_exit_code_is_passed_on() -> None:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(1, leave_with_85)
    assert failed.value.codes == [85]


def test_more_ranks_than_gpus_see_none_unless_it_is_said_otherwise() -> None:
    assert run_ranks(20, visible_gpus) == [""] * 20
    assert run_ranks(1, visible_gpus, env={"CUDA_VISIBLE_DEVICES": "7"}) == ["7"]
