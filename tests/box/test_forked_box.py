"""What the tests believe of answers that are forked in a box."""

from __future__ import annotations

from pathlib import Path

from hosts import BOX_ROOT, Hosts
from rented import PYTHON, QUICK, rent

from boxcar.laptop.release import archives

AGENT = BOX_ROOT / "data" / "agent.pyz"
NOT_OURS = b"import os, sys; print(sys.argv[1:], 'by python'); sys.exit(3)\n"


def test_an_answer_is_the_agents_own_word_for_word(one_box: Hosts, tmp_path: Path) -> None:
    rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one"]})
    one_box.seen("box-a", AGENT).write_bytes(archives.build_onbox())
    one_box.seen("box-a", QUICK / "quick.py").unlink()  # now only what is forked can answer
    question = b'{"ask": "nothing that is known"}'
    words = ["-I", "-S", str(AGENT), "answer"]
    forked, real = (
        one_box.run("box-a", [python, *words], question)
        for python in (str(QUICK / "python"), PYTHON)
    )
    assert (forked.stdout, forked.stderr) == (real.stdout, real.stderr)
    assert b"BOXCAR-ANSWER" in real.stdout


def test_what_is_not_the_agents_file_is_run_by_python(one_box: Hosts, tmp_path: Path) -> None:
    rent(one_box, tmp_path / "project", {"q1": ["configs/a.json one"]})
    one_box.seen("box-a", AGENT).write_bytes(NOT_OURS)
    words = [str(QUICK / "python"), "-I", "-S", str(AGENT), "answer"]
    done = one_box.run("box-a", words, check=False)
    assert (done.returncode, done.stdout) == (3, b"['answer'] by python\n")
