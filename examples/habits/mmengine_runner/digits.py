"""The model and the data, registered by name."""

import time

import torch
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS
from sklearn.datasets import load_digits
from torch import nn


@DATASETS.register_module()
class Digits(torch.utils.data.Dataset):
    def __init__(self):
        x, y = load_digits(return_X_y=True)
        self.x, self.y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, at):
        return self.x[at], self.y[at]


@MODELS.register_module()
class DigitsNet(BaseModel):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, x, y, mode):
        scores = self.net(x)
        if mode == "loss":
            time.sleep(0.01)
            return {"loss": nn.functional.cross_entropy(scores, y)}
        return scores.argmax(1), y
