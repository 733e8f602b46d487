"""What FSDP will do with a model, decided before it is done: pure, without a process group.

    print(sharding.plan(model, config, world=8, local_world=8, device_type="cuda"))

A unit is what is gathered and freed together. Too few of them save no memory (the whole model as
one unit gathers all of it at once), too many send small messages.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training import torch_private
from boxcar.training.ranks.config import DistributedConfig

# They only hold others and have no forward: torch refuses to shard them.
_CONTAINERS = (nn.ModuleList, nn.ModuleDict)
# Its forward reads the weights of its parts without calling them.
_WHOLE = (nn.MultiheadAttention,)
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Unit:
    """What is gathered together: one module, or several. `name` is "" for the root, which holds the
    rest; of several it is that of the first and the number of the others."""

    name: str
    class_name: str
    params: int
    size_bytes: int
    bytes_per_rank: int
    modules: tuple[str, ...]


@dataclass(frozen=True)
class ShardingPolicy:
    """What each rank holds and in which dtypes. `print(policy)` shows it as a table.

    A dtype of None is the model's own. `mesh` is (ranks that share one copy,) or (copies, ranks
    that share each). `bytes_per_rank` is of rank 0, whose shards are the largest.
    """

    units: tuple[Unit, ...]
    sharding: str
    reshard_after_forward: bool
    mesh: tuple[int, ...]
    param_dtype: torch.dtype | None
    reduce_dtype: torch.dtype | None
    buffer_dtype: torch.dtype | None
    output_dtype: torch.dtype | None
    cpu_offload: bool
    checkpointed: tuple[str, ...]
    reason: str
    notes: tuple[str, ...] = ()

    @property
    def params(self) -> int:
        return sum(unit.params for unit in self.units)

    @property
    def bytes_per_rank(self) -> int:
        return sum(unit.bytes_per_rank for unit in self.units)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def plan(
    model: nn.Module, config: DistributedConfig, *, world: int, local_world: int, device_type: str
) -> ShardingPolicy:
    """The policy for a model that is not sharded yet. Raises InputError for unknown wrap_blocks."""
    parts, reason = _unit_names(model, config)
    parts, tied = _without_tied(model, parts)
    mesh = mesh_shape(config.fsdp_sharding, world, local_world)
    units = _units(model, parts, mesh[-1])
    names = [name for unit in parts for name in unit]
    checkpointed = _checkpointed(model, names) if config.activation_checkpointing else ()
    return ShardingPolicy(
        units=units,
        sharding=config.fsdp_sharding,
        reshard_after_forward=config.fsdp_sharding in ("full_shard", "hybrid_shard"),
        mesh=mesh,
        **_dtypes(config),
        cpu_offload=config.cpu_offload,
        checkpointed=checkpointed,
        reason=reason,
        notes=(*tied, *_notes(model, config, units, world, device_type)),
    )


def mesh_shape(sharding: str, world: int, local_world: int) -> tuple[int, ...]:
    """full_shard on 8 ranks: (8,). hybrid_shard on 2 nodes of 8: (2, 8). no_shard: (8, 1)."""
    if sharding == "no_shard":
        return (world, 1)
    if sharding != "hybrid_shard":
        return (world,)
    if world % local_world:
        raise InputError(
            f"hybrid_shard needs as many ranks on every node: {world} ranks are not a multiple of "
            f"the {local_world} on this one"
        )
    return (world // local_world, local_world)


# The names of the modules that become one unit.
Parts = tuple[str, ...]


def _unit_names(model: nn.Module, config: DistributedConfig) -> tuple[list[Parts], str]:
    if config.wrap_blocks:
        said = ", ".join(map(_said, config.wrap_blocks))
        return named_units(model, config.wrap_blocks), f"blocks named: {said}"
    found = set(_by_size(model, "", config.wrap_min_params))
    reason = f"repeated blocks and modules of {config.wrap_min_params} parameters or more"
    return [(name,) for name, _ in model.named_modules() if name and name in found], reason


def _said(block: str | Parts) -> str:
    return block if isinstance(block, str) else f"({', '.join(block)})"


def named_units(model: nn.Module, blocks: Sequence[str | Parts]) -> list[Parts]:
    """The modules that each unit has, outermost first. Raises InputError for an unknown block."""
    of_name = {name: module for name, module in model.named_modules() if name}
    found: set[Parts] = set()
    for block in blocks:
        if isinstance(block, str):
            found.update(_units_of(block, of_name))
        else:
            found.add(tuple(name for one in block for of in _units_of(one, of_name) for name in of))
    place = {name: number for number, name in enumerate(of_name)}
    grouped = {name for unit in found if len(unit) > 1 for name in unit}
    found = {unit for unit in found if len(unit) > 1 or unit[0] not in grouped}
    return sorted(found, key=lambda unit: place[unit[0]])


def _units_of(block: str, of_name: dict[str, nn.Module]) -> list[Parts]:
    if isinstance(of_name.get(block), _CONTAINERS):
        return [tuple(f"{block}.{name}" for name, _ in of_name[block].named_children())]
    if block in of_name:
        return [(block,)]
    classes = Counter(type(module).__name__ for module in of_name.values())
    if block in classes:
        return [(name,) for name, one in of_name.items() if type(one).__name__ == block]
    near = difflib.get_close_matches(block, [*classes, *of_name], n=1)
    most = ", ".join(name for name, _ in classes.most_common(8))
    hint = f"did you mean {near[0]!r}?" if near else f"it has {most}"
    raise InputError(f"wrap_blocks: the model has no module of class or name {block!r}; {hint}")


def _by_size(module: nn.Module, name: str, least: int) -> Iterator[str]:
    """Names of units: repeated blocks whole, and what is large besides them."""
    rest = {id(param): param.numel() for param in module.parameters()}
    blocks = set() if isinstance(module, _WHOLE) else _repeated(module, least)
    children = () if isinstance(module, _WHOLE) else module.named_children()
    for child_name, child in children:
        path = f"{name}.{child_name}" if name else child_name
        found = [path] if type(child) in blocks else list(_by_size(child, path, least))
        yield from found
        for unit in found:
            inner = child.get_submodule(unit[len(path) + 1 :])
            for param in inner.parameters():
                rest.pop(id(param), None)
    if sum(rest.values()) >= least and not isinstance(module, _CONTAINERS):
        yield name


def _repeated(module: nn.Module, least: int) -> set[type]:
    """Classes of several children that have parts and hold `least` parameters together."""
    children = [child for child in module.children() if _is_block_like(child)]
    counts = Counter(type(child) for child in children)
    held = Counter[type]()
    for child in children:
        held[type(child)] += _count(child)
    return {kind for kind, count in counts.items() if count > 1 and held[kind] >= least}


def _is_block_like(module: nn.Module) -> bool:
    has_children = next(module.children(), None) is not None
    return has_children and not isinstance(module, (*_CONTAINERS, nn.Sequential))


def _count(module: nn.Module) -> int:
    return sum(param.numel() for param in module.parameters())


def _without_tied(model: nn.Module, units: list[Parts]) -> tuple[list[Parts], list[str]]:
    """FSDP would silently untie a parameter that two units share: such modules stay in the root."""
    owners: dict[int, list[str]] = {}
    for name, param in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(param), []).append(name)
    kept, notes = [], []
    for unit in units:
        shared = next((of for of in owners.values() if _is_shared_outside(unit, of)), None)
        if shared is None:
            kept.append(unit)
        else:
            notes.append(
                f"{' and '.join(unit)} is no unit of its own: {' and '.join(shared)} are one "
                "parameter, so they stay together in the root"
            )
    return kept, notes


def _is_shared_outside(unit: Parts, names: list[str]) -> bool:
    inside = [any(name.startswith(f"{part}.") for part in unit) for name in names]
    return any(inside) and not all(inside)


def _checkpointed(model: nn.Module, names: list[str]) -> tuple[str, ...]:
    """The outermost units that have parts: a single layer keeps little that could be recomputed."""
    blocks = [name for name in names if next(model.get_submodule(name).children(), None)]
    return tuple(
        name for name in blocks if not any(name.startswith(f"{outer}.") for outer in blocks)
    )


def _units(model: nn.Module, parts: list[Parts], shards: int) -> tuple[Unit, ...]:
    """Inner units first, as they are sharded; each holds what no unit inside it holds."""
    taken: set[int] = set()
    units = []
    for names in [*reversed(parts), ("",)]:
        modules = [model.get_submodule(name) for name in names]
        of_unit = {id(param): param for module in modules for param in module.parameters()}
        params = [param for number, param in of_unit.items() if number not in taken]
        taken |= set(of_unit)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        units.append(
            Unit(
                f"{names[0]}{more}",
                type(modules[0]).__name__,
                sum(param.numel() for param in params),
                sum(param.numel() * param.element_size() for param in params),
                sum(shard_bytes(param, shards) for param in params),
                names,
            )
        )
    return tuple(reversed(units))


def shard_bytes(param: torch.Tensor, shards: int) -> int:
    """Bytes of rank 0's shard: rows are dealt out in equal chunks, the last ranks get less."""
    if param.dim() == 0 or param.numel() == 0:
        return param.numel() * param.element_size()
    rows = -(-param.shape[0] // shards)
    return rows * (param.numel() // param.shape[0]) * param.element_size()


def _dtypes(config: DistributedConfig) -> dict[str, torch.dtype | None]:
    """fp32 that nobody asked for casts nothing: a model of float64 stays one."""
    precision, is_mixed = config.precision, config.mixed_precision_policy != "fp32"
    param = precision.param_dtype if is_mixed or config.param_dtype else None
    return {
        "param_dtype": param,
        "reduce_dtype": precision.reduce_dtype if is_mixed or config.reduce_dtype else None,
        "buffer_dtype": precision.buffer_dtype if is_mixed or config.buffer_dtype else None,
        # The loss is computed from it.
        "output_dtype": torch.float32 if param in (torch.bfloat16, torch.float16) else None,
    }


def _notes(
    model: nn.Module,
    config: DistributedConfig,
    units: tuple[Unit, ...],
    world: int,
    device_type: str,
) -> Iterator[str]:
    if len(units) == 1 and world > 1:
        yield (
            "the whole model is one unit, so every rank gathers all of it at once and little "
            "memory is saved: name the class of its blocks in wrap_blocks, or lower wrap_min_params"
        )
    if config.fsdp_sharding == "no_shard" and world > 1:
        yield "no_shard keeps a whole copy on every rank: strategy 'ddp' does the same, faster"
    if config.activation_checkpointing and len(units) == 1:
        yield "activation_checkpointing has no effect: no block was found; name it in wrap_blocks"
    norms = [name for name, m in model.named_modules() if torch_private.is_batch_norm(m)]
    if norms and world > 1 and not (config.sync_batchnorm and device_type == "cuda"):
        yield (
            f"{norms[0]} keeps its own statistics on every rank, and a checkpoint holds those of "
            "one: use sync_batchnorm on GPUs, or GroupNorm"
        )


def _lines(policy: ShardingPolicy) -> Iterator[str]:
    mesh = " x ".join(str(size) for size in policy.mesh)
    resharded = "freed" if policy.reshard_after_forward else "kept"
    yield (
        f"FSDP {policy.sharding} on a mesh of {mesh}: {policy.params} parameters in "
        f"{len(policy.units)} units, {policy.bytes_per_rank / _MIB:.1f} MiB of them on each rank"
    )
    yield f"units: {policy.reason}; gathered parameters are {resharded} after the forward pass"
    names = ("param_dtype", "reduce_dtype", "buffer_dtype", "output_dtype")
    dtypes = (f"{name} {_dtype(getattr(policy, name))}" for name in names)
    yield f"{', '.join(dtypes)}; CPU offload {'on' if policy.cpu_offload else 'off'}"
    for unit in policy.units:
        again = ", recomputed" if unit.name in policy.checkpointed else ""
        yield (
            f"  {unit.name or '(root)':<32} {unit.class_name:<24} {unit.params:>14} parameters"
            f" {unit.bytes_per_rank / _MIB:>10.2f} MiB{again}"
        )
    yield from (f"note: {note}" for note in policy.notes)


def _dtype(dtype: torch.dtype | None) -> str:
    return "as it is" if dtype is None else str(dtype).removeprefix("torch.")
