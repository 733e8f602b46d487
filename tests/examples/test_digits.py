"""The example trains for real: its cells start, stop, go on and end as its README promises."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from forked_script import ForkedScript

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
CODE = ROOT / "examples" / "digits"
PLAIN = (sys.executable,)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
ENV = os.environ | {"OMP_NUM_THREADS": "1"}
# Four steps an epoch; with noise, so that a lost RNG state would show.
DETECTION = ("--config", "configs/det_two_ranks.yaml", "--task", "detection")
SHORT = ("--epochs", "6", "--limit-batches", "4")

Import = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def module() -> Iterator[Import]:
    """Import one of the example's modules; their plain names are gone again for the other tests."""
    before = set(sys.modules)
    sys.path.insert(0, str(CODE))
    yield importlib.import_module
    sys.path.remove(str(CODE))
    for name in [path.stem for path in CODE.glob("*.py") if path.stem not in before]:
        sys.modules.pop(name, None)


def run(*words: str | Path, launcher: tuple[str, ...] = PLAIN) -> subprocess.CompletedProcess[str]:
    """One cell, to its end."""
    command, pipe = [*launcher, "train.py", *map(str, words)], subprocess.PIPE
    with _start(launcher)(
        command, cwd=CODE, env=ENV, stdout=pipe, stderr=pipe, text=True
    ) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _start(launcher: tuple[str, ...]) -> type[subprocess.Popen[str]]:
    return ForkedScript if launcher == PLAIN else subprocess.Popen


def interrupt(out: Path, epoch: int, sent: signal.Signals, *launcher: str) -> int:
    """Start the short detection cell, send a signal when it says that an epoch is done; its end."""
    launcher, pipe = launcher or PLAIN, subprocess.PIPE
    command = [*launcher, "train.py", *DETECTION, *SHORT, "--out", str(out)]
    start = _start(launcher)
    with start(command, cwd=CODE, env=ENV, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"epoch {epoch}/"):
                process.send_signal(sent)
                break
        process.stdout.read()
    return process.returncode


def load(path: Path) -> dict[str, Any]:
    return torch.load(path, weights_only=True)


def metrics(out: Path) -> dict[str, Any]:
    return json.loads((out / "metrics.json").read_text())


def assert_same_end(out: Path, reference: Path) -> None:
    """Bit for bit: the best weights, and the last ones with the optimizer's memory."""
    for name in ("best.pth", "latest.pth"):
        ended, expected = load(out / name), load(reference / name)
        for key, value in expected["model"].items():
            assert torch.equal(ended["model"][key], value), f"{name}: {key} differs"
    moments = load(reference / "latest.pth")["optimizer"]["state"]
    for number, values in load(out / "latest.pth")["optimizer"]["state"].items():
        assert all(torch.equal(values[key], moments[number][key]) for key in values)
    assert metrics(out) | {"seconds": 0} == metrics(reference) | {"seconds": 0}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short detection cell, trained on one rank without an interruption."""
    out = tmp_path_factory.mktemp("uninterrupted")
    ended = run(*DETECTION, *SHORT, "--out", out)
    assert ended.returncode == 0, ended.stderr
    return out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The same cell after a SIGTERM in its second epoch, and its exit code."""
    out = tmp_path_factory.mktemp("stopped")
    return out, interrupt(out, 1, signal.SIGTERM)


def test_the_data_are_1797_digits_and_no_digit_is_in_both_parts(module: Import) -> None:
    data = module("data")
    digits = data.load_digits()
    train, val = data.split(digits, samples=1797)
    assert digits.images.shape == (1797, 1, 8, 8)
    assert digits.labels.unique().tolist() == list(range(10))
    assert len(train.labels) + len(val.labels) == 1797
    both = torch.cat([train.images, val.images]).flatten(1).sum(1).sort().values
    assert torch.equal(both, digits.images.flatten(1).sum(1).sort().values)


def test_the_same_seed_draws_the_same_scenes_and_each_box_holds_ink(module: Import) -> None:
    data = module("data")
    digits = data.load_digits()
    first, again = (
        data.detection_scenes(digits, torch.Generator().manual_seed(7)) for _ in range(2)
    )
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    boxes = first.targets[first.targets[..., 4] >= 0]
    assert bool((boxes[:, 2:4] > boxes[:, :2]).all())
    assert float((boxes[:, 2:4] - boxes[:, :2]).max()) < 22


def test_every_queue_line_names_a_config_that_its_task_understands(module: Import) -> None:
    config = module("config")
    lines = [
        line.split()
        for queue in sorted((ROOT / "queues").glob("*.txt"))
        for line in queue.read_text().splitlines()
        if not line.startswith("#")
    ]
    assert {Path(cfg).stem for cfg, *_ in lines} == {p.stem for p in CODE.glob("configs/*.yaml")}
    for cfg, task, epochs in lines:
        config.load(CODE / cfg, task)
        assert int(epochs) > 0


def test_map50_is_1_for_perfect_boxes_and_counts_each_box_once(module: Import) -> None:
    metric = module("metrics")
    boxes = torch.tensor([[0.0, 0, 10, 10], [20, 20, 30, 30]])
    targets = torch.cat([boxes, torch.tensor([[3.0], [3.0]])], dim=1).unsqueeze(0)

    def average_precision(candidates: list[list[float]]) -> float:
        found = torch.tensor([candidates])
        overlaps = metric.iou(found[..., :4], targets[..., :4])
        return metric.average_precision(found, overlaps, targets, 3)

    first, second = boxes.tolist()
    assert average_precision([[*first, 3, 0.9], [*second, 3, 0.8]]) == 1
    assert average_precision([[*first, 3, 0.9], [*first, 3, 0.8]]) == 0.5
    # A wrong box above the second right one: recall 1/2 at precision 1, recall 1 at precision 2/3.
    wrong = [40.0, 0, 50, 10, 3, 0.8]
    mixed = average_precision([[*first, 3, 0.9], wrong, [*second, 3, 0.7]])
    assert mixed == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert average_precision([[*first, 4, 0.9]]) == 0


def test_an_unknown_key_exits_2_with_a_sentence_that_names_it(tmp_path: Path) -> None:
    cfg = tmp_path / "typo.yaml"
    cfg.write_text((CODE / "configs" / "recon_baseline.yaml").read_text() + "latnet: 8\n")
    ended = run("--config", cfg, "--task", "reconstruction", *SHORT, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert f"{cfg}: unknown key 'latnet' (did you mean 'latent'?)" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.faults
def test_sigterm_saves_a_loadable_state_within_the_epoch_and_exits_85(
    stopped: tuple[Path, int],
) -> None:
    out, code = stopped
    assert code == 85
    saved = load(out / "latest.pth")
    assert {"model", "optimizer", "scheduler", "rng", "best"} <= saved.keys()
    assert saved["loader"]["batches_done"] > 0
    assert not (out / "metrics.json").exists()


@pytest.mark.faults
def test_a_cell_that_was_stopped_and_then_killed_ends_bit_equal_to_an_uninterrupted_one(
    uninterrupted: Path, stopped: tuple[Path, int]
) -> None:
    out, _ = stopped
    assert interrupt(out, 2, signal.SIGKILL) == -signal.SIGKILL
    assert not (out / "metrics.json").exists()
    ended = run(*DETECTION, *SHORT, "--out", out)
    assert ended.returncode == 0, ended.stderr
    assert re.search("resumed after epoch [2-5]/6", ended.stdout)
    assert_same_end(out, uninterrupted)


@pytest.mark.faults
def test_two_ranks_write_the_artifacts_and_end_like_one_rank(
    uninterrupted: Path, tmp_path: Path
) -> None:
    ended = run(*DETECTION, *SHORT, "--out", tmp_path, launcher=(*TORCHRUN, "2"))
    assert ended.returncode == 0, ended.stderr
    assert {"model", "epoch"} <= load(tmp_path / "best.pth").keys()
    ours, theirs = metrics(tmp_path), metrics(uninterrupted)
    assert (ours["world_size"], theirs["world_size"]) == (2, 1)
    assert ours["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-4)


@pytest.mark.faults
def test_two_ranks_stop_together_and_go_on_together(uninterrupted: Path, tmp_path: Path) -> None:
    # torchrun itself ends with 1, whatever its workers say.
    assert interrupt(tmp_path, 1, signal.SIGTERM, *TORCHRUN, "2") == 1
    assert load(tmp_path / "latest.pth")["loader"]["batches_done"] > 0
    ended = run(*DETECTION, *SHORT, "--out", tmp_path, launcher=(*TORCHRUN, "2"))
    assert ended.returncode == 0, ended.stderr
    assert metrics(tmp_path)["train_loss"] == pytest.approx(
        metrics(uninterrupted)["train_loss"], rel=0.01
    )


@pytest.mark.faults
def test_a_finished_cell_writes_the_same_artifacts_again(uninterrupted: Path) -> None:
    before = {name: (uninterrupted / name).read_bytes() for name in ("best.pth", "metrics.json")}
    (uninterrupted / "best.pth").unlink()
    ended = run(*DETECTION, *SHORT, "--out", uninterrupted)
    assert ended.returncode == 0, ended.stderr
    assert {name: (uninterrupted / name).read_bytes() for name in before} == before


@pytest.mark.faults
@pytest.mark.parametrize(
    ("cell", "task", "metric", "highest"),
    [
        pytest.param("recon_no_aug", "reconstruction", "psnr_db", 50, id="psnr"),
        pytest.param("seg_no_skip", "segmentation", "dice", 1, id="dice"),
    ],
)
def test_a_cut_checkpoint_is_said_and_the_metrics_are_numbers_in_range(
    cell: str, task: str, metric: str, highest: float, tmp_path: Path
) -> None:
    (tmp_path / "latest.pth").write_bytes(b"PK\x03\x04 the beginning of a zip file")
    words = ("--config", f"configs/{cell}.yaml", "--task", task, "--out", tmp_path)
    ended = run(*words, "--epochs", "2", "--limit-batches", "2")
    assert ended.returncode == 0, ended.stderr
    assert "starting from scratch" in ended.stderr
    assert "Traceback" not in ended.stderr
    values = metrics(tmp_path)
    assert 0 < values[metric] < highest
    assert all(math.isfinite(value) for key, value in values.items() if key != "task")
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]
