"""The PDE cells train for real: fetched, encoded once, killed, resumed, in a small /dev/shm."""

from __future__ import annotations

import ctypes
import importlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ranks_at_work import RanksFailed, free_port, run_ranks

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

ROOT = Path(__file__).parents[2]
CODE = ROOT / "examples" / "pde"
MIB = 1024 * 1024
SMALL = {"batch": 8, "layers": 1, "workers": 0, "compile": False}
SHORT = ("--epochs", "4")
NAMES = {path.stem for path in CODE.glob("*.py")} | {"solvers"}


@pytest.fixture(scope="module", autouse=True)
def example() -> Iterator[None]:
    """The example's modules by their plain names, which are gone again for the other tests."""
    sys.path.insert(0, str(CODE))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    sys.path.remove(str(CODE))
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        sys.modules.pop(name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, example: None) -> Path:
    """Generated files, a data.json that finds them, and the box's data folder."""
    folder = tmp_path_factory.mktemp("pde")
    generate(folder, samples=64)
    return folder


def generate(folder: Path, samples: int) -> None:
    """All three data sets at 32 points, and the spec to fetch them by."""
    words = ["--samples", str(samples), "--resolution", "32", "--out", str(folder / "made")]
    assert importlib.import_module("generate").main(words) == 0
    spec = json.loads((CODE / "data.json").read_text())
    spec["patterns"] = [f"file://{folder}/made/{{task}}_{{split}}.pt"]
    (folder / "data.json").write_text(json.dumps(spec))


def config(place: Path, cell: str, **changed: Any) -> Path:
    """The example's config of a cell, smaller."""
    values = yaml.safe_load((CODE / "configs" / f"{cell}.yaml").read_text()) | SMALL | changed
    path = place / f"{cell}{len(list(place.glob('*.yaml')))}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def words_of(place: Path, cfg: Path, out: Path, *more: str) -> list[str]:
    return ["--data", str(place / "data.json"), "--config", str(cfg), "--out", str(out), *more]


def train(words: list[str], at: int = -1, sent: int = 0) -> None:
    """One rank of a cell, which gets a signal before a step; it leaves with the exit code."""
    sys.path.insert(0, str(CODE))
    sys.argv = ["train.py", *words]
    script, cell = importlib.import_module("train"), importlib.import_module("cell")
    whole_step = cell.Cell.train_step

    def step(self: Any) -> Any:
        if self.state.step == at:
            os.kill(os.getpid(), sent)
        return whole_step(self)

    cell.Cell.train_step = step
    code = script.main()
    importlib.import_module("boxcar.training.progress").flush()
    if code:
        sys.exit(code)


def run(place: Path, world: int, words: list[str], at: int = -1, sent: int = 0) -> None:
    """Raises RanksFailed with the exit codes and logs where one is not 0."""
    run_ranks(world, train, words, at, sent, env=environment(place, words))


def environment(place: Path, words: list[str]) -> dict[str, str]:
    """What the agent would set."""
    out = words[words.index("--out") + 1]
    return {"BOXCAR_DATA_DIR": str(place / "box"), "BOXCAR_OUT": out}


def load(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=True)


def metrics(out: Path) -> dict[str, Any]:
    return json.loads((out / "metrics.json").read_text())


@pytest.fixture(scope="module")
def uninterrupted(place: Path) -> tuple[Path, Path]:
    """A short Burgers cell on one rank, and its config."""
    cfg, out = config(place, "burgers1d"), place / "uninterrupted"
    run(place, 1, words_of(place, cfg, out, *SHORT))
    return out, cfg


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_every_queue_line_names_a_config_that_holds_its_tasks() -> None:
    lines = [line.split() for line in (CODE / "queue.txt").read_text().splitlines()]
    cells = [line for line in lines if line[0] != "#"]
    assert {Path(cfg).stem for cfg, *_ in cells} == {p.stem for p in CODE.glob("configs/*.yaml")}
    for cfg, tasks, epochs in cells:
        assert module("config").load(CODE / cfg).tasks == tasks.split("+")
        assert int(epochs) > 0


def test_a_wrong_config_is_told_in_one_go_with_each_key(tmp_path: Path) -> None:
    from boxcar.shared.errors import InputError

    cfg = tmp_path / "typo.yaml"
    cfg.write_text("tasks: [burgers1d, heat]\nbatch: 0\nlr: 1\nlayer: 3\npatch: true\n")
    with pytest.raises(InputError) as caught:
        module("config").load(cfg)
    said = str(caught.value)
    for part in ("'layers' is missing", "did you mean 'layers'?", "found ['burgers1d', 'heat']"):
        assert part in said
    assert "'batch' should be above 0, found 0" in said
    assert "'patch' should be int, found True" in said
    assert "'lr'" not in said


def test_each_token_holds_its_patch_and_comes_back_to_its_place(place: Path) -> None:
    data, models = module("data"), module("models")
    for task in ("advection1d", "darcy2d"):
        pairs = data.Pairs(place / "made" / f"{task}_train.pt")
        encoder = models.Encoder(pairs.inputs, patch=8)
        tokens, targets = encoder((pairs.inputs[:2], pairs.targets[:2]))
        assert tokens.shape == (2, 4 if task == "advection1d" else 16, models.LATENT)
        assert torch.equal(targets, pairs.targets[:2])
        decoder = models.Decoder(pairs.targets, patch=8)
        for weight in decoder.parameters():
            torch.nn.init.zeros_(weight)
        assert torch.equal(decoder(tokens), decoder.mean.expand_as(targets))
    # A token's own field lies where the patch was: only the last one of the last row differs.
    decoder.out[0].bias.data.fill_(1)
    decoder.out[1].weight.data.fill_(1)
    marked = torch.zeros_like(tokens)
    decoder.out[0].weight.data.fill_(1)
    decoder.out[0].bias.data.zero_()
    marked[:, -1, 0] = 1
    where = (decoder(marked) != decoder.mean)[0, 0].nonzero()
    assert where.min() >= 24


def test_the_trivial_answer_is_the_mean_field_of_training(
    place: Path, uninterrupted: tuple[Path, Path]
) -> None:
    out, _ = uninterrupted
    train_fields = load(place / "made" / "burgers1d_train.pt")["targets"]
    fields = load(place / "made" / "burgers1d_test.pt")["targets"]
    off = (fields - train_fields.mean(0)).flatten(1).norm(dim=1) / fields.flatten(1).norm(dim=1)
    found = metrics(out)
    assert found["error_of_the_mean_field"]["burgers1d"] == pytest.approx(float(off.mean()))
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    errors = [line["error_burgers1d"] for line in lines if "error_burgers1d" in line]
    assert len(errors) == 4
    assert min(errors) == pytest.approx(found["best_error_on_val"])
    assert errors[-1] < errors[0]
    facts = json.loads((out / "training.json").read_text())
    assert (facts["effective_batch"], len(facts["cache"])) == (8, 3)


def test_a_cell_that_was_stopped_and_then_killed_ends_bit_equal_to_an_uninterrupted_one(
    place: Path, tmp_path: Path, uninterrupted: tuple[Path, Path]
) -> None:
    reference, cfg = uninterrupted
    words = words_of(place, cfg, tmp_path, *SHORT)
    with pytest.raises(RanksFailed) as stopped:
        run(place, 1, words, 5, signal.SIGTERM)
    assert stopped.value.codes == [85]
    assert load(tmp_path / "latest.pth")["step"] == 6
    with pytest.raises(RanksFailed) as killed:
        run(place, 1, words, 20, signal.SIGKILL)
    assert killed.value.codes == [-signal.SIGKILL]
    # The save of step 16 may have been killed in its thread: then it goes on from step 6 again.
    assert load(tmp_path / "latest.pth")["step"] in (6, 16)
    run(place, 1, words)
    assert_same_end(tmp_path, reference)


def assert_same_end(out: Path, reference: Path) -> None:
    """Bit for bit: the best weights, and the last ones with the optimizer's memory."""
    for name in ("best.pth", "latest.pth"):
        ended, expected = load(out / name), load(reference / name)
        assert ended["model"].keys() == expected["model"].keys()
        for key, value in expected["model"].items():
            assert torch.equal(ended["model"][key], value), f"{name}: {key} differs"
    moments = load(reference / "latest.pth")["optimizer"]["state"]
    for number, values in load(out / "latest.pth")["optimizer"]["state"].items():
        assert all(torch.equal(values[key], moments[number][key]) for key in values)
    assert metrics(out) == metrics(reference)


def test_a_finished_cell_writes_its_artifacts_again_and_encodes_nothing_again(
    place: Path, uninterrupted: tuple[Path, Path]
) -> None:
    out, cfg = uninterrupted
    latents = place / "box" / "pde-latents"
    before = (out / "best.pth").read_bytes(), metrics(out), shards(latents)
    (out / "best.pth").unlink()
    (out / "metrics.json").unlink()
    run(place, 1, words_of(place, cfg, out, *SHORT))
    assert ((out / "best.pth").read_bytes(), metrics(out), shards(latents)) == before


def shards(latents: Path) -> dict[str, int]:
    """Each Burgers shard, with the time when it was written."""
    found = latents.glob("burgers1d_*/*/shard-*")
    return {str(path.relative_to(latents)): path.stat().st_mtime_ns for path in found}


def test_files_that_are_nowhere_end_the_cell_with_1_and_the_places_that_were_asked(
    place: Path, tmp_path: Path
) -> None:
    spec = json.loads((place / "data.json").read_text())
    (tmp_path / "data.json").write_text(
        json.dumps(spec | {"patterns": ["file:///no/{task}_{split}.pt"]})
    )
    cfg = config(place, "burgers1d")
    words = words_of(tmp_path, cfg, tmp_path / "out", *SHORT)
    with pytest.raises(RanksFailed) as failed:
        run(tmp_path, 1, words)
    assert failed.value.codes == [1]
    assert "not found: burgers1d train\n  file:///no/burgers1d_train.pt" in failed.value.logs[0]
    assert "Traceback" not in failed.value.logs[0]


# --- two tasks, two ranks, six workers, a /dev/shm that is smaller than the cache


def one_of_two(rank: int, port: int, words: list[str], done: Path) -> None:
    os.environ |= {name: str(rank) for name in ("RANK", "LOCAL_RANK")}
    os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), "2")
    os.environ |= {"MASTER_PORT": str(port)}
    try:
        train(words)
        (done / f"done_{rank}").touch()
    finally:
        os._exit(0 if (done / f"done_{rank}").exists() else 1)


def in_a_small_shm(size_mib: int, words: list[str], done: Path) -> int | None:
    """The most bytes that two ranks had in /dev/shm; None where it cannot be made small."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursive_private = 0x20000, 0x44000
    if (
        libc.unshare(new_mounts)
        or libc.mount(None, b"/", None, recursive_private, None)
        or libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, f"size={size_mib}m".encode())
    ):
        return None
    fork, port = multiprocessing.get_context("fork"), free_port()
    both = [fork.Process(target=one_of_two, args=(n, port, words, done)) for n in range(2)]
    for one in both:
        one.start()
    most_bytes = 0
    while any(one.is_alive() for one in both):
        disk = os.statvfs("/dev/shm")
        most_bytes = max(most_bytes, (disk.f_blocks - disk.f_bfree) * disk.f_frsize)
        if any(one.exitcode for one in both):  # it would be waited for
            for one in both:
                one.kill()
        time.sleep(0.005)
    return most_bytes


def cache_bytes(place: Path, *tasks: str) -> int:
    found = (place / "box" / "pde-latents").glob("*/*/shard-*")
    return sum(p.stat().st_size for p in found if p.parts[-3].startswith(tasks))


def check_two_tasks(place: Path, tmp_path: Path, size_mib: int, patch: int) -> None:
    cfg = config(place, "two_task_ddp", patch=patch, workers=6)
    alone = config(place, "two_task_ddp", patch=patch)
    words = ("--epochs", "2", "--limit-batches", "3")
    small = words_of(place, cfg, tmp_path / "two", *words)
    env = environment(place, small)
    [most_bytes] = run_ranks(1, in_a_small_shm, size_mib, small, tmp_path, env=env)
    if most_bytes is None:
        pytest.skip("no mounts of one's own are permitted here")
    assert all((tmp_path / f"done_{n}").exists() for n in range(2))
    assert cache_bytes(place, "advection1d", "darcy2d") > 2 * size_mib * MIB
    assert most_bytes < size_mib * MIB / 2
    run(place, 1, words_of(place, alone, tmp_path / "one", *words))
    two, one = metrics(tmp_path / "two"), metrics(tmp_path / "one")
    assert (two["world_size"], one["world_size"]) == (2, 1)
    assert two["train_loss"] == pytest.approx(one["train_loss"], rel=1e-3)
    assert two["error"] == pytest.approx(one["error"], rel=1e-3)


def test_two_tasks_on_two_ranks_with_six_workers_end_like_one_rank_in_a_small_dev_shm(
    place: Path, tmp_path: Path
) -> None:
    check_two_tasks(place, tmp_path, size_mib=4, patch=2)


@pytest.mark.faults
def test_the_same_with_64_mb_and_a_cache_of_more_than_twice_that(
    tmp_path: Path, example: None
) -> None:
    generate(tmp_path, samples=256)
    check_two_tasks(tmp_path, tmp_path, size_mib=64, patch=1)


@pytest.mark.faults
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("cell", ["two_task_ddp", "burgers1d_reduce_overhead"])
def test_torchrun_with_two_ranks_compiles_and_reduce_overhead_becomes_default(
    cell: str, place: Path, tmp_path: Path
) -> None:
    cfg = config(place, cell, compile=True, workers=2)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = words_of(place, cfg, tmp_path, "--epochs", "2", "--limit-batches", "3")
    ended = subprocess.run(
        [sys.executable, *launcher, "train.py", *words],
        cwd=CODE,
        env=os.environ | {"OMP_NUM_THREADS": "1", "BOXCAR_DATA_DIR": str(place / "box")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    choice = json.loads((tmp_path / "training.json").read_text())["compile"]
    assert (choice["is_compiled"], choice["mode"]) == (True, "default"), choice
    became = re.search("compile mode 'reduce-overhead' became 'default'", ended.stderr)
    assert bool(became) == cell.endswith("reduce_overhead")
