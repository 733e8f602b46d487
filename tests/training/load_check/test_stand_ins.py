"""Names that are taken without asking: what they hold is seen, and nothing hostile comes of it."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import io
import math
import os
import pathlib
import pickle
import types
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.training.load_check import artifacts, checkpoints, stand_ins
from boxcar.training.load_check.refusals import How

numpy = pytest.importorskip("numpy")

HARMLESS: dict[str, Any] = {
    "namespace": argparse.Namespace(lr=0.1, betas=(0.9, 0.99), inner=argparse.Namespace(a=1)),
    "simple": types.SimpleNamespace(a=1),
    "float": numpy.float64(0.5),
    "floats": [numpy.float32(1.5), numpy.float16(2), numpy.int64(7), numpy.bool_(True)],
    "dtype": numpy.dtype("float32"),
    "types": (numpy.float32, int, float, torch.optim.AdamW),
    "array": numpy.arange(6, dtype="f8").reshape(2, 3),
    "columns": numpy.asfortranarray(numpy.ones((2, 3), dtype="f4")),
    "objects": numpy.array([{"a": 1}, None], dtype=object),
    "texts": numpy.array(["a", "bc"]),
    "empty": numpy.zeros((0, 3)),
    "path": pathlib.PurePosixPath("a/b"),
    "here": pathlib.Path("x"),
    "windows": pathlib.PureWindowsPath("c:\\x"),
    "ordered": collections.OrderedDict(a=1),
    "default": collections.defaultdict(list, {"a": [1]}),
    "counter": collections.Counter("aab"),
    "deque": collections.deque([1, 2], maxlen=3),
    "partial": functools.partial(torch.optim.AdamW, lr=0.1),
    "chain": functools.partial(functools.partial(torch.nn.functional.relu), inplace=True),
    "when": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
    "day": datetime.date(2026, 1, 2),
    "span": datetime.timedelta(1),
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 2),
    "uuid": uuid.UUID(int=7),
    "sets": [{1, 2}, frozenset({3}), {frozenset({4})}],
    "complex": 1 + 2j,
    "bytes": [b"\xff\x00", bytearray(b"\xff")],
    "range": range(3),
    "slice": slice(1, 2),
    "torch": (torch.float32, torch.bfloat16, torch.device("cpu"), torch.Size([2]), torch.strided),
}
ALL = [*sorted(stand_ins._BASES), "numpy.float32", "builtins.int", "torch.optim.adamw.AdamW"]


def look(folder: Path, name: str) -> Finding:
    return artifacts.look(folder, Artifact(name), How(said_as=name))


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_loads_without_asking(tmp_path: Path, name: str) -> None:
    """In a checkpoint, a legacy one, and a pickle of each protocol that is written today."""
    value = {"value": HARMLESS[name], "w": torch.ones(2)}
    torch.save(value, tmp_path / "new.pth")
    torch.save(value, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        plain = pickle.dumps({"value": HARMLESS[name]}, protocol)
        (tmp_path / f"{protocol}.pkl").write_bytes(plain)
    for path in sorted(tmp_path.iterdir()):
        assert look(tmp_path, path.name).problems == (), path.name


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_numbers_behind_harmless_names_are_looked_at(tmp_path: Path, protocol: int) -> None:
    value = {
        "args": argparse.Namespace(history=numpy.array([1.0, math.nan])),
        "f": functools.partial(dict, w=numpy.array([math.inf], dtype="f4")),
        "step": numpy.int64(1200),
        "epoch": numpy.int32(-3),
    }
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(value, protocol))
    found = look(tmp_path, "a.pkl")
    assert found.problems == (
        "args.history holds 1 NaN among 2 values", "f.w holds 1 Inf among 1 values",
    )  # fmt: skip
    assert (found.facts["step"], found.facts["epoch"]) == (1200, -3)


def test_keys_are_found_in_a_namespace(tmp_path: Path) -> None:
    torch.save({"args": argparse.Namespace(lr=1)}, tmp_path / "a.pth")
    wanted = Artifact("a.pth", ("args.lr", "args.momentum"))
    (problem,) = artifacts.look(tmp_path, wanted, How()).problems
    assert problem.startswith("lacks the key 'args.momentum'")


# --- hostile uses


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def named(name: str) -> bytes:
    module, _, own = name.rpartition(".")
    return f"c{module}\n{own}\n".encode()


def hostile(name: str, canary: Path) -> Iterator[bytes]:
    """Pickles of protocol 2 that use a name in every way that calls, makes or changes something."""
    it, system, command = named(name), named("posix.system"), text(f"touch {canary}")
    state = b"}(" + b"".join(
        text(word) + system
        for word in ("__setstate__", "__reduce__", "__class__", "__dict__", "state_dict", "items")
    ) + b"u"  # fmt: skip
    for made in (it + b")R", it + b"(" + system + command + b"tR", it + b")\x81"):
        yield made
        yield made + state + b"b"
        yield made + b"(N" + state + b"tb"
        yield made + b"(K\x01(K\x02tc_codecs\nencode\n" + system + system + b"tb"
        yield made + b"(" + command + b"tR"
        yield made + state + b"b(" + command + b"tR"
        yield made + command + system + b"s"
        yield made + b"(" + system + b"e"
    for shadow in ("__new__", "__init__", "__setstate__", "__call__"):
        yield it + b"(N}" + text(shadow) + system + b"stb" + b"(" + command + b"tR"
    yield it + state + b"b)R"
    partial = named("functools.partial") + b"(" + system + command + b"tR"
    yield partial + b")R"
    yield named("functools.partial") + b"(" + partial + b"tR)R"
    yield it + b"(" + partial + b"tR)R"
    yield named("builtins.getattr") + b"(" + it + text("__class__") + b"tR"
    yield it + b"(" + named("builtins.eval") + b"(" + text("1") + b"tRtR"


def as_checkpoint(path: Path, pickled: bytes) -> None:
    """A file of torch.save whose pickle is another."""
    whole = io.BytesIO()
    torch.save({}, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            is_pickle = entry.filename.endswith("data.pkl")
            target.writestr(entry.filename, pickled if is_pickle else source.read(entry))


@pytest.mark.parametrize("name", ALL)
def test_nothing_comes_of_a_hostile_use_of_a_harmless_name(tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"
    before = {own: dict(vars(stand_ins.of(own) or object)) for own in ALL}
    for at, body in enumerate(hostile(name, canary)):
        (tmp_path / f"{at}.pkl").write_bytes(b"\x80\x02" + body + b".")
        as_checkpoint(tmp_path / f"{at}.pth", b"\x80\x02" + body + b".")
        for file in (f"{at}.pkl", f"{at}.pth"):
            problems = look(tmp_path, file).problems
            # What names nothing else is at most an odd container; all others are refused by name.
            assert problems or b"posix" not in body, (file, body)
    assert not canary.exists()
    assert {own: dict(vars(stand_ins.of(own) or object)) for own in ALL} == before


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        (functools.partial(os.system, "touch x"), "posix.system"),
        (functools.partial(functools.partial(eval), "1"), "builtins.eval"),
        (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        (torch.optim.SGD([torch.ones(1)]), "torch.optim.sgd.SGD"),
        (argparse.Namespace(model=torch.nn.GELU()), "torch.nn.modules.activation.GELU"),
        (collections.defaultdict(os.getcwd), "posix.getcwd"),
        (zipfile.ZipInfo("x"), "zipfile.ZipInfo"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_would_run_somebodys_code_is_refused_with_the_line_to_write(
    tmp_path: Path, value: Any, refused: str
) -> None:
    torch.save({"v": value}, tmp_path / "a.pth")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"v": value}))
    for name in ("a.pth", "a.pkl"):
        (problem,) = look(tmp_path, name).problems
        assert refused in problem.partition(". Save plain")[0]
        assert f"{{path: {name}, load: trusted}}" in problem
        assert f"{{path: {name}, load: bytes}}" in problem


@pytest.mark.parametrize("cut", [b"\x00" * 8, b""])
def test_an_array_with_other_bytes_than_its_shape_asks_for_is_damaged(
    tmp_path: Path, cut: bytes
) -> None:
    whole = pickle.dumps({"a": numpy.array([1.25, 2.5])}, 3)
    raw = numpy.array([1.25, 2.5]).tobytes()
    # SHORT_BINBYTES, its length, and the bytes
    (tmp_path / "a.pkl").write_bytes(whole.replace(b"C\x10" + raw, b"C" + bytes([len(cut)]) + cut))
    (problem,) = look(tmp_path, "a.pkl").problems
    assert f"an array of {len(cut)} bytes, expected 16" in problem


def test_a_torch_that_is_too_old_for_a_harmless_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch 2.4 refuses what 2.6 takes."""

    def refuse(*_: Any) -> Any:
        raise RuntimeError("Trying to instantiate unsupported class <class 'argparse.Namespace'>")

    monkeypatch.setattr(checkpoints, "load_torch", refuse)
    torch.save({"a": argparse.Namespace(lr=1)}, tmp_path / "a.pth")
    (problem,) = look(tmp_path, "a.pth").problems
    assert problem.startswith("names argparse.Namespace, which this torch does not take without")
    assert problem.endswith("a newer one does; or write into job.yaml {path: a.pth, load: trusted}")
