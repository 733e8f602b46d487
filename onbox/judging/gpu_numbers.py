"""Which card of the box a log means. A script counts from 0 within CUDA_VISIBLE_DEVICES, so its
GPU 0 is seldom the one that nvidia-smi on the box calls so. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxcar.shared.sentence import _

# "GPU 0 has a total capacity" of torch, "(GPU 0; 23.65 GiB total capacity" before 2.1, "on GPU 0"
# of Paddle, "cuda:0", "device:GPU:0" of TensorFlow.
_NUMBER = re.compile(r"\b(?:GPU[ :]|cuda:)(\d{1,3})\b(?!\.\d)")


def with_cards_of_box(reason: str, gpus: Sequence[str]) -> str:
    """`reason`, which quotes a log, and which cards of the box its numbers mean, where these are
    others. `gpus`: those that the cell saw, as CUDA_VISIBLE_DEVICES spells them.

    >>> with_cards_of_box("CUDA out of memory. GPU 0 has a total capacity of 23 GiB", ("3",))
    'CUDA out of memory. GPU 0 has a total capacity of 23 GiB. The cell's GPU 0 is GPU 3 of the box'
    """
    numbers = sorted({int(found) for found in _NUMBER.findall(reason)})
    meant = {at: gpus[at] for at in numbers if at < len(gpus) and gpus[at] != str(at)}
    for at, gpu in meant.items():
        card = f"GPU {gpu}" if gpu.isdigit() else gpu
        about = {"first": reason.rstrip("."), "number": at, "card": card}
        reason = _("{first}. The cell's GPU {number} is {card} of the box", **about)
    return reason
