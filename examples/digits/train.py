"""Train one cell of the digits ablation: `train.py --config C --task T --epochs N --out DIR`.

The identical command starts a cell, resumes it from DIR/latest.pth, or, when all epochs are done,
writes its artifacts again. Under torchrun every rank runs this file; rank 0 alone writes:
latest.pth (the full state, after every epoch), best.pth and metrics.json (the artifacts). Exit
codes: 0 done, 2 wrong config or command, 42 the loss is no number any more, 85 stopped by SIGTERM
with the state saved. Not covered: going on with other hyper-parameters or another number of epochs,
which is refused.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import torch
from cell import Cell, Diverged, Stopped
from config import ConfigError, load
from ranks import Ranks
from task import TASKS

EXIT_WRONG_INPUT = 2
EXIT_DIVERGED = 42
EXIT_PREEMPTED = 85


class StopRequest:
    """Remembers a SIGTERM, so that the step in flight is finished before the state is saved."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self.on_signal)

    def __call__(self) -> bool:
        """Whether somebody asked."""
        return self.asked

    def on_signal(self, *_: object) -> None:
        """The handler; touches nothing that a step may be using."""
        self.asked = True


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


def train(args: argparse.Namespace, stop_asked: StopRequest) -> int:
    """Take one cell from where it is to its end; the exit code says how it ended."""
    try:
        cfg = load(args.config, args.task)
        args.out.mkdir(parents=True, exist_ok=True)
        ranks = Ranks.join()
        cell = Cell(args, cfg, ranks)
        cell.resume()
        cell.train(stop_asked)
        cell.write_artifacts()
        cell.leave()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_WRONG_INPUT
    except Diverged as error:
        print(error, file=sys.stderr)
        return EXIT_DIVERGED
    except Stopped:
        return EXIT_PREEMPTED
    return 0


def main() -> int:
    """The steps around the training: signal, command line, threads, place of the progress lines."""
    stop_asked = StopRequest()
    args = arguments()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    os.environ.setdefault("BOXCAR_OUT", str(args.out))
    code = train(args, stop_asked)
    # Python gives SIGTERM its deadly default back while it shuts down, and torchrun sends one to
    # every rank as soon as another has left: without this line, 85 would sometimes become -15.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
