"""As the Lightning and Hydra template is: a tree of configs, and Hydra says where to write."""

import time

import hydra
import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from omegaconf import DictConfig
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Digits(L.LightningModule):
    def __init__(self, lr: float, width: int) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )

    def training_step(self, batch, at):
        time.sleep(0.01)
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


@hydra.main(version_base="1.3", config_path="../configs", config_name="train.yaml")
def main(cfg: DictConfig) -> None:
    L.seed_everything(cfg.seed, workers=True)
    digits = load_digits()
    data = TensorDataset(
        torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    )
    loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=True)
    saver = ModelCheckpoint(dirpath=f"{cfg.output_dir}/checkpoints", filename="epoch_{epoch:03d}")
    trainer = L.Trainer(callbacks=[saver], default_root_dir=cfg.output_dir, **cfg.trainer)
    trainer.fit(Digits(**cfg.model), loader, ckpt_path=cfg.get("ckpt_path"))


if __name__ == "__main__":
    main()
