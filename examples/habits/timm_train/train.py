#!/usr/bin/env python3
"""In the manner of timm's train.py: create_model, create_loader, CheckpointSaver, output/experiment with summary.csv."""

import argparse
import logging
import os
import time
from collections import OrderedDict
from datetime import datetime

import torch
import yaml
from timm import utils
from timm.data import create_dataset, create_loader
from timm.models import create_model, resume_checkpoint
from timm.optim import create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler_v2, scheduler_kwargs
from torch import nn

_logger = logging.getLogger("train")

parser = argparse.ArgumentParser(description="training of small image models")
group = parser.add_argument_group("Dataset parameters")
group.add_argument("--data-dir", metavar="DIR", default="data/shapes", help="path to dataset")
group.add_argument("--train-split", metavar="NAME", default="train")
group.add_argument("--val-split", metavar="NAME", default="val")
group = parser.add_argument_group("Model parameters")
group.add_argument("--model", default="test_efficientnet", type=str, metavar="MODEL")
group.add_argument("--num-classes", type=int, default=2, metavar="N")
group.add_argument("--img-size", type=int, default=32, metavar="N")
group.add_argument("-b", "--batch-size", type=int, default=8, metavar="N")
group.add_argument("-j", "--workers", type=int, default=0, metavar="N")
group.add_argument(
    "--resume",
    default="",
    type=str,
    metavar="PATH",
    help="Resume full model and optimizer state from checkpoint",
)
group.add_argument("--no-resume-opt", action="store_true", default=False)
group = parser.add_argument_group("Optimizer parameters")
group.add_argument("--opt", default="sgd", type=str, metavar="OPTIMIZER")
group.add_argument("--momentum", type=float, default=0.9, metavar="M")
group.add_argument("--weight-decay", type=float, default=2e-5)
group.add_argument("--lr", type=float, default=0.01, metavar="LR")
group.add_argument("--sched", type=str, default="cosine", metavar="SCHEDULER")
group.add_argument("--warmup-epochs", type=int, default=0, metavar="N")
group.add_argument("--epochs", type=int, default=12, metavar="N")
group = parser.add_argument_group("Miscellaneous parameters")
group.add_argument("--seed", type=int, default=42, metavar="S")
group.add_argument("--log-interval", type=int, default=1, metavar="N")
group.add_argument(
    "--checkpoint-hist", type=int, default=3, metavar="N", help="number of checkpoints to keep"
)
group.add_argument(
    "--output",
    default="",
    type=str,
    metavar="PATH",
    help="path to output folder (default: none, current dir)",
)
group.add_argument(
    "--experiment",
    default="",
    type=str,
    metavar="NAME",
    help="name of train experiment, name of sub-folder for output",
)
group.add_argument("--eval-metric", default="top1", type=str, metavar="EVAL_METRIC")
group.add_argument("--device", default="cpu", type=str)


def main():
    utils.setup_default_logging()
    args = parser.parse_args()
    device = utils.init_distributed_device(args)
    utils.random_seed(args.seed, args.rank)

    model = create_model(args.model, num_classes=args.num_classes, in_chans=3)
    model.to(device)
    optimizer = create_optimizer_v2(model, **optimizer_kwargs(cfg=args))

    resume_epoch = None
    if args.resume:
        resume_epoch = resume_checkpoint(
            model,
            args.resume,
            optimizer=None if args.no_resume_opt else optimizer,
            log_info=utils.is_primary(args),
        )

    def loader(split, is_training):
        dataset = create_dataset("", root=args.data_dir, split=split, is_training=is_training)
        return create_loader(
            dataset,
            input_size=(3, args.img_size, args.img_size),
            batch_size=args.batch_size,
            is_training=is_training,
            use_prefetcher=False,
            num_workers=args.workers,
            persistent_workers=False,
        )

    loader_train = loader(args.train_split, True)
    loader_eval = loader(args.val_split, False)

    eval_metric = args.eval_metric
    saver, output_dir, best_metric, best_epoch = None, None, None, None
    if utils.is_primary(args):
        if args.experiment:
            exp_name = args.experiment
        else:
            exp_name = "-".join(
                [datetime.now().strftime("%Y%m%d-%H%M%S"), args.model, str(args.img_size)]
            )
        output_dir = utils.get_outdir(args.output if args.output else "./output/train", exp_name)
        saver = utils.CheckpointSaver(
            model=model,
            optimizer=optimizer,
            args=args,
            checkpoint_dir=output_dir,
            recovery_dir=output_dir,
            decreasing=False,
            max_history=args.checkpoint_hist,
        )
        with open(os.path.join(output_dir, "args.yaml"), "w") as f:
            f.write(yaml.safe_dump(args.__dict__, default_flow_style=False))

    args.sched_on_updates = False
    lr_scheduler, num_epochs = create_scheduler_v2(optimizer, **scheduler_kwargs(args))
    start_epoch = resume_epoch or 0
    if lr_scheduler is not None and start_epoch > 0:
        lr_scheduler.step(start_epoch)
    _logger.info(f"Scheduled epochs: {num_epochs}. LR stepped per epoch.")

    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(start_epoch, num_epochs):
        train_metrics = train_one_epoch(
            epoch, model, loader_train, optimizer, loss_fn, args, device
        )
        eval_metrics = validate(model, loader_eval, loss_fn, device)
        if output_dir is not None:
            utils.update_summary(
                epoch,
                train_metrics,
                eval_metrics,
                filename=os.path.join(output_dir, "summary.csv"),
                lr=optimizer.param_groups[0]["lr"],
                write_header=best_metric is None,
            )
        if saver is not None:
            best_metric, best_epoch = saver.save_checkpoint(epoch, metric=eval_metrics[eval_metric])
        if lr_scheduler is not None:
            lr_scheduler.step(epoch + 1, eval_metrics[eval_metric])
    if best_metric is not None:
        _logger.info(f"*** Best metric: {best_metric} (epoch {best_epoch})")


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, device):
    model.train()
    losses_m = utils.AverageMeter()
    for batch_idx, (input, target) in enumerate(loader):
        input, target = input.to(device), target.to(device)
        loss = loss_fn(model(input), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses_m.update(loss.item(), input.size(0))
        time.sleep(0.1)
        if batch_idx % args.log_interval == 0 and utils.is_primary(args):
            _logger.info(
                f"Train: {epoch} [{batch_idx:>4d}/{len(loader)}]  Loss: {losses_m.val:#.3g} ({losses_m.avg:#.3g})"
            )
    return OrderedDict([("loss", losses_m.avg)])


@torch.no_grad()
def validate(model, loader, loss_fn, device):
    model.eval()
    losses_m, top1_m = utils.AverageMeter(), utils.AverageMeter()
    for input, target in loader:
        input, target = input.to(device), target.to(device)
        output = model(input)
        (acc1,) = utils.accuracy(output, target, topk=(1,))
        losses_m.update(loss_fn(output, target).item(), input.size(0))
        top1_m.update(acc1.item(), output.size(0))
    return OrderedDict([("loss", losses_m.avg), ("top1", top1_m.avg)])


if __name__ == "__main__":
    main()
