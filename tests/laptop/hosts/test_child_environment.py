from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from fake_ssh import FakeSsh

from boxcar.laptop.hosts import by_rsync, folders
from boxcar.laptop.hosts.by_tar import RemotePipe
from boxcar.laptop.hosts.child_environment import child_environment
from boxcar.laptop.hosts.remote_folder import Remote

SECRETS = {"WANDB_API_KEY": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "RSYNC_PASSWORD": "s3cret"}
WAY = {"PATH": "/bin", "HOME": "/me", "SSH_AUTH_SOCK": "/agent", "XDG_RUNTIME_DIR": "/run/1"}


def test_the_way_to_the_box_is_kept_and_nothing_else() -> None:
    assert child_environment(WAY | SECRETS) == WAY


def test_no_program_that_moves_files_gets_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "bin/rsync"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nenv >> {seen}\necho 'rsync  version 3.2.7'\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    by_rsync._ask_version.cache_clear()
    (tmp_path / "from").mkdir()
    folders.send_folder(tmp_path / "from", tmp_path / "to")
    ssh = FakeSsh(tmp_path, script=f"env >> {seen}")
    with RemotePipe(Remote(ssh, "/x"), "true", b"") as pipe:  # type: ignore[arg-type]
        assert pipe.end()[0] == 0
    found = seen.read_text()
    assert found.count("PATH=") >= 3 and "s3cret" not in found
    by_rsync._ask_version.cache_clear()
