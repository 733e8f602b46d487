"""Folders that torch.distributed.checkpoint wrote, whole, damaged and made to harm."""

from __future__ import annotations

import math
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

from boxcar.shared.artifacts import file_kinds
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.training.load_check import artifacts
from boxcar.training.load_check.refusals import How

STATE: dict[str, Any] = {
    "model": {"a.weight": torch.ones(8, 4), "b": torch.zeros(3)},
    "step": 1200,
    "names": ["x", "y"],
}


class Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def save(folder: Path, state: dict[str, Any] = STATE) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(state, checkpoint_id=folder)
    return folder


def look(folder: Path, *keys: str) -> Finding:
    artifact = Artifact(f"{folder.name}/.metadata", keys)
    return artifacts.look(folder.parent, artifact, How())


def test_a_whole_one_is_loaded_and_counted(tmp_path: Path) -> None:
    found = look(save(tmp_path / "ckpt"), "model", "model.a", "step")
    assert (found.kind, found.problems) == ("sharded", ())
    assert (found.facts["tensors"], found.facts["parameters"]) == (2, 35)
    shard = artifacts.look(tmp_path, Artifact("ckpt/__0_0.distcp"), How())
    assert (shard.kind, shard.problems) == ("shard", ())


def test_its_keys_and_its_numbers_are_looked_at_like_a_files(tmp_path: Path) -> None:
    bad = {"model": {"w": torch.tensor([1.0, math.nan])}}
    found = look(save(tmp_path / "ckpt", bad), "optimizer")
    assert found.problems == (
        "model.w holds 1 NaN among 2 values",
        "lacks the key 'optimizer'; it holds model.w",
    )


def test_a_shard_that_is_cut_or_gone_is_a_problem(tmp_path: Path) -> None:
    folder = save(tmp_path / "ckpt")
    shard = folder / "__0_0.distcp"
    os.truncate(shard, shard.stat().st_size // 2)
    assert "truncated" in " ".join(look(folder).problems)
    shard.unlink()
    assert "names the file '__0_0.distcp', not one of this checkpoint" in look(folder).problems[0]


def test_bytes_that_are_no_shard_are_a_problem(tmp_path: Path) -> None:
    folder = save(tmp_path / "ckpt")
    shard = folder / "__0_0.distcp"
    shard.write_bytes(os.urandom(shard.stat().st_size))
    assert "in __0_0.distcp cannot be loaded" in look(folder).problems[0]


def test_a_tensor_without_all_its_pieces_is_a_problem(tmp_path: Path) -> None:
    folder = save(tmp_path / "ckpt")
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    index = next(index for index in metadata.storage_data if index.fqn == "model.a.weight")
    del metadata.storage_data[index]
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    assert look(folder).problems == ("model.a.weight lacks 1 of its 1 pieces",)


def test_nothing_in_it_runs_code(tmp_path: Path) -> None:
    folder = save(tmp_path / "ckpt")
    (folder / ".metadata").write_bytes(pickle.dumps(Harm(tmp_path / "harmed")))
    (problem,) = look(folder).problems
    assert "mkdir, which no checkpoint needs; it was not loaded" in problem
    inside = look(save(tmp_path / "other", {"value": Harm(tmp_path / "harmed")}))
    assert "value in __0_0.distcp cannot be loaded" in inside.problems[0]
    assert not (tmp_path / "harmed").exists()


def test_a_shard_that_leads_out_of_its_folder_is_not_read(tmp_path: Path) -> None:
    folder = save(tmp_path / "ckpt")
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    for info in metadata.storage_data.values():
        info.relative_path = "../outside"
    (tmp_path / "outside").write_bytes((folder / "__0_0.distcp").read_bytes())
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    assert "names the file '../outside'" in look(folder).problems[0]


@pytest.mark.parametrize("name", ["ckpt/.metadata", ".metadata"])
def test_an_index_is_known_by_its_shards_or_by_what_it_says(tmp_path: Path, name: str) -> None:
    save(tmp_path / Path(name).parent)
    assert file_kinds.kind_of(tmp_path, name) == "sharded"
    (tmp_path / Path(name).with_name("__0_0.distcp")).unlink()
    assert file_kinds.kind_of(tmp_path, name) == "sharded"
