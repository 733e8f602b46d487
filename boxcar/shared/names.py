"""Which names runs, queues, boxes and releases may have: they become files on several machines."""

from __future__ import annotations

import re

RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# What people name: a queue's file and a box.
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Of a queue: its file's name, or a box's part in a pool, whose boxes all work through one file.
QUEUE = re.compile(rf"{PLACE.pattern}(?:@{PLACE.pattern})?")
# Of an environment variable.
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DIGEST = re.compile(r"[0-9a-f]{64}")


def member_name(file: str, box: str) -> str:
    """The queue that a box is in the pool of that file: one in everything but its file."""
    return f"{file}@{box}"


def is_member(queue: str) -> bool:
    return "@" in queue


def file_of(queue: str) -> str:
    """The name of the file that has the queue's lines."""
    return queue.partition("@")[0]
