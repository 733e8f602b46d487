"""Scripts in people's habits, as short as they can be read. None of them is ever run."""

from __future__ import annotations

import textwrap
from pathlib import Path

from boxcar.laptop.init import draft as drafts
from boxcar.laptop.init import folder, readme, script
from boxcar.laptop.init.draft import Draft
from boxcar.laptop.init.folder import Folder
from boxcar.laptop.init.script import Script

# Writes beside itself, and only if it is told to save.
BESIDE = """
import argparse, torch
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-model", action="store_true")
    args = parser.parse_args()
    for epoch in range(args.epochs):
        loss.backward()
    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")
if __name__ == "__main__":
    main()
"""
# A folder of its own, a config, steps, a flag to resume, and a group of ranks.
STEPS = """
import argparse, os, torch
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
parser.add_argument("--output-dir", default="out")
parser.add_argument("--resume", default=None)
parser.add_argument("--max-steps", type=int, default=1000)
parser.add_argument("--dist-backend", default="nccl")
args = parser.parse_args()
begin = torch.load(args.resume)["step"] if args.resume else 0
dist.init_process_group(args.dist_backend)
def save(step, name="final.pt"):
    folder = os.path.join(args.output_dir, "checkpoints")
    torch.save({}, os.path.join(folder, f"step_{step:06d}.pt"))
    torch.save({}, os.path.join(args.output_dir, name))
for step in range(args.max_steps):
    loss.backward()
"""
# Globals that a file of their own replaces.
SETTINGS = """
import os, torch
out_dir = "out"
init_from = "scratch"
max_iters = 600000
backend = "nccl"
exec(open("configurator.py").read())
iter_num = 0
if init_from == "resume":
    torch.load(os.path.join(out_dir, "ckpt.pt"))
while True:
    loss.backward()
    torch.save({}, os.path.join(out_dir, "ckpt.pt"))
"""
HYDRA = """
import hydra, lightning as L
@hydra.main(version_base="1.3", config_path="../configs", config_name="train.yaml")
def main(cfg):
    trainer = hydra.utils.instantiate(cfg.trainer)
    trainer.fit(model, ckpt_path=cfg.get("ckpt_path"))
if __name__ == "__main__":
    main()
"""
CLI = "from lightning.pytorch.cli import LightningCLI\nLightningCLI(Model, Data)\n"
HF = """
from transformers import HfArgumentParser, Trainer, TrainingArguments
args, = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
trainer = Trainer(model, args)
trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
"""
ACCELERATE = """
import argparse
from accelerate import Accelerator
parser = argparse.ArgumentParser()
parser.add_argument("--output_dir")
parser.add_argument("--num_train_epochs", type=int, default=3)
accelerator = Accelerator()
accelerator.backward(loss)
"""
POSITIONS = """
import sys
out, lr = sys.argv[1], float(sys.argv[2])
for epoch in range(3):
    train()
"""


def read(tmp_path: Path, source: str, name: str = "train.py") -> Script:
    """The script with this source, in a folder of its own."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    found = script.read_script(tmp_path, path)
    assert found
    return found


def project(tmp_path: Path, **files: str) -> Folder:
    """A folder with these files, `a__b_py` for a/b.py."""
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder.read_folder(tmp_path)


def draft(found: Folder, path: str = "") -> Draft:
    """Of the script at this path, else of the likeliest."""
    path = path or found.scripts[0]
    one = script.read_script(found.root, found.root / path)
    assert one
    return drafts.draft_job(found, one, "run", readme.first_of(found.typed, path))
