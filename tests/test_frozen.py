"""Words that lie on people's machines, in their crontabs and in their scripts: they do not change.

A module may be renamed; these may not. Whoever adds a verb, a flag or a variable adds it here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.door.verb_table import VERBS as TABLE
from onbox.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
VERBS = {
    "demo": "",
    "init": "script yes run-help",
    "plan": "profile p job json",
    "split": "profile p job speed minutes write json",
    "grid": "cfg profile p job task epochs set queue configs write json",
    "smoke": "profile p job cell all json",
    "rehearse": "profile p job cell kills seed tolerance json",
    "audit": "profile p job box data all json",
    "data": "profile p job box remove json",
    "push": "profile p job mixed json",
    "launch": "profile p job box start-index no-smoke beside setup gone because json",
    "status": "profile p job all json",
    "watch": "profile p job every once-if-changed json",
    "cost": "profile p job all json",
    "board": "profile p job serve port to logs beside json",
    "tb": "profile p job",
    "logs": "cell profile p job follow f lines json",
    "pull": "profile p job cell bwlimit from all json",
    "verify": "profile p job allow-pickle all json",
    "runs": "all json",
    "sentinel": "",
    "report": "profile p job to metric baseline sort run incomplete all json",
    "export": "profile p job to out run incomplete json",
    "down": "profile p job abandon gone because approve rotated seen-off verb all json",
    "orphans": "end json",
    "offers": "profile p job spot max-price json",
    "up": "profile p job boxes max-price hours spot approve replace",
    "drain": "profile p job queue box",
    "stop": "profile p job queue box",
    "render": "profile p job for user out hours",
    "move": "profile p job cell queue gone because json",
    "repair": "profile p job put-back json",
    "notify": "profile p job test from only json",
    "listen": "port through",
    "explain": "about profile p job cell box lang json",
    "triage": "log rc add job json",
    "check-profiles": "json",
    "skill": "",
}
ONBOX = {"agent", "attempt", "deliver", "follow", "answer", "resume", "gpus"}
# What run_queue.sh, people's scripts and their shells say and read.
VARIABLES = {
    "BOXCAR_AGENT_PYTHON",
    "BOXCAR_ATTEMPT_ID",
    "BOXCAR_CELL",
    "BOXCAR_CREDENTIALS",
    "BOXCAR_DATA_DIR",
    "BOXCAR_DEBUG_HANGS",
    "BOXCAR_FOLLOWS",
    "BOXCAR_ONE_CELL",
    "BOXCAR_OUT",
    "BOXCAR_PROFILE",
    "BOXCAR_REHEARSE_LIFE",
    "BOXCAR_REHEARSE_ORDER",
    "BOXCAR_REHEARSE_WORK",
    "BOXCAR_REHEARSE_WRITES",
    "BOXCAR_RESUME",
    "BOXCAR_RESUBMITS",
    "BOXCAR_RUN",
    "BOXCAR_SLURM",
    "BOXCAR_WEBHOOK_SECRET",
    "BOXCAR_WEBHOOK_URL",
}


def verbs() -> dict[str, set[str]]:
    sys.path.insert(0, str(ROOT))
    try:
        from tasks import namespace
    finally:
        sys.path.remove(str(ROOT))
    return {
        name: {flag for argument in task.get_arguments() for flag in argument.names}
        for name, task in namespace.tasks.items()
    }


def test_every_verb_and_flag_can_be_typed_and_a_new_one_is_written_down_here() -> None:
    expected = {name: set(flags.split()) for name, flags in VERBS.items()}
    assert verbs() == expected
    spelled = {verb.name: {word.lstrip("-") for word in verb.spelled} for verb in TABLE.values()}
    assert spelled == expected


def test_every_file_of_verbs_with_a_verb_in_it_is_a_task() -> None:
    """A verb's file has a function of its name; those of a verb's parts are given its open site."""
    files = (ROOT / "boxcar" / "laptop" / "verbs").glob("*.py")
    verb = r"^def {}\((?!\s*site:)"
    names = {
        path.stem
        for path in files
        if re.search(verb.format(path.stem), path.read_text("utf-8"), re.MULTILINE)
    }
    found = {name.replace("_", "-") for name in names}
    # `skill` is made of the door's own table.
    assert found - {"next-step"} == set(verbs()) - {"skill"}


def test_the_entry_point_is_where_installed_scripts_look_for_it() -> None:
    assert 'boxcar = "boxcar.cli:program.run"' in (ROOT / "pyproject.toml").read_text()
    from boxcar.cli import program

    assert callable(program.run)


@pytest.mark.parametrize("word", sorted(ONBOX))
def test_every_subcommand_of_onbox_can_be_typed(word: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word, "--help"])
    assert ended.value.code == 0
    assert f"onbox {word}" in capsys.readouterr().out


def test_a_crontab_that_resumes_after_a_reboot_is_understood(tmp_path: Path) -> None:
    # docs/boxes.md tells people to type this.
    command = [sys.executable, "-m", "onbox", "resume", "--data-dir", str(tmp_path)]
    assert subprocess.run(command, cwd=ROOT, check=False, timeout=LIMIT_S).returncode == 0


def test_every_variable_of_before_is_still_spelled() -> None:
    files = subprocess.run(
        ["git", "ls-files", "boxcar", "onbox", "templates", "box", "docs", "examples"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    text = "\n".join((ROOT / name).read_text("utf-8", "replace") for name in files)
    assert set(VARIABLES) <= set(re.findall(r"BOXCAR_[A-Z_]+", text))
