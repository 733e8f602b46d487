from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ranks_at_work import RanksFailed, run_ranks
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from waiting import until

from boxcar.shared.errors import InputError
from boxcar.training import stall
from boxcar.training.hang import hang_gather, rank_dump, stacks
from boxcar.training.hang.rank_dump import Attempt
from boxcar.training.ranks.preemption import Preemption
from boxcar.training.ranks.side_group import SideGroup

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 0.7


def line_of(mark: str) -> str:
    """`test_stall.py:12` of the line with this comment."""
    text = Path(__file__).read_text().splitlines()
    [number] = [n for n, line in enumerate(text, 1) if line.endswith(f"# {mark}")]
    return f"test_stall.py:{number}"


def join(folder: str) -> int:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    stall.watch(Path(folder), TIMEOUT_S, rank, world)
    return rank


def join_with_model(folder: str) -> tuple[int, nn.Module]:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    # The first DDP of a process imports for seconds, more than these tests' time-out.
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    dist.barrier()
    stall.watch(Path(folder), TIMEOUT_S, dist.get_rank(), dist.get_world_size())
    return dist.get_rank(), model


def step(model: nn.Module, x: torch.Tensor) -> None:
    model.zero_grad()
    model(x).sum().backward()  # gradients


def rank_conditional(folder: str) -> None:
    with stall.diagnosed():
        rank, model = join_with_model(folder)
        for i in range(5):
            stall.beat(i)
            step(model, torch.ones(2, 4))
            if rank == 0 and i == 3:
                dist.barrier()  # only rank 0


def uneven_loader(folder: str) -> None:
    with stall.diagnosed():
        rank, model = join_with_model(folder)
        loader = DataLoader(TensorDataset(torch.ones(10 - 2 * rank, 4)), batch_size=2)
        for i, (x,) in enumerate(loader):
            stall.beat(i)
            step(model, x)
        time.sleep(30)  # what comes after the epoch


def early_return(folder: str) -> None:
    with stall.diagnosed():
        rank = join(folder)
        for i in range(6):
            stall.beat(i)
            dist.all_reduce(torch.ones(1))
            if rank == 1 and i == 3:
                return  # early


def slow_sample(folder: str) -> None:
    with stall.diagnosed():
        rank = join(folder)
        for i in range(6):
            stall.beat(i)
            if rank == 1 and i == 2:
                time.sleep(60)  # slow sample
            dist.all_reduce(torch.ones(1))


def own_error(folder: str) -> None:
    with stall.diagnosed():
        rank = join(folder)
        for i in range(6):
            stall.beat(i)
            if rank == 1 and i == 2:
                time.sleep(0.2)  # the other waits by now
                raise ValueError("sample 17 is empty")  # own error
            dist.all_reduce(torch.ones(1))


def uncaught(folder: str) -> None:
    """As the interpreter does it, after a script's `finally: ranks.leave()`."""
    rank = join(folder)
    try:
        try:
            if rank == 1:
                time.sleep(0.2)
                raise ValueError("sample 17 is empty")  # uncaught
            dist.all_reduce(torch.ones(1))
        finally:
            stall.leave()
    except Exception:
        sys.excepthook(*sys.exc_info())
        raise


def killed(folder: str) -> None:
    with stall.diagnosed():
        rank = join(folder)
        for i in range(6):
            stall.beat(i)
            if rank == 1 and i == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(torch.ones(1))  # of the living


def is_gone(folder: str) -> bool:
    """Whether the folder goes away, as soon as the last rank has left."""
    return until(lambda: not Path(folder).exists(), f"{folder} is gone")


def slow_but_well(folder: str) -> bool:
    with stall.diagnosed():
        join(folder)
        # Longer than the time-out, on all ranks, and nobody waits for another: not for one either
        # that a busy machine let begin later.
        ends_at_s = torch.tensor([time.monotonic() + 1.3 * TIMEOUT_S], dtype=torch.float64)
        dist.broadcast(ends_at_s, 0)
        stall.beat(0)
        while time.monotonic() < float(ends_at_s):
            sum(range(10_000))
        dist.all_reduce(torch.ones(1))
        stall.beat(1)
    return is_gone(folder)


def rank_0_measures(folder: str) -> str:
    with stall.diagnosed():
        join(folder)
        side = SideGroup()
        stall.beat(0)
        # As a validation on rank 0 alone, which waits for nobody and uses little CPU.
        return side.on_main(lambda: time.sleep(1.3 * TIMEOUT_S) or "measured")


class Stuck(Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(60)
        return torch.ones(1)

    def __len__(self) -> int:
        return 4


def stuck_workers(folder: str) -> None:
    stall.watch(Path(folder), TIMEOUT_S)
    for _ in DataLoader(Stuck(), num_workers=1):  # next batch
        stall.beat()


def uneven_end(folder: str) -> bool:
    with stall.diagnosed():
        rank = join(folder)
        dist.all_reduce(torch.ones(1))
        # Rank 0 writes for longer than the time-out, after the others have gone.
        time.sleep(1.3 * TIMEOUT_S if rank == 0 else 0)
    return is_gone(folder)


def report_of(tmp_path: Path, body: Any, world: int = 2) -> tuple[dict[str, Any], RanksFailed]:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(world, body, str(tmp_path / "hang"))
    report = json.loads((tmp_path / "hang" / "report.json").read_text())
    # One of the ranks, and only one, has printed it.
    printed = [log.count(report["sentence"]) for log in failed.value.logs]
    assert sum(printed) == 1, failed.value
    return report, failed.value


def test_a_collective_of_one_rank_is_named_with_its_line(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, rank_conditional)
    assert (report["kind"], report["ranks"]) == ("rank-conditional-collective", [0])
    assert (report["collective"], report["line"]) == ("barrier", line_of("only rank 0"))
    assert "if rank == 0 and i == 3:" in report["sentence"]
    assert failed.codes == [42, 42]


def test_a_shorter_loader_is_named_with_the_line_that_waits(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, uneven_loader)
    assert (report["kind"], report["ranks"]) == ("uneven-loader", [1])
    assert (report["collective"], report["line"]) == ("gradient all_reduce", line_of("gradients"))
    assert "loaders of 4 and 5 batches" in report["sentence"]
    assert failed.codes == [42, 42]


def test_a_rank_that_returns_early_is_named_with_the_line_that_it_left_by(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, early_return)
    assert (report["kind"], report["ranks"]) == ("early-return", [1])
    assert (report["collective"], report["line"]) == ("all_reduce", line_of("early"))
    assert "step 3" in report["sentence"]
    assert failed.codes == [75, 0]


def test_a_rank_that_is_busy_elsewhere_is_named_with_its_line(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, slow_sample)
    assert (report["kind"], report["ranks"]) == ("one-rank-diverged", [1])
    assert (report["collective"], report["line"]) == ("all_reduce", line_of("slow sample"))
    assert failed.codes == [75, 75]


@pytest.mark.parametrize(("body", "mark"), [(own_error, "own error"), (uncaught, "uncaught")])
def test_a_rank_that_raised_is_the_cause_and_the_other_a_follower(
    tmp_path: Path, body: Any, mark: str
) -> None:
    report, failed = report_of(tmp_path, body)
    assert (report["kind"], report["ranks"]) == ("one-rank-diverged", [1])
    assert (report["collective"], report["line"]) == ("all_reduce", line_of(mark))
    assert "ValueError: sample 17 is empty" in report["sentence"]
    assert failed.codes == [1, 1]


def test_a_rank_that_was_killed_is_named_by_the_others(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, killed)
    assert (report["kind"], report["ranks"]) == ("one-rank-diverged", [1])
    assert (report["collective"], report["line"]) == ("all_reduce", line_of("of the living"))
    assert failed.codes == [75, -signal.SIGKILL]


def test_ranks_that_compute_for_long_go_on_and_leave_no_trace(tmp_path: Path) -> None:
    assert run_ranks(2, slow_but_well, str(tmp_path / "hang")) == [True, True]


def test_ranks_that_wait_for_the_main_ones_measuring_are_patient(tmp_path: Path) -> None:
    answers = run_ranks(2, rank_0_measures, str(tmp_path / "hang"))
    assert answers == ["measured", "measured"]


def test_a_rank_that_has_left_well_does_not_end_the_others(tmp_path: Path) -> None:
    assert run_ranks(2, uneven_end, str(tmp_path / "hang")) == [True, True]


def test_dumps_of_an_earlier_attempt_are_not_believed(tmp_path: Path) -> None:
    now = Attempt.of_this_process({"MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x"})
    frames = stacks.of_caller()
    for rank, change in enumerate([{}, {"launcher": -1}, {"host": "x"}, {"group": "///2"}]):
        of = replace(now, **change)  # type: ignore[arg-type]
        rank_dump.write(tmp_path, rank_dump.take(of, rank, 4, frames))
    assert [dump.rank for dump in rank_dump.read_all(tmp_path, now)] == [0, 2]
    # Another node's are told by their time alone.
    later = replace(now, since="2999-01-01T00:00:00.000Z")
    assert [dump.rank for dump in rank_dump.read_all(tmp_path, later)] == [0]
    by_hand = replace(now, launcher=0)
    assert [dump.rank for dump in rank_dump.read_all(tmp_path, by_hand)] == [0, 1, 2]
    hang_gather.begin(tmp_path, now, 0)
    assert [dump.rank for dump in rank_dump.read_all(tmp_path)] == [1, 2, 3]


def test_two_nodes_of_one_host_are_two_for_ranks_of_one_attempt(tmp_path: Path) -> None:
    of_torchrun = {"MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x"}
    n1, n2 = (Attempt.of_this_process({**of_torchrun, "SLURMD_NODENAME": n}) for n in ("n1", "n2"))
    n2 = replace(n2, launcher=n1.launcher + 1)
    for rank, attempt in enumerate((n1, n2)):
        rank_dump.write(tmp_path, rank_dump.take(attempt, rank, 2, stacks.of_caller()))
    assert [dump.rank for dump in rank_dump.read_all(tmp_path, n1)] == [0, 1]


@pytest.mark.faults
def test_an_uncaught_error_under_torchrun_ends_with_the_report_and_its_own_code(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
            import os, pathlib, torch, torch.distributed as dist
            from boxcar.training import stall

            rank = int(os.environ["RANK"])
            stall.watch(pathlib.Path("hang"), 20.0, rank, 2)
            dist.init_process_group("gloo")
            for step in range(5):
                stall.beat(step)
                if rank == 1 and step == 3:
                    raise OSError("shard 4 is unreadable")
                dist.all_reduce(torch.ones(1))
        """)
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, "--nproc-per-node=2", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "rank 1 raised OSError: shard 4 is unreadable at train.py:11" in done.stderr
    assert "rank 0 waits in all_reduce at train.py:12" in done.stderr


def test_one_rank_alone_that_waits_for_its_workers_ends(tmp_path: Path) -> None:
    with pytest.raises(RanksFailed) as failed:
        run_ranks(1, stuck_workers, str(tmp_path / "hang"))
    report = json.loads((tmp_path / "hang" / "report.json").read_text())
    assert (report["kind"], report["line"]) == ("stuck-loader", line_of("next batch"))
    assert failed.value.codes == [75]


def test_two_jobs_that_are_started_in_one_place_do_not_meet() -> None:
    assert stall.folder_of({"BOXCAR_OUT": "/out", "MASTER_PORT": "1"}) == Path("/out/hang")
    assert stall.folder_of({"MASTER_PORT": "1"}) == Path("hang-1")
    assert stall.folder_of({"MASTER_PORT": "2"}) == Path("hang-2")


def test_a_beat_where_nobody_watches_does_nothing() -> None:
    stall.leave()
    assert stall.beat(3) is None


def a_rank_dies_while_another_asks(folder: str) -> None:
    rank = join(folder)
    with stall.diagnosed():
        stop = Preemption()
        stop.should_stop()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            stop.should_stop()


def test_a_rank_that_dies_while_another_asks_whether_to_stop_is_named(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, a_rank_dies_while_another_asks)
    assert (report["kind"], report["ranks"]) == ("one-rank-diverged", [1])
    assert failed.codes == [75, -signal.SIGKILL]


def an_error_that_the_script_prints_itself(folder: str) -> None:
    rank = join(folder)
    try:
        with stall.diagnosed():
            dist.all_reduce(torch.ones(1))
            if rank == 1:
                raise InputError("planted")
            dist.all_reduce(torch.ones(1))
    except InputError as error:
        raise SystemExit(error.exit_code) from error
    finally:
        stall.leave()


def test_an_error_that_the_script_prints_itself_is_the_cause(tmp_path: Path) -> None:
    report, failed = report_of(tmp_path, an_error_that_the_script_prints_itself)
    assert (report["kind"], report["ranks"]) == ("one-rank-diverged", [1])
    assert "InputError: planted" in report["sentence"]
    assert failed.codes[1] == 2


def test_an_uncaught_error_of_ours_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    script = (
        "from boxcar.training import ranks\n"
        "from boxcar.training.parallel.accumulate import DivergedError\n"
        "ranks.join()\n"
        "raise DivergedError('the loss is nan')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False
    )
    assert ended.returncode == 42, ended.stderr
