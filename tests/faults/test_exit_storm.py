"""Two ranks that end well by the training layer are not aborted by torch at their exit."""

from __future__ import annotations

import pytest
from exit_storm import WITH_LAYER, ends

# At a rate of one in a hundred, this many show it in two of three nights.
TRAININGS = 100


@pytest.mark.faults
def test_no_training_that_ended_well_is_aborted_at_its_exit(tmp_path):
    assert ends(WITH_LAYER, TRAININGS, tmp_path / "ends.txt") == {"ended": TRAININGS}


@pytest.mark.faults
def test_an_abort_at_an_exit_is_seen(tmp_path):
    # Without a group: torch may leave a rank hanging that had one.
    aborts = "import torch, atexit, os\natexit.register(os.abort)\n"
    [(how, number)] = ends(aborts, 1, tmp_path / "ends.txt").items()
    assert how.startswith("SIGABRT+SIGABRT") and number == 1


@pytest.mark.faults
def test_a_count_goes_on_from_where_it_was_ended(tmp_path):
    kept = tmp_path / "ends.txt"
    kept.write_text("ended\nSIGABRT+0: as it was\n", encoding="utf-8")
    assert ends("", 3, kept) == {"ended": 2, "SIGABRT+0: as it was": 1}
