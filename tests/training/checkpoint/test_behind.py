"""What is done behind a save is done, also where no thread can be started any more."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxcar.training.checkpoint.behind import Behind


def test_what_is_done_behind_comes_in_its_order() -> None:
    behind, seen = Behind("test"), []
    for number in range(5):
        done = behind.do(lambda number=number: seen.append(number))  # type: ignore[misc]
    done.result()
    assert seen == list(range(5))


def test_what_goes_wrong_behind_is_raised_by_who_asks() -> None:
    with pytest.raises(ZeroDivisionError):
        Behind("test").do(lambda: 1 // 0).result()


def test_who_joins_learns_once_how_long_it_took_or_what_went_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    behind = Behind("test")
    assert behind.joined() == 0.0
    behind.begin("step_1", lambda: time.sleep(0.001))
    assert behind.joined() >= 0.001 and behind.joined() == 0.0
    behind.begin("step_2", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        behind.joined()
    assert behind.joined() == 0.0
    assert "the checkpoint step_2 was not saved: integer division" in capsys.readouterr().err


def test_at_the_end_of_the_interpreter_it_is_done_at_once(tmp_path: Path) -> None:
    """No thread is started in a handler of atexit."""
    script = (
        "import atexit, sys\n"
        "from pathlib import Path\n"
        "from boxcar.training.checkpoint.behind import Behind\n"
        "behind = Behind('test')\n"
        "atexit.register(lambda: behind.do(lambda: Path(sys.argv[1]).touch()).result())\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "done")], check=True)
    assert (tmp_path / "done").exists()
