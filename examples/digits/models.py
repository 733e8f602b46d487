"""The three networks and what each is trained to make small.

Every loss is a mean over the samples of the batch and no layer mixes samples (GroupNorm, not
BatchNorm): so the mean of two ranks' gradients is the gradient of the whole batch, and a cell's
result does not depend on how it was split.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from data import CLASSES
from torch import Tensor, nn

STRIDE = 4
TYPICAL_BOX = 10.0
FOCUS = 2.0


def block(channels_in: int, channels_out: int, stride: int = 1) -> nn.Sequential:
    """3x3 convolution, norm over groups of four channels, SiLU: side S to side S/stride."""
    conv = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.GroupNorm(channels_out // 4, channels_out), nn.SiLU())


class AutoEncoder(nn.Module):
    """Squeeze an 8x8 digit through `latent` numbers: [N, 1, 8, 8] to [N, 1, 8, 8]."""

    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(64, width), nn.SiLU(), nn.Linear(width, latent)
        )
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, 64))

    def forward(self, images: Tensor) -> Tensor:
        """Images rebuilt, in 0..1."""
        return self.decoder(self.encoder(images)).view_as(images).sigmoid()


class UNet(nn.Module):
    """Mark the digit's pixels: [N, 1, S, S] to logits [N, 1, S, S], S a multiple of 4."""

    def __init__(self, width: int, skip: bool) -> None:
        super().__init__()
        self.skip = skip
        self.fine = block(1, width)
        self.middle = block(width, 2 * width, stride=2)
        self.coarse = nn.Sequential(
            block(2 * width, 4 * width, stride=2), block(4 * width, 4 * width)
        )
        self.to_middle = block(4 * width + 2 * width * skip, 2 * width)
        self.to_fine = block(2 * width + width * skip, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, above 0 where a pixel belongs to the digit."""
        fine = self.fine(images)
        middle = self.middle(fine)
        up = self.to_middle(self.join(self.coarse(middle), middle))
        return self.head(self.to_fine(self.join(up, fine)))

    def join(self, coarse: Tensor, fine: Tensor) -> Tensor:
        """Coarse features at twice the resolution; with `skip`, the fine ones beside them."""
        up = F.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return torch.cat([up, fine], dim=1) if self.skip else up


class Detector(nn.Module):
    """For each 4x4 cell of the canvas: is a digit's centre here, what is its box, which is it?

    [N, 1, S, S] to [N, 15, S/4, S/4]: channel 0 is the logit of "a centre is here", 1..4 are the
    box (centre x and y within the cell as logits, logarithm of width and height over TYPICAL_BOX),
    5..14 the logits of the ten digits.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            block(1, 2 * width, stride=2),
            block(2 * width, 4 * width, stride=2),
            block(4 * width, 4 * width),
            block(4 * width, 4 * width),
        )
        self.head = nn.Conv2d(4 * width, 5 + CLASSES, 1)
        # Almost every cell is empty: a start near "empty" spares the first steps from having to
        # learn that.
        nn.init.constant_(self.head.bias[:1], -3.0)

    def forward(self, images: Tensor) -> Tensor:
        """The raw map; `boxes_of` reads its boxes."""
        return self.head(self.body(images))


def boxes_of(outputs: Tensor) -> Tensor:
    """Each cell's box x1, y1, x2, y2 in pixels: [N, 15, G, G] to [N, 4, G, G]."""
    at = torch.arange(outputs.shape[-1], device=outputs.device)
    corner = torch.stack(torch.meshgrid(at, at, indexing="xy"))
    centre = (corner + outputs[:, 1:3].sigmoid()) * STRIDE
    half = outputs[:, 3:5].clamp(-3, 3).exp() * TYPICAL_BOX / 2
    return torch.cat([centre - half, centre + half], dim=1)


def reconstruction_loss(outputs: Tensor, images: Tensor) -> Tensor:
    """Mean squared error over pixels."""
    return F.mse_loss(outputs, images)


def segmentation_loss(logits: Tensor, masks: Tensor) -> Tensor:
    """Cross-entropy over pixels plus one minus each image's soft dice."""
    chance = logits.sigmoid()
    overlap = 2 * (chance * masks).sum((1, 2, 3)) + 1
    dice = overlap / (chance.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy_with_logits(logits, masks) + (1 - dice).mean()


def detection_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Focal loss of "is here" over all cells; where one is, its box error and cross-entropy."""
    sample, slot = (targets[..., 4] >= 0).nonzero(as_tuple=True)
    box, digit = targets[sample, slot, :4], targets[sample, slot, 4].long()
    column, row = ((box[:, :2] + box[:, 2:]) / 2 / STRIDE).long().unbind(1)
    there = torch.zeros_like(outputs[:, 0])
    there[sample, row, column] = 1
    entropy = F.binary_cross_entropy_with_logits(outputs[:, 0], there, reduction="none")
    focal = entropy * (there - outputs[:, 0].sigmoid()).abs() ** FOCUS
    error = (
        F.smooth_l1_loss(boxes_of(outputs)[sample, :, row, column], box, reduction="sum") / STRIDE
    )
    wrong_digit = F.cross_entropy(outputs[sample, 5:, row, column], digit, reduction="sum")
    return (focal.sum() + error + wrong_digit) / len(outputs)
