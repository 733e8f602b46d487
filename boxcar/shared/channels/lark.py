"""A custom robot of Lark: Feishu under another host."""

from __future__ import annotations

from boxcar.shared.channels.feishu import RATE, request, taken

__all__ = ["RATE", "request", "taken"]
