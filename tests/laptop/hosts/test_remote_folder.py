from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_ssh import FakeSsh

from boxcar.laptop.hosts import remote_folder
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.shared.errors import InputError

SHELLS = ["sh", "bash", "dash", "zsh", "fish", "csh", "tcsh"]
ODD = "/-a b;'c' \"d\" $(touch x) `e` \\n \\\\ ünï\udcff * [f]{g,h} ~ #i & !j %s %% | k\n\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_passes_a_path_as_it_is(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    place = Remote(FakeSsh(tmp_path), f"{tmp_path}{ODD}")  # type: ignore[arg-type]
    script = remote_folder.MAKE_AND_GO + 'printf %s "$d$1$2"'
    typed = f"{place.command(script)} --server ."
    done = subprocess.run([shell, "-c", typed], capture_output=True, check=True)
    assert os.fsdecode(done.stdout) == f"{tmp_path}{ODD}--server."
    assert Path(place.path).is_dir()


@pytest.mark.parametrize("path", ["~/x", "x", "", "-x", "/a\0b"])
def test_only_absolute_paths_are_taken(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="absolute path on the box"):
        Remote(FakeSsh(tmp_path), path)  # type: ignore[arg-type]


@pytest.mark.parametrize("script", ["echo 'x'", "[ ! -d x ]", "a\nb", "\\\\"])
def test_a_script_that_shells_read_differently_is_refused(tmp_path: Path, script: str) -> None:
    place = Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="all login shells"):
        place.command(script)
