"""A frozen encoder for each task, one transformer over the tokens of all, a decoder for each task.

No layer mixes samples and each loss is a mean over them, so the mean of two ranks' gradients is the
gradient of the whole batch. Nothing behaves otherwise in eval mode.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from data import Pairs
from torch import Tensor, nn

from boxcar.shared.errors import InputError

LATENT = 128
HEADS = 4
WAVES = 8
ENCODER_SEED = 128


class Encoder(nn.Module):
    """Random Fourier features of patches: inputs [N, C, ...] to tokens [N, T, 128]. Never trained.

    Made from one seed it is the same in every process, so that its latents can be kept. Each
    channel has features of its own, from coarse to fine: a speed shifts phases by several turns.
    (A. Rahimi and B. Recht, NIPS 2007.)
    """

    def __init__(self, inputs: Tensor, patch: int) -> None:
        super().__init__()
        channels, *sides = inputs.shape[1:]
        if any(side % patch for side in sides):
            raise InputError(f"patch {patch} does not divide {' x '.join(map(str, sides))} points")
        conv = nn.Conv1d if len(sides) == 1 else nn.Conv2d
        over = [place for place in range(inputs.dim()) if place != 1]
        self.register_buffer("mean", inputs.mean(over, keepdim=True))
        self.register_buffer("std", inputs.std(over, keepdim=True))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(ENCODER_SEED)
            self.features = conv(channels, LATENT, patch, stride=patch, groups=channels)
            self.draw(channels)
        self.requires_grad_(False)

    def draw(self, channels: int) -> None:
        """Frequencies from 0.1 to 10 rad for a patch that is one standard deviation off."""
        weight, each = self.features.weight.data, LATENT // channels
        width = torch.logspace(-1, 1, each).repeat(channels).view(-1, *[1] * (weight.dim() - 1))
        weight.normal_(std=weight[0].numel() ** -0.5).mul_(width)
        self.features.bias.data.uniform_(0, 2 * math.pi)

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """The tokens, and the targets as they are: what the cache keeps of a raw batch."""
        inputs, targets = batch
        features = self.features((inputs - self.mean) / self.std).sin()
        return features.flatten(2).mT.contiguous(), targets


class Decoder(nn.Module):
    """Tokens [N, T, 128] to fields [N, 1, ...]: how they differ from the training's mean field."""

    def __init__(self, targets: Tensor, patch: int) -> None:
        super().__init__()
        self.patch, self.grid = patch, [side // patch for side in targets.shape[2:]]
        self.out = nn.Sequential(nn.LayerNorm(LATENT), nn.Linear(LATENT, patch ** len(self.grid)))
        mean = targets.mean(0, keepdim=True)
        self.register_buffer("mean", mean)
        self.register_buffer("std", (targets - mean).square().mean().sqrt())

    def forward(self, tokens: Tensor) -> Tensor:
        """Each token gives the points of its patch."""
        pieces = self.out(tokens)
        if len(self.grid) == 2:
            pieces = pieces.unflatten(2, (self.patch, self.patch)).unflatten(1, self.grid)
            pieces = pieces.transpose(2, 3)
        return self.mean + self.std * pieces.reshape(-1, *self.mean.shape[1:])


class Operator(nn.Module):
    """What is trained: one transformer, and for each task its decoder and the tokens' places."""

    def __init__(self, pairs: dict[str, Pairs], patch: int, layers: int) -> None:
        super().__init__()
        decoders = {task: Decoder(pairs[task].targets, patch) for task in pairs}
        self.places = nn.ParameterDict({task: places(decoders[task].grid) for task in pairs})
        self.decoders = nn.ModuleDict(decoders)
        self.blocks = nn.Sequential(*(block() for _ in range(layers)))

    def forward(self, task: str, tokens: Tensor) -> Tensor:
        """Tokens [N, T, 128] of one task to its fields [N, 1, ...]."""
        return self.decoders[task](self.blocks(tokens + self.places[task]))


def block() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        LATENT, HEADS, 2 * LATENT, 0.0, "gelu", batch_first=True, norm_first=True
    )


def places(grid: list[int]) -> nn.Parameter:
    """[T, 128]: waves along each axis, as strong as the tokens, or attention finds no way by."""
    centres = torch.meshgrid(*((torch.arange(n) + 0.5) / n for n in grid), indexing="ij")
    numbers = torch.arange(LATENT // (2 * len(grid))) % WAVES + 1
    angles = torch.cat([2 * math.pi * x.reshape(-1, 1) * numbers for x in centres], dim=1)
    return nn.Parameter(torch.cat([angles.sin(), angles.cos()], dim=1))


def relative_error(fields: Tensor, targets: Tensor) -> Tensor:
    """|field - target| / |target| in L2, for each sample: [N]. Loss and metric alike."""
    return (fields - targets).flatten(1).norm(dim=1) / targets.flatten(1).norm(dim=1)
