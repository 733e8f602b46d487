"""What joblib.dump wrote: arrays that lie raw between a pickle's opcodes, also compressed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.artifacts.file_kinds import kind_of
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.training.load_check import artifacts, pickles
from boxcar.training.load_check.refusals import How

pytest.importorskip("torch")
joblib = pytest.importorskip("joblib")
numpy = pytest.importorskip("numpy")
COMPRESSORS = ["zlib", "gzip", "bz2", "lzma", "xz"]
SAFE, LISTED, TRUSTED = How(), How(False, True), How(True, True)


class Net:
    """Somebody's own class, with weights."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights


def dumped(value: Any, path: Path, **options: Any) -> Path:
    joblib.dump(value, path, **options)
    return path


def look(path: Path, how: How = SAFE, *keys: str) -> Finding:
    return artifacts.look(path.parent, Artifact(path.name, keys), replace(how, said_as=path.name))


def held(path: Path) -> bytes:
    """What is compressed in it."""
    with pickles.opened_pickle(path) as file:
        return file.read()


def arrays() -> dict[str, Any]:
    return {
        "rows": numpy.arange(12.0).reshape(3, 4),
        "columns": numpy.asfortranarray(numpy.ones((3, 4), numpy.float32)),
        "names": numpy.array(["ab", "c"]),
        "bytes": numpy.array([b"ab", b"c"]),
        "records": numpy.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
        "days": numpy.array(["2020-01-01"], "M8[D]"),
        "objects": numpy.array([1, "a", None], object),
        "none": numpy.zeros((0, 3)),
        "scalar": numpy.float64(2),
        "last": numpy.arange(5),
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("compress", [0, 3])
def test_plain_arrays_are_read_without_running_anything(
    tmp_path: Path, protocol: int, compress: int
) -> None:
    path = dumped(arrays(), tmp_path / "m.joblib", protocol=protocol, compress=compress)
    found = look(path, SAFE, "rows", "last")
    assert (found.kind, found.problems) == ("pickle", ())
    # 12 + 12 + 0 + 5 numbers, and no value of what is text, dates, records or objects
    assert found.facts["parameters"] == 29


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_each_way_to_compress_is_read(tmp_path: Path, compressor: str) -> None:
    path = dumped(arrays(), tmp_path / "m.pkl", compress=(compressor, 3))
    assert look(path, SAFE, "rows").problems == ()
    assert look(path, TRUSTED, "rows").problems == ()


def test_a_nan_among_raw_numbers_is_found(tmp_path: Path) -> None:
    path = dumped({"w": numpy.array([1.0, numpy.nan])}, tmp_path / "m.joblib")
    assert look(path).problems == ("w holds 1 NaN among 2 values",)


@pytest.mark.parametrize("compress", [0, 3])
def test_what_it_names_is_listed_to_its_last_array_and_nothing_runs(
    tmp_path: Path, compress: int
) -> None:
    value = [numpy.ones(3), numpy.array([{1}, Net(numpy.ones(2))], object), Net(numpy.ones(4))]
    path = dumped(value, tmp_path / "m.pkl", compress=compress)
    problem = look(path).problems[0]
    assert f"would execute code when it is loaded: {Net.__module__}.Net. Save" in problem
    assert "numpy_pickle" not in problem
    assert "{path: m.pkl, load: trusted}" in problem
    names = look(path, LISTED).facts["globals"]
    assert names[0] == "joblib.numpy_pickle.NumpyArrayWrapper"
    assert f"{Net.__module__}.Net" in names


@pytest.mark.parametrize("compress", [0, 3])
def test_trusted_loads_it_with_joblib_itself(tmp_path: Path, compress: int) -> None:
    value = {"net": Net(numpy.ones(4)), "w": numpy.ones(3)}
    path = dumped(value, tmp_path / "m.pkl", compress=compress)
    found = look(path, TRUSTED, "w")
    assert (found.problems, found.facts["parameters"]) == ((), 3)
    assert look(path, TRUSTED, "other").problems == ("lacks the key 'other'; it holds net, w",)


def test_without_joblib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dumped({"net": Net(numpy.ones(4))}, tmp_path / "m.pkl")
    monkeypatch.setitem(sys.modules, "joblib", None)
    (problem,) = look(path, TRUSTED).problems
    assert problem == (
        "was written by joblib, which its box has not: install joblib for "
        f"{sys.executable}, or write {{path: m.pkl, load: bytes}}"
    )


def test_without_joblib_plain_arrays_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dumped(arrays(), tmp_path / "m.pkl", compress=3)
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert look(path).problems == ()


@pytest.mark.parametrize("compressor", [None, *COMPRESSORS])
@pytest.mark.parametrize("how", [SAFE, TRUSTED], ids=["safe", "trusted"])
def test_one_that_is_cut_anywhere_is_bad(tmp_path: Path, compressor: str | None, how: How) -> None:
    options = {"compress": (compressor, 3)} if compressor else {}
    whole = dumped({"a": 1, "w": numpy.arange(40.0)}, tmp_path / "w.pkl", **options).read_bytes()
    path = tmp_path / "m.pkl"
    for length in range(1, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        assert look(path, how).problems, f"cut after {length} bytes"


# The oldest format, .lzma, has no sum of what is in it.
@pytest.mark.parametrize("compressor", ["zlib", "gzip", "bz2", "xz"])
@pytest.mark.parametrize("how", [SAFE, TRUSTED], ids=["safe", "trusted"])
def test_a_flipped_bit_of_a_compressed_one_is_caught(
    tmp_path: Path, compressor: str, how: How
) -> None:
    path = dumped({"w": numpy.arange(40.0)}, tmp_path / "m.pkl", compress=(compressor, 3))
    whole, original = path.read_bytes(), held(path)
    for at in range(12, len(whole), 7):  # behind what gzip says of the file's name and time
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        # zlib has more than one way to spell some numbers.
        assert look(path, how).problems or held(path) == original, f"bit of byte {at}"


def test_what_claims_more_numbers_than_it_has_is_cut_and_takes_no_memory(tmp_path: Path) -> None:
    path = dumped({"w": numpy.zeros(70_000)}, tmp_path / "m.joblib")
    claimed, more = (70_000).to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")
    data = path.read_bytes()
    assert data.count(b"J" + claimed) == 1
    path.write_bytes(data.replace(b"J" + claimed, b"J" + more))
    assert look(path).problems[0].startswith("is truncated (EOFError")


def test_a_pickle_that_somebody_compressed_is_read_too(tmp_path: Path) -> None:
    path = dumped({"psnr": 31.5}, tmp_path / "m.pkl.gz")
    assert look(path, SAFE, "psnr").problems == ()
    assert look(path, TRUSTED, "psnr").problems == ()


@pytest.mark.parametrize(
    "name", ["m.joblib", "m.pkl.gz", "m.joblib.z", "m.pickle.xz", "m.joblib.lzma", "m.pkl.bz2"]
)
def test_its_names_claim_a_pickle(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"noise")
    assert kind_of(tmp_path, name) == "pickle"
    assert look(tmp_path / name).problems


def test_other_compressed_files_are_only_bytes(tmp_path: Path) -> None:
    (tmp_path / "log.csv.gz").write_bytes(b"noise")
    assert kind_of(tmp_path, "log.csv.gz") == "bytes"


@pytest.mark.skipif(importlib.util.find_spec("lz4") is not None, reason="lz4 is here")
def test_what_needs_a_library_to_be_opened_says_which(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(b"\x04\x22\x4d\x18" + bytes(40))
    assert "No module named 'lz4'" in look(tmp_path / "m.pkl").problems[0]
