"""One child loads a whole folder of good and bad files: torch takes long to import."""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import math
import os
import pickle
import platform
import socket
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from waiting import LIMIT_S

from boxcar.shared.files import codec
from boxcar.shared.files.receipt import CellReceipt, Finding
from boxcar.shared.process.load_child import UNCHECKED

Write = Callable[[Path], object]
HAS_NUMPY = importlib.util.find_spec("numpy") is not None


@dataclass(frozen=True)
class Answer:
    returncode: int
    lines: list[dict[str, Any]]
    stderr: str

    @property
    def findings(self) -> dict[str, Finding]:
        found = [line["finding"] for line in self.lines if "finding" in line]
        return {item["path"]: codec.decode(Finding, item, "stdout") for item in found}


class Runs:
    """A value whose pickle evaluates `code` when it is loaded."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> Any:
        return eval, (self.code,)


class Calls:
    """A value whose pickle calls os.system when it is loaded."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


class Own:
    """As a script's own hyper-parameters are pickled."""


def ask(request: object) -> Answer:
    done = subprocess.run(
        [sys.executable, "-m", "boxcar.training.load_check"],
        input=request if isinstance(request, bytes) else json.dumps(request).encode(),
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return Answer(done.returncode, lines, done.stderr.decode())


def ask_about(folder: Path, *names: str, allow: Sequence[str] = ()) -> Answer:
    files = [{"path": name} for name in names]
    return ask({"folder": str(folder), "files": files, "allow_pickle": allow})


def text(content: str) -> Write:
    return lambda path: path.write_text(content)


def data(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def saved(value: object, **options: Any) -> Write:
    return lambda path: torch.save(value, path, **options)


def legacy(value: object) -> Write:
    return saved(value, _use_new_zipfile_serialization=False)


def pickled(value: object) -> Write:
    return lambda path: path.write_bytes(pickle.dumps(value))


def cut(write: Write, keep: float) -> Write:
    """The first part of a file; a negative `keep` is the number of bytes cut off."""

    def write_cut(path: Path) -> None:
        write(path)
        size = path.stat().st_size
        os.truncate(path, size + int(keep) if keep < 0 else int(size * keep))

    return write_cut


def flipped(path: Path) -> None:
    """One bit of a tensor, which torch loads without a word."""
    torch.save({"w": torch.ones(3000)}, path)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


CAN_LEAVE_SUMS_OUT = hasattr(torch.serialization, "skip_data")


def without_checksums(path: Path) -> None:
    with torch.serialization.skip_data():  # its bytes are put there by others
        torch.save({"w": torch.ones(3000)}, path)


def safetensors(*arrays: tuple[str, list[float]], claimed: int | None = None) -> Write:
    header, body = {}, b""
    for name, values in arrays:
        packed = struct.pack(f"<{len(values)}f", *values)
        span = [len(body), claimed or len(body) + len(packed)]
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": span}
        body += packed
    head = json.dumps(header).encode()
    return data(struct.pack("<Q", len(head)) + head + body)


def deflated(path: Path) -> None:
    """A checkpoint in a compressed archive, as a bomb would be."""
    buffer = io.BytesIO()
    torch.save({"w": torch.zeros(1 << 16)}, buffer)
    with zipfile.ZipFile(buffer) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in whole.namelist():
            out.writestr(name, whole.read(name))


def claiming(path: Path) -> None:
    """A legacy checkpoint of 70,000 numbers whose pickle says they are 2 billion: 17 GB."""
    legacy(torch.zeros(70_000, dtype=torch.float64))(path)
    content = path.read_bytes()
    honest, claimed = (b"J" + struct.pack("<i", count) for count in (70_000, 2**31 - 1))
    assert content.count(honest) == 2
    path.write_bytes(content.replace(honest, claimed))


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "not torch's")


def garbage_folder(path: Path) -> None:
    """What looks like a sharded checkpoint by its names alone."""
    path.with_name("__0_0.distcp").write_bytes(bytes(range(100)))
    path.write_bytes(bytes(range(100, 200)))


def scripted(path: Path) -> None:
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))


def tarred(path: Path) -> None:
    """torch's format of 2016, with a name that begins as a pickle does."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("\udc80pickle"))
    assert path.read_bytes().startswith(b"\x80")


def linked(path: Path) -> None:
    path.with_name("target.pth").write_bytes(b"anything")
    path.symlink_to("target.pth")


def linear_with_nan() -> torch.nn.Module:
    model = torch.nn.Linear(2, 2)
    model.weight.data[0, 0] = math.nan
    return model


STATE = {
    "model": torch.nn.Linear(8, 8).state_dict(),
    "optimizer": {"state": {0: {"exp_avg": torch.ones(4)}}, "param_groups": [{"lr": 0.1}]},
    "epoch": 3,
    "step": 1200,
    "best": math.inf,
}
BAD_STATE = {**STATE, "optimizer": {"state": {0: {"exp_avg": torch.tensor([1.0, math.nan])}}}}
RAN = "{'ran': {'w': 1}, 'step': 5}"

# name: how it is written, and the keys asked for
GOOD: dict[str, tuple[Write, tuple[str, ...]]] = {
    "best.pth": (saved(STATE), ("model", "model.weight", "optimizer.state.0", "epoch")),
    "legacy.pt": (legacy(STATE), ("model", "optimizer.param_groups")),
    "deep/er/model.ckpt": (saved(STATE), ("model",)),
    "pytorch_model.bin": (saved(STATE["model"]), ("weight",)),
    "one-tensor.pt": (saved(torch.ones(3)), ()),
    "no-tensor.pth": (saved({"epoch": 3}), ("epoch",)),
    "mask.pth": (saved({"mask": torch.full((4, 4), -math.inf).triu(1)}), ()),
    "repeated.pth": (saved({"w": torch.ones(1).expand(1 << 40)}), ("w",)),
    "other.bin": (data(b"\0not torch"), ()),
    "lookups.bin": (data(b"\x80"), ()),  # msgpack's empty map, as spaCy writes it
    "metrics.json": (
        text('{"psnr": 31.5, "val": {"dice": 0.9}, "n": 3, "ok": true}'),
        ("val.dice",),
    ),
    # As transformers' Trainer writes it.
    "trainer_state.json": (
        text(
            '{"best_metric": 0.5, "epoch": 2.0, "max_steps": 4, "total_flos": 1e9, "log_history": ['
            '{"epoch": 1.0, "loss": 0.75, "step": 2}, {"epoch": 2.0, "loss": 0.25, "step": 4}, '
            '{"epoch": 2.0, "eval_loss": 0.5, "step": 4}]}'
        ),
        (),
    ),
    "half-surrogate.json": (text('{"\\ud800": 1.5}'), ()),
    "rows.jsonl": (text('{"step": 1}\n\n{"step": 2, "loss": 0.5}\n'), ("step", "loss")),
    "table.csv": (text('\ufeffepoch,"loss, mean"\n1,0.5\n2,"0,4"\n'), ("epoch", "loss, mean")),
    "model.safetensors": (safetensors(("a.w", [1.0, 2.0]), ("b", [3.0])), ("a", "b")),
    "plain.pkl": (pickled({"psnr": 31.5, "rows": [(1, 2)]}), ("psnr",)),
    "allowed.pkl": (pickled(Runs(RAN)), ("ran.w",)),
    "allowed.pth": (saved(torch.nn.Linear(2, 2)), ("weight",)),
    "allowed-script.pt": (scripted, ("bias",)),
    "namespace.pth": (
        saved({"a": argparse.Namespace(lr=1, w=torch.ones(2)), "o": OrderedDict()}),
        ("a.w",),
    ),
    # Before 2.6 torch writes no other.
    **({"unsummed.pth": (without_checksums, ("w",))} if CAN_LEAVE_SUMS_OUT else {}),
    "notes.txt": (text("any bytes"), ()),
    "best.pth.tar": (saved(STATE), ("model", "epoch")),
    "UPPER.PTH": (saved(STATE), ("model",)),
    "weights": (saved(STATE), ("model",)),
    "old-weights.model": (legacy(STATE), ("model",)),
    "unnamed": (safetensors(("a.w", [1.0])), ("a",)),
    "tokenizer": (text('{"vocab": {"a": 1}}'), ("vocab.a",)),
    "braces.yaml": (text("{a: 1}"), ()),
    "archive.zip": (zipped, ()),
    "hidden/.metadata": (text("of another program"), ()),
    "gaps.csv": (text("epoch,loss,val,name\n1,nan,,a\n2,0.4,0.3,nan\n3,0.2,,NaN\n"), ("loss",)),
    "texts.csv": (text("name,note\nAna,x\nnan,nan\n"), ()),
    # As a first gradient under fp16; what is text is no number.
    "gaps.json": (
        text('{"log_history": [{"g": NaN, "as": "nan"}, {"g": 0.5, "as": "nan"}]}'),
        ("log_history",),
    ),
    "gaps.jsonl": (text('{"g": Infinity}\n{"loss": 0.5}\n{"g": 1.0}\n'), ("g",)),
    "lines.json": (text('{"step": 1}\n{"step": 2}\n'), ("step",)),
    "page.ckpt": (text("<html>503</html>"), ()),
    "empty.json": (text("{}"), ()),
    "empty.jsonl": (text("\n"), ()),
}
ALLOWED = ["allowed.pkl", "allowed.pth", "allowed-script.pt", "allowed-nan.pth", "allowed-bomb.pkl"]

# name: how it is written, the keys asked for, and what the first problem must say
BAD: dict[str, tuple[Write, tuple[str, ...], str]] = {
    "empty.pth": (data(b""), (), "is empty (0 bytes)"),
    "missing.pth": (lambda path: None, (), "is missing"),
    "link.pth": (linked, (), "is a symbolic link"),
    "folder.pth": (Path.mkdir, (), "is not a file"),
    "pipe.json": (os.mkfifo, (), "is not a file"),
    "page.pth": (
        text("<html>503</html>"),
        (),
        "is not a torch checkpoint: it begins with b'<html>50'",
    ),
    "zeros.ckpt": (data(bytes(4096)), (), "is not a torch checkpoint"),
    "zip-cut-at-100.pth": (cut(saved(STATE), 0.02), (), "is truncated: the end of its archive"),
    "zip-cut-in-half.pth": (cut(saved(STATE), 0.5), (), "is truncated: the end of its archive"),
    "zip-cut-at-end.pth": (cut(saved(STATE), -1), (), "is truncated: the end of its archive"),
    "legacy-cut-in-pickle.pth": (cut(legacy(STATE), 0.1), (), "is truncated (torch: "),
    "legacy-cut-in-half.pth": (cut(legacy(STATE), 0.7), (), "is truncated (torch: unexpected EOF"),
    "legacy-cut-at-end.pth": (cut(legacy(STATE), -1), (), "is truncated (torch: unexpected EOF"),
    "flipped.pth": (flipped, (), "is damaged: flipped/data/0 is not what its checksum says"),
    "compressed.pth": (deflated, (), "/data.pkl compressed"),
    "claiming.pth": (claiming, (), "cannot be loaded (torch: "),
    "own-class.pth": (
        saved({"a": argparse.Namespace(), "o": Own()}),
        (),
        "test_load_check.Own. Save plain values and tensors, or write into job.yaml "
        "{path: own-class.pth, load: trusted}",
    ),
    "partial.pth": (saved({"f": partial(os.system, "x")}), (), "posix.system. Save"),
    "protocol-4.pth": (
        saved({"a": 1}, pickle_protocol=4),
        (),
        "(torch: Unsupported operand 149): save with protocol 2, or write",
    ),
    "script.pt": (scripted, (), "would execute code when it is loaded: a TorchScript program"),
    "tar.pth": (tarred, (), "is a tar archive"),
    "nan.pth": (saved(BAD_STATE), (), "optimizer.state.0.exp_avg holds 1 NaN among 2 values"),
    "nan-legacy.pth": (legacy(BAD_STATE), (), "optimizer.state.0.exp_avg holds 1 NaN among 2"),
    "inf-bf16.pth": (
        saved([torch.tensor([math.inf, 1.0], dtype=torch.bfloat16)]),
        (),
        "0 holds 1 Inf among 2",
    ),
    "nan-alone.pth": (saved(torch.tensor([math.nan])), (), "the tensor holds 1 NaN among 1 values"),
    "allowed-nan.pth": (saved({"m": linear_with_nan()}), (), "m.weight holds 1 NaN among 4 values"),
    "lacks.pth": (saved({"a": 1}), ("model",), "lacks the key 'model'; it holds a"),
    "nothing.pth": (saved({"state": {}, "list": []}), (), "holds nothing"),
    "bytes.bin": (data(b"not torch"), ("model",), "cannot be asked for the key 'model'"),
    "allowed-bomb.pkl": (pickled(Runs("bytearray(1 << 40)")), (), "needs more memory"),
    "cut.pkl": (cut(pickled(list(range(999))), 0.5), (), "is truncated ("),
    "cut.json": (text('{"psnr": 31.'), (), "is not JSON: "),
    "nan.json": (text('{"val": {"psnr": NaN}}'), (), "val.psnr is NaN: expected a finite number"),
    "ends.json": (
        text('{"log": [{"a": 1.0}, {"a": NaN}]}'),
        (),
        "log[].a ends in nan",
    ),
    "only.jsonl": (text('{"a": NaN}\n{"a": NaN}\n'), (), "a holds nothing but nan"),
    "cut-lines.json": (text('{"a": 1}\n{"a":'), (), "line 2 is not JSON: "),
    "infinity.json": (text("[1, -Infinity]"), (), "1 is -Infinity: expected a finite number"),
    "lacks.json": (text('{"psnr": 1}'), ("dice",), "lacks the key 'dice'; it holds psnr"),
    "latin.json": (data(b'{"name": "caf\xe9"}'), (), "is not JSON: "),
    "deep.json": (text("[" * 100_000), (), "cannot be loaded (RecursionError"),
    "bad.jsonl": (text('{"a": 1}\n{"a": 2\n'), (), "line 2 is not JSON: "),
    "nan.jsonl": (text('{"a": 1}\n{"a": NaN}\n'), (), "a ends in nan"),
    "lacks.jsonl": (text('{"a": 1}\n'), ("b",), "lacks the key 'b'; it holds a"),
    "ragged.csv": (text("a,b\n1,2\n3\n"), (), "line 3 has 1 fields, the header 2"),
    "header.csv": (text("a,b\n"), (), "has no row below its header"),
    "quote.csv": (text('a,b\n1,"2\n'), (), "is not CSV: "),
    "binary.csv": (data(b"a,b\n\0\xfe,1\n"), (), "is not CSV: "),
    "lacks.csv": (text("a,b\n1,2\n"), ("loss",), "lacks the key 'loss'; it holds a, b"),
    "cut-header.safetensors": (cut(safetensors(("a", [1.0])), 0.5), (), "is truncated"),
    "cut-data.safetensors": (cut(safetensors(("a", [1.0])), -1), (), "4 bytes, 3 are there"),
    "claiming.safetensors": (safetensors(("a", [1.0]), claimed=1 << 40), (), "is truncated: "),
    "gap.safetensors": (safetensors(("a", [1.0]), claimed=3), (), "is damaged: "),
    "no.safetensors": (text("<html>503 Service Unavailable</html>"), (), "no safetensors file"),
    "nan.safetensors": (safetensors(("w", [math.nan])), (), "w holds 1 NaN among 1 values"),
    "lacks.safetensors": (
        safetensors(("w", [1.0])),
        ("model",),
        "lacks the key 'model'; it holds w",
    ),
    "nothing.safetensors": (safetensors(), (), "holds nothing"),
    "noise.pth.tar": (data(bytes(range(1, 151)) * 2), (), "is not a torch checkpoint"),
    "nan.model": (saved(BAD_STATE), (), "optimizer.state.0.exp_avg holds 1 NaN among 2 values"),
    "nan-inside": (text('{"loss": NaN}'), (), "loss is NaN"),
    "nan-end.csv": (text("epoch,loss\n1,0.5\n2,nan\n"), (), "loss ends in nan"),
    "inf-end.csv": (text("epoch,loss,x\n1,0.5,1\n2,-inf,\n3,,2\n"), (), "loss ends in -inf"),
    "only-nan.csv": (text("epoch,loss\n1,nan\n2,NaN\n"), (), "loss holds nothing but NaN"),
    "bad/metrics.json": (text("{}"), (), "holds no metrics: it is empty"),
    "val_metrics.jsonl": (text("\n"), (), "holds no metrics: it is empty"),
    "keyed-empty.json": (text("{}"), ("dice",), "lacks the key 'dice'"),
    "alone/__0_0.distcp": (data(b"a shard"), (), "whose .metadata is not beside it"),
    "garbage/.metadata": (garbage_folder, (), "cannot be read"),
}
EVIL: dict[str, Callable[[object], Write]] = {
    "evil.pth": lambda value: saved({"model": [value]}),
    "evil-legacy.pth": lambda value: legacy({"model": [value]}),
    "evil-protocol-4.pth": lambda value: saved(value, pickle_protocol=4),
    "evil-pickle.pth": pickled,
    "evil.pkl": pickled,
    "evil.bin": saved,
    # allow_pickle holds another file of this name
    "deep/allowed.pkl": pickled,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file of the tables. `canary` appears in it when an evil one runs."""
    folder = tmp_path_factory.mktemp("cell")
    command = Calls(f"touch {folder / 'canary'}")
    evil = {name: (write(command), (), "") for name, write in EVIL.items()}
    for name, (write, *_) in (GOOD | BAD | evil).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / name)
    (folder / "array.npy").write_bytes(b"\x93NUMPY")
    return folder


@pytest.fixture(scope="module")
def answer(folder: Path) -> Answer:
    files = [{"path": name, "keys": keys} for name, (_, keys, *_) in (GOOD | BAD).items()]
    files += [{"path": name} for name in EVIL]
    files += [{"path": "array.npy"}, {"path": "../outside.json"}, {"path": "/etc/hostname"}]
    return ask({"folder": str(folder), "files": files, "allow_pickle": ALLOWED})


@pytest.mark.parametrize("name", GOOD)
def test_a_good_file_has_no_problem(answer: Answer, name: str) -> None:
    assert answer.findings[name].problems == ()


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_said(answer: Answer, name: str) -> None:
    problems = answer.findings[name].problems
    assert BAD[name][2] in (problems[0] if problems else "no problem")


@pytest.mark.parametrize("name", ["page.pth", "cut.json", "ragged.csv", "no.safetensors"])
def test_a_file_that_only_its_name_claims_is_told_with_a_way_out(answer: Answer, name: str) -> None:
    (problem,) = answer.findings[name].problems
    assert f"{{path: {name}, load: bytes}} in job.yaml has it judged anew" in problem


def test_what_needs_more_memory_than_there_is_is_not_called_bad(answer: Answer) -> None:
    """Nothing is known of it; what claims more than it is large is damaged."""
    assert answer.findings["allowed-bomb.pkl"].kind == UNCHECKED
    assert answer.findings["claiming.pth"].kind == "torch"


@pytest.mark.parametrize("name", EVIL)
def test_a_file_that_would_run_code_is_refused_and_names_it(answer: Answer, name: str) -> None:
    (problem,) = answer.findings[name].problems
    assert problem.startswith("would execute code when it is loaded: posix.system. Save")


def test_no_refused_file_has_run(answer: Answer, folder: Path) -> None:
    assert answer.returncode == 0
    assert not (folder / "canary").exists()


def test_the_canary_appears_where_the_evil_file_is_loaded(folder: Path) -> None:
    """So that the test above could fail."""
    pickle.loads((folder / "evil.pkl").read_bytes())
    assert (folder / "canary").exists()
    (folder / "canary").unlink()


@pytest.mark.parametrize("name", ["../outside.json", "/etc/hostname"])
def test_a_path_that_leaves_the_folder_is_refused(answer: Answer, name: str) -> None:
    (problem,) = answer.findings[name].problems
    assert "leads out of" in problem


def test_facts_say_what_a_checkpoint_holds(answer: Answer, folder: Path) -> None:
    for name in ("best.pth", "legacy.pt"):
        finding = answer.findings[name]
        assert finding.kind == "torch"
        assert finding.facts == {
            "size_bytes": (folder / name).stat().st_size,
            "tensors": 3,
            "parameters": 76,
            "bytes": 304,
            "step": 1200,
            "epoch": 3,
        }


def test_facts_say_what_the_others_hold(answer: Answer) -> None:
    facts = {name: finding.facts for name, finding in answer.findings.items()}
    assert facts["metrics.json"]["numbers"] == {"psnr": 31.5, "n": 3}
    logged = {"epoch": 2.0, "loss": 0.25, "step": 4, "eval_loss": 0.5, "best_metric": 0.5}
    assert facts["trainer_state.json"]["numbers"] == logged
    assert facts["rows.jsonl"]["rows"] == 2
    assert (facts["table.csv"]["rows"], facts["table.csv"]["columns"]) == (2, 2)
    assert facts["model.safetensors"]["parameters"] == 3
    assert facts["mask.pth"]["masks"] == ["mask"]
    assert facts["gaps.csv"]["gaps"] == 3
    assert facts["gaps.json"]["gaps"] == facts["gaps.jsonl"]["gaps"] == 1
    assert facts["page.ckpt"]["why_bytes"].startswith("is neither of torch.save nor")
    assert "gaps" not in facts["texts.csv"]
    assert facts["allowed.pkl"]["step"] == 5


def test_kinds_are_told_by_what_is_inside(answer: Answer) -> None:
    kinds = {name: finding.kind for name, finding in answer.findings.items()}
    for name in ("best.pth.tar", "weights", "old-weights.model", "UPPER.PTH", "noise.pth.tar"):
        assert kinds[name] == "torch"
    assert (kinds["unnamed"], kinds["tokenizer"]) == ("safetensors", "json")
    assert (kinds["garbage/.metadata"], kinds["archive.zip"]) == ("sharded", "zip")
    for name in (
        "braces.yaml",
        "notes.txt",
        "other.bin",
        "lookups.bin",
        "hidden/.metadata",
    ):
        assert kinds[name] == "bytes"


def test_every_file_is_named_before_it_is_touched(answer: Answer) -> None:
    said = [line.get("at") or line["finding"]["path"] for line in answer.lines[:-1]]
    assert said[::2] == said[1::2]
    assert len(said) == 2 * (len(GOOD) + len(BAD) + len(EVIL) + 3)


def test_the_last_line_says_who_loaded_and_in_what_sandbox(answer: Answer) -> None:
    last = answer.lines[-1]
    assert last["done"] is True
    assert f"torch {torch.__version__}" in last["loader"]
    assert "no-core-dump" in last["sandbox"]


def test_findings_can_be_written_into_a_receipt(answer: Answer) -> None:
    """Also those about names that are no Unicode."""
    found = tuple(answer.findings.values())
    receipt = CellReceipt("run", "cell", 1, "0" * 64, "2026-01-01T00:00:00.000Z", found)
    document = codec.to_document(receipt)
    assert codec.from_document(CellReceipt, document, "receipt.json") == receipt


@pytest.mark.skipif(HAS_NUMPY, reason="numpy is installed")
def test_without_numpy_its_files_are_a_problem_that_says_so(answer: Answer) -> None:
    (problem,) = answer.findings["array.npy"].problems
    assert problem.startswith("cannot be loaded here: No module named 'numpy'. Install it for /")


@pytest.mark.skipif(not HAS_NUMPY, reason="numpy is not installed")
def test_numpy_files_are_loaded_and_looked_at(tmp_path: Path) -> None:
    import numpy

    numpy.save(tmp_path / "good.npy", numpy.ones((3, 4)))
    numpy.savez_compressed(tmp_path / "good.npz", a=numpy.ones(3), names=numpy.array(["x"]))
    numpy.savez(tmp_path / "nan.npz", a=numpy.zeros(9), b=numpy.array([1, math.nan]))
    numpy.save(tmp_path / "object.npy", numpy.array([{}]), allow_pickle=True)
    cut(lambda path: numpy.save(path, numpy.ones(99)), 0.5)(tmp_path / "cut.npy")
    found = ask_about(tmp_path, *(path.name for path in tmp_path.iterdir())).findings
    assert found["good.npy"].problems == found["good.npz"].problems == ()
    assert found["good.npy"].facts["parameters"] == 12
    assert found["nan.npz"].problems == ("b holds 1 NaN among 2 values",)
    assert found["object.npy"].problems == ()
    assert found["cut.npy"].problems


def test_torch_is_not_imported_for_what_does_not_need_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    answer = ask_about(tmp_path, "a.json")
    assert answer.lines[-1]["loader"] == f"python {platform.python_version()}"


def test_a_file_that_ends_the_child_is_the_last_one_named(tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text("{}")
    pickled(Runs("__import__('os').kill(__import__('os').getpid(), 9)"))(tmp_path / "killer.pkl")
    answer = ask_about(tmp_path, "before.json", "killer.pkl", "before.json", allow=["killer.pkl"])
    assert answer.returncode == -9
    assert answer.lines[-1] == {"at": "killer.pkl"}
    assert answer.findings["before.json"].is_good


def test_what_a_file_prints_does_not_get_into_the_answer(tmp_path: Path) -> None:
    """And it reaches no network: what it may run, it runs inside the sandbox."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        connect = f"__import__('socket').socket().connect_ex({server.getsockname()!r})"
        code = (
            "[print('{\"done\": 1}'), __import__('os').write(1, b'chatter\\n'), "
            f"{{'step': {connect}}}][-1]"
        )
        pickled(Runs(code))(tmp_path / "loud.pkl")
        answer = ask_about(tmp_path, "loud.pkl", allow=["loud.pkl"])
        assert [next(iter(line)) for line in answer.lines] == ["at", "finding", "done"]
        assert '{"done": 1}' in answer.stderr
        assert "chatter" in answer.stderr
        if not {"no-network", "no-tcp"} & set(answer.lines[-1]["sandbox"]):
            pytest.skip("this kernel or container lets a child keep the network")
        assert answer.findings["loud.pkl"].facts["step"] != 0
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "a.json").chmod(0)
    if os.access(tmp_path / "a.json", os.R_OK):
        pytest.skip("this user may read everything")
    (finding,) = ask_about(tmp_path, "a.json").findings.values()
    assert finding.problems == ("cannot be read: Permission denied",)


@pytest.mark.parametrize(
    "request_bytes",
    [b"", b"[]", b'{"folder": "/"}', b'{"folder": "/", "files": [{"path": 3}]}'],
    ids=["empty", "no object", "a field is missing", "a path is a number"],
)
def test_a_request_that_cannot_be_read_is_said(request_bytes: bytes) -> None:
    answer = ask(request_bytes)
    assert (answer.returncode, answer.lines) == (2, [])
    assert "the request on stdin" in answer.stderr
    assert "Traceback" not in answer.stderr
