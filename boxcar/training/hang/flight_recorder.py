"""torch's flight recorder: the last collectives that this rank handed to its backend.

NCCL has one in all versions, gloo since torch 2.8. It is on by default in new versions; desync.py
switches it on everywhere. Nothing here is called while all is well.

Not covered: what is pending inside a CUDA collective that torch did not see start.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from boxcar.training import torch_private
from boxcar.training.hang.stacks import Frame

MOST_COLLECTIVES = 20


def last_collectives(*, with_stacks: bool) -> list[dict[str, Any]]:
    """The last collectives, oldest first.

    Each has `collective`, `seq` in its `group`, `is_pending`, `sizes`, `frames`.
    Empty where the recorder is off, or the backend has none. Stacks take torch a second, the first
    time.
    """
    try:
        dump = torch_private.collectives(with_stacks=with_stacks)
        entries = _Plain(io.BytesIO(dump)).load().get("entries", []) if dump else []
        return [_entry(entry) for entry in entries[-MOST_COLLECTIVES:]]
    except (RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError, EOFError):
        # An aid, and its form is torch's own affair: a diagnosis must not die of it.
        return []


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "collective": entry["profiling_name"].rpartition(":")[2],
        "seq": entry.get("collective_seq_id"),
        # Each group counts for itself.
        "group": str(entry.get("process_group")),
        # gloo never says "completed"; an entry that is done with is retired.
        "is_pending": entry.get("state") != "completed" and not entry.get("retired"),
        "sizes": entry.get("input_sizes"),
        "frames": [_frame(frame) for frame in reversed(entry.get("frames", []))],
    }


def _frame(frame: dict[str, Any]) -> Frame:
    file, name = frame["filename"], frame["name"]
    # The recorder knows no modules.
    module = ".".join(["torch", *file.rpartition("/torch/")[2].removesuffix(".py").split("/")])
    return Frame(file, frame["line"], name, module if "/torch/" in file else "")


class _Plain(pickle.Unpickler):
    """torch's C++ gives lists, dicts, texts and numbers, spelled as a pickle; anything else is
    refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")
