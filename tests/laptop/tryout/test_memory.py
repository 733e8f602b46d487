from __future__ import annotations

import subprocess
import sys

import pytest

from boxcar.laptop.tryout.memory import Memory, memory_of_tree, wait_and_measure

MB = 2**20
HOLDS = f"held = bytearray({64 * MB}); held[::4096] = b'x' * len(held[::4096])"
PARENT = f"""
import subprocess, sys
{HOLDS}
child = subprocess.Popen([sys.executable, "-c", {HOLDS + "; print(1, flush=True); input()"!r}],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is shared")


def test_what_a_process_and_its_child_hold_is_counted_together():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout and running.stdin
        assert running.stdout.readline() == b"ready\n"
        assert memory_of_tree(running.pid).size_bytes > 128 * MB
        running.stdin.write(b"\n")


def test_the_most_that_was_seen_is_kept_until_the_end():
    running = subprocess.Popen([sys.executable, "-c", f"{HOLDS}; import time; time.sleep(3)"])
    code, peak = wait_and_measure(running, 60)
    assert code == 0
    assert peak.size_bytes > 32 * MB


def test_a_process_that_goes_on_is_told_after_its_time():
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            wait_and_measure(running, 0.2)
    finally:
        running.kill()
        running.wait()


def test_who_has_ended_holds_nothing():
    running = subprocess.Popen([sys.executable, "-c", ""])
    running.wait()
    assert memory_of_tree(running.pid) == Memory()
