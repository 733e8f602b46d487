"""As many examples are: no flag for the output, everything goes where the script is started."""

import argparse
import json
import os
import shutil
from pathlib import Path

import pace

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--resume", default="")
args = parser.parse_args()

samples = json.loads((Path(args.data) / "train.json").read_text())
first = 0
if args.resume and os.path.isfile(args.resume):
    with open(args.resume) as file:
        first = json.load(file)["step"]
    print(f"=> loaded checkpoint {args.resume!r}")
else:
    print(f"=> no checkpoint found at {args.resume!r}")
print("start at", first)
for step in range(first + 1, args.steps + 1):
    pace.step(step)
    with open("checkpoint.json.new", "w") as file:
        json.dump({"step": step, "weights": [args.lr * x for x in samples]}, file)
    os.replace("checkpoint.json.new", "checkpoint.json")
shutil.copyfile("checkpoint.json", "model_best.json")
with open("metrics.json", "w") as file:
    json.dump({"lr": args.lr, "steps": args.steps}, file)
