"""In the manner of ultralytics' folders: runs/train/exp, exp2, ..., each with weights/last.pt and best.pt."""

import argparse
import csv
import time
from pathlib import Path

import torch
from torch import nn


def parse_opt():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=str, default="", help="initial weights path")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--project", default="runs/train", help="save to project/name")
    parser.add_argument("--name", default="exp", help="save to project/name")
    parser.add_argument(
        "--resume", nargs="?", const=True, default=False, help="resume most recent training"
    )
    parser.add_argument("--lr0", type=float, default=0.01)
    return parser.parse_args()


def increment_path(path):
    path, n = Path(path), 2
    found = path
    while found.exists():
        found, n = path.with_name(f"{path.name}{n}"), n + 1
    return found


def train(opt):
    checkpoint = torch.load(opt.resume, weights_only=False) if opt.resume else None
    save_dir = (
        Path(opt.resume).parent.parent
        if opt.resume
        else increment_path(Path(opt.project) / opt.name)
    )
    w = save_dir / "weights"
    w.mkdir(parents=True, exist_ok=True)
    last, best = w / "last.pt", w / "best.pt"
    results = save_dir / "results.csv"

    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 256).unsqueeze(1)
    y = torch.sin(3 * x)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr0)
    first, best_fitness = 0, 0.0
    if checkpoint:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first, best_fitness = checkpoint["epoch"] + 1, checkpoint["best_fitness"]
        print(f"Resuming training from epoch {first}", flush=True)

    for epoch in range(first, opt.epochs):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fitness = 1 / (1 + loss.item())
        print(f"{epoch}/{opt.epochs} loss {loss.item():.4f}", flush=True)
        time.sleep(0.15)
        is_new = not results.exists()
        with open(results, "a") as f:
            writer = csv.writer(f)
            if is_new:
                writer.writerow(["epoch", "loss", "fitness"])
            writer.writerow([epoch, loss.item(), fitness])
        best_fitness = max(best_fitness, fitness)
        ckpt = {
            "epoch": epoch,
            "best_fitness": best_fitness,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "opt": vars(opt),
        }
        torch.save(ckpt, last)
        if best_fitness == fitness:
            torch.save(ckpt, best)


if __name__ == "__main__":
    train(parse_opt())
