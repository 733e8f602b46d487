"""A login node behind a real sshd of its own, which the alias `hpc` leads to."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, free_port, path_of_daemons
from waiting import until

_SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv SLURM_CONF={conf} PATH={path}{more}
Subsystem sftp internal-sftp
"""
_CLIENT = """
Host hpc
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {folder}/key
  IdentitiesOnly yes
"""
# What a person has in ~/.ssh/config, which cannot be another's: ssh finds it by the passwd file.
_SSH = '#!/bin/sh\nexec {ssh} -F {folder}/config "$@"\n'


@contextlib.contextmanager
def login_node(folder: Path, cluster: Cluster, **more: str) -> Iterator[dict[str, str]]:
    """The environment of a laptop that reaches it; `more` is what a shell there has.

    Skips where there is no sshd.
    """
    sshd = shutil.which("sshd", path=path_of_daemons())
    ssh, keygen = shutil.which("ssh"), shutil.which("ssh-keygen")
    if not (sshd and ssh and keygen):
        pytest.skip("not installed: sshd, ssh and ssh-keygen")
    folder.mkdir()
    for name in ("host_key", "key"):
        words = [keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    values = {"port": free_port(), "folder": folder, "ssh": ssh, "path": path_of_daemons()}
    text = _SSHD.format(
        **values,
        conf=cluster.env["SLURM_CONF"],
        more="".join(f" {name}={value}" for name, value in more.items()),
    )
    (folder / "sshd_config").write_text(text)
    (folder / "config").write_text(_CLIENT.format(**values))
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(_SSH.format(**values))
    (folder / "bin" / "ssh").chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd itself goes for its children
    words = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("wb") as log:
        daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until((folder / "sshd.pid").exists, (folder / "sshd.log").read_text)
        yield {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    finally:
        daemon.terminate()
        daemon.wait()
