from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

from boxcar.training.rehearse import compare


def test_each_kind_of_file_becomes_a_tree(tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.ones(2)}, "step": 3}, tmp_path / "a.pth")
    (tmp_path / "b.json").write_text(json.dumps({"score": 1}))
    save_file({"w": torch.ones(2)}, tmp_path / "c.safetensors")
    numpy.savez(tmp_path / "d.npz", w=numpy.ones(2))
    trees = {path.name: compare.load_left(path) for path in sorted(tmp_path.iterdir())}
    assert all(why == "" for _, why in trees.values())
    assert trees["a.pth"][0]["step"] == 3
    assert trees["b.json"][0] == {"score": 1}
    assert list(trees["c.safetensors"][0]) == ["w"]
    assert list(trees["d.npz"][0]) == ["w"]


class Surprise:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("a pickle ran",)


def test_a_pickle_that_would_run_code_is_compared_by_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"model": Surprise()}, tmp_path / "a.pth")
    tree, why = compare.load_left(tmp_path / "a.pth")
    assert list(tree) == ["bytes"] and why.startswith("compared by its bytes")
    assert "a pickle ran" not in capsys.readouterr().out


def test_what_is_cut_or_unknown_is_compared_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "a.csv").write_text("1,2")
    assert list(compare.load_left(tmp_path / "a.pth")[0]) == ["bytes"]
    one = compare.load_left(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("1,3")
    assert one[0] != compare.load_left(tmp_path / "a.csv")[0] and one[1] == ""


def test_a_folder_is_compared_by_the_bytes_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "shards" / "deep").mkdir(parents=True)
    (tmp_path / "shards" / "deep" / "0.distcp").write_bytes(b"x")
    tree, why = compare.load_left(tmp_path / "shards")
    assert list(tree) == ["deep/0.distcp"] and "folder" in why
