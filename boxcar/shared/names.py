"""Which names runs, queues, boxes and releases may have: they become files on several machines."""

from __future__ import annotations

import re

RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# Of a queue and of a box.
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Of an environment variable.
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DIGEST = re.compile(r"[0-9a-f]{64}")
