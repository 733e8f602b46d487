"""A pretended Slurm on the PATH, for what the real one is too slow or too healthy for.

`squeue` prints a file, `sbatch` takes a job into it as the real one would, and either does what a
word in `moods` says first: `silent`, `refuses`, `dies` (after the job was taken), `hangs`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.paths import DurablePaths
from boxcar.shared.slurm import job_comment
from boxcar.shared.slurm.job_comment import Comment
from boxcar.shared.wire.question import RunOnBox

RELEASE = "a" * 64
_SQUEUE = """#!/bin/bash
echo squeue "$@" >>{folder}/calls
case "$(cat {folder}/squeue.mood 2>/dev/null)" in
  silent) echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2
    exit 1 ;;
esac
cat {folder}/jobs 2>/dev/null
exit 0
"""
_SBATCH = """#!/bin/bash
echo sbatch "$@" >>{folder}/calls
mood="$(cat {folder}/sbatch.mood 2>/dev/null)"
case "$mood" in
  refuses) echo "sbatch: error: invalid partition specified: nosuch" >&2; exit 1 ;;
  empty) echo "allocation failure: Requested node configuration is not available" >&2; exit 1 ;;
  loses) echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1 ;;
esac
number=$(($(cat {folder}/number 2>/dev/null || echo 6) + 1))
echo "$number" >{folder}/number
for word in "$@"; do
  case "$word" in
    --array=*) indices="${{word#--array=}}" ;;
    --comment=*) comment="${{word#--comment=}}" ;;
  esac
done
for index in ${{indices//,/ }}; do
  echo "$number|$index|${{number}}_$index|PENDING|N/A||Priority|$comment" >>{folder}/jobs
done
case "$mood" in
  dies) echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1 ;;
esac
echo "$number"
"""
_SCANCEL = '#!/bin/bash\necho scancel "$@" >>{folder}/calls\n'


class Pretended:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        for name, text in (("squeue", _SQUEUE), ("sbatch", _SBATCH), ("scancel", _SCANCEL)):
            program = folder / "bin" / name
            program.write_text(text.format(folder=folder))
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        self.run = RunOnBox("digits", str(folder / "tier"), str(folder / "data"))
        self.tier: DurablePaths = self.run.tier
        release = self.tier.release(RELEASE)
        release.mkdir(parents=True)
        (release / "run_slurm.sh").write_text("#!/bin/sh\n")

    def mood(self, program: str, word: str) -> None:
        (self.folder / f"{program}.mood").write_text(word)

    def has(self, *rows: str, token: str = "0" * 16, run: str = "digits") -> None:
        """Slurm has these tasks of ours, each `array|index|task|state|start|node|reason`."""
        tier = job_comment.tier_id(str(self.tier.root))
        comment = Comment(run, tier, RELEASE, token)
        lines = [f"{row}|{comment}\n" for row in rows]
        (self.folder / "jobs").write_text("".join(lines))

    def calls(self, program: str) -> list[str]:
        try:
            said = (self.folder / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in said if line.startswith(f"{program} ")]

    def later(self) -> None:
        """squeue may be asked again."""
        self.tier.slurm_seen.unlink(missing_ok=True)
