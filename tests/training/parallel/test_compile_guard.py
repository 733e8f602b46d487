"""Compilation is a choice with a reason, written down, and never the end of a training."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fsdp_on_cpu import needs_fsdp_on_cpu
from ranks_at_work import run_ranks
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training.parallel import compile_guard
from boxcar.training.parallel.compile_guard import CompileChoice, choose, compile_model
from boxcar.training.parallel.fsdp import FSDPWrapper
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig

GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]
SINGLE = DistributedConfig(strategy="single")
HERE: dict[str, Any] = {
    "strategy": "ddp",
    "world": 8,
    "device_type": "cuda",
    "has_compiler": True,
    "torch_version": "2.13.0+cu130",
}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))
    torch._dynamo.reset()
    return tmp_path


def recorded(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "training.json").read_text())["compile"]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_cuda_graphs_are_left_out_where_ranks_reduce(strategy: str, mode: str) -> None:
    choice = choose(mode, **HERE | {"strategy": strategy})
    assert (choice.is_compiled, choice.mode) == (True, "default")
    assert mode in choice.reason and f"{strategy} on 8 ranks" in choice.reason


@pytest.mark.parametrize("mode", compile_guard.MODES)
def test_one_rank_gets_the_mode_that_was_asked_for(mode: str) -> None:
    assert choose(mode, **HERE | {"world": 1}) == CompileChoice(True, mode, "as asked")


@pytest.mark.parametrize("mode", ["default", "max-autotune-no-cudagraphs"])
def test_a_mode_without_cuda_graphs_is_kept_on_many_ranks(mode: str) -> None:
    assert choose(mode, **HERE) == CompileChoice(True, mode, "as asked")


@pytest.mark.parametrize(("device_type", "what"), [("cpu", "g++"), ("cuda", "triton")])
def test_without_a_compiler_the_model_stays_eager(device_type: str, what: str) -> None:
    choice = choose("default", **HERE | {"device_type": device_type, "has_compiler": False})
    assert (choice.is_compiled, choice.mode) == (False, "eager")
    assert what in choice.reason


def test_fsdp_is_not_compiled_on_a_torch_that_is_too_old() -> None:
    old = HERE | {"strategy": "fsdp", "torch_version": "2.4.1"}
    assert not choose("default", **old).is_compiled
    assert choose("default", **old | {"torch_version": "2.10.0"}).is_compiled


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputError, match="'fastest' is not known; write one of default"):
        choose("fastest", **HERE)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def test_the_names_of_the_weights_stay_the_models_own(out: Path) -> None:
    model = Block()
    assert compile_model(model, SINGLE, backend="eager") is model
    assert torch.equal(model(torch.ones(4)), model._call_impl(torch.ones(4)))
    assert list(model.state_dict()) == ["linear.weight", "linear.bias"]
    found = recorded(out)
    assert (found["is_compiled"], found["backend"]) == (True, "eager")


def broken_backend(graph: Any, inputs: Any) -> Any:
    raise RuntimeError("no such instruction\nand much more")


def test_a_compilation_that_fails_falls_back_says_so_and_is_written_down(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = compile_model(Block(), SINGLE, backend=broken_backend)
    for _ in range(2):
        loss = model(torch.ones(3, 4)).sum()
        loss.backward()
    assert torch.equal(model(torch.ones(4)), model._call_impl(torch.ones(4)))
    said = capsys.readouterr().err
    assert said.count("compilation failed") == 1 and "no such instruction" in said
    assert "and much more" not in said
    assert (recorded(out)["is_compiled"], recorded(out)["mode"]) == (False, "eager")
    assert "no such instruction" in recorded(out)["reason"]


class Wrong(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) @ torch.ones(5)


def test_an_error_of_the_model_itself_comes_through(out: Path) -> None:
    model = compile_model(Wrong(), SINGLE, backend="eager")
    with pytest.raises(RuntimeError, match="size"):
        model(torch.ones(3, 4))
    assert recorded(out)["is_compiled"]


def train(model: nn.Module, device: str) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        loss = model(torch.ones(8, 4, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    ("backend", "mode", "device"),
    [
        ("aot_eager", "default", "cpu"),
        pytest.param("inductor", "reduce-overhead", "cpu", marks=pytest.mark.faults),
        pytest.param("inductor", "reduce-overhead", "cuda", marks=GPU),
    ],
)
def test_a_compiled_model_trains_as_an_eager_one(
    out: Path, monkeypatch: pytest.MonkeyPatch, backend: str, mode: str, device: str
) -> None:
    here = ranks.Ranks(0, 0, 1, 1, torch.device(device))
    monkeypatch.setattr(ranks, "current", lambda: here)
    torch.manual_seed(0)
    # Nothing here but torch's own modules, which Module.compile would leave as they are.
    eager = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    model = compile_model(copy.deepcopy(eager), SINGLE, mode=mode, backend=backend)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert train(model, device) == pytest.approx(train(eager, device), rel=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before + 1
    assert recorded(out) == {
        "asked": mode,
        "backend": backend,
        "is_compiled": True,
        "mode": mode,
        "reason": "as asked",
    }


def count_graphs_in_ddp() -> tuple[int, str, bool]:
    config = DistributedConfig()
    ranks.join(config)
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(4)))
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    graphs = []

    def counting(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compile_model(ddp, config, mode="reduce-overhead", backend=counting)
    ddp(torch.full((2, 512), float(dist.get_rank()))).sum().backward()
    grads = torch.stack([param.grad.sum() for param in ddp.parameters()])
    everywhere = [torch.zeros_like(grads) for _ in range(2)]
    dist.all_gather(everywhere, grads)
    names = next(iter(ddp.state_dict()))
    ranks.leave()
    return len(graphs), names, torch.equal(*everywhere)


def test_inside_ddp_the_graph_is_cut_at_the_gradient_buckets(out: Path) -> None:
    found = run_ranks(2, count_graphs_in_ddp, env={"BOXCAR_OUT": str(out)})
    # Four layers of 1 MB, which is a bucket.
    assert found == [(4, "module.0.weight", True)] * 2
    assert recorded(out)["mode"] == "default"


def sharded(backend: Any) -> tuple[bool, list[str], int]:
    config = DistributedConfig(strategy="fsdp", wrap_blocks=("TransformerEncoderLayer",))
    ranks.join(config)
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0)
    model = nn.TransformerEncoder(layer, 10, enable_nested_tensor=False)
    with pytest.raises(InputError, match=r"call FSDPWrapper\.setup before it"):
        compile_model(model, config, backend=backend)
    FSDPWrapper(model, config).setup(0, 1)
    eager = model(torch.ones(2, 3, 8))
    compile_model(model, config, backend=backend)
    output = model(torch.ones(2, 3, 8))
    output.sum().backward()
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    ranks.leave()
    return torch.allclose(output, eager), list(model.state_dict())[:1], graphs


@needs_fsdp_on_cpu
def test_under_fsdp_blocks_of_one_class_share_their_graphs(out: Path) -> None:
    ((is_equal, names, graphs),) = run_ranks(1, sharded, "aot_eager", env={"BOXCAR_OUT": str(out)})
    assert is_equal and names == ["layers.0.self_attn.in_proj_weight"] and 1 <= graphs <= 3
    assert recorded(out)["is_compiled"]


@needs_fsdp_on_cpu
def test_under_fsdp_a_compilation_that_fails_falls_back(out: Path) -> None:
    found = run_ranks(1, sharded, broken_backend, env={"BOXCAR_OUT": str(out)})
    assert found[0][0] and "no such instruction" in recorded(out)["reason"]
