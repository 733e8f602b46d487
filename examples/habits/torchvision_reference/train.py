"""In the manner of torchvision's references/classification: torchrun, checkpoint.pth and a model_N.pth for each epoch."""

import os
import time

import torch
import torch.utils.data
import torchvision
import utils
from torch import nn
from torchvision import transforms


def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args):
    model.train()
    for image, target in utils.log_every(data_loader, args.print_freq, f"Epoch: [{epoch}]"):
        image, target = image.to(device), target.to(device)
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.1)


def evaluate(model, data_loader, device):
    model.eval()
    correct = 0
    with torch.inference_mode():
        for image, target in data_loader:
            correct += (model(image.to(device)).argmax(1) == target.to(device)).sum().item()
    print(f"Test:  Acc@1 {100 * correct / len(data_loader.dataset):.3f}", flush=True)


def load_data(args):
    tensor = transforms.Compose(
        [transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)]
    )
    if args.data_path:
        dataset = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "train"), tensor)
        dataset_test = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "val"), tensor)
    else:
        dataset = torchvision.datasets.FakeData(16, (3, 32, 32), 4, tensor)
        dataset_test = torchvision.datasets.FakeData(8, (3, 32, 32), 4, tensor, random_offset=16)
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(dataset)
    else:
        train_sampler = torch.utils.data.RandomSampler(dataset)
    return dataset, dataset_test, train_sampler


def main(args):
    if args.output_dir:
        utils.mkdir(args.output_dir)
    utils.init_distributed_mode(args)
    print(args)
    device = torch.device(args.device)
    dataset, dataset_test, train_sampler = load_data(args)
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.batch_size, sampler=train_sampler, num_workers=args.workers
    )
    data_loader_test = torch.utils.data.DataLoader(dataset_test, batch_size=args.batch_size)

    torch.manual_seed(0)
    model = torchvision.models.get_model(args.model, weights=None, num_classes=4)
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    lr_scheduler = torch.optim.lr_scheduler.StepLR(
        optimizer, step_size=args.lr_step_size, gamma=args.lr_gamma
    )
    model_without_ddp = model
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)
        model_without_ddp = model.module

    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model_without_ddp.load_state_dict(checkpoint["model"])
        if not args.test_only:
            optimizer.load_state_dict(checkpoint["optimizer"])
            lr_scheduler.load_state_dict(checkpoint["lr_scheduler"])
        args.start_epoch = checkpoint["epoch"] + 1

    if args.test_only:
        evaluate(model, data_loader_test, device)
        return

    print("Start training")
    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args)
        lr_scheduler.step()
        evaluate(model, data_loader_test, device)
        if args.output_dir:
            checkpoint = {
                "model": model_without_ddp.state_dict(),
                "optimizer": optimizer.state_dict(),
                "lr_scheduler": lr_scheduler.state_dict(),
                "epoch": epoch,
                "args": args,
            }
            utils.save_on_master(checkpoint, os.path.join(args.output_dir, f"model_{epoch}.pth"))
            utils.save_on_master(checkpoint, os.path.join(args.output_dir, "checkpoint.pth"))


def get_args_parser(add_help=True):
    import argparse

    parser = argparse.ArgumentParser(
        description="PyTorch Classification Training", add_help=add_help
    )
    parser.add_argument(
        "--data-path", default="", type=str, help="dataset path; made-up images without it"
    )
    parser.add_argument("--model", default="shufflenet_v2_x0_5", type=str, help="model name")
    parser.add_argument(
        "--device", default="cpu", type=str, help="device (Use cuda or cpu Default: cpu)"
    )
    parser.add_argument("-b", "--batch-size", default=8, type=int)
    parser.add_argument(
        "--epochs", default=12, type=int, metavar="N", help="number of total epochs to run"
    )
    parser.add_argument("-j", "--workers", default=0, type=int, metavar="N")
    parser.add_argument("--lr", default=0.01, type=float, help="initial learning rate")
    parser.add_argument("--momentum", default=0.9, type=float, metavar="M")
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--label-smoothing", default=0.0, type=float)
    parser.add_argument("--lr-step-size", default=30, type=int)
    parser.add_argument("--lr-gamma", default=0.1, type=float)
    parser.add_argument("--print-freq", default=1, type=int, help="print frequency")
    parser.add_argument("--output-dir", default=".", type=str, help="path to save outputs")
    parser.add_argument("--resume", default="", type=str, help="path of checkpoint")
    parser.add_argument("--start-epoch", default=0, type=int, metavar="N", help="start epoch")
    parser.add_argument(
        "--test-only", dest="test_only", action="store_true", help="Only test the model"
    )
    parser.add_argument(
        "--dist-url", default="env://", type=str, help="url used to set up distributed training"
    )
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
