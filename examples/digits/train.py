"""Train one cell of the digits ablation: `train.py --config C --task T --epochs N --out DIR`.

The identical command starts a cell, resumes it from DIR/latest.pth, or, when all epochs are done,
writes its artifacts again. Under torchrun every rank runs this file; rank 0 alone writes. Exit
codes: 0 done, 2 wrong config or command, 42 the loss is no number any more, 85 stopped by SIGTERM
with the state saved. Not covered: going on with other hyper-parameters or another number of epochs,
which is refused.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch
from cell import Cell
from config import load
from task import TASKS

from boxcar.shared.errors import BoxcarError
from boxcar.training import ranks, stall


def arguments() -> argparse.Namespace:
    """The command line; argparse itself exits with 2 when it is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, required=True, help="configs/<cell>.yaml")
    parser.add_argument("--task", choices=sorted(TASKS), required=True)
    parser.add_argument("--epochs", type=at_least_one, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the folder of this cell alone")
    parser.add_argument(
        "--limit-batches", type=at_least_one, help="steps per epoch, for a quick try"
    )
    return parser.parse_args()


def at_least_one(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text}")
    return number


def train(args: argparse.Namespace) -> int:
    """Take one cell from where it is to its end; the exit code says how it ended."""
    try:
        with stall.diagnosed():
            cell = Cell(args, load(args.config, args.task))
            cell.resume()
            cell.train()
            cell.write_metrics()
    except BoxcarError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        ranks.leave()
    return 0


def main() -> int:
    """The steps around the training: command line, threads, devices, place of the files."""
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("BOXCAR_OUT", str(args.out))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    # NCCL refuses two ranks on one GPU: a box with fewer GPUs than ranks trains on its CPU.
    if torch.cuda.device_count() < int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return train(args)


if __name__ == "__main__":
    sys.exit(main())
