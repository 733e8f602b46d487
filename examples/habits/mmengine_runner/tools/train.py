"""As tools/train.py of OpenMMLab's repositories: a config in Python, and mmengine's Runner."""

import argparse
import os.path as osp
import sys

from mmengine.config import Config, DictAction
from mmengine.runner import Runner

sys.path.insert(0, osp.dirname(osp.dirname(osp.abspath(__file__))))


def parse_args():
    parser = argparse.ArgumentParser(description="Train a model")
    parser.add_argument("config", help="train config file path")
    parser.add_argument("--work-dir", help="the dir to save logs and models")
    parser.add_argument(
        "--resume", action="store_true", help="resume from the latest checkpoint in the work_dir"
    )
    parser.add_argument(
        "--cfg-options", nargs="+", action=DictAction, help="override some settings of the config"
    )
    return parser.parse_args()


def main():
    args = parse_args()
    cfg = Config.fromfile(args.config)
    if args.cfg_options is not None:
        cfg.merge_from_dict(args.cfg_options)
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    cfg.resume = args.resume
    runner = Runner.from_cfg(cfg)
    runner.train()


if __name__ == "__main__":
    main()
