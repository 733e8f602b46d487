"""What nobody can see in the source is a TODO of its key, and never a sure word."""

from __future__ import annotations

from pathlib import Path

import pytest
import strange_sources

from boxcar.laptop.init import job_text, readme
from boxcar.laptop.init.draft import Draft

SAVES = (
    "torch.save(m.state_dict(), 'epoch_%d.pt' % e)\nif __name__ == '__main__':\n    x.backward()\n"
)


def made(root: Path, source: str, **more: str) -> Draft:
    return strange_sources.draft(strange_sources.project(root, train_py=source, **more))


@pytest.mark.parametrize(
    ("flag", "loads", "is_resumed", "is_open"),
    [
        ("--load", "m.load_state_dict(torch.load(a.load))", False, True),
        ("--load", "s = torch.load(a.load)\nbegin = s['epoch']", True, False),
        ("--ckpt", "optimizer.load_state_dict(s['o'])", True, False),
        ("--resume", "m.load_state_dict(torch.load(a.resume))", True, True),
        ("--resume", "optim_g.load_state_dict(s)", True, False),
    ],
)
def test_a_flag_that_loads_weights_alone_is_no_resume(
    tmp_path: Path, flag: str, loads: str, is_resumed: bool, is_open: bool
) -> None:
    found = made(tmp_path, f"p.add_argument('{flag}', default=None)\n{loads}\n{SAVES}")
    assert (bool(found.resume), bool(found.resume_args)) == (is_resumed, is_resumed)
    assert bool(found.open.get("resume")) == is_open
    if is_open:
        assert f"# TODO: does {flag} continue at the saved epoch" in job_text.job(found, [])


COMMON = "import torch.distributed as dist\ndef compute_init():\n    dist.init_process_group('x')\n"


@pytest.mark.parametrize(
    ("source", "launcher", "is_open"),
    [
        ("from common import compute_init\ncompute_init()\n", "torchrun", False),
        ("import common\n", "python", True),
        ("import common\nmp.spawn(f)\n", "python", False),
        ("from mpi4py import MPI\ndist.init_process_group('x')\n", "python", True),
        ("x = 1\n", "python", False),
    ],
)
def test_ranks_that_an_imported_file_forms(
    tmp_path: Path, source: str, launcher: str, is_open: bool
) -> None:
    found = made(tmp_path, source + SAVES, common_py=COMMON)
    assert (found.launcher, bool(found.open.get("launcher"))) == (launcher, is_open)


def test_a_script_that_hands_on_to_what_nobody_can_read_is_asked_for_its_ranks(
    tmp_path: Path,
) -> None:
    found = made(tmp_path, "from pkg import train\nif __name__ == '__main__':\n    train()\n")
    assert found.launcher == "python" and found.open.get("launcher")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wandb", 'WANDB_MODE: "offline"'),
        ("swanlab", 'SWANLAB_MODE: "offline"'),
        ("mlflow", 'MLFLOW_TRACKING_URI: "sqlite:///{out}/mlflow.db"'),
        ("trackio", 'TRACKIO_DIR: "{out}/trackio"'),
        ("comet_ml", "secrets: [COMET_API_KEY]"),
    ],
)
def test_a_tracker_lives_without_its_server_or_names_its_secret(
    tmp_path: Path, name: str, text: str
) -> None:
    found = made(
        tmp_path,
        f"from log import note\nnote()\n{SAVES}",
        log_py=f"import {name}\ndef note(): ...\n",
    )
    assert text in job_text.job(found, [])
    assert bool(found.collect) == (name != "comet_ml")


def test_flags_that_an_imported_function_adds_are_the_scripts(tmp_path: Path) -> None:
    lib = (
        "def add_all(parser):\n    parser.add_argument('--output_dir')\n"
        "    parser.add_argument('--max_train_epochs', required=True)\n"
        "def never(parser):\n    parser.add_argument('--never', required=True)\n"
    )
    found = made(tmp_path, f"import lib\nlib.add_all(parser)\n{SAVES}", lib_py=lib)
    assert "--output_dir" in found.words
    assert found.open["command"] == (
        "--max_train_epochs is required (lib.py, line 3): add it to command",
    )


@pytest.mark.parametrize(
    "line",
    [
        "warnings.filterwarnings('ignore')", "sys.path.append('..')", "matplotlib.use('Agg')",
        "logging.basicConfig()", "os.environ.setdefault('A', '1')", "torch.manual_seed(1)",
    ],
)  # fmt: skip
def test_a_module_that_only_sets_up_is_no_program(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(f"{line}\ndef train():\n    loss.backward()\n")
    assert not readme.is_program_at(tmp_path / "a.py")


def test_a_script_that_hands_on_comes_before_a_class_that_trains(tmp_path: Path) -> None:
    exp = "sys.path.append('.')\nclass Exp:\n    def train(self):\n        x.fit()\n"
    run = "import argparse\nfrom exp.a import Exp\nif __name__ == '__main__':\n    Exp().train()\n"
    assert strange_sources.project(tmp_path, exp__a_py=exp, run_py=run).scripts == ("run.py",)
