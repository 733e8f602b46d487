"""One way to start a train function, whoever starts the script: torchrun, Slurm or a person.

    def train(args): ...
    if __name__ == "__main__":
        DistributedLauncher(config).launch(train, parser.parse_args())

    python train.py                                            one rank per GPU of this machine
    torchrun --standalone --nproc-per-node=8 train.py          each process is a rank already
    srun --ntasks-per-node=8 --kill-on-bad-exit=1 python train.py

The exit code of a rank (85 preempted, 42 diverged, 2 wrong input) is that of the script. torchrun
itself always ends with 1 where a rank did not end with 0, and prints the rank's code.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from boxcar.shared.errors import BoxcarError, InputError
from boxcar.shared.process import exit_codes
from boxcar.training import stall
from boxcar.training.ranks import ranks, rendezvous
from boxcar.training.ranks.config import DistributedConfig

# What the ranks meant, where some of them were only ended because others had left.
_CODES_FIRST = (exit_codes.NO_RETRY, exit_codes.PREEMPTED)

TrainFunction = Callable[[Any], Any]


class DistributedLauncher:
    """Starts `train_fn(args)` as all ranks of this machine, or as the one rank that this is."""

    def __init__(self, config: DistributedConfig, ranks_per_node: int | None = None) -> None:
        """`ranks_per_node`: for a start by hand; None: one for each visible GPU, else 1."""
        self.config = config
        self.ranks_per_node = ranks_per_node

    def detect_environment(self) -> str:
        """ "torchrun" (or another that sets RANK), "slurm" or "manual": who started the process."""
        return environment(os.environ)

    def launch(self, train_fn: TrainFunction, args: Any) -> None:
        """Run to the end; raises SystemExit where a rank did not end well.

        `train_fn` joins the ranks itself (ranks.join, or a wrapper's setup); they are left for it.
        Started by hand with several ranks, it must be a function at the top of a module and `args`
        must be picklable, because each rank is a new process. Raises InputError.
        """
        self.config.check()
        started_by = self.detect_environment()
        if started_by == "slurm":
            os.environ.update(rendezvous.contract(os.environ, rendezvous.port_of(self.config)))
        here = self._ranks_here()
        if started_by == "manual" and (here > 1 or self.config.num_nodes > 1):
            _start_ranks(self.config, here, train_fn, args)
        else:
            _be_a_rank(train_fn, args)

    def _ranks_here(self) -> int:
        if self.config.strategy == "single":
            return 1
        return self.ranks_per_node or max(1, torch.cuda.device_count())


def environment(env: Mapping[str, str]) -> str:
    """Pure; accelerate and deepspeed set torchrun's variables too. A single task is no Slurm job:
    it may start a rank for each of its GPUs."""
    if "RANK" in env or "TORCHELASTIC_RUN_ID" in env:
        return "torchrun"
    return "slurm" if "SLURM_PROCID" in env and rendezvous.tasks(env) > 1 else "manual"


def _be_a_rank(train_fn: TrainFunction, args: Any) -> None:
    try:
        # It writes the traceback where torchrun's agent looks for it.
        with stall.diagnosed():
            record(train_fn)(args)
    except BoxcarError as error:
        # No leave: where another rank waits in a collective, it could wait as well.
        print(f"rank {os.environ.get('RANK', '0')}: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    except SystemExit:
        ranks.leave()
        raise
    ranks.leave()


def _start_ranks(
    config: DistributedConfig, ranks_here: int, train_fn: TrainFunction, args: Any
) -> None:
    _refuse_unpicklable(train_fn, args)
    # As torchrun does; else every rank starts as many threads as there are cores.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // ranks_here)))
    folder = Path(tempfile.mkdtemp(prefix="boxcar-launch-"))
    try:
        launch_config = _launch_config(config, ranks_here, folder)
        elastic_launch(launch_config, _be_a_started_rank)(train_fn, args, folder)
    except ChildFailedError as error:
        first = error.get_first_failure()[1].exitcode
        sys.exit(_exit_code(_codes_in(folder), otherwise=first))
    except SignalException as error:
        sys.exit(_exit_code(_codes_in(folder), otherwise=-error.sigval))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _launch_config(config: DistributedConfig, ranks_here: int, folder: Path) -> LaunchConfig:
    is_alone = config.num_nodes == 1 and config.master_port is None
    # Port 0 lets the kernel pick one, so that jobs on one machine never meet. Several nodes have
    # their order from node_rank, so that a rank is on the same node after a restart.
    address = f"{config.master_addr}:{config.master_port}"
    timeout = {"timeout": int(config.timeout_s)}
    return LaunchConfig(
        min_nodes=config.num_nodes,
        max_nodes=config.num_nodes,
        nproc_per_node=ranks_here,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / "logs")),
        max_restarts=0,
        monitor_interval=0.1,
        rdzv_backend="c10d" if is_alone else "static",
        rdzv_endpoint="localhost:0" if is_alone else address,
        rdzv_configs=timeout if is_alone else {**timeout, "rank": config.node_rank},
        # The machine's own name may lead nowhere.
        local_addr="127.0.0.1" if config.num_nodes == 1 else None,
        run_id=uuid.uuid4().hex if is_alone else "boxcar",
    )


def _be_a_started_rank(train_fn: TrainFunction, args: Any, folder: Path) -> None:
    """In a process of its own. Its code goes through a file: the agent, when it gets a signal,
    tells none."""
    try:
        _be_a_rank(train_fn, args)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        (folder / f"code_{os.environ['RANK']}").write_text(str(code))
        raise


def _codes_in(folder: Path) -> set[int]:
    return {int(path.read_text()) for path in folder.glob("code_*")} - {0}


def _exit_code(codes: set[int], otherwise: int) -> int:
    """What the ranks said with sys.exit; else that of the first failure, a signal as shells say."""
    for code in (*_CODES_FIRST, *sorted(codes)):
        if code in codes:
            return code
    return otherwise if otherwise > 0 else 128 - otherwise


def _refuse_unpicklable(train_fn: TrainFunction, args: Any) -> None:
    try:
        pickle.dumps((train_fn, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            "each rank is a new process, so train_fn must be a function at the top of a module, "
            f"and args must be picklable: {error}; or start the script by torchrun"
        ) from error
