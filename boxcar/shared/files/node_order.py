"""An attempt over several pods: what the agent's pod asks of the others, and what each says.

Both lie on scratch, which all pods of the queue see. The order has one writer, the lead of the
attempt; a word has one, the follower of that pod. A beat is counted up while its writer lives: the
clocks of two pods differ, so no time is compared.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass

# Of an order: who follows says that it is ready; it starts; it ends what it has started.
GATHER, GO, END = "gather", "go", "end"
# Of a word.
IDLE, READY, RUNS, ENDED = "idle", "ready", "runs", "ended"


@dataclass(frozen=True)
class NodeOrder:
    """`id` is another one for each attempt. `spec` is its document, `argv` what each node starts,
    and `nodes` how many take part, this one among them.
    """

    FORMAT: ClassVar[str] = "node-order"
    VERSION: ClassVar[int] = 1

    id: str
    spec: str
    argv: tuple[str, ...]
    nodes: int
    state: str
    beat: int
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeWord:
    """`process` is another one whenever the follower was started again. `order` is the one that it
    speaks of, "" for none; `rc` how what it had started has ended, negative for a signal.
    """

    FORMAT: ClassVar[str] = "node-word"
    VERSION: ClassVar[int] = 1

    process: str
    order: str
    state: str
    beat: int
    rc: int | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


def read_order(path: Path) -> NodeOrder | None:
    """None where there is none yet. Raises DamagedError, OSError."""
    try:
        return codec.from_document(NodeOrder, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def read_word(path: Path) -> NodeWord | None:
    """None where there is none yet. Raises DamagedError, OSError."""
    try:
        return codec.from_document(NodeWord, path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def write_for_pods(path: Path, one: NodeOrder | NodeWord) -> None:
    """For the other pods now; what a power cut takes of it is said again. Raises OSError."""
    atomic.replace_by(path, codec.to_document(one), is_synced=False, mode=0o600)
