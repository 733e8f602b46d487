from __future__ import annotations

import io
import os
import sys

import pytest

from boxcar.laptop.trackers.exported_cell import offline


def test_nothing_of_a_persons_own_settings_counts_and_all_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"WANDB_MODE": "online", "WANDB_API_KEY": "k", "SWANLAB_WEBHOOK": "http://x", "A": "b"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before, notes = dict(os.environ), io.StringIO()
    with pytest.raises(KeyboardInterrupt), offline(notes):
        assert os.environ["WANDB_MODE"] == os.environ["SWANLAB_MODE"] == "offline"
        assert "WANDB_API_KEY" not in os.environ and "SWANLAB_WEBHOOK" not in os.environ
        assert os.environ["A"] == "b"
        print("from a library", file=sys.stdout)
        raise KeyboardInterrupt
    assert dict(os.environ) == before and notes.getvalue() == "from a library\n"
