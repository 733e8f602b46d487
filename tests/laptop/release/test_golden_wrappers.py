"""The wrappers of every shipped profile: as agreed, and run by bash 4.2 and by bash 5.

After a wanted change of a template or a profile:
    BOXCAR_GOLDEN=write .venv/bin/pytest tests/laptop/release/test_golden_wrappers.py
and read the difference. A bash 4.2 that is not on the PATH as `bash-4.2` is named by BASH_4_2.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.project.profiles import profile
from boxcar.laptop.project.profiles.schema import Tier
from boxcar.laptop.release import wrappers
from boxcar.shared.files.plan import Box, Plan

DATA = Path(__file__).resolve().parents[2] / "data" / "golden"
SHIPPED = Path(__file__).resolve().parents[3] / "profiles"
NAMES = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
WRAPPERS = ("run_queue.sh", "run_one.sh")
# Newer than bash 4.2, which CentOS 7 and its kin have: what it is, and since when.
TOO_NEW = {
    r"\$\{[^}]*@[A-Za-z]\}": "${x@Q} and its kin, 4.4 and 5.1",
    r"\bwait\s+-[a-z]*[nfp]": "wait -n, 4.3",
    r"\b(local|declare|typeset)\s+-[A-Za-z]*[nI]": "local -n, 4.3",
    r"\blocal\s+-(\s|;|$)": "local -, 4.4",
    r"\b(mapfile|readarray)\s+[^<|;]*-d": "mapfile -d, 4.4",
    r"-v\s+['\"]?[A-Za-z_]\w*\[": "[ -v a[0] ], 4.3",
    r"\bread\s+[^<|;]*-N\s*0": "read -N 0, 4.3",
    r"\$\{[A-Za-z_]\w*\[-\d+\]": "${a[-1]} of an array, 4.3",
    r"\b(EPOCHSECONDS|EPOCHREALTIME|SRANDOM|BASH_ARGV0)\b": "a variable of bash 5",
    r"\binherit_errexit\b|\bglobskipdots\b|\bpatsub_replacement\b": "a shopt of bash 4.4 or 5",
    r"\$\{\s|\$\{\|": "${ command; }, 5.3",
}
_EMPTY_ARRAY = re.compile(r"\b(\w+)=\(\s*\)")
AGENT = """#!{python}
import json, os, sys
if "-c" not in sys.argv:
    with open({dump!r}, "w") as file:
        json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}, file)
"""


def _plan(name: str) -> tuple[Plan, str]:
    """A run of two cells on that platform, and the platform's hook."""
    chosen = profile.load_file(SHIPPED / f"{name}.yaml", Path("/project"))
    if name == "slurm":  # where a cluster's file system is only a person knows
        chosen.storage.tiers["scratch"] = Tier(path="/scratch/me", scope="cluster", destroy="keep")
    root, run = Path("/project"), "digits"
    boxes = [
        Box(box, chosen.data_dir(root, box), chosen.credentials(root, box, run))
        for box in ("box-a", "box-b")
    ]
    # `auto` of the local profile is whatever runs these tests.
    is_local = chosen.connection.kind == "local"
    plan = make_plan(
        profile=name,
        boxes=tuple(boxes),
        command=("train.py", "--config", "{cfg}", "--epochs", "{epochs}", "--out", "{out}"),
        resume="latest.pth",
        env={**chosen.network.env, "WANDB_MODE": "offline"},
        agent_python="/usr/bin/python3" if is_local else chosen.agent_python,
        training_python="/usr/bin/python3" if is_local else chosen.training_python,
    )
    return plan, chosen.hook


def _rendered(name: str) -> dict[str, str]:
    plan, hook = _plan(name)
    return {
        "run_queue.sh": wrappers.render_run_queue(plan, hook, "onbox-1.pyz"),
        "run_one.sh": wrappers.render_run_one(plan, hook),
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_wrappers_of_each_profile_read_as_agreed(name: str) -> None:
    made = _rendered(name)
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        (DATA / name).mkdir(parents=True, exist_ok=True)
        for wrapper, text in made.items():
            (DATA / name / wrapper).write_bytes(text.encode())
    assert (DATA / name).is_dir(), f"no wrappers of {name} yet: see the head of this file"
    assert {wrapper: (DATA / name / wrapper).read_text() for wrapper in WRAPPERS} == made


def test_nothing_is_kept_of_a_profile_that_is_no_more() -> None:
    assert sorted(path.name for path in DATA.iterdir() if path.is_dir()) == NAMES


def test_the_wrappers_of_every_profile_are_clean_for_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    scripts = sorted(DATA.glob("*/*.sh"))
    assert len(scripts) == len(NAMES) * len(WRAPPERS)
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# --- bash 4.2


def _too_new(text: str) -> list[str]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found = [what for pattern, what in TOO_NEW.items() if re.search(pattern, code, re.MULTILINE)]
    # Under `set -u`, "${a[@]}" of an empty array is an unbound variable until bash 4.4.
    return found + [f"{name} may be empty" for name in _EMPTY_ARRAY.findall(code)]


def test_no_wrapper_uses_what_is_newer_than_bash_4_2() -> None:
    found = {str(path): _too_new(path.read_text()) for path in sorted(DATA.rglob("*.sh"))}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "line",
    [
        'echo "${x@Q}"',
        "wait -n",
        "  local -n other=$1",
        "mapfile -t -d '' words",
        "[[ -v words[0] ]]",
        'echo "${words[-1]}"',
        'echo "$EPOCHSECONDS"',
        "words=()",
    ],
)
def test_what_is_newer_than_bash_4_2_is_seen(line: str) -> None:
    assert _too_new(f"set -u\n{line}\n")
    assert not _too_new(f"# {line}\n")


# --- really run


def _bashes() -> list[Any]:
    five, old = shutil.which("bash"), os.environ.get("BASH_4_2") or shutil.which("bash-4.2")
    if not old:
        why = "no bash 4.2 here: name one by BASH_4_2, or put it on the PATH as bash-4.2"
        return [pytest.param(five, id="5"), pytest.param("", id="4.2", marks=pytest.mark.skip(why))]
    return [pytest.param(five, id="5"), pytest.param(old, id="4.2")]


@pytest.fixture(params=_bashes())
def bash(request: pytest.FixtureRequest) -> str:
    """One whose version is what the test's name says."""
    path: str = request.param
    if not path:
        pytest.skip("not installed: bash")
    asked = [path, "-c", 'echo "$BASH_VERSION"']
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    wanted = request.node.callspec.id.split("-")[0]
    if not said.startswith(f"{wanted}."):
        pytest.skip(f"{path} is bash {said.strip()}, not {wanted}")
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release's folder, beside the only Python of a box: it writes down what it is given."""
    agent = tmp_path / "bin" / "python3"
    agent.parent.mkdir()
    agent.write_text(AGENT.format(python=sys.executable, dump=str(tmp_path / "dump.json")))
    agent.chmod(0o755)
    for name in ("dirname", "basename", "env"):
        (agent.parent / name).symlink_to(shutil.which(name) or name)
    made = tmp_path / "releases" / "0a1b"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_run_queue_becomes_the_agent(name: str, bash: str, release: Path) -> None:
    found = _run(bash, name, "run_queue.sh", release, "queue_2", "3")
    assert found["argv"] == [
        *("-I", "-S", f"{release}/onbox-1.pyz", "agent", "--release", str(release)),
        *("--queue", "queue_2", "--start-index", "3"),
    ]
    plan, _ = _plan(name)
    assert found["env"]["BOXCAR_CREDENTIALS"] == _moved(plan.boxes[1].credentials, release)


@pytest.mark.parametrize("name", NAMES)
def test_run_one_becomes_the_attempt(name: str, bash: str, release: Path) -> None:
    found = _run(bash, name, "run_one.sh", release, "/data/spec-1.json")
    begin = f"{release}/program/onbox/begin.py"
    assert found["argv"] == ["-I", "-S", begin, "attempt", "/data/spec-1.json"]


def _moved(path: str, release: Path) -> str:
    """Where a path of the box lies in this test: every folder of the box below the test's own."""
    home = release.parents[1]
    return f"{home}/{path[2:]}" if path.startswith("~/") else f"{home}{path}"


def _run(bash: str, name: str, wrapper: str, release: Path, *words: str) -> dict[str, Any]:
    """What the golden wrapper, with its folders moved, hands to the agent's Python."""
    plan, _ = _plan(name)
    text = (DATA / name / wrapper).read_text()
    for box in plan.boxes:
        for path in {box.data_dir, box.credentials}:
            text = text.replace(f"={path!r}", f"={_moved(path, release)!r}")
    text = text.replace("agent_python='/usr/bin/python3'", "agent_python=python3")
    (release / wrapper).write_text(text)
    home = release.parents[1]
    env = {"HOME": str(home), "PATH": str(home / "bin"), "BOXCAR_AGENT_PYTHON": "python3"}
    done = subprocess.run(
        [bash, str(release / wrapper), *words], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads((home / "dump.json").read_text())
    return found
