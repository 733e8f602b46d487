from __future__ import annotations

import pytest

from boxcar.shared.triage.had_ended import had_ended


@pytest.mark.parametrize(
    ("progress", "epochs", "log", "is_ended"),
    [
        ({"epoch": 3}, 3, "", True),
        ({"epoch": 1}, 3, "", False),
        ({"epoch": 2}, 3, "", None),
        ({"epoch": 1}, 3, "Epoch 3/3", False),
        ({}, 3, "Epoch 1/3 loss 2\nEpoch 3/3 loss 1\n", None),
        ({}, 3, "Epoch 1/3\n100%|####| 100/100 [00:01<00:00]", False),
        ({}, 3, "Epoch 3/3 loss 1\nEpoch 1/3 of another\n", False),
        ({}, 3, "  7%|#   | 7/100 [00:01<00:09]", False),
        ({}, 3, "100%|####| 100/100 [00:01<00:00]", None),
        ({}, 3, "saved all\n", None),
        ({"epoch": "x"}, 3, "", None),
        ({"epoch": True}, 1, "", None),
        ({"epoch": 0}, 1, "", False),
    ],
)
def test_what_tells_of_work_that_was_left_is_no_end(progress, epochs, log, is_ended) -> None:
    assert had_ended(progress, epochs, log) is is_ended
