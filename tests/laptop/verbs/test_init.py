from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.init import job_text, saves
from boxcar.laptop.init.paths import Names
from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.init import init
from boxcar.shared.errors import InputError
from boxcar.shared.files import queue_line

SCRIPT = """\
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()
for epoch in range(args.epochs):
    loss.backward()
torch.save({}, args.out + "/best.pt")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = tmp_path / "My Project 模型"
    made.mkdir()
    (made / "train.py").write_text(SCRIPT)
    return made


def files(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def answers(monkeypatch: pytest.MonkeyPatch, *typed: str) -> None:
    left = list(typed)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("boxcar.laptop.common.show.ask", lambda prompt: left.pop(0))


def test_what_it_writes_is_a_project_that_plan_takes(root: Path) -> None:
    assert init(root, yes=True) == 0
    project = open_project(root / "job.yaml")
    assert project.plan.run == "my-project"
    assert [cell.name for cell in project.plan.cells] == ["train"]
    schema = ".boxcar/job.schema.json"
    assert set(files(root)) == {"train.py", "job.yaml", job_text.QUEUE, ".boxcarignore", schema}
    assert files(root)["job.yaml"].startswith(f"# yaml-language-server: $schema={schema}\n")


def test_two_folders_with_chinese_names_are_two_runs(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = set()
    for folder in ("分割", "检测"):
        assert init(root.rename(root.parent / folder)) == 0
        (root.parent / folder).rename(root)
        names.add(re.search(r"^name: (run-[0-9a-f]{6})$", capsys.readouterr().out, re.M)[1])
    assert len(names) == 2


def test_where_nobody_can_be_asked_it_shows_the_job_and_writes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(root) == 0
    said = capsys.readouterr()
    assert "command: train.py --out {out} --epochs {epochs}" in said.out
    assert "init --yes" in said.err
    assert set(files(root)) == {"train.py"}


@pytest.mark.parametrize(("typed", "is_written"), [("", True), ("y", True), ("n", False)])
def test_a_person_is_asked_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, is_written: bool
) -> None:
    answers(monkeypatch, typed)
    assert init(root) == (0 if is_written else 1)
    assert (root / "job.yaml").exists() == is_written == (root / job_text.QUEUE).exists()


def test_the_other_scripts_are_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(root, yes=True) == 0
    assert "--script" not in capsys.readouterr().err
    (root / "job.yaml").unlink()
    for number in range(2, 13):
        (root / f"train_{number}.py").write_text(SCRIPT)
    assert init(root, yes=True) == 0
    said = capsys.readouterr().err
    assert "using train.py; 11 other scripts look like training, too (train_10.py, " in said
    assert "init --script PATH" in said


def test_nothing_that_is_there_is_overwritten(root: Path) -> None:
    (root / "queues").mkdir()
    (root / job_text.QUEUE).write_text("- mine 1\n")
    (root / ".boxcarignore").write_text("mine/\n")
    assert init(root, yes=True) == 0
    before = files(root)
    assert (before[job_text.QUEUE], before[".boxcarignore"]) == ("- mine 1\n", "mine/\n")
    with pytest.raises(InputError, match="was left as it is"):
        init(root, yes=True)
    assert files(root) == before


def test_what_plan_refuses_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "train.py").write_text(SCRIPT.replace("/best.pt", "/receipt.json"))
    assert init(root, yes=True) == 1
    assert "plan refuses:" in (said := capsys.readouterr().err)
    assert "is a file that Boxcar writes itself." in said
    assert "\n  - receipt.json\n" in (root / "job.yaml").read_text()


@pytest.mark.parametrize("named", ["../train.py", "gone.py", "notes.txt"])
def test_a_script_that_is_none_is_refused_and_nothing_is_written(root: Path, named: str) -> None:
    (root / "notes.txt").write_text("print(")
    with pytest.raises(InputError):
        init(root, named=named, yes=True)
    assert "job.yaml" not in files(root)


def test_in_an_empty_folder_it_says_how_to_name_a_script(root: Path) -> None:
    (root / "train.py").unlink()
    with pytest.raises(InputError, match="no training script found"):
        init(root, yes=True)


HIDDEN = """\
from options import get_args
args = get_args()
for epoch in range(args.epochs):
    loss.backward()
"""
OPTIONS = """\
import argparse
from pathlib import Path
def get_args():
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--work_dir", default="w")
    add("--epochs", type=int, default=9)
    add("--fold", required=True)
    return parser.parse_args()
"""


def hide_flags(root: Path) -> Path:
    """The mark that is there once something of it was run."""
    mark = root.parent / "ran"
    (root / "train.py").write_text(HIDDEN)
    (root / "options.py").write_text(OPTIONS + f"_ = Path({str(mark)!r}).touch()\n")
    return mark


def test_with_run_help_the_flags_of_another_module_are_taken(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = hide_flags(root)
    assert init(root, yes=True, with_help=True) == 1
    assert mark.exists()
    text = (root / "job.yaml").read_text()
    assert "command: train.py --work_dir {out} --epochs {epochs}" in text
    assert "from train.py, which was read; its --help was run" in text
    assert "--fold is required (the script's --help): add it to command" in text
    assert "train.py --help lists 3 flags" in capsys.readouterr().err


def test_yes_alone_runs_nothing(root: Path) -> None:
    mark = hide_flags(root)
    assert init(root, yes=True) == 1
    assert not mark.exists()
    assert (
        "gets flags from elsewhere (not found in its source). To see"
        in (root / "job.yaml").read_text()
    )
    assert "command: train.py\n" in (root / "job.yaml").read_text()


@pytest.mark.parametrize(("typed", "is_run"), [("", False), ("n", False), ("y", True)])
def test_a_person_is_asked_before_help_is_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, is_run: bool
) -> None:
    mark = hide_flags(root)
    answers(monkeypatch, typed, "y")
    init(root)
    assert mark.exists() == is_run
    assert ("--work_dir {out}" in (root / "job.yaml").read_text()) == is_run


def test_nobody_is_asked_where_the_source_says_the_flags(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "y")  # only whether to write
    assert init(root) == 0


def test_a_help_that_trains_is_ended_said_and_not_believed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("boxcar.laptop.tryout.run_help.TIMEOUT_S", 1.0)
    trains = "import time\nwhile True:\n    print('  --step 1', flush=True)\n    time.sleep(0.01)\n"
    (root / "train.py").write_text(trains)
    assert init(root, named="train.py", yes=True, with_help=True) == 1
    assert "train.py --help did not end within 1 s and was ended" in capsys.readouterr().err
    assert "--step" not in (root / "job.yaml").read_text()


@pytest.mark.parametrize("name", ["train me.py", "训练 一.py", "it's {a} #1.py", "模型.py"])
def test_a_script_of_any_name_is_written_so_that_plan_finds_it(root: Path, name: str) -> None:
    (root / "train.py").rename(root / name)
    assert init(root, yes=True) == 0
    assert open_project(root / "job.yaml").plan.command[0].replace("{{", "{")[:4] == name[:4]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("spoil", [_pipe, _device])
@pytest.mark.parametrize(
    "name",
    ["aaa.py", "configs/a.yaml", "mine/__init__.py", "conf.py", ".gitignore", ".boxcarignore"],
)
def test_what_is_no_file_is_not_waited_for(
    root: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    (root / "train.py").write_text(f"from mine import a\nimport conf\n{SCRIPT}")
    for folder in ("configs", "mine"):
        (root / folder).mkdir()
    (root / "configs" / "b.yaml").write_text("a: 1")
    spoil(root / name)
    init(root, yes=True)
    assert (root / "job.yaml").exists()
    with contextlib.suppress(InputError):
        list(open_project(root / "job.yaml").take_notes())


def test_a_file_that_cannot_be_judged_is_named_and_ends_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "finetune.py").write_text(SCRIPT)
    read = saves.read_saves

    def of_finetune_alone(names: Names) -> Any:
        if any(path == "train.py" for path, *_ in names.calls):
            raise KeyError("strange")
        return read(names)

    monkeypatch.setattr(saves, "read_saves", of_finetune_alone)
    assert init(root, yes=True) == 0
    assert "train.py could not be read as a script: KeyError: 'strange'" in capsys.readouterr().err
    assert "command: finetune.py" in (root / "job.yaml").read_text()
    with pytest.raises(InputError, match="could not be read as a script:"):
        init_again(root, "train.py")


def init_again(root: Path, named: str) -> int:
    (root / "job.yaml").unlink()
    return init(root, named=named, yes=True)


def test_a_parameter_that_may_not_be_named_is_read_as_any_other(root: Path) -> None:
    (root / "ops.py").write_text("def scale(x, y=2.0, /, z=3, *, w=4): return x * y\n")
    assert init(root, yes=True) == 0


@pytest.mark.parametrize("name", ["x\ny.yaml", "x\ry.yaml", os.fsdecode(b"caf\xe9.yaml")])
def test_a_config_whose_name_no_line_can_hold_is_left_out(root: Path, name: str) -> None:
    (root / "train.py").write_text(
        SCRIPT.replace('"--out"', '"--config")\nparser.add_argument("--out"')
    )
    (root / "configs").mkdir()
    for each in ("a.yaml", "b.yaml", "c.yaml", name):
        (root / "configs" / each).write_text("a: 1")
    init(root, yes=True)
    text = (root / job_text.QUEUE).read_bytes()
    assert [line.name for line in queue_line.parse_queue(text).cells] == ["a", "b"]
    assert not queue_line.parse_queue(text).bad and b"# configs/c.yaml" in text


def test_configs_of_any_name_are_lines_that_plan_reads(root: Path) -> None:
    (root / "train.py").write_text(
        SCRIPT.replace('"--out"', '"--config")\nparser.add_argument("--out"')
    )
    (root / "configs").mkdir()
    (root / "configs" / "大 模型.yaml").write_text("a: 1")
    assert init(root, yes=True) == 0
    [cell] = open_project(root / "job.yaml").plan.cells
    assert cell.cfg == "configs/大 模型.yaml"


HIDES_RANKS = "import ranks\nif __name__ == '__main__':\n    x.fit()\n    torch.save(1, 'a.pt')\n"
RANKS = "def begin(): dist.init_process_group('nccl')\n"


@pytest.mark.parametrize(("typed", "launcher"), [("torchrun", "torchrun"), ("", "python")])
def test_a_person_is_asked_for_ranks_that_nobody_sees(
    root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, launcher: str
) -> None:
    (root / "train.py").write_text(HIDES_RANKS)
    (root / "ranks.py").write_text(RANKS)
    answers(monkeypatch, typed, "y")
    assert init(root) == (0 if typed else 1)
    text = (root / "job.yaml").read_text()
    assert f"\nlauncher: {launcher}\n" in text
    assert ("# TODO: does train.py set up a process group? None" in text) == (not typed)


def test_another_word_than_a_launcher_is_refused_and_nothing_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "train.py").write_text(HIDES_RANKS)
    (root / "ranks.py").write_text(RANKS)
    answers(monkeypatch, "mpi")
    with pytest.raises(InputError, match="expected one of python, torchrun"):
        init(root)
    assert not (root / "job.yaml").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("odd.py", b"def f(x, y=1, /, *, z): ...\nmatch x:\n    case [a, *_]: f(a)\n"),
        ("new.py", b"type X[T] = list[T]\nprint(f'{x!r:>{w}}')\n"),
        ("latin.py", b"# -*- coding: latin-1 -*-\nname = '\xe9'\n"),
        ("bytes.py", b"\xff\xfe\x00("),
        ("deep.py", b"x = " + b"(" * 5000),
        ("train_2.py", b"while True print('python 2')\n.backward( zero_grad(\n"),
        ("README.rst", b"::\n\n    python 'train.py\n    bash \x00 | python $(\n"),
        ("run_train.sh", b"python \xff train.py --x '\n"),
    ],
)
def test_no_file_beside_it_ends_init(root: Path, name: str, data: bytes) -> None:
    (root / name).write_bytes(data)
    assert init(root, yes=True) == 0
    assert "command: train.py --out {out}" in (root / "job.yaml").read_text()
