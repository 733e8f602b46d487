"""Where a rank is, read from its Python stack: the user's own line, and what is waited for there.

Frames are told apart by their module, not by their text: torch's own functions say which
collective it is. Stacks are lists of frames, the outermost first, as in a traceback.

Not covered: waiting that only C++ knows of. A CUDA collective returns at once and the rank waits
later, wherever it needs the result; rank_dump.py asks torch's flight recorder there.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import linecache
import re
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

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


# --- A line of the user's code, as a rank's dump tells it.


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's code, with what the source says around it (Around)."""

    file: str
    line: int
    function: str = ""
    text: str = ""
    loop: tuple[int, int] | None = None
    branch: tuple[int, str] | None = None
    ways_out: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def code_line_of_frame(frame: Frame) -> CodeLine:
    """A frame with what its source says."""
    return CodeLine(frame.file, frame.line, frame.function, *look_around(frame.file, frame.line))


def parse_code_line(fields: dict[str, Any]) -> CodeLine:
    """One that was written by this version or by a newer one, which may know more fields."""
    known = {field.name for field in dataclasses.fields(CodeLine)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name in known
    }
    return CodeLine(**values)


# --- What the source says around a line: its text, its loop, and the `if` that not all ranks
# enter. Pure but for reading the file. A file that is gone, or no longer parses, gives the little
# there is.


# A test of this kind is true on some ranks only.
_DIFFERS = re.compile(r"rank|is_main|is_master|main_process|nan|finite|inf\b", re.IGNORECASE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Around(NamedTuple):
    """`loop`: first and last line of the innermost loop. `branch`: the line of the innermost `if`
    around it whose test is true on some ranks only, and its text. `ways_out`: the lines that leave
    one of the loops around it."""

    text: str = ""
    loop: tuple[int, int] | None = None
    branch: tuple[int, str] | None = None
    ways_out: tuple[int, ...] = ()


def look_around(file: str, line: int) -> Around:
    """What the source says around `line` of `file`, numbered from 1."""
    text = linecache.getline(file, line).strip()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return Around(text)
    chain = list(_chain(tree, line))
    loops = [node for node in chain if isinstance(node, (ast.For, ast.While))]
    branch = next((found for node in reversed(chain) if (found := _branch(node, line))), None)
    return Around(
        text,
        (loops[-1].lineno, loops[-1].end_lineno or line) if loops else None,
        branch,
        tuple(sorted({way for loop in loops for way in _ways_out(loop)})),
    )


def _chain(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes of the innermost function around `line`, the outermost first."""
    chain: list[ast.AST] = []
    while True:
        children = ast.iter_child_nodes(node)
        node = next((child for child in children if _covers(child, line)), None)  # type: ignore[assignment]
        if node is None:
            return iter(chain)
        chain = [node] if isinstance(node, _FUNCTIONS) else [*chain, node]


def _covers(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and first <= line <= (last or first)


def _branch(node: ast.AST, line: int) -> tuple[int, str] | None:
    if not isinstance(node, ast.If) or not _DIFFERS.search(test := ast.unparse(node.test)):
        return None
    if any(_covers(child, line) for child in node.body):
        return node.lineno, f"if {test}:"
    in_else = any(_covers(child, line) for child in node.orelse)
    return (node.lineno, f"else of if {test}:") if in_else else None


def _ways_out(node: ast.AST, *, in_inner_loop: bool = False) -> list[int]:
    """What leaves this loop; an inner loop's `break` and an inner function do not."""
    found: list[int] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            continue
        leaves = isinstance(child, (ast.Return, ast.Raise)) or _is_exit(child)
        if leaves or (isinstance(child, ast.Break) and not in_inner_loop):
            found.append(child.lineno)  # type: ignore[attr-defined]
        is_loop = isinstance(child, (ast.For, ast.While))
        found += _ways_out(child, in_inner_loop=in_inner_loop or is_loop)
    return found


def _is_exit(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("sys.exit(", "exit("))
