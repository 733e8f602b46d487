"""Small whole files of kinds that projects leave, written without the libraries they come from."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """As protobuf writes it."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += bytes([number << 3, value])
        else:
            made += bytes([number << 3 | 2]) + bytes([len(value)]) + value
    return made


def onnx(path: Path) -> None:
    weights = struct.pack("<2f", 1.0, 2.0)
    tensor = message((1, 2), (2, 1), (8, b"w"), (9, weights))
    node = message((1, b"x"), (2, b"y"), (4, b"Relu"))
    graph = message((1, node), (2, b"g"), (5, tensor), (12, message((1, b"y"))))
    path.write_bytes(message((1, 8), (7, graph), (8, message((2, 17)))))


def sharded(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save({"w": torch.ones(4)}, checkpoint_id=path.parent)


def safetensors(path: Path) -> None:
    head = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 1.0, 2.0))
