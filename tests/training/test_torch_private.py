"""torch's private names: which exist in the oldest and the newest torch that is supported, and
that one module alone uses them. `make test-torch` runs this with both."""

from __future__ import annotations

import ast
import functools
import importlib
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from boxcar.training import torch_private

ROOT = Path(__file__).resolve().parents[2]
OLDEST, NEWEST = (2, 4), (2, 13)
HERE = tuple(int(part) for part in torch.__version__.split(".")[:2])

_C10D = "torch.distributed.distributed_c10d"
_NATIVE = "torch._C._distributed_c10d"
IN_BOTH = [
    f"{_C10D}._world.pg_map",
    "torch.Tensor._values",
    "torch._dynamo.exc.TorchDynamoException",
    "torch._tensor.Tensor.backward",
    "torch._weights_only_unpickler._get_allowed_globals",
    "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointWrapper",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.nn.Module._call_impl",
    "torch.nn.Module._compiled_call_impl",
    "torch.nn.modules.batchnorm._BatchNorm",
    "torch.serialization._get_layout",
    "torch.utils.data._utils.worker._worker_info",
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter._shutdown_workers",
]
# Between the two a name may be there or not, but one of each pair is.
IN_OLDEST_ONLY = [f"{_NATIVE}._dump_nccl_trace"]
IN_NEWEST_ONLY = ["torch.distributed.fsdp.fully_shard", f"{_NATIVE}._dump_fr_trace"]
PAIRS = [
    ("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard"),
    (f"{_NATIVE}._dump_fr_trace", f"{_NATIVE}._dump_nccl_trace"),
]


def exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for attribute in parts[count:]:
            if not hasattr(value, attribute):
                return False
            value = getattr(value, attribute)
        return True
    return False


def test_the_installed_torch_is_one_that_these_lists_know() -> None:
    assert OLDEST <= HERE <= NEWEST, "look at each name below in this torch, then move the limit"


@pytest.mark.parametrize("name", IN_BOTH)
def test_a_name_of_all_versions_is_there(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("name", IN_NEWEST_ONLY)
def test_a_name_of_the_newest_version_is_there_and_not_in_the_oldest(name: str) -> None:
    if HERE not in (OLDEST, NEWEST):
        pytest.skip(f"torch {torch.__version__} is neither the oldest nor the newest")
    assert exists(name) == (HERE == NEWEST)


@pytest.mark.parametrize("name", IN_OLDEST_ONLY)
def test_a_name_of_the_oldest_version_is_gone_from_the_newest(name: str) -> None:
    if HERE not in (OLDEST, NEWEST):
        pytest.skip(f"torch {torch.__version__} is neither the oldest nor the newest")
    # torch 2.4 records the collectives of NCCL alone.
    assert exists(name) == (HERE == OLDEST and dist.is_nccl_available())


@pytest.mark.parametrize("names", PAIRS, ids=lambda names: names[0])
def test_one_of_two_names_of_the_same_thing_is_there(names: tuple[str, str]) -> None:
    if "_dump_" in names[0] and HERE < (2, 8) and not dist.is_nccl_available():
        pytest.skip("gloo has a flight recorder since torch 2.8")
    assert any(map(exists, names))


# --- names that stand in objects, seen through the functions that use them


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 2 * inputs


def test_torch_compile_keeps_the_module_under_the_name_that_is_looked_for() -> None:
    model = Twice()
    compiled = torch.compile(model, backend="eager")
    assert torch_private.inside_compiled(compiled) is model
    assert torch_private.inside_compiled(model) is None
    assert all(name.startswith("_orig_mod.") for name in compiled.state_dict())


def test_a_replaced_call_is_what_calling_the_module_calls() -> None:
    model = Twice()
    torch_private.replace_call(model, lambda call: lambda inputs: call(inputs) + 1)
    assert model(torch.tensor(3)) == 7


def test_a_state_dict_tells_the_versions_of_its_modules() -> None:
    weights = Twice().state_dict()
    assert torch_private.versions(weights)["norm"] == {"version": 2}
    assert torch_private.versions({}) is None
    renamed = torch_private.with_versions(type(weights)(weights), {"": {"version": 1}})
    assert torch_private.versions(renamed) == {"": {"version": 1}}


def test_every_group_is_known_and_let_go_of() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("only",))
    groups = torch_private.groups()
    assert {mesh.get_group(), dist.group.WORLD} <= {group() for group in groups}
    dist.destroy_process_group()
    torch_private.let_go_of(groups)
    assert [group() for group in groups if group() is not None] == []


def test_a_sparse_tensor_tells_its_values_before_it_is_coalesced() -> None:
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([1.0, 2.0]), (2,))
    assert not twice.is_coalesced()
    assert torch_private.sparse_values(twice).tolist() == [1.0, 2.0]


def test_what_a_plain_checkpoint_names_is_harmless() -> None:
    names = torch_private.harmless_globals()
    assert {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2"} <= names
    assert "builtins.eval" not in names


def test_fsdp2_gives_its_five_names() -> None:
    names = [each.__name__ for each in torch_private.fsdp2()]
    assert names == [
        *("CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy"),
        "fully_shard",
    ]


# --- nobody else

PYTHONS = {
    *("_getframe", "_current_frames", "_exit", "_asdict", "_replace", "_fields"),
    *("_socket", "_signal"),
}
FILES = sorted(
    path
    for folder in ("boxcar", "onbox", "examples", "bench")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(torch_private.__file__)
)


def is_private(name: str) -> bool:
    return any(re.match(r"_[A-Za-z]", part) for part in name.split("."))


def own_names(trees: list[ast.Module]) -> set[str]:
    """The private names that our own files give to something."""
    found = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            found |= {node.attr} if is_own else set()
    return {name for name in found if is_private(name)}


def private_names(tree: ast.Module, own: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name not in PYTHONS]
            yield from filter(is_private, names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from filter(is_private, names)
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            yield from [node.attr] if node.attr not in own | PYTHONS else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            yield from [name] if is_private(name) and name not in own | PYTHONS else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_name = re.fullmatch(r"torch[\w.]*\._[a-zA-Z][\w.]*", node.value)
            yield from [node.value] if is_name else []


@functools.cache
def looked_through() -> tuple[set[str], set[str]]:
    """The private names that are ours, and those in our files that are not. No tree is kept: Python
    would look through them all for garbage again and again, for as long as the tests run."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    own = own_names(list(trees.values()))
    return own, {
        f"{path.relative_to(ROOT)}: {name}"
        for path, tree in trees.items()
        for name in private_names(tree, own)
    }


def test_no_other_file_uses_a_private_name_of_torch() -> None:
    _, found = looked_through()
    assert found == set()


@pytest.mark.parametrize(
    "line",
    [
        "from torch.utils.data._utils import worker",
        "from torch.nn.modules.batchnorm import _BatchNorm",
        "import torch._dynamo",
        "torch.distributed.distributed_c10d._world.pg_map",
        "iterator._shutdown_workers()",
        "getattr(model, '_orig_mod', model)",
        "importlib.import_module('torch._inductor')",
    ],
)
def test_a_planted_private_name_is_found(line: str) -> None:
    own, _ = looked_through()
    assert list(private_names(ast.parse(line), own))


def test_importing_it_imports_no_torch() -> None:

    code = "import sys; from boxcar.training import torch_private; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


ADAMS = (torch.optim.Adam, torch.optim.AdamW)


@pytest.mark.parametrize("kind", ADAMS, ids=lambda kind: kind.__name__)
def test_a_fused_adam_leaves_out_a_step_that_is_bad_and_no_other(kind: Any) -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = kind([weight], lr=0.1, fused=True, amsgrad=True)
    assert torch_private.takes_step_unless(optimizer)
    moved, before = [], weight.detach().clone()
    for is_bad in (True, False, True, False):  # also the first one
        weight.grad = torch.full((3,), math.inf if is_bad else 1.0)
        torch_private.step_unless(torch.tensor(is_bad), optimizer)
        moved.append(not torch.equal(weight, before))
        before = weight.detach().clone()
    assert moved == [False, True, False, True]
    [state] = optimizer.state.values()
    assert int(state["step"]) == 2
    assert all(bool(each.isfinite().all()) for each in (weight, *state.values()))
    assert not {"grad_scale", "found_inf"} & vars(optimizer).keys()


class MoreThanAdam(torch.optim.AdamW):
    pass


def no_plain_adams() -> Iterator[torch.optim.Optimizer]:
    here, there = (nn.Parameter(torch.ones(3, device=device)) for device in ("cpu", "meta"))
    yield torch.optim.AdamW([here])
    yield torch.optim.AdamW([{"params": [here], "fused": True}, {"params": [], "fused": False}])
    yield torch.optim.SGD([here], lr=0.1, fused=True)
    yield MoreThanAdam([here], fused=True)
    on_two = torch.optim.AdamW([here, there])
    on_two.param_groups[0]["fused"] = True
    yield on_two


def test_only_a_fused_adam_of_torchs_on_one_device_is_asked_for_such_a_step() -> None:
    assert [*map(torch_private.takes_step_unless, no_plain_adams())] == [False] * 5
