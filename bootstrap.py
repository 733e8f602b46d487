"""Make `.venv` ready for `make demo` and `make test`: the package, torch for the CPU, rsync.

Standard library only, also in pip_sources.py, because nothing else is there yet. Running it again
finishes what an interrupted run left; the stamp `.venv/.ready` is written last. BOXCAR_VENV and
BOXCAR_TORCH name another folder and another version of torch (`make test-torch`); BOXCAR_CUDA=1
is the yes to a torch with CUDA where no GPU is seen and the index for the CPU does not answer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pip_sources
from pip_sources import Settings, Source

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
TORCH_CPU = Source("https://download.pytorch.org/whl/cpu", "")
# For those who do not reach these two.
MIRROR = "https://pypi.tuna.tsinghua.edu.cn/simple"
TORCH_CPU_MIRROR = "https://mirror.nju.edu.cn/pytorch/whl/cpu"
LINE_EVERY_S = 15.0
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
    python = python_with_pip()
    environment = reach_an_index(python) if python else {}
    make_venv()
    environment = environment or reach_an_index(venv_python())
    install_torch(environment)
    install_boxcar(environment)
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


def python_with_pip() -> str | None:
    """One that knows how pip is set up here, so that a dead index is told before .venv is made."""
    pythons = (venv_python(), sys.executable)
    return next((each for each in pythons if run_quietly([each, "-m", "pip", "--version"])), None)


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


def reach_an_index(python: str) -> dict[str, str]:
    """What makes pip ask only indexes that answer. Ends with a sentence where none does."""
    settings = pip_sources.settings(python)
    extra = [TORCH_CPU] if is_torch_index_needed(settings) else []
    silent = pip_sources.silent([*settings.sources, *extra], settings.proxy)
    for source in (*settings.sources, *extra):
        if source.url in silent:
            by = f", of {source.said_by}," if source.said_by else ""
            say(f"{source.shown}{by} does not answer: {silent[source.url]}")
    own = [source.url for source in settings.sources if source.url not in silent]
    if settings.sources and not own and not settings.has_links:
        stop(how_to_reach_an_index(python, " ".join(silent.values())))
    return asking(own, [source.url for source in extra if source.url not in silent])


def is_torch_index_needed(settings: Settings) -> bool:
    is_here = run_quietly([venv_python(), "-c", "import torch"])
    is_named = any(source.url.rstrip("/").endswith("/cpu") for source in settings.sources)
    return sys.platform == "linux" and bool(settings.sources) and not (is_here or is_named)


def how_to_reach_an_index(python: str, reasons: str) -> str:
    if "the proxy" in reasons:
        return (
            "pip reaches no index. Start that proxy, or take it out of HTTPS_PROXY, HTTP_PROXY, "
            "ALL_PROXY and pip config; then run the same command again"
        )
    return (
        f"pip reaches no index. From a mirror: PIP_INDEX_URL={MIRROR} make demo (for good: "
        f"{python} -m pip config set global.index-url {MIRROR})"
    )


def asking(own: list[str], extra: list[str]) -> dict[str, str]:
    """The index that pip is set to use comes first: in many places that is a mirror."""
    urls = [*own, *extra]
    if not urls:
        return {"PIP_NO_INDEX": "1"}
    # An empty variable would count as none, and pip's own settings again.
    return {"PIP_INDEX_URL": urls[0], "PIP_EXTRA_INDEX_URL": " ".join(urls[1:] or urls)}


def install_torch(environment: dict[str, str]) -> None:
    if run_quietly([venv_python(), "-c", "import torch"]):
        return
    if sys.platform == "linux" and TORCH_CPU.url not in " ".join(environment.values()):
        refuse_cuda(environment)
    say(f"installing {TORCH} for the CPU (about 200 MB, once)")
    pip(environment, "install", TORCH)


def refuse_cuda(environment: dict[str, str]) -> None:
    """Gigabytes for a GPU that is not here are a person's to say yes to."""
    has_gpu = shutil.which("nvidia-smi") is not None
    if has_gpu or os.environ.get("BOXCAR_CUDA") or not brings_cuda(environment):
        return
    what = "no index that answers has torch for the CPU; the other one brings several GB of CUDA"
    typed = f"PIP_EXTRA_INDEX_URL={TORCH_CPU_MIRROR} make demo"
    if not sys.stdin.isatty():
        stop(f"{what}. For the CPU alone: {typed}. With CUDA: BOXCAR_CUDA=1 make demo")
    say(f"{what}. For the CPU alone, from a mirror: {typed}")
    if input("[boxcar] Install it with CUDA? [y/N] ").strip().lower() not in ("y", "yes"):
        stop("nothing of torch was installed")


def brings_cuda(environment: dict[str, str]) -> bool:
    """Whether torch, as pip would take it, wants NVIDIA's packages; its metadata is read alone."""
    words = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-", TORCH]
    asked = subprocess.run(
        [venv_python(), "-m", "pip", "--disable-pip-version-check", "install", *words],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    try:
        metadata = json.loads(asked.stdout)["install"][0]["metadata"]
    except (ValueError, LookupError):
        return True  # nobody knows
    return any(name.startswith(("nvidia-", "cuda-")) for name in metadata.get("requires_dist", ()))


def install_boxcar(environment: dict[str, str]) -> None:
    say("installing boxcar and what its tests need")
    constraints = str(HERE / "constraints.txt")
    pip(environment, "install", "--constraint", constraints, "--editable", f"{HERE}[dev]")


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


def pip(environment: dict[str, str], *words: str) -> None:
    """With pip's own bar on a terminal; elsewhere a line now and then."""
    command = [venv_python(), "-m", "pip", "--disable-pip-version-check", *words]
    everything = {**os.environ, **environment}
    if sys.stdout.isatty():
        code = subprocess.run(command, env=everything, check=False).returncode
    else:
        code = run_with_lines([*command, "--quiet"], everything)
    if code:
        stop("pip could not install the above, and says why. Then run the same command again.")


def run_with_lines(command: list[str], environment: dict[str, str]) -> int:
    """What the program itself says is shown where it failed."""
    begin_s, begin_bytes = time.monotonic(), size_bytes(VENV)
    with tempfile.TemporaryDirectory(dir=VENV) as folder, tempfile.TemporaryFile() as words:
        environment = {**environment, "TMPDIR": folder}
        process = subprocess.Popen(command, env=environment, stdout=words, stderr=words)
        while is_running(process):
            size_mb, passed_s = (size_bytes(VENV) - begin_bytes) / 1e6, time.monotonic() - begin_s
            speed = f"{passed_s:.0f} s ({size_mb / passed_s:.1f} MB/s)"
            say(f"... {size_mb:.0f} MB fetched and unpacked in {speed}")
        words.seek(0)
        if process.returncode:
            sys.stderr.write(words.read().decode("utf-8", "replace"))
    return process.returncode


def is_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(LINE_EVERY_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def size_bytes(folder: Path) -> int:
    """What is below it; what goes away meanwhile counts nothing."""
    found = 0
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            with contextlib.suppress(OSError):
                found += path.lstat().st_size
    return found


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
