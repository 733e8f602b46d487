from __future__ import annotations

import subprocess
import sys

# What was registered first is done last.
SCRIPT = """
import atexit, gc
from boxcar.door.run_verb import leave_garbage
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 1000))
leave_garbage()
leave_garbage()
atexit.register(lambda: print("done"))
print(gc.get_threshold()[0], gc.get_freeze_count())
"""


def said_by(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], check=True, stdout=-1, text=True).stdout


def test_what_lies_about_at_the_end_is_left_and_what_was_registered_for_it_is_done():
    assert said_by(SCRIPT).splitlines() == ["5000000 0", "done", "frozen True"]


def test_a_cycle_is_still_found_by_who_looks():
    made = "import gc\nfrom boxcar.door.run_verb import leave_garbage\nleave_garbage()\n"
    cycle = "a = []\na.append(a)\ndel a\nprint(gc.collect() > 0, gc.isenabled())"
    assert said_by(made + cycle) == "True True\n"
