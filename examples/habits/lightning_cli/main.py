"""LightningCLI: every argument of model and trainer is a flag."""

import time

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.cli import LightningCLI
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Digits(LightningModule):
    def __init__(self, lr: float = 1e-3, width: int = 32) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )

    def train_dataloader(self):
        digits = load_digits()
        x = torch.tensor(digits.data, dtype=torch.float32) / 16
        return DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=64)

    def training_step(self, batch, at):
        time.sleep(0.01)
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    LightningCLI(
        Digits,
        trainer_defaults={"max_epochs": 8, "accelerator": "cpu", "enable_progress_bar": False},
    )
