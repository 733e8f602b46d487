"""Lines of accelerate and deepspeed as guides to launching print them, each in an attempt.

On a CPU: accelerate then trains with DDP whatever the config says of FSDP (docs/launchers.md).
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from begun import Begun
from specs import make_spec

pytestmark = pytest.mark.projects

BLOCKS = """\
import json, os, sys, torch
class LlamaDecoderLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 8)
    def forward(self, x):
        return torch.relu(self.net(x))
model = torch.nn.Sequential(LlamaDecoderLayer(), LlamaDecoderLayer())
"""
ACCELERATED = f"""{BLOCKS}
from accelerate import Accelerator
accelerator = Accelerator()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model, optimizer = accelerator.prepare(model, optimizer)
loss = model(torch.ones(2, 8, device=accelerator.device)).float().square().mean()
accelerator.backward(loss)
optimizer.step()
said = [accelerator.num_processes, accelerator.mixed_precision, type(model).__name__]
json.dump(said, open(f"said{{accelerator.process_index}}.json", "w"))
"""
FSDP = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "FSDP",
    "mixed_precision": "bf16",
    "num_processes": 2,
    "fsdp_config": {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_transformer_layer_cls_to_wrap": "LlamaDecoderLayer",
    },
}
ENGINE = f"""{BLOCKS}
import argparse, deepspeed
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.add_argument("--deepspeed")
flags = parser.parse_args()
model_engine, *_ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=json.load(open(flags.deepspeed))
)
loss = model_engine(torch.ones(2, 8, dtype=torch.bfloat16)).float().square().mean()
model_engine.backward(loss)
model_engine.step()
said = [torch.distributed.get_world_size(), model_engine.zero_optimization_stage()]
json.dump(said, open(f"said{{os.environ['RANK']}}.json", "w"))
"""
KNOBS: dict[str, Any] = {
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "cpu"},
    },
    "bf16": {"enabled": True},
    "gradient_accumulation_steps": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "auto",
}

Begin = Callable[..., Begun]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    begun: list[Begun] = []

    def of(launcher: str, script: str, line: str, **env: str) -> Begun:
        if importlib.util.find_spec(launcher) is None:
            pytest.skip(f"{launcher} is not installed: `make test-projects` installs it")
        (tmp_path / "train.py").write_text(script)
        spec = make_spec(tmp_path, launcher=launcher, ranks=2, words=tuple(line.split()), env=env)
        begun.append(Begun(tmp_path, spec))
        return begun[-1]

    yield of
    for one in begun:
        one.end()


def said_by_ranks(one: Begun) -> list[Any]:
    done = one.ended()
    assert done.rc == 0, one.log
    return [json.loads(path.read_text()) for path in sorted(one.folder.glob("said*.json"))]


@pytest.mark.parametrize(
    "line",
    [
        "--multi_gpu --num_processes=2 --mixed_precision=bf16 train.py",
        "--config_file configs/acc_fsdp.yaml train.py",
    ],
)
def test_accelerates_own_flags_count_before_the_script(
    line: str, tmp_path: Path, begin: Begin
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "acc_fsdp.yaml").write_text(json.dumps(FSDP))  # JSON is YAML, too
    one = begin("accelerate", ACCELERATED, line)
    assert said_by_ranks(one) == [[2, "bf16", "DistributedDataParallel"]] * 2


def test_deepspeeds_engine_steps_on_each_rank(tmp_path: Path, begin: Begin) -> None:
    numbers = {"gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": 2}
    here = {
        **KNOBS,
        **numbers,
        "zero_optimization": {"stage": 3},  # to offload, a CPU must compile an optimizer first
        "gradient_clipping": 1.0,
        "optimizer": {"type": "Adam", "params": {"lr": 0.1, "torch_adam": True}},
    }
    (tmp_path / "ds_config.json").write_text(json.dumps(here))
    line = "train.py --deepspeed ds_config.json"
    one = begin("deepspeed", ENGINE, line, DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
    assert said_by_ranks(one) == [[2, 3]] * 2


def test_what_is_auto_in_deepspeeds_config_is_filled_by_the_trainer(tmp_path: Path) -> None:
    pytest.importorskip("deepspeed")
    from transformers import TrainingArguments

    (tmp_path / "ds_config.json").write_text(json.dumps(KNOBS))
    flags = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        deepspeed=str(tmp_path / "ds_config.json"),
        use_cpu=True,
        bf16=True,
        gradient_accumulation_steps=3,
        per_device_train_batch_size=5,
        max_grad_norm=0.7,
        report_to=[],
    )
    found = flags.hf_deepspeed_config.config
    filled = {
        "gradient_accumulation_steps": 3,
        "train_micro_batch_size_per_gpu": 5,
        "gradient_clipping": 0.7,
    }
    assert {name: found[name] for name in KNOBS} == {**KNOBS, **filled}
