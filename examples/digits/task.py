"""The three tasks: their scenes, their networks, what these minimise, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import data
import metrics
import models
from torch import Generator, Tensor, nn


class Task(NamedTuple):
    """All that differs between the tasks; the training loop is the same."""

    scenes: Callable[[data.Digits, Generator], data.Scenes]
    model: Callable[[Any], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    metric: Callable[[Tensor, Tensor], float]

    @property
    def metric_name(self) -> str:
        """The metric's key in metrics.json."""
        return self.metric.__name__


TASKS = {
    "reconstruction": Task(
        scenes=data.reconstruction_scenes,
        model=lambda cfg: models.AutoEncoder(cfg.width, cfg.latent),
        loss=models.reconstruction_loss,
        metric=metrics.psnr_db,
    ),
    "segmentation": Task(
        scenes=data.segmentation_scenes,
        model=lambda cfg: models.UNet(cfg.width, cfg.skip),
        loss=models.segmentation_loss,
        metric=metrics.dice,
    ),
    "detection": Task(
        scenes=data.detection_scenes,
        model=lambda cfg: models.Detector(cfg.width),
        loss=models.detection_loss,
        metric=metrics.map50,
    ),
}
