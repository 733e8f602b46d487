"""It breaks when it is told to resume from what is not there."""

import argparse
import json
from pathlib import Path

import pace

parser = argparse.ArgumentParser()
parser.add_argument("--config", type=Path, required=True)
parser.add_argument("--output", type=Path, required=True)
parser.add_argument("--resume", type=Path)
parser.add_argument("--lr", type=float)
parser.add_argument("--steps", type=int, default=12)
args = parser.parse_args()

lr = args.lr or json.loads(args.config.read_text())["lr"]
first = json.loads(args.resume.read_text())["step"] if args.resume else 0
print("start at", first)
for step in range(first + 1, args.steps + 1):
    pace.step(step)
    new = args.output / "last.json.new"
    new.write_text(json.dumps({"step": step, "lr": lr}))
    new.replace(args.output / "last.json")
(args.output / "metrics.json").write_text(json.dumps({"lr": lr, "steps": args.steps}))
