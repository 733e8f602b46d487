"""Three scripts in other people's styles, converted with the page alone: lines, metrics, kills."""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from page_scripts import HEAD
from ranks_at_work import free_port

HERE = Path(__file__).parent / "converted"
# A test that kills: the hook of the page's scripts, before the script itself.
HOOK = HEAD.split("class Noisy")[0]


def run(name: str, out: Path, die_at: str = "-1:KILL", ranks: int = 1) -> tuple[int, str]:
    """Exit code, and what it printed."""
    out.mkdir(parents=True, exist_ok=True)
    script = out.parent / f"{name}.py"
    script.write_text(HOOK + (HERE / f"{name}.py").read_text())
    env = {**os.environ, "DIE_AT": die_at, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    env |= {"BOXCAR_OUT": str(out), "OUT": str(out), "PYTHONUNBUFFERED": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [env.get("PYTHONPATH")])])
    torchrun = ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    words = [sys.executable, *([*torchrun, f"--master-port={free_port()}"] if ranks > 1 else [])]
    words += [str(script), *([] if "nanogpt" in name else ["--out", str(out)])]
    done = subprocess.run(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def last(said: str) -> float:
    """The last number of accuracy or loss that it printed."""
    return float(re.findall(r"(?:Accuracy: |final loss )([\d.]+)", said)[-1])


def lines(said: str) -> list[str]:
    """Of two ranks that print at once, two may stand in one."""
    apart = said.replace("final loss", "\nfinal loss").splitlines()
    return [line for line in apart if re.match(r"Test|final|step \d+:", line)]


@pytest.mark.parametrize("name", ["mnist", "timm", "nanogpt"])
def test_ten_changed_lines_are_enough(name: str) -> None:
    before, after = ((HERE / f"{name}_{when}.py").read_text() for when in ("before", "after"))
    found = difflib.ndiff(before.splitlines(), after.splitlines())
    changed = [line for line in found if line.startswith("+ ") and line[2:].strip()]
    assert len(changed) <= 10, "\n".join(changed)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["mnist", "timm", "nanogpt"])
def test_killed_and_stopped_it_ends_with_the_numbers_of_one_that_was_not(
    name: str, tmp_path: Path
) -> None:
    code, before = run(f"{name}_before", tmp_path / "before")
    assert code == 0, before
    code, whole = run(f"{name}_after", tmp_path / "whole")
    assert code == 0, whole
    # Another order of the same samples, or a batch that is drawn where it is used: as good.
    scale = 100.0 if name == "mnist" else 1.0
    assert abs(last(whole) - last(before)) / scale < 0.1
    out = tmp_path / "killed"
    code, said = run(f"{name}_after", out, "17:KILL")
    assert code == -signal.SIGKILL, said
    code, said = run(f"{name}_after", out, "23:TERM")
    assert code == 85, said
    code, said = run(f"{name}_after", out)
    assert code == 0, said
    rest = lines(said)
    assert rest and rest == lines(whole)[-len(rest) :]


@pytest.mark.faults
def test_two_ranks_of_the_iteration_loop_are_killed_and_go_on(tmp_path: Path) -> None:
    code, whole = run("nanogpt_after", tmp_path / "whole", ranks=2)
    assert code == 0, whole
    code, said = run("nanogpt_after", tmp_path / "killed", "17:KILL", ranks=2)
    assert code == 1, said
    code, said = run("nanogpt_after", tmp_path / "killed", ranks=2)
    assert code == 0, said
    assert sorted(lines(said))[:2] == sorted(lines(whole))[:2]
