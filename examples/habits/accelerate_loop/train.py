"""A hand-written loop with accelerate."""

import argparse
import json
import os
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--num_train_epochs", type=int, default=20)
    parser.add_argument("--learning_rate", type=float, default=1e-2)
    parser.add_argument("--max_train_steps", type=int, default=10**9)
    parser.add_argument("--resume_from_checkpoint")
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    x = torch.randn(512, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64, shuffle=True)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    first = 0
    if args.resume_from_checkpoint:
        accelerator.load_state(args.resume_from_checkpoint)
        first = int(args.resume_from_checkpoint.rstrip("/").rpartition("_")[2])
        accelerator.print(f"resumed after epoch {first}")
    steps = 0
    for epoch in range(first + 1, args.num_train_epochs + 1):
        for inputs, targets in loader:
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if steps >= args.max_train_steps:
                break
        time.sleep(0.2)
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))
    if accelerator.is_main_process:
        torch.save(
            accelerator.unwrap_model(model).state_dict(), os.path.join(args.output_dir, "model.pt")
        )
        with open(os.path.join(args.output_dir, "metrics.json"), "w") as file:
            json.dump({"loss": loss.item()}, file)


if __name__ == "__main__":
    main()
