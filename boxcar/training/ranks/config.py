"""What a person decides about training on several ranks, checked before anything starts.

    config = DistributedConfig(strategy="ddp", mixed_precision_policy="bf16")
    config.check(world=8, device_type="cuda")

Pure: nothing here looks at the environment or at a GPU.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from boxcar.shared.errors import InputError

WORDS = {
    "strategy": ("ddp", "fsdp", "single"),
    "fsdp_sharding": ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard"),
    "backend": (None, "nccl", "gloo"),
    "mixed_precision_policy": ("fp32", "bf16", "fp16"),
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
AT_LEAST_ONE = ("gradient_accumulation_steps", "num_nodes", "wrap_min_params")

BYTES_PER_PARAM = 18
"""Adam in mixed precision: weights 2, gradients 4, master weights 4, moments 8."""
WEIGHT_BYTES = 2
"""Of these, what `shard_grad_op` keeps whole on every GPU."""
STATE_SHARE = 0.8
"""Of a GPU's memory; the rest is for activations and for what the allocator cannot use."""


class Precision(NamedTuple):
    """The dtypes of the computation, of the reduction over ranks, and of the buffers."""

    param_dtype: torch.dtype
    reduce_dtype: torch.dtype
    buffer_dtype: torch.dtype


@dataclass
class DistributedConfig:
    """How a cell is spread over ranks; `check` says all that is wrong with it at once.

    It may be changed until the ranks have joined with it.
    """

    strategy: str = "ddp"
    """ddp | fsdp | single."""
    fsdp_sharding: str = "full_shard"
    """full_shard | shard_grad_op | hybrid_shard | no_shard."""
    batch_size: int | None = None
    """Per rank: of a RankAwareDataLoader that is given none."""
    gradient_accumulation_steps: int = 1
    find_unused_parameters: bool = False
    """DDP looks at every step for parameters without a gradient; costs a walk over the graph."""
    sync_batchnorm: bool = True
    """BatchNorm takes its statistics over all ranks; CUDA only."""
    backend: str | None = None
    """nccl | gloo; None: nccl. Where the ranks have no GPUs it is gloo."""
    num_nodes: int = 1
    node_rank: int = 0
    master_addr: str = "localhost"
    """Where the ranks meet that no launcher has started: `setup(rank, world)` of mp.spawn."""
    master_port: int | str | None = None
    """A number, also as text. None: a free one, which is only possible on one node; 29500 for ranks
    that no launcher has started."""
    activation_checkpointing: bool = False
    """Recompute the activations of `wrap_blocks` in the backward pass instead of keeping them."""
    cpu_offload: bool = False
    """FSDP keeps its shards in host memory."""
    mixed_precision_policy: str = "fp32"
    """fp32 | bf16 | fp16. It changes results, so it is asked for."""
    param_dtype: torch.dtype | str | None = None
    """A torch dtype or fp32 | bf16 | fp16, as the next two; None: from the policy."""
    reduce_dtype: torch.dtype | str | None = None
    buffer_dtype: torch.dtype | str | None = None
    wrap_blocks: Any = ()
    """What becomes FSDP units and is checkpointed: classes, their names, or names of modules, as
    "encoder.head". Several in brackets are one unit: ("Block", ("head_a", "head_b")). The parts of
    a ModuleDict or ModuleList that is named are one unit, too. FSDP1's transformer_auto_wrap_policy
    is read for its classes."""
    wrap_min_params: int = 1_000_000
    """Without wrap_blocks, a module of at least this many parameters becomes an FSDP unit."""
    timeout_s: float = 600.0
    """How long a rank waits for the others, at the start and in a collective."""
    debug_hangs: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        known = self.__dataclass_fields__
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"DistributedConfig has no field {name!r}{hint}")
        if "_is_held" in self.__dict__ and value != getattr(self, name):
            raise InputError(
                f"DistributedConfig: {name} was changed after the ranks joined with it: set it "
                "before, or make another by dataclasses.replace"
            )
        if name == "master_port" and isinstance(value, str) and value.isdecimal():
            value = int(value)
        if name == "wrap_blocks":
            value = _as_names(value)
        super().__setattr__(name, value)

    def hold(self) -> None:
        """From now on a change would have no effect, and is refused."""
        self.__dict__["_is_held"] = True

    @classmethod
    def for_size(
        cls, params: int, gpus: int, gpu_memory_bytes: int, wrap_blocks: Sequence[str] = ()
    ) -> DistributedConfig:
        """A start for a model of `params` parameters on `gpus` GPUs, in bf16 with Adam.

        The rung of the usual table (1M single, 1B DDP, 3B shard_grad_op, 7B full_shard), or the
        first one above it whose state fits; CPU offload is the last. Activation checkpointing where
        the state takes over half of the memory and the blocks are named. Host memory is not asked.
        """
        rungs = RUNGS[_first_rung(params, gpus) :] if gpus > 1 else RUNGS[:1] + RUNGS[-1:]
        for rung in rungs:
            state_bytes = rung.state_bytes(params, gpus)
            if state_bytes <= STATE_SHARE * gpu_memory_bytes:
                break
        is_tight = state_bytes > gpu_memory_bytes / 2 or rung.cpu_offload
        return cls(
            strategy=rung.strategy,
            fsdp_sharding=rung.fsdp_sharding,
            cpu_offload=rung.cpu_offload,
            activation_checkpointing=is_tight and bool(wrap_blocks),
            mixed_precision_policy="bf16",
            wrap_blocks=tuple(wrap_blocks),
        )

    @property
    def precision(self) -> Precision:
        """bf16 and fp16 compute in 16 bits; gradients are summed and buffers kept in 32."""
        return Precision(
            _dtype(self.param_dtype or self.mixed_precision_policy),
            _dtype(self.reduce_dtype or "fp32"),
            _dtype(self.buffer_dtype or "fp32"),
        )

    def problems(self, world: int | None = None, device_type: str | None = None) -> list[str]:
        """All that is wrong, a sentence each with what to write instead; empty where it is fine.

        `world` ranks on devices of `device_type` ("cuda", "cpu"); what is None is not judged.
        """
        return [
            *_wrong_words(self),
            *_wrong_numbers(self),
            *_wrong_nodes(self, world),
            *_without_effect(self),
            *_wrong_here(self, world, device_type),
        ]

    def check(self, world: int | None = None, device_type: str | None = None) -> None:
        """Raise InputError with all problems."""
        if problems := self.problems(world, device_type):
            raise InputError([f"DistributedConfig: {problem}" for problem in problems])

    def notes(self, world: int, device_type: str) -> list[str]:
        """What is allowed and worth a word, because it has no or a surprising effect here."""
        notes = {
            "strategy 'fsdp' on one rank shards nothing and costs its bookkeeping: 'single' is "
            "the same training": self.strategy == "fsdp" and world == 1,
            "backend 'gloo' takes every gradient through host memory: 'nccl' is faster": (
                self.backend == "gloo" and device_type == "cuda" and world > 1
            ),
            "no GPU here: gloo takes the place of nccl": (
                self.backend == "nccl" and device_type == "cpu" and world > 1
            ),
            "fp16 on a CPU is slow, and good for a try: its numbers are not the GPU's": (
                self.precision.param_dtype == torch.float16 and device_type == "cpu"
            ),
            "fp16 underflows without loss scaling: give "
            f"GradientAccumulator(scaler=torch.amp.GradScaler({device_type!r}))": (
                self.precision.param_dtype == torch.float16
            ),
        }
        return [note for note, applies in notes.items() if applies]


class Rung(NamedTuple):
    """One step of the ladder from fast to small."""

    strategy: str
    fsdp_sharding: str = "full_shard"
    cpu_offload: bool = False

    def state_bytes(self, params: int, gpus: int) -> float:
        """What one GPU holds between two steps: weights, gradients and optimizer state."""
        if self.cpu_offload:
            return 0
        whole = {"full_shard": 0, "shard_grad_op": WEIGHT_BYTES}[self.fsdp_sharding]
        if self.strategy != "fsdp":
            whole = BYTES_PER_PARAM
        return params * (whole + (BYTES_PER_PARAM - whole) / gpus)


RUNGS = (
    Rung("single"),
    Rung("ddp"),
    Rung("fsdp", "shard_grad_op"),
    Rung("fsdp", "full_shard"),
    Rung("fsdp", "full_shard", cpu_offload=True),
)
# Where the table's next row begins; between its rows, the middle on a scale of logarithms.
_FIRST_PARAMS = (0, 30_000_000, 1_700_000_000, 4_600_000_000)


def _first_rung(params: int, gpus: int) -> int:
    return max(i for i, least in enumerate(_FIRST_PARAMS) if params >= least)


def _as_names(blocks: Any) -> Any:
    """Names in the place of classes; what is no list of blocks stays, for `check` to tell."""
    if isinstance(blocks, functools.partial):
        blocks = blocks.keywords.get("transformer_layer_cls", blocks)
    if isinstance(blocks, type):
        return (blocks.__name__,)
    if isinstance(blocks, (set, frozenset)):
        return tuple(sorted(_name_of(one) for one in blocks))
    return tuple(map(_name_of, blocks)) if isinstance(blocks, (list, tuple)) else blocks


def _name_of(block: Any) -> Any:
    if isinstance(block, (list, tuple)):
        return tuple(map(_name_of, block))
    return block.__name__ if isinstance(block, type) else block


def _are_blocks(blocks: Any) -> bool:
    return isinstance(blocks, tuple) and all(
        bool(one) and (isinstance(one, str) or (isinstance(one, tuple) and _are_blocks(one)))
        for one in blocks
    )


def _is_bf16(value: torch.dtype | str | None) -> bool:
    return value in ("bf16", torch.bfloat16)


def _dtype(value: torch.dtype | str) -> torch.dtype:
    return value if isinstance(value, torch.dtype) else DTYPES[value]


def _wrong_words(config: DistributedConfig) -> Iterator[str]:
    for name, known in WORDS.items():
        if (value := getattr(config, name)) not in known:
            yield f"{name} {value!r} is not known; {_nearest(value, known)}"
    for name in ("param_dtype", "reduce_dtype", "buffer_dtype"):
        value = getattr(config, name)
        if value not in (None, *DTYPES, *DTYPES.values()):
            yield f"{name} {value!r} is not known; {_nearest(value, tuple(DTYPES))}"
    if not _are_blocks(config.wrap_blocks):
        yield (
            f"wrap_blocks should be class names as ('Block', 'Head'), found {config.wrap_blocks!r}"
        )


def _nearest(value: object, known: tuple[str | None, ...]) -> str:
    words = [word for word in known if word is not None]
    near = difflib.get_close_matches(str(value).lower(), words, n=1)
    return f"did you mean {near[0]!r}?" if near else f"write one of {', '.join(words)}"


def _wrong_numbers(config: DistributedConfig) -> Iterator[str]:
    for name in AT_LEAST_ONE:
        if not _is_whole(value := getattr(config, name)) or value < 1:
            yield f"{name} should be a whole number, 1 or more, found {value!r}"
    if (batch := config.batch_size) is not None and not (_is_whole(batch) and batch >= 1):
        yield f"batch_size should be a whole number, 1 or more, found {batch!r}"
    port = config.master_port
    if port is not None and not (isinstance(port, int) and 1 <= port <= 65535):
        yield f"master_port should be 1 to 65535, or None for a free one, found {port!r}"
    if not isinstance(config.timeout_s, (int, float)) or not config.timeout_s > 0:
        yield f"timeout_s should be seconds above 0, found {config.timeout_s!r}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong_nodes(config: DistributedConfig, world: int | None) -> Iterator[str]:
    nodes, node = config.num_nodes, config.node_rank
    if not _is_whole(nodes) or nodes < 1:
        return
    if not _is_whole(node) or not 0 <= node < nodes:
        yield f"node_rank should be 0 to {nodes - 1} with num_nodes {nodes}, found {node!r}"
    if config.fsdp_sharding == "hybrid_shard" and nodes == 1 and config.strategy == "fsdp":
        yield (
            "hybrid_shard shards inside a node and copies across nodes, and num_nodes is 1: "
            "write fsdp_sharding='full_shard', or the real num_nodes"
        )
    if nodes == 1:
        return
    if config.strategy == "single":
        yield f"strategy 'single' has one rank, and num_nodes is {nodes}: write 'ddp'"
    if config.master_addr in ("localhost", "127.0.0.1", "::1", ""):
        yield (
            f"master_addr {config.master_addr!r} leads every node to itself: write the address "
            "of node 0 that the others reach"
        )
    if config.master_port is None:
        yield f"{nodes} nodes cannot agree on a free port by themselves: write master_port=29500"
    if world is not None and world % nodes:
        yield f"{world} ranks cannot be shared equally by num_nodes {nodes}"


def _without_effect(config: DistributedConfig) -> Iterator[str]:
    """An option that does nothing would make two equal runs look like two settings."""
    default = {field.name: field.default for field in dataclasses.fields(config)}
    is_fsdp = config.strategy == "fsdp"
    for name in ("fsdp_sharding", "cpu_offload"):
        if not is_fsdp and (value := getattr(config, name)) != default[name]:
            yield f"{name}={value!r} needs strategy 'fsdp', found {config.strategy!r}"
    if config.find_unused_parameters and config.strategy != "ddp":
        yield f"find_unused_parameters is DDP's, and strategy is {config.strategy!r}: leave it out"
    if not is_fsdp and config.buffer_dtype not in (None, "fp32", torch.float32):
        yield "buffer_dtype is FSDP's: under 'ddp' and 'single' buffers keep the model's own dtype"
    if config.activation_checkpointing and not config.wrap_blocks and not is_fsdp:
        yield (
            "activation_checkpointing needs wrap_blocks, the class names of the blocks that are "
            "recomputed, as wrap_blocks=('Block',)"
        )


def _wrong_here(
    config: DistributedConfig, world: int | None, device_type: str | None
) -> Iterator[str]:
    if device_type == "cpu" and config.strategy == "ddp" and _is_bf16(config.reduce_dtype):
        yield "reduce_dtype 'bf16' needs nccl under 'ddp': leave it out on the CPU"
    if config.strategy == "single" and world is not None and world > 1:
        yield (
            f"strategy 'single' on {world} ranks would train the same cell {world} times: write "
            "'ddp', or start one rank"
        )
