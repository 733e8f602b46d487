"""Files that libraries wrote (tests/data/formats): a whole one is never bad, a cut one never good.

All are looked at in one child, as a box does it.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from boxcar.shared.artifacts import file_kinds, resume_match
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import BYTES, WHY_BYTES, Finding
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import Child

pytest.importorskip("numpy")
ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests/data/formats"
RAY = "ray/basic-variant-state-2026-11-28_08-45-04.json"
KINDS = {
    "catboost/model.cbm": BYTES,
    "h5py/latest.h5": "hdf5",
    "keras/model.keras": "zip",
    "keras/model.weights.h5": "hdf5",
    "lightgbm/lgb.txt": "lightgbm",
    "mindspore/crc.ckpt": "mindspore",
    "mindspore/encrypted.ckpt": BYTES,
    "mindspore/model.ckpt": "mindspore",
    "mindspore/model.safetensors": "safetensors",
    "mmengine/scalars.json": "json",
    "numpy/estimator.npy": "numpy",
    "numpy/names.npz": "numpy",
    "numpy/results.npy": "numpy",
    "numpy/table.csv": "csv",
    "onnx/model.onnx": "onnx",
    "onnx/model.onnx.data": BYTES,
    "orbax/100/default/_METADATA": "json",
    "orbax/100/default/manifest.ocdbt": BYTES,
    "paddle/model.pdopt": "pickle",
    "paddle/model.pdparams": "pickle",
    "paddle/nested.pkl": "pickle",
    "pandas/gbk.csv": "csv",
    "pandas/lines.json": "json",
    "pandas/semi.csv": "csv",
    "pickle/plain.bin": "pickle",
    "pickle/plain.pt": "pickle",
    RAY: BYTES,
    "ray/result.json": "json",
    "sb3/model.zip": "zip",
    "sb3/progress.json": "json",
    "sb3/train.monitor.csv": "csv",
    "sklearn/model.skops": "zip",
    "torch/model.pt2": "zip",
    "transformers/checkpoint-3/trainer_state.json": "json",
    "transformers/checkpoint-3/training_args.bin": "torch",
    "transformers/sharded/config.json": "json",
    **{
        f"transformers/sharded/model-0000{n}-of-00006.safetensors": "safetensors"
        for n in range(1, 7)
    },
    "transformers/sharded/model.safetensors.index.json": "json",
    "xgboost/dump.txt": BYTES,
    "xgboost/model.json": "json",
    "xgboost/model.ubj": "ubjson",
}
REFUSED = ("numpy/estimator.npy", "transformers/checkpoint-3/training_args.bin")
# Where in a file it is cut: never at the end of a line; -3 is before what closes.
CUTS = (0.1, 0.55, 0.9, -3)


def looked(folder: Path, *names: str) -> dict[str, Finding]:
    return load_child.load(
        Child(sys.executable, Path("/")), folder, [Artifact(name) for name in names]
    ).findings


@pytest.fixture(scope="module")
def whole() -> dict[str, Finding]:
    return looked(FILES, *KINDS)


def test_the_table_and_the_readme_have_each_file() -> None:
    files = {path.relative_to(FILES).as_posix() for path in FILES.rglob("*") if path.is_file()}
    assert files - {"README.md"} == set(KINDS)
    readme = (FILES / "README.md").read_text()
    assert [name for name in KINDS if name.partition("/")[0] + "/" not in readme] == []


@pytest.mark.parametrize("name", KINDS)
def test_a_whole_file_is_of_its_kind_and_not_bad(whole: dict[str, Finding], name: str) -> None:
    assert whole[name].kind == KINDS[name]
    if name not in REFUSED:
        assert whole[name].problems == ()


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_run_is_named_with_the_line_to_write(
    whole: dict[str, Finding], name: str
) -> None:
    (problem,) = whole[name].problems
    assert problem.startswith("would execute code when it is loaded: ")
    assert f"{{path: {name}, load: trusted}}" in problem


def test_why_nobody_looks_into_a_file_is_said(whole: dict[str, Finding]) -> None:
    assert "CatBoost" in whole["catboost/model.cbm"].facts[WHY_BYTES]
    assert "encrypted" in whole["mindspore/encrypted.ckpt"].facts[WHY_BYTES]
    assert "a pickle" in whole[RAY].facts[WHY_BYTES]


def test_what_is_inside_is_found(whole: dict[str, Finding]) -> None:
    facts = {name: found.facts for name, found in whole.items()}
    assert facts["paddle/model.pdopt"]["tensors"] == 8
    assert facts["pickle/plain.pt"]["parameters"] == facts["pickle/plain.bin"]["parameters"] == 3
    assert facts["mindspore/model.ckpt"]["tensors"] == facts["numpy/names.npz"]["tensors"] + 1 == 2
    assert facts["ray/result.json"]["rows"] == 3
    # The first gradient was NaN, and what followed was not.
    assert facts["transformers/checkpoint-3/trainer_state.json"]["gaps"] == 1


def test_a_cut_file_is_bad_or_bytes_only(tmp_path: Path) -> None:
    """A CSV says nothing of its length."""
    cut = {}
    for name in (name for name, kind in KINDS.items() if kind != "csv"):
        data = (FILES / name).read_bytes()
        for at in CUTS:
            path = f"{at}/{name}"
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data[: at if at < 0 else int(len(data) * at)])
            cut[path] = name
    found = looked(tmp_path, *cut)
    assert [path for path in cut if found[path].is_good and found[path].kind != BYTES] == []
    unseen = {cut[path] for path in cut if found[path].kind == BYTES}
    # Of MindSpore the first tenth of these 82 bytes is not yet its shape.
    assert unseen == {name for name, kind in KINDS.items() if kind == BYTES} | {
        "mindspore/model.ckpt", "mindspore/crc.ckpt", "orbax/100/default/_METADATA",
    }  # fmt: skip


def test_an_archive_in_the_archive_is_not_its_end(tmp_path: Path) -> None:
    """SB3 stores files of torch.save as they are: cut behind one, Python's zipfile opens that."""
    name, data = "model.zip", (FILES / "sb3/model.zip").read_bytes()
    with zipfile.ZipFile(FILES / "sb3" / name) as archive:
        ends = [entry.header_offset for entry in archive.infolist()][1:]
    for at in ends:
        (tmp_path / str(at)).mkdir()
        (tmp_path / str(at) / name).write_bytes(data[:at])
        assert resume_match.chosen(tmp_path / str(at), "*.zip", at_rest=True) is None
    assert any(zipfile.is_zipfile(tmp_path / str(at) / name) for at in ends)
    found = looked(tmp_path, *(f"{at}/{name}" for at in ends))
    assert [path for path, one in found.items() if one.is_good] == []


@pytest.mark.parametrize("name", ["keras/model.keras", "sb3/model.zip", "torch/model.pt2",
                                  "sklearn/model.skops", "mindspore/crc.ckpt"])  # fmt: skip
def test_a_flipped_bit_is_seen_where_the_format_has_a_sum(tmp_path: Path, name: str) -> None:
    changed = bytearray((FILES / name).read_bytes())
    changed[len(changed) // 3] ^= 4
    flipped = tmp_path / Path(name).name
    flipped.write_bytes(changed)
    assert not looked(tmp_path, flipped.name)[flipped.name].is_good


def test_what_a_file_names_has_to_lie_beside_it_in_its_length(tmp_path: Path) -> None:
    for folder in ("onnx", "transformers"):
        shutil.copytree(FILES / folder, tmp_path / folder)
    index = "transformers/sharded/model.safetensors.index.json"
    data = tmp_path / "onnx/model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1])
    (tmp_path / "transformers/sharded/model-00002-of-00006.safetensors").unlink()
    found = looked(tmp_path, "onnx/model.onnx", index)
    assert "up to byte 32, and 31 are there" in found["onnx/model.onnx"].problems[0]
    assert found[index].problems == (
        "names 'model-00002-of-00006.safetensors', which is not beside it",
    )


def test_the_page_has_a_row_for_each_suffix() -> None:
    page = (ROOT / "docs/file_kinds.md").read_text(encoding="utf-8")
    rows = "\n".join(re.findall(r"^\|.*\|$", page, re.MULTILINE))
    suffixes = {each for kind in file_kinds.KINDS.values() for each in kind.suffixes.split()}
    wanted = suffixes | set(file_kinds.WHY_BYTES)
    assert [suffix for suffix in sorted(wanted) if f"`{suffix}`" not in rows] == []
