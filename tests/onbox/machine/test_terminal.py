from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SAYS = (
    "from onbox.machine import terminal; terminal.say('stopped: caf\\udce9'); raise SystemExit(3)"
)


def test_a_word_that_no_log_has_room_for_changes_nothing():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", SAYS], stderr=full, check=False)
    assert done.returncode == 3


def test_a_word_is_a_line_whatever_is_in_it():
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, check=False)
    assert done.stderr == b"stopped: caf\\udce9\n"
