"""Flags alone: no config, no task, and it looks for its checkpoint itself."""

import argparse
import json
from pathlib import Path

import pace

parser = argparse.ArgumentParser()
parser.add_argument("--save-dir", type=Path, required=True)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--dry-run", action="store_true")
args = parser.parse_args()

steps = 2 if args.dry_run else 12
last = args.save_dir / "last.json"
first = json.loads(last.read_text())["step"] if last.exists() else 0
print("start at", first)
for step in range(first + 1, steps + 1):
    pace.step(step)
    new = args.save_dir / "last.json.new"
    new.write_text(json.dumps({"step": step}))
    new.replace(last)
(args.save_dir / "metrics.json").write_text(json.dumps({"lr": args.lr, "steps": steps}))
