"""`python -m bench.set_up`: installs what the bench measures beside ours, where that may be.

What is missing then is a line with its reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bootstrap

LIBRARIES = (
    *("-m", "pip", "install", "--disable-pip-version-check", "--quiet"),
    *("--constraint", "constraints.txt", "--editable", ".[bench]"),
)
# Packages of Debian and Ubuntu, by the program.
PROGRAMS = {"tsp": "task-spooler", "parallel": "parallel", "rclone": "rclone"}
# In an image that starts no service because it was installed.
_NO_SERVICES = Path("/usr/sbin/policy-rc.d")
_PATH = os.environ.get("PATH", "") + os.pathsep + bootstrap.SYSTEM_FOLDERS


def main() -> None:
    subprocess.run([sys.executable, *LIBRARIES], check=False)
    if (missing := missing_packages()) and os.geteuid() == 0 and shutil.which("apt-get"):
        bootstrap.say(f"installing {', '.join(missing)} with apt-get")
        bootstrap.run_quietly(["apt-get", "update", "-q"])
        for name in missing:  # one that cannot be had must not cost the others
            bootstrap.run_quietly(
                ["apt-get", "install", "-y", "-q", "--no-install-recommends", name]
            )
    if missing := missing_packages():
        bootstrap.say(f"without these their rows are empty: apt-get install {' '.join(missing)}")


def missing_packages() -> list[str]:
    missing = [name for program, name in PROGRAMS.items() if not _has(program)]
    is_slurm_allowed = _NO_SERVICES.exists() and not _has("slurmctld")
    return [*missing, *(bootstrap.SLURM if is_slurm_allowed else ())]


def _has(program: str) -> bool:
    return shutil.which(program, path=_PATH) is not None


if __name__ == "__main__":
    main()
