"""Real ranks on this machine: they join, talk, take a step and save, and each thing is checked.

Each check is a function of all ranks; it returns what was found and raises where that is wrong.
They run in order, and the first that fails ends the rest: after it the ranks may not agree.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import socket
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared.errors import InputError
from boxcar.training import torch_private
from boxcar.training.doctor.doctor_box import BAD, OK, WARN, Row

# One process imports torch, the ranks are forked from it.
PRELOADED = ["torch", "torch.distributed", torch_private.COMPILER, "torch.utils.data", __name__]
TIMEOUT_S = 60.0


class WrongError(Exception):
    """What was found is not what must be."""


class NotTriedError(Exception):
    """This torch has it not on this device, and says so itself."""


def rows(world: int, gpus: int, timeout_s: float = TIMEOUT_S) -> list[Row]:
    """A row for each check, on `world` ranks; they use GPUs where there is one for each."""
    with tempfile.TemporaryDirectory(prefix="boxcar-doctor-") as text:
        folder = Path(text)
        alive = _run(folder, world, on_gpu=gpus >= world, timeout_s=timeout_s)
        said = [_said(folder, rank) for rank in range(world)]
    return [_row(name, [of.get(name) for of in said], alive) for name in CHECKS]


# --- what a rank does


def join(me: dict[str, Any]) -> str:
    from boxcar.training.ranks import ranks
    from boxcar.training.ranks.config import DistributedConfig

    me["ranks"] = ranks.join(DistributedConfig(timeout_s=me["timeout_s"]))
    import torch.distributed as dist

    return f"{me['ranks'].world} ranks, {dist.get_backend()}, {me['ranks'].device.type}"


def all_reduce(me: dict[str, Any]) -> str:
    """Whole numbers below 2^53 in double precision: the sum is exact or wrong."""
    import torch
    import torch.distributed as dist

    joined = me["ranks"]
    numbers = torch.arange(2**17, dtype=torch.float64, device=joined.device)
    mine = numbers * (joined.rank + 1)
    dist.all_reduce(mine)
    expected = numbers * (joined.world * (joined.world + 1) // 2)
    if not torch.equal(mine, expected):
        wrong = int((mine != expected).sum())
        raise WrongError(f"{wrong} of {len(numbers)} sums are wrong")
    return "1 MiB, exact"


def broadcast(me: dict[str, Any]) -> str:
    import torch
    import torch.distributed as dist

    joined = me["ranks"]
    generator = torch.Generator().manual_seed(17)
    expected = torch.randn(2**16, generator=generator).to(joined.device)
    mine = expected.clone() if joined.is_main else torch.zeros_like(expected)
    dist.broadcast(mine, src=0)
    if not torch.equal(mine, expected):
        raise WrongError("the received data differs from what rank 0 sent")
    return "256 KiB, equal"


def ddp_step(me: dict[str, Any]) -> str:
    """One step on a share of the batch each, against one step on all of it."""
    import torch

    from boxcar.training.parallel.ddp import DDPWrapper
    from boxcar.training.ranks.config import DistributedConfig

    joined = me["ranks"]
    alone = _model(joined.device)
    batch = _batch(joined)
    _step(alone, batch)
    wrapper = DDPWrapper(_model(joined.device), DistributedConfig(timeout_s=me["timeout_s"]))
    model = wrapper.setup(joined.rank, joined.world)
    _step(model, batch[joined.rank :: joined.world])
    together = wrapper.unwrapped.state_dict()
    difference = max(
        float((together[name] - value).abs().max()) for name, value in alone.state_dict().items()
    )
    if not difference < 1e-5 or any(not torch.isfinite(value).all() for value in together.values()):
        raise WrongError(f"the weights differ by {difference:.3g} from those of one rank")
    return f"equals one rank within {difference:.1g}"


def fsdp_round_trip(me: dict[str, Any]) -> str:
    """Shard, step, save, spoil, load: the weights are those that were saved."""
    import torch

    from boxcar.training.parallel.fsdp import FSDPWrapper
    from boxcar.training.ranks.config import DistributedConfig

    joined = me["ranks"]
    config = DistributedConfig(strategy="fsdp", wrap_min_params=1, timeout_s=me["timeout_s"])
    wrapper = FSDPWrapper(_model(joined.device), config)
    try:
        model = wrapper.setup(joined.rank, joined.world)
    except InputError as error:
        raise NotTriedError(str(error)) from None
    _step(model, _batch(joined)[joined.rank :: joined.world])
    shards = [p.to_local() if hasattr(p, "to_local") else p for p in model.parameters()]
    before = [shard.detach().clone() for shard in shards]
    wrapper.save_distributed_checkpoint(me["folder"] / "checkpoint")
    with torch.no_grad():
        for shard in shards:
            shard.zero_()
    wrapper.load_distributed_checkpoint(me["folder"] / "checkpoint")
    if not all(torch.equal(now, was) for now, was in zip(shards, before, strict=True)):
        raise WrongError("the loaded weights differ from the saved ones")
    whole = sum(parameter.numel() for parameter in model.parameters())
    return f"{sum(shard.numel() for shard in shards)} of {whole} parameters on this rank, equal"


def samples(me: dict[str, Any]) -> str:
    import torch
    import torch.distributed as dist

    from boxcar.training.data.loader import RankAwareDataLoader
    from boxcar.training.ranks.config import DistributedConfig

    joined = me["ranks"]
    size = 16 * joined.world
    loader = RankAwareDataLoader(
        list(range(size)), DistributedConfig(timeout_s=me["timeout_s"]), batch_size=4
    )
    mine = torch.cat([batch.reshape(-1) for batch in loader]).tolist()
    seen: list[list[int]] = [[] for _ in range(joined.world)]
    dist.all_gather_object(seen, mine)
    read = sorted(itertools.chain.from_iterable(seen))
    if read != list(range(size)):
        raise WrongError(f"of {size} samples, {len(set(read))} were read, in {len(read)} reads")
    return f"{size} samples, each once"


CHECKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "ranks join": join,
    "all_reduce": all_reduce,
    "broadcast": broadcast,
    "DDP step": ddp_step,
    "FSDP and its checkpoint": fsdp_round_trip,
    "sampler": samples,
}


def _model(device: Any) -> Any:
    import torch

    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).to(
        device
    )


def _batch(joined: Any) -> Any:
    import torch

    generator = torch.Generator().manual_seed(5)
    return torch.randn(8 * joined.world, 16, generator=generator).to(joined.device)


def _step(model: Any, batch: Any) -> None:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(batch).square().mean().backward()
    optimizer.step()


# --- the processes


def _be_a_rank(folder: Path, env: dict[str, str], timeout_s: float) -> None:
    os.environ.update(env)
    import torch

    from boxcar.training.ranks import ranks

    torch.set_num_threads(1)
    me: dict[str, Any] = {"folder": folder, "timeout_s": timeout_s}
    said: dict[str, Any] = {}
    for name, check in CHECKS.items():
        said[name] = one = _one(check, me)
        _path(folder, int(env["RANK"])).write_text(json.dumps(said))
        if "error" in one:
            # The others learn it from the connection that this process lets go.
            os._exit(1)
    ranks.leave()


def _one(check: Callable[[dict[str, Any]], str], me: dict[str, Any]) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        found = {"what": check(me)}
    except NotTriedError as error:
        found = {"not_tried": str(error)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        found = {
            "error": f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        }
    return {**found, "time_s": time.monotonic() - begun}


def _run(folder: Path, world: int, *, on_gpu: bool, timeout_s: float) -> list[int | None]:
    """The exit code of each rank; None where it had to be killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    common |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    common |= {} if on_gpu else {"CUDA_VISIBLE_DEVICES": ""}
    # The checks are no cell: what they record goes to a folder that is thrown away.
    common["BOXCAR_OUT"] = str(folder)
    processes = []
    for rank in range(world):
        env = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        processes.append(context.Process(target=_be_a_rank, args=(folder, env, timeout_s / 2)))
        processes[-1].start()
    until = time.monotonic() + timeout_s
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    return codes


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _path(folder: Path, rank: int) -> Path:
    return folder / f"said_{rank}.json"


def _said(folder: Path, rank: int) -> dict[str, Any]:
    try:
        return dict(json.loads(_path(folder, rank).read_text()))
    except (OSError, ValueError):
        return {}


def _row(name: str, said: list[dict[str, Any] | None], codes: list[int | None]) -> Row:
    time_s = round(max((one["time_s"] for one in said if one), default=0.0), 3)
    errors = {rank: one["error"] for rank, one in enumerate(said) if one and "error" in one}
    if errors:
        # Of several, the one that is no echo of a connection that another rank has closed.
        rank = min(errors, key=lambda rank: ("onnection" in errors[rank], rank))
        return Row(name, BAD, f"rank {rank}: {errors[rank]}", ADVICE.get(name, ""), time_s)
    silent = [rank for rank, one in enumerate(said) if one is None]
    if len(silent) == len(said):
        return Row(name, WARN, "not reached", "fix what is above", time_s)
    if silent:
        code = codes[silent[0]]
        how = "hung and was killed" if code is None else f"ended with {code}"
        return Row(name, BAD, f"rank {silent[0]} {how}", ADVICE.get(name, ""), time_s)
    assert said[0] is not None
    if "not_tried" in said[0]:
        return Row(name, WARN, said[0]["not_tried"], "it was not tried here", time_s)
    return Row(name, OK, said[0]["what"], "", time_s)


ADVICE = {
    "ranks join": "is 127.0.0.1 reachable, does `hostname` resolve (/etc/hosts)? Try "
    "GLOO_SOCKET_IFNAME=lo, on GPUs NCCL_DEBUG=INFO",
    "all_reduce": "on GPUs try NCCL_P2P_DISABLE=1: a wrong or hanging sum is often P2P in a VM",
    "DDP step": "this torch does not average gradients as it should: do not train on several ranks",
    "FSDP and its checkpoint": "is the disk under TMPDIR full? If not, do not use fsdp here",
}
