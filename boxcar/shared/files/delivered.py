"""How far the webhooks have got in a queue's journal. The holder of the queue's lock writes it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from boxcar.shared.files import codec
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Cursor:
    """One endpoint: the last event that it took, and why it gets no more, if so. `channel` is the
    chat service, None for a webhook; `sent` when it took its last messages, where a day has few.
    `refused` is the service's last no, until it takes a message again. `set_aside` counts the
    events that it refused for ever, the last of them with the words of `set_aside_why`. Of an
    endpoint that the laptop sends to, where no process remembers it: `refusals` counts those in a
    row, and `away` is why the last try brought no answer that decides.
    """

    seq: int = 0
    disabled: str | None = None
    channel: str | None = field(default=None, metadata=codec.LATER)
    sent: tuple[str, ...] = field(default=(), metadata=codec.LATER)
    refused: str | None = field(default=None, metadata=codec.LATER)
    set_aside: int | None = field(default=None, metadata=codec.LATER)
    set_aside_why: str | None = field(default=None, metadata=codec.LATER)
    refusals: int | None = field(default=None, metadata=codec.LATER)
    away: str | None = field(default=None, metadata=codec.LATER)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivered:
    """Keyed by a digest of the endpoint (of a webhook its URL): the URL itself may be a secret."""

    FORMAT: ClassVar[str] = "delivered"
    VERSION: ClassVar[int] = 2
    CHECKED_SINCE: ClassVar[int] = 2

    endpoints: dict[str, Cursor]
    extra: dict[str, Any] = field(default_factory=dict)


def read_delivered(path: Path) -> Delivered:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Delivered({})
    return codec.from_document(Delivered, data, str(path))
