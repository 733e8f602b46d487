"""Real shells complete `boxcar` by the scripts that it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.door.shells import SCRIPTS

# What bash offers where Tab is pressed in the last of the words $1; = is a word of its own to it.
BASH = """
eval "$2"; eval "COMP_WORDS=($1)"; COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_boxcar boxcar "${COMP_WORDS[COMP_CWORD]}" ""; printf '%s\\n' "${COMPREPLY[@]}"
"""


def asked(command: list[str], folder: Path) -> list[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path, "HOME": str(folder)},
        capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert not done.stderr.replace(
        "bash: compopt: not currently executing completion function\n", ""
    )
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("boxcar la", ["launch"]),
        ("boxcar explain --profile au", ["autodl"]),
        ("boxcar explain --profile = au", ["autodl"]),
        ("boxcar explain --lang ''", ["en", "zh"]),
    ],
)
def test_bash_completes_verbs_and_values(words: str, wanted: list[str], tmp_path: Path) -> None:
    assert asked(["bash", "-c", BASH, "bash", words, SCRIPTS["bash"]], tmp_path) == wanted


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [("boxcar explain -p au", ["autodl"]), ("boxcar explain --lang ", ["en", "zh"])],
)
def test_fish_completes_values(line: str, wanted: list[str], tmp_path: Path) -> None:
    script = f"{SCRIPTS['fish']}\ncomplete -C '{line}'"
    assert asked(["fish", "-c", script], tmp_path) == wanted


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_reads_the_script(tmp_path: Path) -> None:
    script = f"autoload -Uz compinit && compinit -u\n{SCRIPTS['zsh']}\nprint $_comps[boxcar]"
    assert asked(["zsh", "-fc", script], tmp_path) == ["_boxcar"]
