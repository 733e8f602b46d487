"""The examples of docs/training.md with other people's trainers, killed, stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_scripts import HEAD, TAIL, Script, blocks, killed_and_whole

pytestmark = [pytest.mark.projects]

LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint

class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, number):
        return F.mse_loss(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

model = Lit()
"""
TRANSFORMERS = """
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

class Rows(Noisy):
    def __getitem__(self, index):
        inputs = torch.full((4,), index / 100)
        return {"inputs": inputs, "labels": inputs.sum().reshape(1)}

class WithLoss(Net):
    def forward(self, inputs, labels):
        return {"loss": F.mse_loss(super().forward(inputs), labels)}

data, model = Rows(), WithLoss()
"""
ACCELERATE = "from accelerate import Accelerator\n"


@pytest.mark.parametrize(
    ("library", "heading", "more"),
    [
        ("lightning", "Lightning", LIGHTNING),
        ("transformers", "Hugging Face's Trainer", TRANSFORMERS),
        ("accelerate", "accelerate", ACCELERATE),
    ],
)
def test_what_was_killed_and_stopped_ends_as_what_was_not(
    library: str, heading: str, more: str, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    (code,) = blocks(heading)
    assert len(code.splitlines()) <= 80
    killed, whole = killed_and_whole(Script(tmp_path, HEAD + more + code + TAIL), 17, 23)
    assert killed == whole
