"""What is staged of the program that runs an attempt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# As an agent does between two releases: the names of a line, such as `-`, are interned.
TWICE = """\
import sys
from pathlib import Path
from onbox.attempt.stage import Program

before = Program(Path(sys.argv[1])).records()
for word in ("-", "a", "configs/a.json"):
    sys.intern("".join(list(word)))
print(len(before), before == Program(Path(sys.argv[1])).records())
"""


def test_what_is_proven_of_a_program_depends_on_no_process(tmp_path, archives):
    archive = tmp_path / archives.onbox
    archive.write_bytes(archives.files[archives.onbox])
    words = [sys.executable, "-c", TWICE, str(archive)]
    told = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    count, is_same = told.split()
    assert int(count) > 10 and is_same == "True"
