"""As the transformers' Trainer: --output_dir with checkpoint-N/ in it, trainer_state.json last."""

import argparse
import json
import shutil
from pathlib import Path

import pace
import torch
from safetensors.torch import load_file, save_file

parser = argparse.ArgumentParser()
parser.add_argument("--output_dir", type=Path, required=True)
parser.add_argument("--learning_rate", type=float, required=True)
parser.add_argument("--max_steps", type=int, default=12)
parser.add_argument("--save_total_limit", type=int, default=2)
parser.add_argument("--resume_from_checkpoint", type=Path)
args = parser.parse_args()


def save(folder, step):
    folder.mkdir(exist_ok=True)
    save_file({"weight": weight}, folder / "model.safetensors")
    torch.save({"lr": args.learning_rate}, folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))


weight, first = torch.zeros(4), 0
if args.resume_from_checkpoint:
    folder = args.resume_from_checkpoint
    weight = load_file(folder / "model.safetensors")["weight"]
    first = json.loads((folder / "trainer_state.json").read_text())["global_step"]
print("start at", first)
for step in range(first + 1, args.max_steps + 1):
    pace.step(step)
    weight = weight + args.learning_rate
    save(args.output_dir / f"checkpoint-{step}", step)
    shutil.rmtree(args.output_dir / f"checkpoint-{step - args.save_total_limit}", True)
save(args.output_dir, args.max_steps)
metrics = {"lr": args.learning_rate, "steps": args.max_steps}
(args.output_dir / "metrics.json").write_text(json.dumps(metrics))
