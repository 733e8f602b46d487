from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from onbox.cell.wrapper import program

ROOT = Path(__file__).parents[4]
# Each costs as much as a good part of a bare Python's start.
HEAVY = {"argparse", "dataclasses", "json", "pathlib", "re", "subprocess", "typing", "datetime"}
HEAVY |= {"hashlib", "importlib.util"}
GROUP = "import onbox.cell.wrapper.waiting as w; w.Prepared('x').end()"
LOADED = """\
import sys
sys.path.append({root!r})
{imports}
print(*sys.modules)
"""
MORE = (
    *("onbox.cell.wrapper.failed", "onbox.cell.wrapper.overtaken", "onbox.cell.wrapper.watch"),
    *("onbox.cell.wrapper.waiting", "onbox.machine.secret_env"),
)


def loaded(*modules: str) -> set[str]:
    return loaded_by("\n".join(f"import {module}" for module in modules))


def loaded_by(imports: str) -> set[str]:
    script = LOADED.format(root=str(ROOT), imports=imports)
    words = [sys.executable, "-I", "-S", "-c", script]
    return set(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] in ("boxcar", "onbox")}


def test_a_start_loads_what_it_needs_and_no_more():
    found = loaded("onbox.cell.wrapper.words")
    assert ours(found) == set(program.FIRST)
    assert not (found | loaded("onbox.machine.secret_env")) & HEAVY


def test_its_group_is_made_without_what_is_heavy():
    assert not loaded_by(GROUP) & HEAVY


def test_what_a_longer_cell_brings_is_staged_too():
    assert ours(loaded("onbox.cell.wrapper.words", *MORE)) == {*program.FIRST, *program.LATER}
    assert len({*program.FIRST, *program.LATER}) == len((*program.FIRST, *program.LATER))


def started(staged: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(staged / program.BEGIN), "attempt", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def all_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_its_bytecode_is_made_once_and_never_taken_for_another_text(staged):
    assert "usage: onbox attempt" in started(staged).stderr
    made = {path for path in all_files(staged) if path.suffix == ".pyc"}
    stamps = {path: path.stat().st_mtime_ns for path in made}
    assert "usage: onbox attempt" in started(staged).stderr
    assert {path: path.stat().st_mtime_ns for path in made} == stamps != {}
    source = staged / "onbox/cell/wrapper/words.py"
    before = source.read_bytes()
    source.write_bytes(b"raise SystemExit('changed')".ljust(len(before)))
    assert "changed" in started(staged).stderr
    source.write_bytes(before)
    os.utime(source, (0, 0))  # as it is put back
    assert "usage: onbox attempt" in started(staged).stderr


def test_what_is_not_staged_is_found_in_the_agents_file(staged, tmp_path):
    done = started(
        staged, *("--release", str(tmp_path), "--box", "b", "--cell", "c"), "--attempt", "1"
    )
    assert "plan.json" in done.stderr
    assert done.returncode != 0
    for archive in tmp_path.glob("*.pyz"):
        with zipfile.ZipFile(archive) as opened:
            assert "onbox/cell/wrapper/planned.py" in opened.namelist()
    assert not (staged / "onbox/cell/wrapper/planned.py").exists()


def test_nothing_that_lies_there_takes_the_place_of_pythons_own(staged):
    (staged / "signal.py").write_text("raise SystemExit('a stranger')")
    assert "a stranger" not in started(staged).stderr
