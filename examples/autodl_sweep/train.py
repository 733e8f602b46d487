"""Two spirals, told apart by a small network. It knows nothing of Boxcar: what it needs to resume
lies in {out}, and it takes words like lr=0.1 on top of its config.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch

BATCH = 64


def spirals(points: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`points` in the plane (points, 2), and which of the two arms each is on (points,)."""
    dice = torch.Generator().manual_seed(seed)
    turn = torch.rand(points, generator=dice).sqrt() * 3 * math.pi
    arm = torch.arange(points) % 2
    angle = turn + arm * math.pi
    noise = 0.1 * torch.randn(points, 2, generator=dice)
    return torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / 10 + noise, arm


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--limit-batches", type=int, default=10**9)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE on top of the config")
    return parser.parse_args()


def save(out: Path, name: str, state: dict[str, object]) -> None:
    """Whole or not at all: who is killed here leaves the one before."""
    torch.save(state, out / f"{name}.new")
    (out / f"{name}.new").replace(out / name)


def main() -> None:
    args = settings()
    config = json.loads(args.config.read_text())
    pairs = (word.split("=") for word in args.overrides)
    config |= {key: json.loads(value) for key, value in pairs}
    torch.manual_seed(config["seed"])
    model = torch.nn.Sequential(
        torch.nn.Linear(2, config["width"]), torch.nn.Tanh(),
        torch.nn.Linear(config["width"], config["width"]), torch.nn.Tanh(),
        torch.nn.Linear(config["width"], 2),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    first = 0
    if args.resume:
        state = torch.load(args.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
    points, arms = spirals(2000, config["seed"])
    for epoch in range(first, args.epochs):
        for batch in torch.arange(len(points)).split(BATCH)[: args.limit_batches]:
            loss = torch.nn.functional.cross_entropy(model(points[batch]), arms[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}", flush=True)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(args.out, "latest.pth", state | {"epoch": epoch + 1})
    test_points, test_arms = spirals(1000, config["seed"] + 1)
    with torch.no_grad():
        accuracy = (model(test_points).argmax(1) == test_arms).float().mean().item()
    save(args.out, "best.pth", {"model": model.state_dict(), "epoch": args.epochs})
    (args.out / "metrics.json").write_text(json.dumps({"accuracy": accuracy}))


if __name__ == "__main__":
    main()
