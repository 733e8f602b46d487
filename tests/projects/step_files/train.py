"""A file for each save, by torch.save; it resumes from the one that it is given."""

import argparse
import json
from pathlib import Path

import pace
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--resume", type=Path)
args = parser.parse_args()

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
first = 0
if args.resume:
    state = torch.load(args.resume, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
print("start at", first)
(args.out / "checkpoints").mkdir(exist_ok=True)
for step in range(first + 1, args.steps + 1):
    pace.step(step)
    optimizer.zero_grad()
    model(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, args.out / "checkpoints" / f"step_{step}.pt")
torch.save(model.state_dict(), args.out / "final.pt")
(args.out / "metrics.json").write_text(json.dumps({"lr": args.lr, "steps": args.steps}))
