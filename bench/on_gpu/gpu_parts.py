"""The parts of `make gpu`. Each gives its rows as it finds them, on the GPU or, dry, on the CPU."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.on_gpu.gpu_scripts import FAILURES, RESUMES, TRAIN
from bench.row import Row, no_value

HERE = Path(__file__).parents[2]
BOXCAR = [sys.executable, "-c", "from boxcar.cli import program; program.run()"]
MIB = 2**20


def is_dry() -> bool:
    return bool(os.environ.get("BOXCAR_GPU_DRY"))


def device() -> str:
    """ "cuda"; dry "cpu". Raises RuntimeError where a GPU is asked for and none is seen."""
    import torch

    if is_dry():
        return "cpu"
    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU here: try it with --dry")
    return "cuda"


def synchronize() -> None:
    import torch

    if not is_dry():
        torch.cuda.synchronize()


def training_on_gpu(folder: Path) -> Iterator[Row]:
    """What the layer adds to a step."""
    from bench import training_on_gpu as bench

    yield from bench.rows(folder, device(), is_small=is_dry())


def stalls(folder: Path) -> Iterator[Row]:
    """How long a save holds up a step."""
    import torch
    from torch import nn

    from boxcar.training import Checkpointer, TrainingState

    size = 16 if is_dry() else 1024  # MiB of weights and two moments
    width = int((size * MIB / 12 / 8) ** 0.5)
    model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(8))).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs = torch.randn(64, width, device=device())

    def step() -> None:
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    state = TrainingState(model=model, optimizer=optimizer)
    checkpointer = Checkpointer(folder / "saves", state)
    took: dict[str, list[float]] = {"step": [], "save": [], "save_async": []}
    for _ in range(4):
        for name, found in took.items():
            step()
            state.step += 1
            synchronize()
            began_s = time.perf_counter()
            if name != "step":
                getattr(checkpointer, name)()
            step()
            synchronize()
            found.append(time.perf_counter() - began_s)
            checkpointer.wait()
    step_s, save_s, stall_s = (statistics.median(times[1:]) for times in took.values())
    yield Row(f"save(), {size} MiB of {device()} tensors", save_s - step_s, "s")
    what = f"a step's stall by save_async(), {size} MiB"
    yield Row(what, stall_s - step_s, "s", save_s - step_s, "save()", most_ratio=0.1)


def precision(folder: Path) -> Iterator[Row]:
    """A step in fp32, in bf16, and compiled."""
    import torch
    from torch import nn

    from boxcar.training import DDPWrapper, DistributedConfig, compile_model

    width, batch = (64, 8) if is_dry() else (2048, 256)

    def measure(policy: str, *, is_compiled: bool = False) -> float:
        torch.manual_seed(0)
        config = DistributedConfig(mixed_precision_policy=policy)
        layers = [part for _ in range(6) for part in (nn.Linear(width, width), nn.ReLU())]
        wrapper = DDPWrapper(nn.Sequential(*layers), config)
        model = wrapper.setup()
        if is_compiled:
            model = compile_model(model, config)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        inputs = torch.randn(batch, width, device=device())
        took = []
        for number in range(13):
            synchronize()
            began_s = time.perf_counter()
            for _ in range(5):
                with wrapper.autocast():
                    loss = model(inputs).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            synchronize()
            if number > 2:
                took.append((time.perf_counter() - began_s) / 5)
        if not torch.isfinite(loss):
            raise RuntimeError(f"the loss in {policy} is {float(loss)}")
        return 1e3 * statistics.median(took)

    plain_ms = measure("fp32")
    yield Row("a step, fp32, fused AdamW", plain_ms, "ms")
    yield Row("a step, bf16", measure("bf16"), "ms", plain_ms, "fp32")
    compiled_ms = measure("bf16", is_compiled=True)
    facts = json.loads(Path(os.environ["BOXCAR_OUT"], "training.json").read_text())
    if not (facts.get("compile") or {}).get("is_compiled"):
        yield no_value("a step, bf16, compiled", f"ran eagerly: {facts.get('compile')}")
    else:
        yield Row("a step, bf16, compiled", compiled_ms, "ms", plain_ms, "fp32")


def cache(folder: Path) -> Iterator[Row]:
    """Latents from mapped files to pinned memory to the GPU."""
    import torch
    from torch import nn

    from boxcar.training import Fingerprint, LatentCache, RankAwareDataLoader

    data = torch.utils.data.TensorDataset(torch.randn(512, 64))
    encoder = nn.Linear(64, 4096).to(device()).eval()
    latents = LatentCache(
        folder / "cache",
        dataset=data,
        encoder=lambda batch: encoder(batch[0].to(device())),
        batch_size=64,
        fingerprint=Fingerprint.of(encoder=encoder, transform="one", data="noise of one seed"),
    ).fill()
    loader = RankAwareDataLoader(latents.dataset(), batch_size=64, num_workers=2)
    began_s, size, pinned = time.perf_counter(), 0, 0
    for batch in loader:
        first = batch if isinstance(batch, torch.Tensor) else batch[0]
        pinned += first.is_pinned() if device() == "cuda" else 0
        size += first.to(device(), non_blocking=True).nbytes
    synchronize()
    took_s = time.perf_counter() - began_s
    loader.close()
    yield Row("latents by a loader with two workers", size / took_s / MIB, "MiB/s")
    yield _of(f"batches in pinned memory, of {len(loader)}", pinned, 0 if is_dry() else len(loader))


def resumes(folder: Path) -> Iterator[Row]:
    """Kills on the device: the weights of a run that was killed, to the bit."""
    script = folder / "train.py"
    script.write_text(RESUMES)

    def run(out: str, **env: str) -> tuple[int, str]:
        return _script([str(script), str(folder / out)], **env)

    code, said = run("whole")
    yield _of("a training on the device: exit code", code, 0, said)
    whole = _weights(folder / "whole")
    code, said = run("killed", KILL_AT="17")
    yield _of("killed at step 17: exit code", code, -signal.SIGKILL, said)
    code, said = run("killed")
    is_other = _weights(folder / "killed") != whole
    yield _of("weights of the killed one differ by bits", is_other, 0, said)
    # While the thread writes a large checkpoint, the platform says that the box goes.
    code, said = run("saving", TERM_IN_SAVE="1", WIDTH="64" if is_dry() else "4096")
    yield _of("SIGTERM in the middle of a save: exit code", code, 85, said)
    code, said = run("saving", WIDTH="64" if is_dry() else "4096")
    yield _of("resumed from that save: exit code", code, 0, said)
    _, said = run("straight", WIDTH="64" if is_dry() else "4096")
    same = _weights(folder / "saving") == _weights(folder / "straight")
    yield _of("weights of it differ by bits", not same, 0, said)


def triage(folder: Path) -> Iterator[Row]:
    """Real failures of the device, and what Boxcar calls them."""
    for name, (script, dry, expected) in FAILURES.items():
        path = folder / f"{name}.py"
        path.write_text(dry if is_dry() else script)
        code, said = _script([str(path)])
        log = folder / f"{name}.log"
        log.write_text(said)
        words = [*BOXCAR, "triage", str(log), "--rc", str(code if code >= 0 else 128 - code)]
        done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            yield no_value(f"triage of {name}", (done.stderr or done.stdout)[-150:])
            continue
        if found["class"] == expected:
            yield Row(f"triage of {name}: {found['id']} {found['class']}", 1, "of 1")
        else:
            why = f"called {found['id']} {found['class']}, not {expected}: {said[-120:]!r}"
            yield no_value(f"triage of {name}", why)


def runs(folder: Path) -> Iterator[Row]:
    """Boxcar itself here: what audit says, gauges, two cells side by side on one card."""
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    (project / "queue.txt").write_text("- one\n- two\n")
    job = {
        "name": "on-gpu",
        "command": "train.py {task} {out}",
        "launcher": "python",
        "nproc_per_node": 1,
        "slots": 2,
        "queues": {"queue.txt": "here"},
        "artifacts": ["m.json"],
        "linger_s": 5,
    }
    (project / "job.yaml").write_text(json.dumps(job))

    def typed(*words: str) -> Any:
        done = subprocess.run(
            [*BOXCAR, *words], cwd=project, capture_output=True, text=True, check=False
        )
        if done.returncode or "--json" not in words:
            return done
        return json.loads(done.stdout)

    rows = typed("audit", "--profile", "local", "--json")["rows"]
    gpu = next(row for row in rows if row["what"] == "GPU")
    if is_dry():
        yield _of("audit names the card", gpu["found"] != "none", 0, gpu["found"])
    else:
        import torch

        named = torch.cuda.get_device_name(0).split()[-1] in gpu["found"]
        yield _of(f"audit names the card: {gpu['found']}", named, 1, gpu["found"])
    launched = typed("launch", "--profile", "local")
    yield _of("launch: exit code", launched.returncode, 0, launched.stderr)
    gauges: dict[str, Any] = {}
    ends_s = time.monotonic() + 50
    while time.monotonic() < ends_s:
        status = typed("status", "--json")
        beat = (status["queues"][0] or {}).get("heartbeat") or {}
        gauges = beat.get("gauges", {}) if "gpus" in beat.get("gauges", {}) else gauges
        if all(cell["state"] == "verified" for cell in status["cells"]):
            break
        time.sleep(1)
    states = [cell["state"] for cell in status["cells"]]
    yield _of("cells verified", states.count("verified"), 2, str(states))
    typed("pull")
    found = [json.loads(path.read_text()) for path in (project / "results").rglob("m.json")]
    if len(found) == 2:
        both_s = min(one["ended"] for one in found) - max(one["began"] for one in found)
        yield Row("two cells side by side on one card", both_s, "s together")
        want = "cpu" if is_dry() else "cuda"
        yield _of("cells on the device", sum(one["device"] == want for one in found), 2)
    shown = len(gauges.get("gpus", []))
    yield _of("GPUs in the heartbeat's gauges", shown, 0 if is_dry() else 1, str(gauges)[:100])


def tests(folder: Path) -> Iterator[Row]:
    """`pytest -m gpu`."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "--timeout=60", "-p"]
    command += ["no:cacheprovider", "tests/training"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    said = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)
    counts = {what: int(number) for number, what in said}
    last = (done.stdout.strip().splitlines() or [done.stderr[-150:]])[-1]
    if not counts:
        yield no_value("tests marked gpu", last)
        return
    what = f"tests marked gpu: passed ({counts.get('skipped', 0)} skipped)"
    yield Row(what, counts.get("passed", 0), "tests")
    failed = counts.get("failed", 0) + counts.get("error", 0)
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    yield _of("tests marked gpu: failed", failed, 0, ", ".join(names))


PARTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    part.__name__: part
    for part in (training_on_gpu, stalls, resumes, triage, runs, precision, cache, tests)
}


def _of(what: str, found: int, expected: int, said: str = "") -> Row:
    """A row of a fact: its value where it is as expected, else the reason."""
    if int(found) == expected:
        return Row(what, int(found), "")
    return no_value(what, f"found {int(found)}, expected {expected}: {said.strip()[-150:]}")


def _script(words: list[str], **more: str) -> tuple[int, str]:
    """Exit code, and all that it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _weights(out: Path) -> str:
    path = out / "end.txt"
    return path.read_text() if path.exists() else f"none in {out.name}"
