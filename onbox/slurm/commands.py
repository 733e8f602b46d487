"""Slurm's own commands, run within bounds. Raises InputError where there are none here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

TIMEOUT_S = 25.0
# Where sites have them that give the path to login shells only.
_USUAL = ("/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin", "/cm/shared/bin")
# Which cluster is meant. Not SBATCH_*: these would change what the batch script asks for.
_KEPT = ("SLURM_CONF", "SLURM_CLUSTERS", "MODULEPATH", "MODULESHOME")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return (self.err or self.out).strip()[-500:] or f"code {self.code}, and no output"


def run(program: str, *words: str, timeout_s: float = TIMEOUT_S) -> Ran:
    """Run it to its end. Raises TemporaryError where it gave no answer in time."""
    env = environment(os.environ)
    found = shutil.which(program, path=env["PATH"])
    if found is None:
        raise InputError(
            _(
                "there is no {program} on {nodename}: expected a login node of the cluster. Name "
                "its alias in your ~/.ssh/config as slurm: {{login: …}}, in job.yaml or in the "
                "profile",
                program=program,
                nodename=os.uname().nodename,
            )
        )
    try:
        done = subprocess.run(
            [found, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TemporaryError(
            _(
                "{program} gave no answer in {timeout_s:.0f} s: Slurm is not reachable at the "
                "moment",
                program=program,
                timeout_s=timeout_s,
            )
        ) from None
    return Ran(done.returncode, done.stdout, done.stderr)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Slurm's commands get, and with it every job: nothing else of a person's shell."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    path = environ.get("PATH") or os.defpath
    return clean_environment(environ) | kept | {"PATH": os.pathsep.join([path, *_USUAL])}
