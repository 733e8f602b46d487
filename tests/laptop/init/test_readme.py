"""How a project's own pages start its training."""

from __future__ import annotations

from pathlib import Path

import pytest
import strange_sources

from boxcar.laptop.init import readme
from boxcar.laptop.init.readme import Typed

PROGRAM = "import argparse\nif __name__ == '__main__':\n    loss.backward()\n"


def found(root: Path, page: str, **more: str) -> list[Typed]:
    files = {"train_py": PROGRAM, "run_py": PROGRAM, "sample_py": PROGRAM, "lib_py": "x = 1\n"}
    strange_sources.project(root, **files, **more)
    (root / "README.md").write_text(page)
    return readme.commands(root)


def fenced(*lines: str) -> str:
    return "\n".join(["# Title", "", "```bash", *lines, "```", ""])


@pytest.mark.parametrize(
    ("line", "launcher", "words"),
    [
        ("python train.py --lr 1", "python", ("--lr", "1")),
        ("$ CUDA_VISIBLE_DEVICES=0 python3 -u ./train.py > log 2>&1 &", "python", ()),
        ("torchrun --nproc_per_node=8 train.py --a b", "torchrun", ("--a", "b")),
        ("python -m torch.distributed.launch --nproc_per_node 4 train.py", "torchrun", ()),
        ("accelerate launch --config_file c.yaml train.py --x", "accelerate", ("--x",)),
        ("deepspeed --num_gpus 2 train.py --deepspeed z.json", "deepspeed",
         ("--deepspeed", "z.json")),
        ("uv run python train.py", "python", ()),
        ("pip install x && python train.py a.yaml", "python", ("a.yaml",)),
        ("(env) user$ python train.py [--lr <lr>] --out x", "python", ("--out", "x")),
    ],
)  # fmt: skip
def test_the_words_of_a_page_are_launcher_script_and_flags(
    tmp_path: Path, line: str, launcher: str, words: tuple[str, ...]
) -> None:
    [typed] = found(tmp_path, fenced(line))
    assert (typed.launcher, typed.path, typed.words) == (launcher, "train.py", words)
    assert typed.where == "README.md, line 4"


def test_a_line_goes_on_behind_a_backslash_and_its_comment(tmp_path: Path) -> None:
    [typed] = found(tmp_path, fenced("python train.py \\ # the task", "  --lr 1 \\", "  --b 2"))
    assert typed.words == ("--lr", "1", "--b", "2")


def test_what_trains_comes_first_and_what_does_something_else_is_none(tmp_path: Path) -> None:
    lines = [
        "python sample.py", "python run.py", "python train.py --eval", "python lib.py",
        "python gone.py", "python train.py --is_training 0", "python train.py",
    ]  # fmt: skip
    assert [each.path for each in found(tmp_path, fenced(*lines))] == ["train.py", "run.py"]


def test_a_shell_script_is_read_one_level_deep_with_its_variables(tmp_path: Path) -> None:
    (tmp_path / "go.sh").write_text("model=Net\npython -u train.py --m $model --d $DATA\n")
    (tmp_path / "deep.sh").write_text("bash go.sh\n")
    [typed] = found(tmp_path, fenced("bash deep.sh", "bash ./go.sh"))
    assert typed.words == ("--m", "Net", "--d", "$DATA")
    assert typed.where == "go.sh, line 2"


def test_a_module_is_found_below_src(tmp_path: Path) -> None:
    [typed] = found(tmp_path, fenced("python -m mine.train -- --x"), src__mine__train_py=PROGRAM)
    assert (typed.path, typed.module, typed.words) == ("src/mine/train.py", "mine.train", ("--x",))
    made = strange_sources.draft(strange_sources.project(tmp_path), typed.path)
    assert made.words[:2] == ("-m", "mine.train") and ("PYTHONPATH", "src") in made.env


def test_its_words_are_the_commands_and_what_is_the_readers_is_a_todo(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").touch()
    parser = "".join(f"p.add_argument('--{n}')\n" for n in ("config", "out", "resume", "data"))
    line = "python train.py --config configs/a.yaml --data /path/to/x --resume old.pt --w {a}"
    found(tmp_path, fenced(line))
    (tmp_path / "train.py").write_text(f"{parser}{PROGRAM}torch.save(1, p.out + '/m.pt')\n")
    made = strange_sources.draft(strange_sources.project(tmp_path))
    words = ("train.py", "--config", "{cfg}", "--data", "/path/to/x", "--w", "{{a}}")
    assert made.words == (*words, "--out", "{out}")
    assert made.lines == ("configs/a.yaml train",)
    assert made.open["command"] == ("/path/to/x is a placeholder: put your own value there",)


def test_words_by_position_are_those_of_the_scripts_order(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    parser = "p.add_argument('config')\np.add_argument('out')\np.add_argument('-x')\n"
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "b.py").touch()
    found(tmp_path, fenced("python train.py configs/b.py work -x 1 extra"))
    (tmp_path / "train.py").write_text(f"{parser}{PROGRAM}")
    made = strange_sources.draft(strange_sources.project(tmp_path))
    assert made.words == ("train.py", "{cfg}", "{out}", "-x", "1", "extra")
    assert (made.lines, made.open.get("command")) == (("configs/b.py train",), None)


def test_words_with_nothing_of_a_path_in_them_end_nothing(tmp_path: Path) -> None:
    assert (
        found(tmp_path, fenced(f"bash {'x' * 5000}.sh", "python \0.py", "cd \0", "a" * 9000)) == []
    )
