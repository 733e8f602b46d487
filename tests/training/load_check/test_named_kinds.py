"""A name that claims a kind, over bytes that are of another."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from boxcar.shared.artifacts.file_kinds import kind_of

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_checkpoint_that_is_called_a_pickle_is_loaded_as_one(
    tmp_path: Path, is_zip: bool
) -> None:
    path = tmp_path / "random_states_0.pkl"
    torch.save({"state": torch.ones(2)}, path, _use_new_zipfile_serialization=is_zip)
    assert kind_of(tmp_path, path.name) == "torch"


def test_a_pickle_stays_one(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"a": 1}))
    assert kind_of(tmp_path, "model.pkl") == "pickle"
