"""In the style of pytorch/examples' mnist: functions for train and test, a schedule by epoch."""

import argparse

import torch
import torch.nn.functional as F
from digits import Digits
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR

from boxcar.training import Training


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(8 * 36, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc1(x), dim=1)


def train(args, model, device, train_loader, optimizer, epoch, training):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} Loss: {loss.item():.6f}")
        training.step(loss=loss)


def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            pred = model(data.to(device)).argmax(dim=1)
            correct += pred.eq(target.to(device)).sum().item()
    print(f"Test set: Accuracy: {correct}/{len(test_loader.dataset)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--out", default=".")
    args = parser.parse_args()
    torch.manual_seed(1)
    training = Training(args.out, settings={"lr": args.lr})
    device = training.device
    train_loader = training.batches(Digits(200), batch_size=args.batch_size)
    test_loader = torch.utils.data.DataLoader(Digits(100, seed=1), batch_size=50)

    model = training.wrap(Net())
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in training.epochs(args.epochs, optimizer=optimizer, scheduler=scheduler):
        train(args, model, device, train_loader, optimizer, epoch, training)
        test(model, device, test_loader)
        scheduler.step()
    training.export(f"{args.out}/mnist_cnn.pt")


if __name__ == "__main__":
    main()
