"""As many examples are: argparse, and everything goes where it is started."""

import argparse
import os
import time

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description="a line through noisy points")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", default="", help="path to the latest checkpoint")
    parser.add_argument("--dry-run", action="store_true", help="a single pass")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    x = torch.randn(512, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(512)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    start = 0
    if args.resume and os.path.isfile(args.resume):
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]
        print(f"=> loaded checkpoint '{args.resume}' (epoch {start})")
    best = float("inf")
    for epoch in range(start, args.epochs):
        for batch in torch.arange(len(x)).split(args.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[batch]).squeeze(1), y[batch])
            loss.backward()
            optimizer.step()
        time.sleep(0.1)
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
        state = {
            "epoch": epoch + 1,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(state, "checkpoint.pth.tar")
        if loss.item() < best:
            best = loss.item()
            torch.save(state, "model_best.pth.tar")
        if args.dry_run:
            break


if __name__ == "__main__":
    main()
