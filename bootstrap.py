"""Make `.venv` ready for `make demo` and `make test`: the package, torch, rsync.

Standard library only, because nothing else is there yet. Running it again finishes what an
interrupted run left; the stamp `.venv/.ready` is written last. BOXCAR_VENV and BOXCAR_TORCH name
another folder and another version of torch (`make test-torch`); BOXCAR_MIRROR=1 takes all from
mirrors in China.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# What the tests of boxes over ssh need, by the program that shows it.
TEST_TOOLS = {
    "sshd": "openssh-server",
    "tmux": "tmux",
    "ip": "iproute2",
    "iptables": "iptables",
    "fish": "fish",
}
# Of Debian and Ubuntu: a real Slurm for tests, with accounting.
SLURM = ("slurmctld", "slurmd", "slurm-client", "munge", "slurmdbd", "mariadb-server")
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
HERE = Path(__file__).resolve().parent
VENV = HERE / os.environ.get("BOXCAR_VENV", ".venv")
STAMP = VENV / ".ready"
TORCH = "torch==" + os.environ.get("BOXCAR_TORCH", "2.13.0")
# On Linux the default index serves torch with several GB of CUDA; this one serves it for the CPU.
TORCH_CPU = "https://download.pytorch.org/whl/cpu"
# For those who do not reach these two.
MIRROR = "https://pypi.tuna.tsinghua.edu.cn/simple"
TORCH_CPU_MIRROR = "https://mirror.nju.edu.cn/pytorch/whl/cpu"
OLDEST = (3, 10)
NEWER = ("python3.13", "python3.12", "python3.11", "python3.10")
RSYNC_INSTALLERS = (
    ("apt-get", ["apt-get", "install", "-y", "-q", "rsync"]),
    ("dnf", ["dnf", "install", "-y", "-q", "rsync"]),
    ("apk", ["apk", "add", "-q", "rsync"]),
    ("pacman", ["pacman", "-S", "--noconfirm", "rsync"]),
    ("brew", ["brew", "install", "rsync"]),
)


def main() -> int:
    use_a_new_enough_python()
    make_venv()
    install_torch()
    install_boxcar()
    ensure_rsync()
    install_test_tools()
    say_how_to_get_slurm()
    STAMP.write_text(f"{platform.python_version()}\n", encoding="utf-8")
    say(f"ready: {VENV.name}/bin/invoke --list shows the verbs")
    return 0


def use_a_new_enough_python() -> None:
    if sys.version_info >= OLDEST:
        return
    for name in NEWER:
        found = shutil.which(name)
        # A pyenv shim is on the PATH even where that version is not selected: ask it.
        if found and run_quietly([found, "-c", ""]):
            os.execv(found, [found, str(Path(__file__).resolve())])
    stop(
        f"Boxcar needs Python 3.10 or newer; {sys.executable} is {platform.python_version()}. "
        "Install one and type: make PYTHON=/path/to/python3 demo"
    )


def make_venv() -> None:
    if run_quietly([venv_python(), "-m", "pip", "--version"]):
        return
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        stop(how_to_get_venv())
    say(f"making {VENV.name} with Python {platform.python_version()}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False)
    if made.returncode:
        stop(f"{sys.executable} could not make {VENV}; it says above why.")


def how_to_get_venv() -> str:
    """Debian and Ubuntu leave both out of python3, and pip as well."""
    version = "{}.{}".format(*sys.version_info)
    if shutil.which("apt-get"):
        words = f"sudo apt-get install python{version}-venv"
    else:
        words = "make PYTHON=/path/to/another/python3 demo"
    return f"{sys.executable} has no pip and cannot make a virtual environment. Type: {words}"


def install_torch() -> None:
    """Gigabytes of CUDA only where a GPU is seen: the wheel is named so that no other will do."""
    if run_quietly([venv_python(), "-c", "import torch"]):
        return
    if shutil.which("nvidia-smi") or sys.platform != "linux":
        say(f"installing {TORCH} (once; for a GPU several GB)")
        pip("install", TORCH)
        return
    index = TORCH_CPU_MIRROR if os.environ.get("BOXCAR_MIRROR") else TORCH_CPU
    wheel = TORCH + "+cpu" * (platform.machine() == "x86_64")  # elsewhere some have no such name
    say(f"installing {TORCH} for the CPU (about 200 MB, once)")
    pip("install", "--extra-index-url", index, wheel)


def install_boxcar() -> None:
    say("installing boxcar and what its tests need")
    constraints = str(HERE / "constraints.txt")
    pip("install", "--constraint", constraints, "--editable", f"{HERE}[dev]")


def ensure_rsync() -> None:
    if shutil.which("rsync"):
        return
    for program, command in RSYNC_INSTALLERS:
        if not shutil.which(program):
            continue
        allowed = program == "brew" or os.geteuid() == 0
        if allowed and install_rsync(program, command):
            return
        words = " ".join(command) if program == "brew" else "sudo " + " ".join(command)
        stop(f"rsync is missing and could not be installed from here. Type: {words}")
    stop("rsync is missing: install it with this system's package manager, then run make again.")


def install_rsync(program: str, command: list[str]) -> bool:
    say(f"installing rsync with {program}")
    if program == "apt-get":
        run_quietly(["apt-get", "update", "-q"])
    return run_quietly(command)


def install_test_tools() -> None:
    """Without them the tests of boxes over ssh are skipped and say so; nothing else needs them."""
    path = os.environ.get("PATH", "") + os.pathsep + SYSTEM_FOLDERS
    missing = [name for tool, name in TEST_TOOLS.items() if not shutil.which(tool, path=path)]
    # Only in an image that starts no service on installing it: a person's own machine shall not
    # begin to listen for logins because somebody typed `make`.
    allowed = os.geteuid() == 0 and Path("/usr/sbin/policy-rc.d").exists()
    if missing and allowed and shutil.which("apt-get"):
        run_quietly(["apt-get", "update", "-q"])
        for name in missing:  # one that cannot be had must not cost the others
            run_quietly(["apt-get", "install", "-y", "-q", "--no-install-recommends", name])


def say_how_to_get_slurm() -> None:
    """Not installed by itself: its daemons would start on a person's own machine."""
    path = os.environ.get("PATH", "") + os.pathsep + SYSTEM_FOLDERS
    if shutil.which("apt-get") and not shutil.which("slurmctld", path=path):
        words = f"apt-get install {' '.join(SLURM)}"
        say(f"without Slurm its tests are skipped; nothing else needs it. To have it: {words}")


def pip(*words: str) -> None:
    """By the indexes that pip is set to; a terminal gets its bar, a log its lines."""
    command = [venv_python(), "-m", "pip", "--disable-pip-version-check", *words]
    environment = dict(os.environ)
    if os.environ.get("BOXCAR_MIRROR"):
        environment.setdefault("PIP_INDEX_URL", MIRROR)
    if subprocess.run(command, env=environment, check=False).returncode:
        stop(
            "pip could not install the above, and says why. Then run the same command again; in "
            "China, or where no index answers: BOXCAR_MIRROR=1 make demo"
        )


def run_quietly(command: list[str]) -> bool:
    """Whether it ended well; a program that is not there did not."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def venv_python() -> str:
    return str(VENV / "bin" / "python")


def say(text: str) -> None:
    print(f"[boxcar] {text}", flush=True)


def stop(text: str) -> None:
    say(text)
    sys.exit(2)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\n[boxcar] interrupted; the same command again finishes it")
