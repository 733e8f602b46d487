"""A script that saves step_1.pt, step_2.pt, ... is killed while it writes one, and resumes."""

from __future__ import annotations

from living import kill, living
from proof import assert_nothing_runs, assert_published_once
from tiny_project import TinyProject

# Each save is a zip, as torch.save writes it. Where it is held it is in the middle of the next one.
TRAIN = """
import json, os, sys, time, zipfile
from pathlib import Path

config, epochs = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
out, resume, step = Path(os.environ["BOXCAR_OUT"]), os.environ["BOXCAR_RESUME"], 0
history = (out / "history.txt").open("a")
print("start", Path(resume).name, file=history, flush=True)
if resume:
    if config.get("refuses") == Path(resume).name:
        raise KeyError("optimizer")
    with zipfile.ZipFile(resume) as archive:
        step = json.loads(archive.read("state"))["step"]
saves = out / "checkpoints"
saves.mkdir(exist_ok=True)
while step < epochs:
    step += 1
    print("step", step, file=history, flush=True)
    with zipfile.ZipFile(saves / f"step_{step}.pt", "w") as archive:
        archive.writestr("state", json.dumps({"step": step}))
    if step == config["hold_at"] and not Path(config["until"]).exists():
        (saves / f"step_{step + 1}.pt").write_bytes(b"PK\\x03\\x04 half of it")
        (out / "held").touch()
        time.sleep(600)
for name in ("model.json", "metrics.json"):
    (out / name).write_text(json.dumps({"steps": step, "score": 0.5}))
"""


def test_a_cell_that_is_killed_while_it_saves_resumes_from_its_newest_complete_checkpoint(project):
    job = {"command": "train.py {cfg} {epochs}", "resume": "checkpoints/step_*.pt"}
    lines = [f"configs/{cell}.json t 12" for cell in ("cut", "refused")]
    run = project({"q1": lines}, **job)
    (run.root / "train.py").write_text(TRAIN)
    run.hold("cut", at=10)
    run.hold("refused", at=10, refuses="step_10.pt")
    run.boxcar("launch", "--no-smoke").ended(0)
    for cell in ("cut", "refused"):
        run.wait_for(f"{cell} to save", (run.out("box-a", cell) / "held").exists)
        run.let_go(cell)
        words = f"-u train.py configs/{cell}.json"
        [script] = [
            one for one in living(run.root) if words in one.words and "attempt" not in one.words
        ]
        kill(script)
    run.boxcar("watch").ended(0)
    assert_published_once(run, ["cut", "refused"])
    steps = [f"step {step}" for step in range(1, 11)]
    assert history(run, "cut") == ["start ", *steps, "start step_10.pt", "step 11", "step 12"]
    assert history(run, "refused") == [
        *["start ", *steps, "start step_10.pt", "start step_9.pt"],
        *["step 10", "step 11", "step 12"],
    ]
    [warning] = run.warnings("q1", "older_checkpoint")
    assert warning["cell"] == "refused"
    assert "KeyError: 'optimizer'" in warning["text"]
    assert "tried once from checkpoints/step_9.pt" in warning["text"]
    assert_nothing_runs(run)


def history(run: TinyProject, cell: str) -> list[str]:
    return (run.out("box-a", cell) / "history.txt").read_text().splitlines()
