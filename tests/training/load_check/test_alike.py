"""What projects leave, under each way to load it: the same word on the box, in verify, at the gate.

One cell has left all of it. Its box loads it once, and so does the laptop.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from finished_run import FinishedRun, make_run
from left_files import onnx, safetensors, sharded

from boxcar.laptop.release import archives
from boxcar.laptop.results.hashed_before import HashedBefore
from boxcar.laptop.results.judge import how_checked
from boxcar.laptop.teardown.gate import obstacles
from boxcar.laptop.verbs import down
from boxcar.laptop.verbs.verify import verify
from boxcar.shared.files import manifest, receipt
from boxcar.shared.files.plan import BYTES_ONLY, SAFE, TRUSTED, Artifact
from boxcar.shared.files.receipt import CellReceipt, Finding, RunReceipt
from onbox.machine.place import Place
from onbox.result import settle

numpy = pytest.importorskip("numpy")
HAS_JOBLIB = importlib.util.find_spec("joblib") is not None
LOADED, BYTES = "1 loaded", "1 bytes only"
IN_PART = "1 loaded, 1 partly checked"
ONCE_TRUSTED, BAD = "1 trusted (loaded on box-a)", "1 bad"
# What the release has, under the module's name.
CODE = "class Net:\n    pass\n\n\nclass Args:\n    pass\n"
Write = Callable[[Path], object]


@dataclass(frozen=True)
class Left:
    """A file, or a folder's index, that a project leaves; the word for it by how it is loaded.

    `says` is in every problem. A truncated one is bad but as bytes.
    """

    name: str
    write: Write
    words: dict[str, str]
    says: str = ""


def saved(value: Any, **options: Any) -> Write:
    return lambda path: torch.save(value, path, **options)


def pickled(value: Any) -> Write:
    return lambda path: path.write_bytes(pickle.dumps(value))


def dumped(value: Any, **options: Any) -> Write:
    import joblib

    return lambda path: joblib.dump(value, path, **options)


def cut(write: Write) -> Write:
    def write_half(path: Path) -> None:
        write(path)
        os.truncate(path, path.stat().st_size // 2)

    return write_half


def of_module(module: str, **names: Any) -> ModuleType:
    """A module that is only here while the files are written."""
    made = ModuleType(module)
    for name, value in names.items():
        setattr(made, name, value)
        value.__module__, value.__qualname__ = module, name
    sys.modules[module] = made
    return made


class Runs:
    """Leaves a mark where it runs, if it may, and then fails in any case."""

    def __init__(self, canary: str) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        mark = f"__import__('pathlib').Path({self.canary!r}).open('a').write('x')"
        return eval, (f"[{mark}, 1 / 0]",)


def noise(path: Path) -> None:
    path.write_bytes(bytes(range(1, 151)) * 2)


def lightning() -> dict[str, Any]:
    """As Lightning's last.ckpt: plain hyper-parameters, a Path, a partial, a NumPy score."""
    return {
        "epoch": 3, "global_step": 120, "pytorch-lightning_version": "2.5.0",
        "state_dict": {"net.weight": torch.ones(2, 2)},
        "callbacks": {"ModelCheckpoint{'monitor': 'val'}": {
            "best_model_score": torch.tensor(0.5), "dirpath": Path("ckpts"), "best_k_models": {},
        }},
        "optimizer_states": [{"state": {}, "param_groups": [{"lr": 0.1}]}],
        "hyper_parameters": {
            "optimizer": partial(torch.optim.Adam, lr=0.1), "args": Namespace(seed=1),
            "best": numpy.float64(0.5),
        },
    }  # fmt: skip


def lefts(canary: str) -> list[Left]:
    own = of_module("own_models", Net=type("Net", (), {}), Args=type("Args", (), {}))
    gone = of_module("not_shipped", Net=type("Net", (), {}))
    net = own.Net()
    net.weight = torch.ones(2)
    args = own.Args()
    args.lr = 0.1
    everywhere = {SAFE: LOADED, TRUSTED: LOADED, BYTES_ONLY: BYTES}
    plain = everywhere | {TRUSTED: ONCE_TRUSTED}
    code = {SAFE: BAD, TRUSTED: ONCE_TRUSTED, BYTES_ONLY: BYTES}
    bad = {SAFE: BAD, TRUSTED: BAD, BYTES_ONLY: BYTES}
    hparams = lightning() | {"hyper_parameters": {"net": net}}
    return [
        Left("last.ckpt", saved(lightning()), plain),
        Left("own.ckpt", saved(hparams), code, "would execute code"),
        Left("training_args.bin", saved(args), code, "own_models.Args"),
        Left("best.pth.tar", saved({"state_dict": {"w": torch.ones(2)}, "best": 1}), plain),
        Left("noise.pth.tar", noise, bad, "torch"),
        Left("model.pkl", pickled({"estimator": net}), code, "own_models.Net"),
        Left("plain.pkl", pickled({"score": numpy.float32(1)}), plain),
        Left("module.pt", saved(net), code, "own_models.Net"),
        Left("linear.pt", saved(torch.nn.Linear(2, 2)), code, "torch.nn.modules.linear.Linear"),
        Left("elsewhere.pt", saved(gone.Net()), bad, "not_shipped"),
        Left("ckpt/.metadata", sharded, plain),
        Left("model.safetensors", safetensors, everywhere),
        Left("arrays.npz", lambda path: numpy.savez(path, a=numpy.ones(3)), plain),
        Left("model.onnx", onnx, {SAFE: IN_PART, TRUSTED: IN_PART, BYTES_ONLY: BYTES}),
        Left("log.csv", lambda path: path.write_text("epoch,loss\n1,0.5\n2,nan\n"),
             bad | {SAFE: f"{BAD}, 1 gap", TRUSTED: f"{BAD}, 1 gap"}, "ends in"),
        Left("notes.txt", lambda path: path.write_text("x"), dict.fromkeys(everywhere, BYTES)),
        # Under `trusted` it runs, inside what the sandbox keeps it to; what it makes of it is bad.
        Left("evil.pth", saved({"model": Runs(canary)}), bad),
        Left("evil.pkl", pickled(Runs(canary)), bad),
        *(of_joblib(canary, net, code, plain, bad) if HAS_JOBLIB else ()),
    ]  # fmt: skip


def of_joblib(
    canary: str, net: Any, code: dict[str, str], plain: dict[str, str], bad: dict[str, str]
) -> list[Left]:
    return [
        Left("forest.pkl", dumped([numpy.ones(3), net]), code, "own_models.Net"),
        Left("forest.pkl.gz", dumped([numpy.ones(3), net]), code, "own_models.Net"),
        Left("small.joblib", dumped([numpy.ones(3), net], compress=3), code, "own_models.Net"),
        Left("arrays.joblib", dumped({"w": numpy.ones(3)}), plain),
        Left("arrays.joblib.xz", dumped({"w": numpy.ones(3)}), plain),
        Left("evil.joblib", dumped([numpy.ones(3), Runs(canary)], compress=3), bad),
    ]  # fmt: skip


@dataclass(frozen=True)
class Case:
    path: str
    load: str
    word: str
    says: str

    @property
    def is_bad(self) -> bool:
        return self.word.startswith(BAD)


@dataclass(frozen=True)
class Proof:
    cases: dict[str, Case]
    on_box: CellReceipt
    here: RunReceipt
    missing: tuple[str, ...]
    at_gate: tuple[str, ...]
    canary: Path

    def of(self, found: tuple[Finding, ...], path: str) -> Finding:
        return next(finding for finding in found if finding.path == path)


def _cases(canary: str) -> dict[str, tuple[Case, Write]]:
    cases = {}
    for left in lefts(canary):
        for load, word in left.words.items():
            path = f"{load}/{left.name}"
            cases[path] = (Case(path, load, word, left.says), left.write)
            if left.name in ("notes.txt", "log.csv") or "evil" in left.name or word == BAD:
                continue
            path = f"{load}-cut/{left.name}"
            of_cut = BYTES if load == BYTES_ONLY else BAD
            cases[path] = (Case(path, load, of_cut, ""), cut(left.write))
    return cases


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Proof:
    root = tmp_path_factory.mktemp("alike")
    canary = root / "canary"
    written = _cases(str(canary))
    left = root / "left"
    for path, (_, write) in written.items():
        (left / path).parent.mkdir(parents=True, exist_ok=True)
        write(left / path)
    for module in ("own_models", "not_shipped"):
        del sys.modules[module]
    files = {
        path.relative_to(left).as_posix(): path.read_bytes()
        for path in sorted(left.rglob("*")) if path.is_file()
    }  # fmt: skip
    wanted = [Artifact(case.path, load=case.load) for case, _ in written.values()]
    run: FinishedRun = make_run(root, cells=("c",), artifacts=wanted)
    run.publish("c", files)
    on_box = settle.verify(_place(run, root), manifest.read_manifest(run.site.tier.manifest("c")))
    run.copy_here()
    verify(run.project)
    here = receipt.read_run(run.project.results.receipt)
    facts, _ = down._look(run.site, HashedBefore(from_disk=True), None)
    return Proof(
        {path: case for path, (case, _) in written.items()},
        on_box,
        here,
        here.cells[0].missing,
        tuple(row.what for row in obstacles(facts) if row.cell == "c"),
        canary,
    )


def _place(run: FinishedRun, root: Path) -> Place:
    release = root / "release"
    (release / "code").mkdir(parents=True)
    (release / "code" / "own_models.py").write_text(CODE)
    # What a project may call its own: they take no library's place.
    for name in ("json.py", "torch.py", "numpy.py"):
        (release / "code" / name).write_text("raise SystemExit('shadowed')\n")
    (release / "training.zip").write_bytes(archives.build_training())
    plan = replace(run.project.plan, training_python=sys.executable)
    return Place(plan, release, "training.zip", "q1", "box-a", run.site.tier, None)  # type: ignore[arg-type]


def test_each_artifact_has_the_same_word_on_the_box_in_verify_and_at_the_gate(
    proof: Proof,
) -> None:
    unlike = []
    for path, case in proof.cases.items():
        there = proof.of(proof.on_box.findings, path)
        here = proof.of(proof.here.cells[0].findings, path)
        words = {
            how_checked([replace(there, facts=there.facts | _where(there))]),
            how_checked([here]),
        }
        problems = {there.problems, here.problems}
        if words != {case.word} or len(problems) != 1:
            unlike.append((path, case.word, words, problems))
        if case.is_bad and not all(case.says in problem for problem in here.problems):
            unlike.append((path, case.says, here.problems))
        rows = [f"{path}: {problem}" for problem in here.problems]
        if any(row not in proof.missing or row not in proof.at_gate for row in rows):
            unlike.append((path, "is not among what is missing", rows))
    assert unlike == []


def _where(there: Finding) -> dict[str, str]:
    """A box says nothing of where it is."""
    return {"loaded_on": "box-a"} if there.is_trusted and there.is_good else {}


def test_nothing_but_what_is_bad_is_missing(proof: Proof) -> None:
    bad = {path for path, case in proof.cases.items() if case.is_bad}
    assert {row.partition(": ")[0] for row in proof.missing} == bad
    assert {row.partition(": ")[0] for row in proof.at_gate} == bad


def test_an_evil_pickle_runs_on_its_box_alone_and_writes_nothing_there(proof: Proof) -> None:
    marks = proof.canary.read_text() if proof.canary.exists() else ""
    is_held = "read-only" in proof.on_box.extra["sandbox"]
    assert marks in (("",) if is_held else ("", "x", "xx", "xxx"))


def test_what_a_pickle_names_stands_in_the_laptops_receipt(proof: Proof) -> None:
    evil = ["trusted/evil.pth", "trusted/evil.pkl", *["trusted/evil.joblib"] * HAS_JOBLIB]
    for path in evil:
        found = proof.of(proof.here.cells[0].findings, path)
        assert "builtins.eval" in found.facts["globals"]
