"""A cell is started when its turn comes: what was installed before is what it has, and no process
of Boxcar's carries its words.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files.plan import Artifact

# As torch does: a late module looks whether the package around it is the one that it belongs to.
TORCH = {
    "__init__.py": "VERSION = {version!r}\n",
    "late.py": "VERSION = {version!r}\n",
    "distributed/__init__.py": "",
    "distributed/run.py": """\
import runpy, sys
import torch

def main():
    import torch.late
    assert torch.VERSION == torch.late.VERSION, "late module of another torch"
    at = next(n for n, word in enumerate(sys.argv) if word.endswith(".py") and n)
    sys.argv[:] = sys.argv[at:]
    runpy.run_path(sys.argv[0], run_name="__main__")

if __name__ == "__main__":
    main()
""",
}
# What a cell's `installs` is: put in the place of the package that is there. It lasts for a while,
# in which whatever wants to wait for the next cell can.
INSTALLS = """\
import json, os, sys, time
from pathlib import Path
import mine, torch

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
found = [torch.VERSION, mine.VERSION]
if "installs" in config:
    time.sleep(1.5)
    for name, text in config["installs"].items():
        Path(config["site"], name).write_text(text)
    time.sleep(0.5)
(out / "m.json").write_text(json.dumps({"step": 1, "found": found}))
"""
LOOKS = """\
import json, os, sys, time
from pathlib import Path

time.sleep(1.0)
run, others = str(Path(sys.argv[2]).parents[2]), []  # tests beside this one have a train.py, too
for entry in Path("/proc").glob("[0-9]*"):
    try:
        words = (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        continue
    if "train.py" in words and run in words and int(entry.name) != os.getpid():
        others.append(words.replace("\\0", " "))
(Path(sys.argv[2]) / "m.json").write_text(json.dumps({"step": 1, "others": others}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> tuple[str, Path]:
    """A training's Python of its own with a stand-in of torch, and an editable package."""
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    site = Path(paths["purelib"])
    for name, text in packages("1").items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return str(folder / "bin" / "python"), site


def packages(version: str) -> dict[str, str]:
    torch = {f"torch/{name}": text for name, text in TORCH.items()}
    for name in ("torch/__init__.py", "torch/late.py"):
        torch[name] = torch[name].format(version=version)
    return {**torch, "mine.py": f"VERSION = {version!r}\n"}


@pytest.mark.parametrize("launcher", ["torchrun", "python"])
def test_a_cell_has_what_the_cell_before_has_installed(
    make_run: Any, environment: tuple[str, Path], launcher: str
) -> None:
    python, site = environment
    installs = {"installs": packages("two"), "site": str(site)}
    run = make_run(
        {"a": {}, "b": installs, "c": {}},
        train=INSTALLS,
        launcher=launcher,
        training_python=python,
        resume=None,
        artifacts=(Artifact("m.json"),),
    )
    run.finish()
    assert [run.state(cell) for cell in "abc"] == ["verified"] * 3
    assert [run.result(cell)["found"] for cell in "abc"] == [["1", "1"], ["1", "1"], ["two"] * 2]


def test_a_script_that_looks_for_another_of_its_name_meets_none(make_run: Any) -> None:
    """As `pgrep -f train.py` does, so that two do not share a GPU."""
    run = make_run(
        {"a": {}, "b": {}, "c": {}}, train=LOOKS, resume=None, artifacts=(Artifact("m.json"),)
    )
    assert run.finish() == 0
    assert [run.result(cell)["others"] for cell in "abc"] == [[], [], []]


def test_without_a_launcher_a_shell_script_is_a_cell(make_run: Any) -> None:
    script = 'echo "{\\"step\\": 1}" >"$1/m.json"; python3 -c pass'
    run = make_run(
        {"a": {}},
        launcher="none",
        command=("bash", "-c", script.replace("{", "{{").replace("}", "}}"), "train", "{out}"),
        resume=None,
        artifacts=(Artifact("m.json"),),
    )
    assert run.finish() == 0
    assert run.result("a") == {"step": 1}
