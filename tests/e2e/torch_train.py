"""A train script for torchrun that is as small as one can be: what a test writes into its project.

Each rank holds at step `hold_at` until a file is there, so that a test can kill it in the middle.
"""

from __future__ import annotations

TORCH_TRAIN = """
import argparse, json, os, time
from pathlib import Path
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
for name in ("config", "task", "epochs", "out"):
    parser.add_argument("--" + name, required=True)
asked = parser.parse_args()
config, out = json.loads(Path(asked.config).read_text()), Path(asked.out)
dist.init_process_group("gloo")
is_first, latest = dist.get_rank() == 0, out / "latest.pt"
saved = torch.load(latest) if latest.exists() else {"step": 0, "weights": torch.zeros(3)}
step, weights = saved["step"], saved["weights"]
if is_first:
    with (out / "history.txt").open("a") as history:
        print("start", step, file=history)
while step < int(asked.epochs):
    ones = torch.ones(3)
    dist.all_reduce(ones)
    weights, step = weights + ones, step + 1
    if is_first:
        torch.save({"step": step, "weights": weights}, out / "new.pt")
        (out / "new.pt").replace(latest)
    while step == config.get("hold_at") and not Path(config["until"]).exists():
        time.sleep(0.05)
if is_first:
    torch.save({"weights": weights}, out / "best.pt")
    (out / "metrics.json").write_text(json.dumps({"steps": step, "sum": weights.sum().item()}))
dist.destroy_process_group()
"""
TORCH_JOB = {
    "launcher": "torchrun",
    "artifacts": [{"path": "best.pt", "keys": ["weights"]}, "metrics.json"],
    "resume": "latest.pt",
    "env": {"OMP_NUM_THREADS": "1"},
}
