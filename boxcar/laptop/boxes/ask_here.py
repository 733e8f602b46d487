"""What `onbox answer` says on this machine: in a child, as on a rented box."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.release import archives
from boxcar.shared.disk import atomic
from boxcar.shared.errors import TemporaryError
from boxcar.shared.wire import envelope
from boxcar.shared.wire.question import A, Question, RunOnBox


def ask(
    command: list[str],
    who: str,
    question: Question[A],
    run: RunOnBox,
    *,
    environ: Mapping[str, str],
    timeout_s: float,
) -> A:
    """`command` starts the agent's file, `who` is named where nothing answers. Secrets travel on
    stdin. Raises what envelope.read_answer raises, and TemporaryError.
    """
    try:
        done = subprocess.run(
            [*command, "answer"],
            input=envelope.write_question(question, run),
            capture_output=True,
            timeout=timeout_s,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        told = f"{who}: {question.NAME} had no answer in {timeout_s:.0f} s"
        raise TemporaryError(told) from None
    err = done.stderr.decode("utf-8", "replace")
    return envelope.read_answer(question, who, done.returncode, done.stdout, err)


def agents_file(home: Home) -> Path:
    """The agent as it would be shipped, written once for each content."""
    data = archives.build_onbox()
    path = home.agent(archives.file_name("onbox", data, ".pyz"))
    if not path.exists():
        atomic.make_folder(path.parent)
        atomic.write_whole(path, data)
    return path


def command(python: str, agent: Path) -> list[str]:
    return [python, "-I", "-S", str(agent)]
