"""Real shells complete `boxcar` by the scripts that it prints."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S, until

from boxcar.door.completion import SCRIPTS

# What bash offers where Tab is pressed in the last of the words $1; = is a word of its own to it.
BASH = """
eval "$2"; eval "COMP_WORDS=($1)"; COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_boxcar boxcar "${COMP_WORDS[COMP_CWORD]}" ""; printf '%s\\n' "${COMPREPLY[@]}"
"""

# ^X writes down the line as it stands.
TELL = """
tell() { print -r "<$BUFFER>" > said }; zle -N tell; bindkey '^X' tell; : > bound
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


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("boxcar la", "boxcar launch "),
        ("boxcar explain --profile au", "boxcar explain --profile autodl "),
        ("boxcar explain --profile=au", "boxcar explain --profile=autodl "),
        ("boxcar plan --job only-h", "boxcar plan --job only-here.yaml "),
        ("boxcar split --speed ", "boxcar split --speed box-a="),
    ],
)
def test_tab_in_zsh_completes_the_line(typed: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("queues: {queues/q.txt: box-a}\n")
    (tmp_path / "only-here.yaml").touch()
    (tmp_path / "rc").write_text(f"{SCRIPTS['zsh']}\n{TELL}")
    pid, terminal = pty.fork()
    if pid == 0:
        _be_zsh(tmp_path)
    try:
        os.write(terminal, b"source ./rc\n")
        until((tmp_path / "bound").exists, "the script was read")
        os.write(terminal, f"{typed}\t\x18".encode())
        until((tmp_path / "said").exists, "the completed line")
        until(lambda: (tmp_path / "said").read_text() == f"<{wanted}>\n", wanted)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _be_zsh(folder: Path) -> None:
    """In the child: never comes back."""
    try:
        os.chdir(folder)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ.update(PATH=path, HOME=str(folder), TERM="dumb")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    finally:
        os._exit(99)
