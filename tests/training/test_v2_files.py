"""One real file of each format of boxcar.training of which there is a version 2.

Made once, by FSDP2 on two ranks; see test_v1_files.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flips import flipped
from torch import nn

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.training.checkpoint import dcp_folder

SAVED = Path(__file__).resolve().parents[1] / "data/v2/training/step_00000003"


def test_a_document_is_written_back_byte_for_byte() -> None:
    data = (SAVED / "complete.json").read_bytes()
    assert codec.to_document(codec.from_document(dcp_folder.Complete, data, "here")) == data


def test_a_sharded_checkpoint_of_two_ranks_loads_on_one() -> None:
    model = nn.Linear(2, 4)
    assert dcp_folder.read_complete(SAVED).world == 2
    dcp_folder.load(SAVED, {"model": model.state_dict()})
    assert model.weight[3].tolist() == [-0.042348410934209824, 0.5323191285133362]
    assert model.bias[0].item() == -0.08439016342163086


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp", "__1_0.distcp"])
def test_each_of_its_flipped_bits_is_damage(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "step_00000003"
    shutil.copytree(SAVED, folder)
    for bad in flipped((SAVED / name).read_bytes(), 100, seed=3):
        (folder / name).write_bytes(bad)
        with pytest.raises(DamagedError, match="its CRC-32 is not"):
            dcp_folder.check_on_disk(folder)


def test_every_file_is_read_here() -> None:
    files = {path.name for path in SAVED.parent.rglob("*") if path.is_file()}
    assert files == {"complete.json", ".metadata", "__0_0.distcp", "__1_0.distcp"}
