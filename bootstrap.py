"""Make `.venv` ready for `make demo` and `make test`: the package, torch for the CPU, rsync.

Standard library only, because nothing else is there yet. Running it again finishes what an
interrupted run left; the stamp `.venv/.ready` is written last. BOXCAR_VENV and BOXCAR_TORCH name
another folder and another version of torch (`make test-torch`).
"""

from __future__ import annotations

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
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
HERE = Path(__file__).resolve().parent
VENV = HERE / os.environ.get("BOXCAR_VENV", ".venv")
STAMP = VENV / ".ready"
TORCH = "torch==" + os.environ.get("BOXCAR_TORCH", "2.13.0")
# On Linux the default index serves torch with several GB of CUDA; this one serves it for the CPU.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
DEFAULT_INDEX = "https://pypi.org/simple"
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
    if (VENV / "bin" / "python").exists() and run_quietly(
        [venv_python(), "-m", "pip", "--version"]
    ):
        return
    say(f"making {VENV.name} with Python {platform.python_version()}")
    if not run_quietly([sys.executable, "-m", "venv", "--clear", str(VENV)]):
        stop(
            "this Python has no venv module. Type: "
            f"sudo apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        )


def install_torch() -> None:
    if run_quietly([venv_python(), "-c", "import torch"]):
        return
    say(f"installing {TORCH} for the CPU (about 200 MB, once)")
    index: list[str] = []
    if sys.platform == "linux":
        # One attempt at the CPU index: where it cannot be reached, pip says so and goes on.
        index = ["--index-url", TORCH_CPU_INDEX, "--extra-index-url", default_index()]
    pip("install", TORCH, "--retries", "1", *index)


def default_index() -> str:
    """The index that this machine's pip is set to use (a mirror, in many places), else PyPI."""
    asked = subprocess.run(
        [venv_python(), "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    return os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or DEFAULT_INDEX


def install_boxcar() -> None:
    say("installing boxcar and what its tests need")
    pip("install", "--constraint", str(HERE / "constraints.txt"), "--editable", f"{HERE}[dev]")


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


def pip(*words: str) -> None:
    command = [venv_python(), "-m", "pip", "--disable-pip-version-check", *words, "--quiet"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        stop("pip could not install the above. Check the network, then run the same command again.")


def run_quietly(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def venv_python() -> str:
    return str(VENV / "bin" / "python")


def say(text: str) -> None:
    print(f"[boxcar] {text}", flush=True)


def stop(text: str) -> None:
    say(text)
    sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
