"""The processes that train one cell together: who this one is, and what they agree on.

    me = ranks.join(config)        # reads what the launcher set, binds the GPU, meets the others
    if ranks.agree_any(stop): ...  # the same answer on all ranks
    ranks.leave()

Without a launcher's variables (rendezvous.py) there is one rank and no process group. LOCAL_RANK
picks the GPU, never RANK, which on a second node is beyond the GPUs.
"""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

# Its functions have the group of the moment of import as a default, for ever. DDP imports it, too
# late: then the group's threads outlive the group, and abort an interpreter that ends.
import torch.distributed.nn.functional

from boxcar.shared.errors import InputError
from boxcar.training import finite_check, stall, torch_private
from boxcar.training.hang import desync
from boxcar.training.ranks import rendezvous
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.ranks.rendezvous import RankNumbers
from boxcar.training.reporting.say import say_on_main


@dataclass(frozen=True)
class Ranks:
    """This process among the ones that train together."""

    rank: int
    local_rank: int
    world: int
    local_world: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes and prints for all."""
        return self.rank == 0


class _Here:
    """What this process has joined; module-wide, as torch's own default group is."""

    joined: Ranks | None = None


def join(
    config: DistributedConfig | None = None, rank: int | None = None, world: int | None = None
) -> Ranks:
    """Bind this rank's device and meet the others; a second call gives the same answer.

    `rank` and `world` are for a process that no launcher has started (torch.multiprocessing.spawn):
    it meets the others at the config's master_addr and master_port. Elsewhere the launcher's are
    taken.

    CPU tensors travel by gloo and CUDA tensors by nccl, so that what ranks agree on does not wait
    for the GPU. Raises InputError (a wrong environment or config, a taken port) and TemporaryError
    (a rank did not come within `config.timeout_s`). From here on the ranks are watched (stall.py).
    """
    config = config or DistributedConfig()
    config.hold()
    if _Here.joined is None and not dist.is_initialized() and rank is not None and world:
        os.environ.update(rendezvous.by_hand(os.environ, config, rank, world))
    here = _Here.joined
    if here and (dist.is_initialized() or not _needs_group(config, here.world)):
        return here
    numbers = _numbers()
    device = _device(numbers, torch.cuda.device_count(), os.environ)
    _as_launched(config, numbers).check(numbers.world, device.type)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    hang = stall.folder_of(os.environ)
    if not dist.is_initialized():
        if config.debug_hangs or desync.is_asked(os.environ):
            desync.enable(hang)
        _start_group(config, numbers, device)
    stall.chain_the_hook()
    if "RANK" in os.environ:  # by a launcher; not a notebook
        stall.watch(hang, config.timeout_s, numbers.rank, numbers.world)
    _Here.joined = Ranks(*numbers, device)
    for note in config.notes(numbers.world, device.type):
        say_on_main(note)
    return _Here.joined


def current() -> Ranks:
    """What was joined, by `join` or by the script's own init_process_group; else a single rank."""
    if _Here.joined is not None:
        return _Here.joined
    numbers = _numbers() if dist.is_initialized() else RankNumbers()
    return Ranks(*numbers, _device(numbers, torch.cuda.device_count(), os.environ))


def leave() -> None:
    """Let go of the group, so that this process ends with its own exit code. DDP modules are
    useless afterwards; their `.module` is not.

    Raises DivergedError where an accumulator that looks seldom has met a number that is not finite.
    No barrier: a rank that leaves because of an error must not wait for the others.
    """
    finite_check.let_go()
    stall.leave()
    _Here.joined = None
    if not dist.is_initialized():
        return
    groups = torch_private.groups()
    dist.destroy_process_group()
    torch_private.let_go_of(groups)


def agree_any(flag: bool) -> bool:
    """True on all ranks if true on one. A collective: all ranks call it at the same step."""
    if not _several():
        return flag
    answer = torch.tensor(int(flag), dtype=torch.int32, device=_talk_device())
    dist.all_reduce(answer, op=dist.ReduceOp.MAX)
    return bool(answer.item())


def who(flag: bool) -> list[int]:
    """The ranks on which it is true, told to all of them. A collective."""
    if not _several():
        return [current().rank] if flag else []
    flags = torch.zeros(dist.get_world_size(), dtype=torch.int32, device=_talk_device())
    flags[dist.get_rank()] = int(flag)
    dist.all_reduce(flags)
    return flags.nonzero().flatten().tolist()


def all_reduce_metrics(metrics: Mapping[str, float | torch.Tensor]) -> dict[str, float]:
    """The mean over ranks of each metric, in double precision, the same on all ranks.

    A value is a number or a tensor of one.
    Two small collectives. A NaN of one rank is a NaN for all. Raises InputError, on all ranks,
    where ranks gave different names.
    """
    names = sorted(metrics)
    found = (metrics[name] for name in names)
    values = [float(v.detach() if isinstance(v, torch.Tensor) else v) for v in found]
    if not _several():
        return dict(zip(names, values, strict=True))
    _refuse_different_names(names)
    message = torch.tensor(values, dtype=torch.float64, device=_talk_device())
    if values:
        dist.all_reduce(message)
    return dict(zip(names, (message / dist.get_world_size()).tolist(), strict=True))


def _numbers() -> RankNumbers:
    if not dist.is_initialized():
        return rendezvous.read_numbers(os.environ)
    # The script has made the group itself, perhaps without these variables.
    rank, world = dist.get_rank(), dist.get_world_size()
    local = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
    local_rank, local_world = (int(os.environ.get(name, local[name])) for name in local)
    return RankNumbers(rank, local_rank, world, local_world)


def _needs_group(config: DistributedConfig, world: int) -> bool:
    return world > 1 or config.strategy == "fsdp"  # whose shards live in a group, even of one


def _device(numbers: RankNumbers, gpus: int, env: Mapping[str, str]) -> torch.device:
    if gpus == 0:
        return torch.device("cpu")
    index = numbers.local_rank
    if gpus == 1 and "SLURM_PROCID" in env:
        # With --gpus-per-task Slurm shows each task its own GPU alone, as number 0.
        index = 0
    if index >= gpus:
        raise InputError(
            f"LOCAL_RANK {index} has no GPU of its own: {gpus} visible here "
            f"(CUDA_VISIBLE_DEVICES={env.get('CUDA_VISIBLE_DEVICES', 'not set')}); start "
            f"--nproc-per-node={gpus}, or hide the GPUs with CUDA_VISIBLE_DEVICES= to train on "
            "the CPU"
        )
    return torch.device("cuda", index)


def _as_launched(config: DistributedConfig, numbers: RankNumbers) -> DistributedConfig:
    """The launcher knows the nodes and their address; nobody has to say them twice."""
    nodes = numbers.world // numbers.local_world
    if nodes < 2:
        return config
    node, port = numbers.rank // numbers.local_world, int(os.environ["MASTER_PORT"])
    # Whether the address leads to node 0 is seen when the ranks meet; two may be on one machine.
    return dataclasses.replace(
        config, num_nodes=nodes, node_rank=node, master_addr="the launcher's", master_port=port
    )


def _start_group(config: DistributedConfig, numbers: RankNumbers, device: torch.device) -> None:
    if not _needs_group(config, numbers.world):
        return
    is_alone = numbers.world == 1
    store = dist.HashStore() if is_alone else rendezvous.meet(numbers, config.timeout_s)
    backend = (config.backend or "nccl") if device.type == "cuda" else "gloo"
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if backend == "nccl" else backend,
        store=store,
        rank=numbers.rank,
        world_size=numbers.world,
        timeout=timedelta(seconds=config.timeout_s),
    )
    # A cell that is done already leaves at once, perhaps before the others are connected to it.
    agree_any(False)


def _several() -> bool:
    return dist.is_initialized() and dist.get_world_size() > 1


def _talk_device() -> torch.device:
    """Where a small message lies: on the CPU where the group has a backend for it."""
    has_cpu = "cpu" in dist.get_backend_config()
    return torch.device("cpu") if has_cpu else current().device


def _refuse_different_names(names: list[str]) -> None:
    """By the largest and the smallest checksum: a collective of unequal sizes is undefined."""
    checksum = zlib.crc32("\0".join(names).encode(errors="surrogatepass"))
    ends = torch.tensor([checksum, -checksum], device=_talk_device())
    dist.all_reduce(ends, op=dist.ReduceOp.MAX)
    if int(ends.sum()) == 0:
        return
    of_rank: list[list[str]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(of_rank, names)
    raise InputError(
        "all_reduce_metrics: every rank must give the same names, found "
        + "; ".join(f"rank {rank}: {', '.join(given)}" for rank, given in enumerate(of_rank))
    )
