"""The public key that ssh would use here: of the agent, else of ~/.ssh. None is ever made."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from boxcar.shared.errors import InputError, words_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
_KEY = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\r\n]*)?")
_TIMEOUT_S = 10


@dataclass(frozen=True)
class PublicKey:
    """`text` is its one line, without a person's name; `place`: where it was found."""

    text: str
    place: str


def find_key(environ: Mapping[str, str] = os.environ) -> PublicKey:
    """Raises InputError that says what is missing, or what is wrong with the private key."""
    folder = Path(environ.get("HOME") or Path.home()) / ".ssh"
    for name in _NAMES:
        public = folder / f"{name}.pub"
        if public.is_file():
            return _checked(public, folder / name)
    if (found := _of_agent(environ)) is not None:
        return found
    raise InputError(
        _(
            "no ssh key here: {folder} holds none of {names} and no agent has one. Type: "
            "ssh-keygen -t ed25519",
            folder=folder,
            names=", ".join(f"{name}.pub" for name in _NAMES),
        )
    )


def _checked(public: Path, private: Path) -> PublicKey:
    try:
        text = public.read_text("utf-8", "replace").strip()
        mode = private.stat().st_mode
    except OSError as error:
        raise InputError(words_of(error)) from error
    if not _KEY.fullmatch(text):
        raise InputError(_("{file}: expected one public key on one line", file=public))
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            _("ssh refuses {file}, which others may read. Type: chmod 600 {file}", file=private)
        )
    derived = _derived(private)
    if derived is not None and derived.split()[:2] != text.split()[:2]:
        raise InputError(
            _("{public} is not the public half of {private}", public=public, private=private)
        )
    return PublicKey(" ".join(text.split()[:2]), str(public))


def _derived(private: Path) -> str | None:
    """The public half; None where only a passphrase opens it."""
    done = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", str(private)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    return done.stdout.strip() if done.returncode == 0 else None


def _of_agent(environ: Mapping[str, str]) -> PublicKey | None:
    if not environ.get("SSH_AUTH_SOCK"):
        return None
    try:
        done = subprocess.run(
            ["ssh-add", "-L"], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    first = next(iter(done.stdout.splitlines()), "")
    if done.returncode or not _KEY.fullmatch(first):
        return None
    return PublicKey(" ".join(first.split()[:2]), "ssh-agent")
