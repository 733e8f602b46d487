"""As most research code is: it reads ./data and writes ./checkpoints, with no flag for either."""

import argparse
import json
import os

import pace

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

with open("./data/train.json") as file:
    samples = json.load(file)
os.makedirs("./checkpoints", exist_ok=True)
first = 0
if args.resume:
    with open("./checkpoints/last.json") as file:
        first = json.load(file)["step"]
print("start at", first)
for step in range(first + 1, args.steps + 1):
    pace.step(step)
    with open("./checkpoints/last.new", "w") as file:
        json.dump({"step": step, "weights": [args.lr * x for x in samples]}, file)
    os.replace("./checkpoints/last.new", "./checkpoints/last.json")
with open("metrics.json", "w") as file:
    json.dump({"lr": args.lr, "steps": args.steps}, file)
