"""A wall clock that jumps by an hour beneath the real agent, its wrapper and the training."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from failing import script

from boxcar.shared import timestamp

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is made with a C compiler"),
]
SOURCE = Path(__file__).with_name("clock.c")
_KILLED = """
import signal
if "jump_s" in config:
    Path(config["clock"]).write_text(str(config["jump_s"]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The file that says by how much the clock of what `enter` starts is ahead."""
    made = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "clock.so"), str(SOURCE), "-ldl"]
    subprocess.run(made, check=True)
    (tmp_path / "clock").write_text("0")
    return tmp_path / "clock"


@pytest.mark.parametrize("when", ["during an attempt", "during a wait"])
@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_that_jumps_changes_no_decision(make_run, clock, jump_s, when):
    enter = ("env", f"LD_PRELOAD={clock.with_suffix('.so')}", f"TEST_CLOCK={clock}")
    about = {"clock": str(clock)}
    first = about | {"jump_s": jump_s} if when == "during an attempt" else about
    cells = {"a": first, "b": about}
    run = make_run(cells, train=script(_KILLED), enter=enter, is_hurried=False)
    agent = run.start()
    if when == "during a wait":
        run.wait_for("cell.retried", "a")
        clock.write_text(str(jump_s))
    assert agent.wait() == 0
    for cell in cells:
        assert run.life(cell) == run.life("a")
        retried = run.events("cell.retried", cell=cell)
        assert [event.data["failure"] for event in retried] == ["137-N"]
        assert run.state(cell) == "verified"
    events = run.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    # It did jump: more than half an hour lies between the first and the last that they say.
    times = sorted(timestamp.parse_utc(event.at) for event in events)
    assert (times[-1] - times[0]).total_seconds() > 1800
