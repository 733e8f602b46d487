"""How good the answers on the validation set are: PSNR in dB, dice and mAP50 in 0..1.

More is better for each. All three take what a network returned and the scenes' targets, on the CPU.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from data import CLASSES
from models import boxes_of
from torch import Tensor

TOP_CELLS = 5
MATCH_IOU = 0.5


def psnr_db(outputs: Tensor, images: Tensor) -> float:
    """Peak signal-to-noise ratio over all pixels of the set, for a peak of 1."""
    return float(-10 * F.mse_loss(outputs, images).log10())


def dice(logits: Tensor, masks: Tensor) -> float:
    """Twice the overlap over the sum of both areas, mean over images; two empty masks agree."""
    found = (logits > 0).float()
    overlap = 2 * (found * masks).sum((1, 2, 3)) + 1e-6
    return float((overlap / (found.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1e-6)).mean())


def map50(outputs: Tensor, targets: Tensor) -> float:
    """Mean average precision at IoU 0.5 over the digits that occur: [N, 15, G, G] and [N, 2, 5]."""
    candidates = peaks(outputs)
    overlaps = iou(candidates[..., :4], targets[..., :4])
    present = targets[..., 4].unique().tolist()
    values = [
        average_precision(candidates, overlaps, targets, digit) for digit in present if digit >= 0
    ]
    return sum(values) / len(values)


def average_precision(candidates: Tensor, overlaps: Tensor, targets: Tensor, digit: float) -> float:
    """Area under one digit's precision-recall curve, its precision made non-increasing."""
    wanted = targets[..., 4] == digit
    overlaps = overlaps * wanted.unsqueeze(1)
    image, rank = ((candidates[..., 4] == digit) & (candidates[..., 5] > 0)).nonzero(as_tuple=True)
    order = candidates[image, rank, 5].argsort(descending=True, stable=True)
    hits = matches(image[order].tolist(), overlaps[image[order], rank[order]].tolist())
    if not any(hits):
        return 0.0
    hit = torch.tensor(hits, dtype=torch.float64)
    precision = hit.cumsum(0) / torch.arange(1, len(hit) + 1)
    best_from_here = precision.flip(0).cummax(0).values.flip(0)
    return float((best_from_here * hit).sum() / wanted.sum())


def matches(images: list[int], overlaps: list[list[float]]) -> list[bool]:
    """Whether each candidate, most confident first, finds a box that no better one has taken."""
    taken: set[tuple[int, int]] = set()
    hits = []
    for image, row in zip(images, overlaps, strict=True):
        free = [(overlap, slot) for slot, overlap in enumerate(row) if (image, slot) not in taken]
        overlap, slot = max(free, default=(0.0, -1))
        hits.append(overlap >= MATCH_IOU)
        if hits[-1]:
            taken.add((image, slot))
    return hits


def peaks(outputs: Tensor) -> Tensor:
    """Candidates [N, TOP_CELLS * 10, 6] as x1, y1, x2, y2, digit, score: [N, 15, G, G] in."""
    there = outputs[:, :1].sigmoid()
    # A centre's neighbours answer as well; only the best cell among its eight neighbours speaks.
    lone = there * (there == F.max_pool2d(there, 3, stride=1, padding=1))
    score, cell = lone.flatten(1).topk(TOP_CELLS)
    table = torch.cat([boxes_of(outputs), outputs[:, 5:].softmax(1)], dim=1).flatten(2)
    answers = table.gather(2, cell.unsqueeze(1).expand(-1, 4 + CLASSES, -1)).transpose(1, 2)
    scores = (answers[..., 4:] * score.unsqueeze(2)).flatten(1)
    digits = torch.arange(CLASSES).repeat(len(outputs), TOP_CELLS)
    boxes = answers[..., :4].repeat_interleave(CLASSES, dim=1)
    return torch.cat([boxes, digits.unsqueeze(2), scores.unsqueeze(2)], dim=2)


def iou(boxes: Tensor, others: Tensor) -> Tensor:
    """Overlap over union of each pair of boxes: [N, A, 4] and [N, B, 4] to [N, A, B]."""
    low = torch.maximum(boxes[:, :, None, :2], others[:, None, :, :2])
    high = torch.minimum(boxes[:, :, None, 2:], others[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(3)
    area, other_area = ((b[..., 2:] - b[..., :2]).prod(2) for b in (boxes, others))
    return shared / (area[:, :, None] + other_area[:, None, :] - shared).clamp(min=1e-6)
