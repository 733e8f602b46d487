"""What each launcher is started with: the command, the environment, and the files it reads."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from specs import make_spec
from waiting import LIMIT_S

from boxcar.shared.cell import launch
from boxcar.shared.cell.launch import Machine, Start
from boxcar.shared.environment import CREDENTIALS
from boxcar.shared.errors import InputError

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "python")
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


def started(
    folder: Path,
    *,
    box: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    has_loopback: bool = True,
    **changes: Any,
) -> Start:
    """Two ranks, unless something else is asked for."""
    spec = make_spec(folder, **{"ranks": 2, **changes})
    machine = Machine(box or {}, lambda: 29400, "node-4", has_loopback)
    return launch.start(spec, machine, secrets or {})


def written(start: Start) -> Start:
    for path, text in start.files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return start


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("torchrun", "-m torch.distributed.run --standalone --nnodes 1 --nproc-per-node 2"),
        ("python", "-u"),
    ],
)
def test_the_launcher_is_started_by_the_trainings_python(launcher, expected, tmp_path):
    words = started(tmp_path, launcher=launcher).argv
    assert words == (sys.executable, *expected.split(), "train.py")


@pytest.mark.parametrize(
    ("python", "path"), [("/env/bin/python", "/env/bin:/usr/bin"), ("python", "/usr/bin")]
)
def test_without_a_launcher_the_words_are_the_command_and_its_own_programs_come_first(
    python, path, tmp_path
):
    words, box = ("tune", "run", "lora.yaml"), {"PATH": "/usr/bin"}
    start = started(tmp_path, launcher="none", words=words, python=python, box=box)
    assert (start.argv, start.environ["PATH"]) == (words, path)
    assert launch.ranks_to_form(make_spec(tmp_path, launcher="none", ranks=4)) is None


def test_a_launcher_that_there_is_none_of_is_refused(tmp_path):
    with pytest.raises(InputError, match="no launcher mpirun"):
        started(tmp_path, launcher="mpirun")


@pytest.mark.parametrize(
    ("launcher", "ranks", "nodes", "expected"),
    [
        ("python", 2, 1, None),
        ("accelerate", 1, 1, None),
        ("accelerate", 2, 1, 2),
        ("torchrun", 1, 1, 1),
        ("deepspeed", 4, 1, 4),
        pytest.param("torchrun", 4, 2, None, id="most are on other nodes"),
    ],
)
def test_which_ranks_have_to_be_seen_below_the_launcher(launcher, ranks, nodes, expected, tmp_path):
    spec = make_spec(tmp_path, launcher=launcher, ranks=ranks, nodes=nodes)
    assert launch.ranks_to_form(spec) == expected


# --- the environment


def test_a_cells_own_comes_over_the_boxs_and_the_secrets_over_both(tmp_path):
    box, own = dict.fromkeys("ABC", "box"), dict.fromkeys("BC", "own")
    found = started(tmp_path, box=box, env=own, secrets={"C": "secret"}).environ
    assert (found["A"], found["B"], found["C"]) == ("box", "own", "secret")
    assert (box, own) == (dict.fromkeys("ABC", "box"), dict.fromkeys("BC", "own"))


def test_a_script_knows_its_run_its_cell_and_its_places(tmp_path):
    found = started(tmp_path, resume="/r/latest.pth").environ
    assert {name: text for name, text in found.items() if name.startswith("BOXCAR_")} == {
        "BOXCAR_RUN": "tiny",
        "BOXCAR_CELL": "a",
        "BOXCAR_OUT": str(tmp_path / "data/boxcar/tiny/cells/a/out"),
        "BOXCAR_RESUME": "/r/latest.pth",
        "BOXCAR_DATA_DIR": str(tmp_path / "data"),
    }


@pytest.mark.parametrize("where", ["box", "env"])
def test_of_the_file_with_the_secrets_nobody_hears(where, tmp_path):
    given: dict[str, Any] = {where: {CREDENTIALS: "/root/c.json"}}
    assert CREDENTIALS not in started(tmp_path, **given).environ


@pytest.mark.parametrize(
    ("box", "own", "expected"),
    [
        ({}, {}, ""),
        ({"PYTHONPATH": "/b"}, {}, ":/b"),
        ({"PYTHONPATH": "/b"}, {"PYTHONPATH": "/o:/p"}, ":/o:/p"),
        pytest.param({"PYTHONPATH": ""}, {}, "", id="an empty one adds no working folder"),
    ],
)
def test_what_boxcar_needs_is_found_before_what_the_cell_has(box, own, expected, tmp_path):
    paths = ("/rel/training.zip", "/code")
    found = started(tmp_path, box=box, env=own, python_path=paths).environ
    assert found["PYTHONPATH"] == f"/rel/training.zip:/code{expected}"


def test_what_a_script_prints_is_seen_at_once(tmp_path):
    assert started(tmp_path, env={"PYTHONUNBUFFERED": ""}).environ["PYTHONUNBUFFERED"] == "1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "70"),
        ("PYTHONFAULTHANDLER", "1"),
        ("GLOO_SOCKET_IFNAME", "lo"),
    ],
)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_a_person_or_a_platform_has_set_otherwise_counts(name, value, launcher, tmp_path):
    assert started(tmp_path, launcher=launcher).environ[name] == value
    box, own = {name: "9"}, {name: "5"}
    assert started(tmp_path, launcher=launcher, box=box).environ[name] == "9"
    assert started(tmp_path, launcher=launcher, box=box, env=own).environ[name] == "5"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_do_not_look_for_the_box_by_its_host_name(launcher, tmp_path):
    found = started(tmp_path, launcher=launcher).environ
    assert found["GLOO_SOCKET_IFNAME"] == "lo"
    assert (found.get("PET_LOCAL_ADDR") == "127.0.0.1") == (launcher == "torchrun")
    without = started(tmp_path, launcher=launcher, has_loopback=False).environ
    assert "GLOO_SOCKET_IFNAME" not in without


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
def test_ranks_meet_on_a_box_whose_host_name_has_no_address(tmp_path):
    rename = [*NOWHERE, 'hostname nowhere.invalid && exec "$@"', "sh"]
    if subprocess.run([*rename, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace with a host name of its own can be made here")
    script, out = tmp_path / "train.py", tmp_path / "out"
    script.write_text(MEETING)
    out.mkdir()
    box = {"PATH": os.environ["PATH"]}
    start = started(tmp_path, launcher="torchrun", words=(str(script), str(out)), box=box)
    done = subprocess.run(
        [*rename, *start.argv],
        env=start.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert [path.read_text() for path in sorted(out.iterdir())] == ["2.0", "2.0"]


# --- accelerate


def test_accelerate_is_told_by_a_file_of_its_own_what_a_default_config_would_decide(tmp_path):
    start = started(tmp_path, launcher="accelerate")
    [(config, text)] = start.files.items()
    assert config == str(tmp_path / "data/boxcar/tiny/cells/a/accelerate.yaml")
    expected = f"--config_file {config} --num_machines 1 --num_processes 2 --main_process_port 0"
    assert start.argv[3:] == (*expected.split(), "train.py")
    assert yaml.safe_load(text) == {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "MULTI_GPU",
    }
    [alone] = started(tmp_path, launcher="accelerate", ranks=1).files.values()
    assert yaml.safe_load(alone)["distributed_type"] == "NO"


@pytest.mark.faults
def test_a_hostile_default_config_of_accelerate_decides_nothing(tmp_path):
    """Two ranks form one world, also without a GPU, whatever the box's home says."""
    pytest.importorskip("accelerate")
    script, out, home = tmp_path / "train.py", tmp_path / "out", tmp_path / "home"
    script.write_text(ACCELERATED)
    out.mkdir()
    default = home / ".cache/huggingface/accelerate/default_config.yaml"
    default.parent.mkdir(parents=True)
    default.write_text(HOSTILE)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = (str(script), str(out))
    start = written(started(tmp_path, launcher="accelerate", words=words, box=env))
    done = subprocess.run(
        start.argv, env=start.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [path.read_text() for path in sorted(out.iterdir())]
    assert found == ["2 no"] * 2


# What of accelerate the program meets: a stand-in that starts one process whatever is asked for.
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
def test_accelerate_with_one_rank_becomes_its_script(code, is_older, tmp_path):
    """Its exit code arrives; an older release that is built in another way is left as it is."""
    words = _of_accelerate(tmp_path, f"raise SystemExit({code})", ranks=1)
    text = ONE_PROCESS.replace("prepare_simple", "prepare") if is_older else ONE_PROCESS
    assert _by_accelerate(words, text).returncode == (bool(code) if is_older else code)


def test_accelerate_becomes_the_script_in_the_environment_that_it_would_start_it_with(tmp_path):
    script = "import os\nprint(os.getppid(), os.environ['FROM_ACCELERATE'])"
    done = _by_accelerate(_of_accelerate(tmp_path, script, ranks=1), ONE_PROCESS)
    assert done.stdout.split() == [str(os.getpid()), "yes"]


def test_one_process_of_accelerates_where_two_were_asked_for_is_refused(tmp_path):
    words = _of_accelerate(tmp_path, "print('began')", ranks=2)
    done = _by_accelerate(words, ONE_PROCESS)
    assert (done.returncode, done.stdout) == (1, "")
    config = words[words.index("--config_file") + 1]
    assert done.stderr.splitlines()[-1] == (
        f"accelerate would start 1 process, 2 were asked: distributed_type in {config}"
    )


def _of_accelerate(tmp_path: Path, script: str, ranks: int) -> list[str]:
    """The launcher's words; it finds a stand-in of accelerate, and of torch, beside the script."""
    (tmp_path / "train.py").write_text(script)
    words = (str(tmp_path / "train.py"),)
    return list(written(started(tmp_path, launcher="accelerate", words=words, ranks=ranks)).argv)


def _by_accelerate(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    beside = Path(words[-1]).parent / "libraries"
    (beside / "accelerate/commands").mkdir(parents=True)
    (beside / "accelerate/__init__.py").touch()  # else a real one comes first
    (beside / "accelerate/commands/launch.py").write_text(text)
    no_gpu = "class cuda:\n    is_available = staticmethod(lambda: False)\n"
    (beside / "torch.py").write_text(no_gpu)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(beside)}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


# --- deepspeed


@pytest.mark.parametrize(
    ("job", "box", "expected"),
    [
        ({}, {}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "3,5,7"}, {}, ["3", "5"]),
        ({}, {"CUDA_VISIBLE_DEVICES": "GPU-8932f937,MIG-GPU-1/2/0"}, "GPU-8932f937 MIG-GPU-1/2/0"),
        ({"CUDA_VISIBLE_DEVICES": "4,6"}, {"CUDA_VISIBLE_DEVICES": "0,1"}, ["4", "6"]),
    ],
)
def test_deepspeed_gets_a_free_port_and_the_visible_gpus(job, box, expected, tmp_path):
    words = started(tmp_path, launcher="deepspeed", env=job, box=box).argv
    assert words[:4] == (sys.executable, "-u", "-m", "deepspeed.launcher.launch")
    said = dict(zip(words[4:-1:2], words[5:-1:2], strict=True))
    world = json.loads(base64.urlsafe_b64decode(said.pop("--world_info")))
    assert world == {"localhost": expected.split() if isinstance(expected, str) else expected}
    assert said == {"--master_addr": "127.0.0.1", "--master_port": "29400"}
    assert words[-1] == "train.py"


def test_deepspeed_is_told_that_a_module_is_one(tmp_path):
    words = ("-m", "pkg.fit", "/out", "-m")
    argv = started(tmp_path, launcher="deepspeed", words=words).argv
    assert argv[-4:] == ("--module", "pkg.fit", "/out", "-m")


# --- several nodes

SAYS_ITS_WORDS = '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n'
JOB = {
    "SLURM_JOB_ID": "9",
    "SLURM_ARRAY_JOB_ID": "7",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_CPUS_PER_TASK": "8",
    "SLURMD_NODENAME": "n4",
}


def over_nodes(folder: Path, **job: str) -> Start:
    changes = {"cell": "x", "launcher": "torchrun", "ranks": 4, "nodes": 2}
    return started(folder, box=JOB | job, **changes)


def test_srun_starts_a_torchrun_on_each_node_that_meet_at_this_one(tmp_path):
    start = over_nodes(tmp_path)
    assert start.environ["BOXCAR_NODES"] == "2"
    words = list(start.argv)
    assert words[3] == "7_3"
    srun = words[words.index("srun") :]
    assert srun[1:8] == [
        *("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"),
        *("--export=ALL", "--mpi=none", "--cpus-per-task=8"),
    ]
    torchrun = srun[srun.index("torch.distributed.run") + 1 :]
    assert torchrun == [
        *("--nnodes", "2", "--nproc-per-node", "4", "--rdzv-backend", "c10d"),
        *("--rdzv-endpoint", "node-4:29400", "--rdzv-id", "7_3.x.1", "train.py"),
    ]
    assert not {"GLOO_SOCKET_IFNAME", "PET_LOCAL_ADDR"} & start.environ.keys()


def test_steps_that_a_killed_srun_has_left_are_ended_and_nothing_else(tmp_path):
    for name, text in (
        ("srun", SAYS_ITS_WORDS),
        ("squeue", "#!/bin/sh\nprintf '7_3.batch\\n7_3.extern\\n7_3.0\\n'\n"),
        ("scancel", f'#!/bin/sh\necho "$@" >>{tmp_path}/cancelled\n'),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    start = over_nodes(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(
        start.argv, env=start.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cancelled").read_text() == "7_3.0\n"
    assert done.stdout.splitlines()[-1] == "train.py"


def test_on_kubernetes_the_lead_starts_the_torchrun_that_the_other_pods_start_too(tmp_path):
    spec = make_spec(tmp_path, cell="x", launcher="torchrun", ranks=4, nodes=2)
    machine = Machine({}, lambda: 29400, "a-0.set", pods=3, lead=("lead", "SPEC"))
    words = launch.start(spec, machine, {}).argv
    assert words == (
        *("lead", "SPEC", sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", "2", "--nproc-per-node", "4", "--rdzv-backend", "c10d"),
        *("--rdzv-endpoint", "a-0.set:29400", "--rdzv-id", "tiny.x.1", "train.py"),
    )
    with pytest.raises(InputError, match=r"x needs 4 nodes, but its job a-0.set has 3"):
        launch.start(make_spec(tmp_path, cell="x", launcher="torchrun", nodes=4), machine, {})


@pytest.mark.parametrize("name", ["_AROUND", "_ON_EACH"])
def test_what_bash_runs_there_is_clean_for_shellcheck(name):
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [shellcheck, "--shell=bash", "-"],
        input=getattr(launch, name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_job_with_fewer_nodes_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="x needs 2 nodes, but its job 7_3 has 1: launch again"):
        over_nodes(tmp_path, SLURM_JOB_NUM_NODES="1")
