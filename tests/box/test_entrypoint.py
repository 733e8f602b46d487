"""box/entrypoint.sh as a container's first process, above this machine's own files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from container import ENTRYPOINT, PATH, Container, a_container, make_key

SCRIPT = Path(__file__).resolve().parents[2] / "box" / "entrypoint.sh"
SSHD_CONFIG = SCRIPT.with_name("sshd.conf")
# Stands for the agent's archive: writes down what it is asked, and as an agent waits for TERM.
ARCHIVE = """
import pathlib, signal, sys, time
folder = pathlib.Path(__file__).parent
with (folder / "asked").open("a") as asked:
    print(pathlib.Path(__file__).name, *sys.argv[1:], file=asked)
if sys.argv[1] == "resume":
    sys.exit(int((folder / "exit_code").read_text()))
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
(folder / f"{sys.argv[1]}-runs").touch()
while not told:
    time.sleep(0.01)
time.sleep(0.3)
(folder / f"{sys.argv[1]}-saved").touch()
"""


@pytest.fixture(scope="module")
def rsa_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: to find its primes takes longer than all the rest of a container's start."""
    path = tmp_path_factory.mktemp("rsa") / "ssh_host_rsa_key"
    make_key(path, "rsa")
    return path


@pytest.fixture
def container(tmp_path: Path, rsa_key: Path) -> Iterator[Container]:
    """Not started yet, without the keys and habits of whoever runs the tests."""
    if not shutil.which("sshd", path=PATH):
        pytest.skip("not installed: openssh-server")
    with a_container(Path("/"), tmp_path) as made:
        for name in ("/etc/ssh", "/root/.ssh"):
            shutil.rmtree(made.seen(name), ignore_errors=True)
        for name in (".bashrc", ".profile", ".bash_profile"):
            made.seen(f"/root/{name}").unlink(missing_ok=True)
        made.seen("/etc/ssh/sshd_config.d").mkdir(parents=True)
        config = "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n"
        made.seen("/etc/ssh/sshd_config").write_text(config)
        shutil.copy(rsa_key, made.seen("/etc/ssh"))
        shutil.copy(SSHD_CONFIG, made.seen("/etc/ssh/sshd_config.d/boxcar.conf"))
        shutil.copy(SCRIPT, made.seen(ENTRYPOINT))
        yield made


def _archives(container: Container, *names: str, exit_code: int = 0) -> Path:
    """These archives on the box's disk, the first one the oldest."""
    folder = container.seen("/box-data/boxcar")
    folder.mkdir(parents=True)
    (folder / "exit_code").write_text(str(exit_code))
    for at, name in enumerate(names, 1):
        (folder / name).write_text(ARCHIVE)
        os.utime(folder / name, (at, at))
    return folder


def _start_verb(container: Container, verb: str, program: str = "onbox-1.pyz") -> None:
    """As a launch over ssh does it: in a session of its own, whose parent is gone."""
    command = f"setsid python3 -I -S /box-data/boxcar/{program} {verb} </dev/null >/dev/null 2>&1 &"
    assert container.run("sh", "-c", command).returncode == 0
    runs = container.seen(f"/box-data/boxcar/{verb}-runs")
    container.wait_for(f"the {verb}", runs.exists)


def test_the_entry_point_is_clean_for_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert os.access(SCRIPT, os.X_OK)


def test_the_given_key_logs_in_and_a_password_does_not(container: Container) -> None:
    container.start()
    container.wait_for_ssh()
    assert container.ssh("id -un").stdout == "root\n"
    modes = container.ssh("stat -c %a /root/.ssh /root/.ssh/authorized_keys /etc/ssh/*_key").stdout
    assert set(modes.split()) == {"700", "600"}
    effective = container.run("sshd", "-T").stdout.splitlines()
    assert {"passwordauthentication no", "permitrootlogin without-password"} <= set(effective)
    assert "kbdinteractiveauthentication no" in effective


def test_a_restart_keeps_the_host_key_and_adds_no_key_twice(container: Container) -> None:
    keys = container.seen("/root/.ssh/authorized_keys")
    keys.parent.mkdir()
    keys.write_text("# a last line without its end")
    seen = []
    for _ in range(2):
        container.start("true")
        assert container.wait() == 0
        seen.append(container.seen("/etc/ssh/ssh_host_ed25519_key.pub").read_text())
    assert seen[0] == seen[1]
    assert keys.read_text() == f"# a last line without its end\n{container.public_key}\n"


def test_only_public_keys_are_taken_and_the_pod_s_own_come_before_the_account_s(
    container: Container, tmp_path: Path
) -> None:
    make_key(tmp_path / "second")
    second = (tmp_path / "second.pub").read_text().strip()
    pasted = container.key.read_text()
    mine = f"{container.public_key}\r\n\nnot a key\n{pasted}{second}"
    container.start("true", PUBLIC_KEY="ssh-ed25519 of-the-account", SSH_PUBLIC_KEY=mine)
    assert container.wait() == 0
    keys = container.seen("/root/.ssh/authorized_keys").read_text()
    assert keys == f"{container.public_key}\n{second}\n"
    assert "is no public key" in container.log


def test_a_box_without_a_key_says_so_and_comes_up(container: Container) -> None:
    container.start("sh", "-c", "exit 7", PUBLIC_KEY="")
    assert container.wait() == 7
    assert "set PUBLIC_KEY" in container.log


def test_a_session_has_the_container_s_environment_without_what_may_be_secret(
    container: Container,
) -> None:
    given = {
        "PATH": f"/opt/it's conda/bin:{PATH}",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
        "CUDA_VERSION": "12.4.1",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "RUNPOD_POD_ID": "abc123",
        "RUNPOD_GPU_NAME": "one GPU #1 $HOME `id` 多",
        "VAST_TCP_PORT_22": "41022",
        "CONTAINER_ID": "77",
        "BOXCAR_DATA_DIR": "/box-data",
    }
    kept_back = {
        "RUNPOD_API_KEY": "hush",
        "VAST_API_KEY": "hush",
        "CONTAINER_API_KEY": "hush",
        "RUNPOD_SECRET_wandb": "hush",
        "NVIDIA_TOKEN": "hush",
        "WANDB_API_KEY": "hush",
        "MY_OWN": "hush",
    }
    unsayable = {"NVIDIA_QUOTE": 'a "b', "CUDA_LINES": "a\nPermitRootLogin yes", "NCCL_B": "a\\"}
    container.start(**given, **kept_back, **unsayable)
    container.wait_for_ssh()
    session = dict(line.split("=", 1) for line in container.ssh("env").stdout.splitlines())
    assert {name: session.get(name) for name in given} == given
    assert not {*kept_back, *unsayable} & set(session)
    assert all(f"{name} has a quote" in container.log for name in unsayable)
    login = container.ssh("sh -lc 'echo \"$PATH\"'").stdout
    assert login == f"{given['PATH']}\n"
    written = [*container.seen("/etc/ssh").rglob("*"), *container.seen("/etc/profile.d").rglob("*")]
    assert not [path for path in written if path.is_file() and b"hush" in path.read_bytes()]


def test_a_restart_resumes_the_agents_by_the_newest_archive(container: Container) -> None:
    folder = _archives(container, "onbox-9.pyz", "onbox-1.pyz", "onbox-5.pyz")
    os.utime(folder / "onbox-1.pyz", (9, 9))
    container.start("true", BOXCAR_DATA_DIR="/box-data")
    assert container.wait() == 0
    assert (folder / "asked").read_text() == "onbox-1.pyz resume --data-dir /box-data\n"


@pytest.mark.parametrize(
    ("names", "data_dir", "said"),
    [
        (("onbox-1.pyz",), "", "BOXCAR_DATA_DIR is not set"),
        (("onbox-1.pyz",), "/box-data", "the agents were not resumed"),
        ((), "/box-data", ""),
    ],
)
def test_a_box_whose_agents_cannot_be_resumed_still_comes_up(
    container: Container, names: tuple[str, ...], data_dir: str, said: str
) -> None:
    _archives(container, *names, exit_code=3)
    container.start("sh", "-c", "exit 7", BOXCAR_DATA_DIR=data_dir)
    assert container.wait() == 7
    assert said in container.log
    assert "resumed" in container.log or not said


def test_stopping_the_container_waits_until_agents_and_cells_have_saved(
    container: Container,
) -> None:
    folder = _archives(container, "onbox-1.pyz")
    program = "run/wrapper/0a1b/program/onbox/begin.py"  # as run_one.sh becomes it
    (folder / program).parent.mkdir(parents=True)
    (folder / program).write_text(ARCHIVE.replace("__file__", repr("/box-data/boxcar/onbox-1.pyz")))
    container.start()
    container.wait_for_ssh()
    _start_verb(container, "agent")
    _start_verb(container, "attempt", program)  # one whose agent is dead: nobody else would tell it
    container.stop()
    assert (folder / "agent-saved").exists()
    assert (folder / "attempt-saved").exists()


def test_the_end_of_the_given_command_is_the_end_of_the_box(container: Container) -> None:
    folder = _archives(container, "onbox-1.pyz")
    container.start("sh", "-c", "until [ -e /end ]; do sleep 0.05; done; exit 7")
    container.wait_for_ssh()
    _start_verb(container, "agent")
    container.seen("/end").touch()
    assert container.wait() == 7
    assert (folder / "agent-saved").exists()


def test_the_given_command_is_told_to_stop_and_its_exit_code_is_the_container_s(
    container: Container,
) -> None:
    command = "trap 'sleep 0.2; exit 9' TERM; touch /ready; while :; do sleep 0.05; done"
    container.start("sh", "-c", command)
    container.wait_for("the command", container.seen("/ready").exists)
    assert container.stop() == 9


def test_the_given_command_has_the_container_s_stdin(container: Container) -> None:
    container.start("sh", "-c", "read -r code; exit $code", typed=b"6\n")
    assert container.wait() == 6


def test_run_again_in_a_running_container_it_ends_nothing(container: Container) -> None:
    folder = _archives(container, "onbox-1.pyz")
    container.start()
    container.wait_for_ssh()
    _start_verb(container, "agent")
    env = {"PUBLIC_KEY": container.public_key, "VAST_CONTAINERLABEL": "C.77"}
    done = container.run(ENTRYPOINT, "true", **env)
    assert done.returncode == 0
    assert "port 22 is served already" in done.stderr
    assert not (folder / "agent-saved").exists()
    look = "echo $VAST_CONTAINERLABEL"
    container.wait_for("the new settings", lambda: container.ssh(look).stdout == "C.77\n")


def test_orphans_that_end_are_reaped(container: Container) -> None:
    container.start()
    container.wait_for_ssh()
    assert container.ssh("for n in 1 2 3; do setsid sh -c 'sleep 0.05 & exit' & done").stdout == ""
    states = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
    container.wait_for(
        "no zombies", lambda: container.run("sh", "-c", states).stdout.strip() == "0"
    )
