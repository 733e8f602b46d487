"""In the style of timm's train.py: updates are counted, a schedule by update, an EMA, meters."""

import argparse
import os

import torch
from digits import Digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def create_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)
    )


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, scheduler, ema, args):
    model.train()
    losses_m = AverageMeter()
    for _batch_idx, (input, target) in enumerate(loader):
        output = model(input)
        loss = loss_fn(output, target)
        losses_m.update(loss.item(), input.size(0))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        ema.update_parameters(model)
        scheduler.step()
    print(f"Train: {epoch} Loss: {losses_m.avg:.4f}")


@torch.no_grad()
def validate(model, loader, loss_fn):
    model.eval()
    top1_m = AverageMeter()
    for input, target in loader:
        top1_m.update(float((model(input).argmax(1) == target).float().mean()), input.size(0))
    return {"top1": top1_m.avg}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--clip-grad", type=float, default=1.0)
    parser.add_argument("--out", default=".")
    args = parser.parse_args()
    torch.manual_seed(42)
    model = create_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    loader = torch.utils.data.DataLoader(Digits(210), args.batch_size, shuffle=True)
    loader_eval = torch.utils.data.DataLoader(Digits(100, seed=1), 50)
    updates = args.epochs * len(loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    best_metric = 0.0
    for epoch in range(args.epochs):
        train_one_epoch(epoch, model, loader, optimizer, loss_fn, scheduler, ema, args)
        metrics = validate(ema, loader_eval, loss_fn)
        print(f"Test: {epoch} Accuracy: {metrics['top1']:.4f}")
        if metrics["top1"] > best_metric:
            best_metric = metrics["top1"]
            torch.save(ema.state_dict(), os.path.join(args.out, "model_best.pth"))


if __name__ == "__main__":
    main()
