"""Where what a project saves lies, followed through its functions and files."""

from __future__ import annotations

from pathlib import Path

import pytest
import strange_sources

from boxcar.laptop.init.draft import Draft

HEAD = (
    "import argparse, os, torch\np = argparse.ArgumentParser()\n"
    "p.add_argument('--results-dir', default='results')\nargs = p.parse_args()\n"
)
TAIL = "if __name__ == '__main__':\n    loss.backward()\n"


def made(root: Path, source: str, **more: str) -> Draft:
    return strange_sources.draft(
        strange_sources.project(root, train_py=HEAD + source + TAIL, **more)
    )


def where(draft: Draft) -> list[str]:
    return [kept.path for kept in draft.artifacts]


def is_open(draft: Draft) -> bool:
    return "artifacts" in draft.open


@pytest.mark.parametrize(
    ("source", "path"),
    [
        # DiT: four names from the flag to the call.
        ("run = f'{args.results_dir}/{n:03d}-{model}'\nckpts = f'{run}/checkpoints'\n"
         "path = f'{ckpts}/{step:07d}.pt'\ntorch.save(x, path)\n", "*-*/checkpoints/*.pt"),
        # Time-Series-Library: a parameter of a parameter of what is called as a function.
        ("class EarlyStopping:\n    def __call__(self, loss, path):\n"
            "        self.save(loss, path)\n"
         "    def save(self, loss, path):\n        torch.save(x, path + '/' + 'checkpoint.pth')\n"
         "setting = '{}_{}_ft{}'.format(a, b, c)\n"
            "place = os.path.join(args.results_dir, setting)\n"
         "early_stopping = EarlyStopping()\nearly_stopping(1, place)\n", "*/checkpoint.pth"),
        # Swin-Transformer: a config is given the flag, then goes on from itself.
        ("config.OUT = args.results_dir\nconfig.OUT = os.path.join(config.OUT, config.NAME)\n"
         "torch.save(x, os.path.join(config.OUT, f'ckpt_{epoch}.pth'))\n", "*/ckpt_*.pth"),
        ("for name in [args.results_dir + '/last.pt']:\n    torch.save(x, name)\n", "last.pt"),
        ("step = 0\nstep += 1\ntorch.save(x, f'{args.results_dir}/s{step}.pt')\n", "s*.pt"),
        ("path = 'other.pt'\npath = args.results_dir + '/a.pt'\ntorch.save(x, path)\n"
            "path = 'b.pt'\n",
         "a.pt"),
    ],
)  # fmt: skip
def test_each_folder_of_a_path_that_is_built_in_steps_is_there(
    tmp_path: Path, source: str, path: str
) -> None:
    found = made(tmp_path, source)
    assert (where(found), is_open(found)) == ([path], False)
    assert found.workdir == "code"


def test_what_another_file_saves_is_followed_to_the_call(tmp_path: Path) -> None:
    utils = (
        "import os, torch\ndef save_it(model, folder, epoch):\n"
        "    torch.save(model, os.path.join(folder, f'epoch_{epoch}.pth'))\n"
        "def unused():\n    torch.save(1, 'unused.pt')\n"
    )
    source = "import utils\nutils.save_it(m, os.path.join(args.results_dir, 'w'), 3)\n"
    assert where(made(tmp_path, source, utils_py=utils)) == ["w/epoch_*.pth"]


def test_a_beginning_that_was_not_seen_is_a_todo(tmp_path: Path) -> None:
    found = made(tmp_path, "torch.save(x, os.path.join(made_elsewhere(), 'best.pt'))\n")
    assert where(found) == ["best.pt"] and is_open(found)
    assert "is best.pt directly in the cell's folder?" in found.todo[0]


def test_a_config_that_is_handed_on_as_a_whole_may_say_the_folder(tmp_path: Path) -> None:
    source = (
        "def loop(run_dir='.'):\n    torch.save(x, os.path.join(run_dir, 'net.pt'))\nloop(**c)\n"
    )
    found = made(tmp_path, source)
    assert where(found) == ["net.pt"] and is_open(found)


def test_the_flag_below_which_it_is_seen_to_save_is_the_place(tmp_path: Path) -> None:
    source = "p.add_argument('--keep')\ntorch.save(x, os.path.join(args.keep, 'a.pt'))\n"
    found = made(tmp_path, source)  # --results-dir has the usual name
    assert found.words == ("train.py", "--keep", "{out}") and not is_open(found)


def test_what_is_written_beside_a_training_is_no_artifact_where_there_is_another(
    tmp_path: Path,
) -> None:
    source = "".join(
        f"torch.save(x, os.path.join(args.results_dir, {name!r}))\n"
        for name in ("eval.pth", "eval/latest.pth", "checkpoint", "samples.npz")
    )
    assert where(made(tmp_path, source)) == ["checkpoint"]
