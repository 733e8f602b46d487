"""Build the three tasks' images and targets from 1797 real 8x8 digits.

The digits and their split are real and fixed; what stands around them on a canvas (texture,
strokes, place, size) is drawn from a generator that the caller seeds, so the same seed gives the
same scenes on every machine and every rank. All images are float32 in 0..1, shaped [N, 1, side,
side]; all positions are in pixels of the canvas, x before y. Nothing here downloads or writes.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

DIGITS_CSV = Path(__file__).parent / "data" / "digits.csv.gz"
VAL_COUNT = 360
SPLIT_SEED = 1797
SEGMENTATION_SIDE = 20
DETECTION_SIDE = 32
MAX_DIGITS_PER_CANVAS = 2
CLASSES = 10


class Digits(NamedTuple):
    """Images [N, 1, 8, 8] and the digit [N] that each one shows."""

    images: Tensor
    labels: Tensor


class Scenes(NamedTuple):
    """Inputs [N, 1, side, side] and what a model should say about them, as each task defines it."""

    inputs: Tensor
    targets: Tensor


def load_digits(path: Path = DIGITS_CSV) -> Digits:
    """Read all 1797 digits, in the order of the file."""
    with gzip.open(path, "rt", newline="") as lines:
        rows = torch.tensor([[int(cell) for cell in row] for row in csv.reader(lines)])
    return Digits(rows[:, :64].float().view(-1, 1, 8, 8) / 16, rows[:, 64])


def split(digits: Digits, samples: int) -> tuple[Digits, Digits]:
    """The first `samples` training digits and all validation digits, the same for every seed."""
    order = torch.randperm(len(digits.labels), generator=Generator().manual_seed(SPLIT_SEED))
    val, train = order[:VAL_COUNT], order[VAL_COUNT:][:samples]
    return (
        Digits(digits.images[train], digits.labels[train]),
        Digits(digits.images[val], digits.labels[val]),
    )


def uniform(low: float, high: float, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Numbers between low and high, from the caller's generator."""
    return low + (high - low) * torch.rand(shape, generator=generator)


def place(sprites: Tensor, centres: Tensor, sizes: Tensor, angles: Tensor, side: int) -> Tensor:
    """Draw sprites [N, 1, s, s] at `centres` [N, 2], `sizes` [N] wide, turned by `angles` (rad)."""
    cos, sin = angles.cos(), angles.sin()
    turn = torch.stack([cos, sin, -sin, cos], dim=1).view(-1, 2, 2) * (side / sizes).view(-1, 1, 1)
    # affine_grid wants the way from the canvas back to the sprite, both measured from -1 to 1.
    shift = -turn @ (2 * centres / side - 1).unsqueeze(2)
    grid = F.affine_grid(torch.cat([turn, shift], dim=2), [len(sprites), 1, side, side], False)
    return F.grid_sample(sprites, grid, align_corners=False)


def texture(count: int, side: int, generator: Generator) -> Tensor:
    """Backgrounds [count, 1, side, side] in 0..1: coarse random blotches with finer ones on top."""
    layers = [
        F.interpolate(
            torch.rand((count, 1, cells, cells), generator=generator), (side, side), mode="bilinear"
        )
        for cells in (side // 6, side // 2)
    ]
    return (layers[0] + layers[1]) / 2


def strokes(count: int, side: int, generator: Generator) -> Tensor:
    """Clutter [count, 1, side, side] in 0..1: a short pen stroke that belongs to no digit."""
    bar = torch.zeros(1, 1, 8, 8)
    bar[..., 3:5, 1:7] = 1
    return place(
        bar.expand(count, -1, -1, -1),
        uniform(0, side, (count, 2), generator),
        uniform(5, 9, (count,), generator),
        uniform(0, 3.14, (count,), generator),
        side,
    )


def reconstruction_scenes(digits: Digits, generator: Generator) -> Scenes:
    """The digit, moved, scaled and turned a little, is input and target: both [N, 1, 8, 8]."""
    count = len(digits.labels)
    images = place(
        digits.images,
        4 + uniform(-0.4, 0.4, (count, 2), generator),
        uniform(7.4, 8.6, (count,), generator),
        uniform(-0.12, 0.12, (count,), generator),
        side=8,
    )
    return Scenes(images, images)


def segmentation_scenes(digits: Digits, generator: Generator) -> Scenes:
    """A digit on texture and strokes; the target mask is 1 where there is more than half ink."""
    count, side = len(digits.labels), SEGMENTATION_SIDE
    ink = place(
        digits.images,
        side / 2 + uniform(-3, 3, (count, 2), generator),
        uniform(12, 16, (count,), generator),
        uniform(-0.2, 0.2, (count,), generator),
        side,
    )
    level = uniform(0.7, 1.0, (count, 1, 1, 1), generator)
    ground = torch.maximum(
        0.7 * texture(count, side, generator), 0.7 * strokes(count, side, generator)
    )
    return Scenes(ground * (1 - ink) + level * ink, (ink > 0.5).float())


def detection_scenes(digits: Digits, generator: Generator) -> Scenes:
    """One or two digits among strokes; targets [N, 2, 5]: x1, y1, x2, y2, digit (-1: no box)."""
    count, side = len(digits.labels), DETECTION_SIDE
    canvas = torch.maximum(
        0.4 * texture(count, side, generator), 0.7 * strokes(count, side, generator)
    )
    targets = torch.full((count, MAX_DIGITS_PER_CANVAS, 5), -1.0)
    for slot in range(MAX_DIGITS_PER_CANVAS):
        chosen = torch.randperm(count, generator=generator)
        ink = somewhere(digits.images[chosen], side, generator)
        box = boxes_around(ink)
        free = ~touches(box, targets[..., :4])
        targets[free, slot] = torch.cat([box, digits.labels[chosen, None]], dim=1)[free]
        ink *= free.view(-1, 1, 1, 1)
        canvas = canvas * (1 - ink) + uniform(0.6, 1.0, (count, 1, 1, 1), generator) * ink
    return Scenes(canvas, targets)


def somewhere(images: Tensor, side: int, generator: Generator) -> Tensor:
    """Each digit [N, 1, 8, 8] wholly on its own canvas [N, 1, side, side], 10 to 16 pixels wide."""
    count = len(images)
    sizes = uniform(10, 16, (count,), generator)
    centres = sizes[:, None] / 2 + uniform(0, 1, (count, 2), generator) * (side - sizes[:, None])
    return place(images, centres, sizes, uniform(-0.15, 0.15, (count,), generator), side)


def boxes_around(ink: Tensor) -> Tensor:
    """Tight boxes x1, y1, x2, y2 [N, 4] around what is above a quarter in ink [N, 1, S, S]."""
    dark, side = ink[:, 0] > 0.25, ink.shape[-1]
    columns, rows = dark.any(1).float(), dark.any(2).float()
    first = [columns.argmax(1), rows.argmax(1)]
    last = [side - columns.flip(1).argmax(1), side - rows.flip(1).argmax(1)]
    return torch.stack(first + last, dim=1).float()


def touches(box: Tensor, others: Tensor) -> Tensor:
    """Whether each box [N, 4] shares a pixel with any of its neighbours [N, K, 4]: [N]."""
    low = torch.maximum(box[:, None, :2], others[..., :2])
    high = torch.minimum(box[:, None, 2:], others[..., 2:])
    return (low < high).all(2).any(1)
