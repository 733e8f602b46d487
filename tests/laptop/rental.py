"""For tests of providers: a clock that does not wait, and an order of one box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boxcar.laptop.providers.calls import Clock
from boxcar.laptop.providers.provider import Offer, Order, Provider, Wish, label_of, new_nonce


class QuickClock:
    """Waits take no time and are remembered."""

    def __init__(self) -> None:
        self.at_s = 1000.0
        self.slept_s: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.at_s += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.at_s, self.sleep)


def order_for(provider: Provider, offer: Offer | None = None, **more: Any) -> Order:
    offer = offer or provider.offers(Wish(disk_gb=30))[0]
    nonce = new_nonce()
    return Order(offer, label_of(nonce, "my-run"), nonce, "my-run", "pytorch/pytorch:latest", 30,
                 "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIours", **more)  # fmt: skip


def files_with(folder: Path, *texts: str) -> list[str]:
    """Every file below that holds one of these."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path) for path in files if any(t.encode() in path.read_bytes() for t in texts)]
