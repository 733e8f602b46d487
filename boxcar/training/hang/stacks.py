"""Where a rank is, read from its Python stack: the user's own line, and what is waited for there.

Frames are told apart by their module, not by their text: torch's own functions say which
collective it is. Stacks are lists of frames, the outermost first, as in a traceback.

Not covered: waiting that only C++ knows of. A CUDA collective returns at once and the rank waits
later, wherever it needs the result; flight_recorder.py knows more there.
"""

from __future__ import annotations

import itertools
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import NamedTuple

from boxcar.training import torch_private

GRADIENTS = "gradient all_reduce"
AGREEMENT = "agreement of the ranks"
DDP_BUFFERS = "broadcast of DDP's parameters and buffers"
_AGREEING = ("boxcar.training.ranks.side_group", "boxcar.training.ranks.preemption")
_C10D = "torch.distributed.distributed_c10d"
_DDP = "torch.nn.parallel.distributed"
_LOADER = "torch.utils.data.dataloader"
_STDLIB = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))


class Frame(NamedTuple):
    """One call: `module` is the name under which Python knows the file."""

    file: str
    line: int
    function: str
    module: str


def of_main_thread() -> list[Frame]:
    """The main thread's stack, from any thread; empty where it has ended."""
    return _walk(sys._current_frames().get(threading.main_thread().ident or 0))


def of_caller() -> list[Frame]:
    """The stack of whoever calls."""
    return _walk(sys._getframe(1))


def of_error(error: BaseException) -> list[Frame]:
    """The stack at which `error` was raised."""
    walk = traceback.walk_tb(error.__traceback__)
    return [_frame(frame, line) for frame, line in walk]


def all_threads() -> str:
    """The stacks of all threads as text, for a person."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )


def users(frames: Sequence[Frame]) -> list[Frame]:
    """The frames of the user's own code; where all is libraries, those outside torch and here."""
    own = [frame for frame in frames if not (_is_library(frame) or _is_plumbing(frame))]
    return own or [frame for frame in frames if not _is_plumbing(frame)]


def last_place(frame: FrameType | None) -> Frame | None:
    """The first frame outside torch and boxcar, from `frame` outwards. Cheap: each step asks."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(("boxcar.", "torch.", "contextlib")):
            return _frame(frame, frame.f_lineno)
        frame = frame.f_back
    return None


def collective(frames: Sequence[Frame]) -> str | None:
    """The collective that the innermost calls are in, such as `all_reduce`; None where in none.

    GRADIENTS and DDP_BUFFERS stand for C++ that either waits for other ranks or computes: which of
    the two, the stack does not say.
    """
    # The answer to a question that is under way is waited for in C++, without a frame of torch's.
    if frames and frames[-1].module in _AGREEING:
        return AGREEMENT
    inner = list(reversed(frames))
    talk = list(itertools.takewhile(_may_be_within_a_collective, inner))
    # torch imports parts of itself late, for seconds, and that is no waiting.
    if any(frame.function == "<module>" for frame in talk):
        return None
    if named := [frame.function for frame in talk if _is_public_collective(frame)]:
        return named[-1]
    if any(frame.module == _DDP for frame in talk):
        return DDP_BUFFERS
    return GRADIENTS if _in_backward(inner) else None


def waits_for_loader(frames: Sequence[Frame]) -> bool:
    """Whether the innermost calls wait for a loader's workers."""
    inner = itertools.dropwhile(_is_stdlib, reversed(frames))
    return next((frame.module == _LOADER for frame in inner), False)


def _in_backward(inner: Iterable[Frame]) -> bool:
    torch_frames = itertools.takewhile(
        lambda frame: frame.module.startswith(torch_private.BACKWARD), inner
    )
    return any(frame.function == "backward" for frame in torch_frames)


def _may_be_within_a_collective(frame: Frame) -> bool:
    return _is_stdlib(frame) or frame.module == _DDP or frame.module.startswith("torch.distributed")


def _is_public_collective(frame: Frame) -> bool:
    return frame.module == _C10D and not frame.function.startswith("_")


def _is_plumbing(frame: Frame) -> bool:
    is_here = frame.module == "boxcar" or frame.module.startswith("boxcar.")
    return is_here or frame.module == "torch" or frame.module.startswith("torch.")


def _is_library(frame: Frame) -> bool:
    return _is_stdlib(frame) or any(
        folder in frame.file for folder in ("site-packages", "dist-packages", "<frozen ")
    )


def _is_stdlib(frame: Frame) -> bool:
    in_stdlib = frame.file.startswith(_STDLIB) or frame.file.startswith("<frozen ")
    return in_stdlib and "-packages" not in frame.file


def _walk(frame: FrameType | None) -> list[Frame]:
    frames = [_frame(each, line) for each, line in traceback.walk_stack(frame)]
    return frames[::-1]


def _frame(frame: FrameType, line: int | None) -> Frame:
    code = frame.f_code
    module = str(frame.f_globals.get("__name__", ""))
    return Frame(code.co_filename, line or 0, code.co_name, module)
