"""Commands on a box, through OpenSSH's own client: its config, jump hosts, agents and keys work.

A control connection is opened once and carries the commands. It is opened by a call of its own,
whose stderr is a file: a master that goes to the background would hold a command's pipes open. One
that was not used for a while is left to end by itself, because behind a laptop that slept it is
dead and does not know it. Where no socket can be made, each command connects by itself.

Every login shell parses what ssh sends, each in its own way (a backslash between quotes is another
thing to fish). So what is sent is one constant text; the words follow on stdin, quoted for sh, and
the command's own input after them. `read` takes single bytes, so it leaves that input alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from boxcar.laptop.common import run_program
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import host_keys, ssh_errors
from boxcar.laptop.hosts.child_environment import child_environment
from boxcar.laptop.hosts.conversation import Conversation
from boxcar.laptop.hosts.ssh_errors import LinkCut, Unreachable
from boxcar.laptop.providers.rented_record import record_of_alias
from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

CONNECT_TIMEOUT_S = 15
CONTROL_TIMEOUT_S = 30.0
ALIVE_EVERY_S = 10
ALIVE_MISSED = 3
PERSIST_S = 60
FRESH_S = 30.0
TRIES = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
# The first may be no hyphen (an option), no @ (a marker in known_hosts) and no dot (a folder).
_ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:+-]{0,99}")
# What ssh adds to the name of its socket until it is there, and the name.
_SOCKET_CHARS = 20
_told_alone: list[Path] = []
_SAFE_PATH = re.compile(r"[A-Za-z0-9._/+-]{1,60}")
# On stderr when the words have arrived: from then on the command may have done its work.
_BEGUN = "boxcar: begun\n"
# Neither backslash nor exclamation mark: fish and csh have a meaning for them between quotes.
_REMOTE = (
    "exec sh -c '"
    "n=$(echo x; echo x); n=${n#x}; n=${n%x}; "
    'read -r c && echo "boxcar: begun" >&2 && eval "exec $c"'
    "'"
)


@dataclass(frozen=True)
class Ran:
    """A command that came to its end on the box; `code` is its own."""

    code: int
    out: bytes
    err: str


class Ssh:
    """One box. May be used from several threads at once."""

    def __init__(
        self,
        alias: str,
        home: Home,
        tell: Callable[[str], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`tell` hears of a key that is met for the first time.

        Raises InputError for an alias that ssh or a shell could take as something else.
        """
        check_alias(alias)
        check_ssh()
        self.alias, self.home = alias, home
        self.disk_name = alias  # as the marker on its disk has it
        self.tell, self._sleep = tell, sleep
        self._lock, self._bulk_lock = threading.Lock(), threading.Lock()
        self._private = _private_folder(home.folder)
        self._is_alone = not _can_share(self._private, tell)
        self._is_pinned = False
        self._numbers = itertools.count(1)
        self._commands: Path | None = None
        self._talking = threading.Lock()
        self._talk: Conversation | None = None
        self._talks_of = b""
        self._bulk: Path | None = None
        self._masters: list[Path] = []
        self._used_at = float("-inf")
        self._running: set[int] = set()
        self._is_closed = False
        self._end = weakref.finalize(self, _end_masters, alias, self._private, self._masters)

    def run(
        self,
        words: Sequence[str],
        data: bytes = b"",
        *,
        timeout_s: float = 30.0,
        tries: int = TRIES,
        hear: Callable[[bytes], None] = lambda said: None,
    ) -> Ran:
        """Run a command on the box, with `data` as its input. Secrets belong there, not in words.

        `tries` counts connections that are refused at once; a command that was sent is never sent
        again. `hear` gets what came on stderr so far, while it runs. Raises Unreachable (LinkCut
        where it may have been done), KeyRefused, HostKeyChanged.
        """
        typed = _line(words) + data
        return self._tried(tries, lambda: self._once(typed, timeout_s, hear))

    def _tried(self, tries: int, act: Callable[[], Ran]) -> Ran:
        for left in range(tries - 1, -1, -1):
            try:
                return act()
            except Unreachable as error:
                if not error.is_brief or not left:
                    raise
            self._sleep(pause_s(tries - 1 - left))
        raise InputError(
            _("{alias}: expected at least one try, found {tries}", alias=self.alias, tries=tries)
        )

    def converse(
        self,
        words: Sequence[str],
        data: bytes,
        mark: bytes,
        *,
        timeout_s: float = 30.0,
        tries: int = TRIES,
    ) -> Ran:
        """As `run`, for a program that answers each line with one that begins with `mark`: it goes
        on living, and hears the next question of the same words at once. `out` ends with the
        answer, and the code is 0, or the program has ended without one.
        """
        if self._is_alone or not self._talking.acquire(blocking=False):
            return self.run(words, data, timeout_s=timeout_s, tries=tries)
        try:
            line = _line(words)
            return self._tried(tries, lambda: self._said(line, data, mark, timeout_s))
        finally:
            self._talking.release()

    def _said(self, line: bytes, data: bytes, mark: bytes, timeout_s: float) -> Ran:
        """By the program that is at work, or by another one, also where that one has died."""
        talk, typed = self._talk, data
        is_new = not (talk and self._talks_of == line and self._is_fresh() and talk.is_alive)
        if not talk or is_new:
            self._stop_talking()
            talk, typed = Conversation(self._command(timeout_s)), line + data
            self._talk, self._talks_of = talk, line
        self._running.add(talk.pid)
        try:
            out, is_answered = talk.ask(typed, mark, timeout_s)
        except BaseException as error:
            self._stop_talking()
            raise self._failure(error, timeout_s) from None
        finally:
            self._running.discard(talk.pid)
            self._refuse_if_closed()
        if is_answered:
            self._note_use()
            return Ran(0, out, "")
        self._talk = None
        code = talk.end()
        is_cut = code == ssh_errors.SSH_FAILED and not (self._commands and self._commands.exists())
        if not is_new and not is_cut:  # the program has died; and a question may be put twice
            return self._said(line, data, mark, timeout_s)
        return self._ended(code, out, talk.said)

    def _stop_talking(self) -> None:
        talk, self._talk = self._talk, None
        if talk:
            talk.forget()

    def rsync_shell(self, *, has_own: bool = True) -> str:
        """For `rsync -e`: by a connection that all bulk shares, since bulk would hold up commands.

        Else by the one for commands, which saves a handshake. Where the box lets in one session a
        connection, ssh opens another one. It holds no space inside a word and needs no quotes. Good
        until `close`. Raises as `run` does.
        """
        control = self._bulk_control() if has_own else self._control(CONTROL_TIMEOUT_S)
        return " ".join(["ssh", *self._options(), "-o", f"ControlPath={control}"])

    def own_connection(self) -> tuple[list[str], Path]:
        """The words of a connection that stays in the foreground, to which a command is added, and
        the socket by which it is spoken to. Good until `close`.
        """
        control = self._private / f"own-{next(self._numbers)}"
        master = ["-o", "ControlMaster=yes", "-o", f"ControlPath={control}"]
        return ["ssh", *self._options(), *master, self.alias], control

    def own_program(self, words: Sequence[str]) -> tuple[list[str], Path, bytes]:
        """The same with a program behind it, and what has to be typed there first; what is typed
        then is the program's input.
        """
        connection, control = self.own_connection()
        return [*connection, _REMOTE], control, _line(words)

    def close(self) -> None:
        """End the control connection, and what other threads wait for: nobody asks any more."""
        self._is_closed = True
        if self._talking.acquire(blocking=False):  # else it is at work, and ended below
            self._stop_talking()
            self._talking.release()
        for pid in tuple(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._end()

    def _once(self, typed: bytes, timeout_s: float, hear: Callable[[bytes], None]) -> Ran:
        try:
            done = self._run_program(self._command(timeout_s), typed, timeout_s, hear=hear)
        except (subprocess.TimeoutExpired, run_program.TooMuchSaid) as error:
            raise self._failure(error, timeout_s) from None
        return self._ended(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def _command(self, timeout_s: float) -> list[str]:
        control = self._control(timeout_s)
        return ["ssh", *self._options(), "-o", f"ControlPath={control}", self.alias, _REMOTE]

    def _failure(self, error: BaseException, timeout_s: float) -> BaseException:
        """What it means that a command did not come to its end."""
        if isinstance(error, subprocess.TimeoutExpired):
            self._used_at = float("-inf")
            why = _("no answer within {seconds:g} s", seconds=timeout_s)
            return LinkCut(self.alias, why, ssh_errors.MAY_BE_DONE)
        if isinstance(error, run_program.TooMuchSaid):
            return DamagedError(
                _(
                    "{alias}: printed more than {size_mib} MiB instead of a short answer, and was "
                    "cut off. {may_be_done}",
                    alias=self.alias,
                    size_mib=run_program.MOST_BYTES >> 20,
                    may_be_done=ssh_errors.MAY_BE_DONE,
                )
            )
        return error

    def _ended(self, code: int, out: bytes, said: str) -> Ran:
        before, begun, rest = said.partition(_BEGUN)
        if begun and code == ssh_errors.SSH_FAILED:
            raise LinkCut(self.alias, *ssh_errors.cut(rest))
        self._raise_for(code, before)
        self._note_use()
        return Ran(code, out, before + rest)

    def _note_use(self) -> None:
        self._used_at = time.time()
        self._pin()

    def _run_program(
        self, words: Sequence[str], data: bytes, timeout_s: float, **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run to its end, or to ours. Raises Unreachable after `close`."""
        begun: list[int] = []

        def on_begin(pid: int) -> None:
            begun.append(pid)
            self._running.add(pid)
            self._refuse_if_closed()

        try:
            return run_program.run(words, data, timeout_s, on_begin=on_begin, **more)
        finally:
            self._running.difference_update(begun)
            self._refuse_if_closed()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Unreachable(self.alias, _("its connection was closed here"))

    def _control(self, timeout_s: float) -> Path:
        """The socket of a control connection that lives; "none" where there can be none."""
        if self._is_alone:
            return Path("none")
        with self._lock:
            self._refuse_if_closed()
            if not self._is_fresh() or not self._commands or not self._commands.exists():
                # Answers and code are text; bulk is not.
                self._commands = self._open(timeout_s, is_compressed=True)
                self._used_at = time.time()
            assert self._commands
            return self._commands

    def _is_fresh(self) -> bool:
        # The wall clock, because a monotonic one may stand still while the laptop sleeps.
        return 0 <= time.time() - self._used_at <= FRESH_S

    def _bulk_control(self) -> Path:
        """The same for bulk. A dead one, behind a laptop that slept, ends a copy within the time of
        ALIVE_MISSED, and the copy goes on by another one.
        """
        if self._is_alone:
            return Path("none")
        with self._bulk_lock:
            self._refuse_if_closed()
            if not self._bulk or not self._bulk.exists():
                self._bulk = self._open(CONTROL_TIMEOUT_S, is_compressed=False)
            return self._bulk

    def _open(self, timeout_s: float, *, is_compressed: bool) -> Path:
        # A new name each time: beside a socket that is left over, ssh would open no other.
        control = self._private / str(next(self._numbers))
        said = self._private / f"said-{control.name}"
        compression = "yes" if is_compressed else "no"
        settings = (
            "ControlMaster=yes",
            f"ControlPersist={PERSIST_S}",
            f"Compression={compression}",
        )
        master = [word for setting in settings for word in ("-o", setting)]
        words = ["ssh", *self._options(), *master, "-o", f"ControlPath={control}", "-f", "-N"]
        with said.open("wb") as stderr:
            try:
                done = self._run_program(
                    [*words, self.alias],
                    b"",
                    timeout_s,
                    stderr=stderr,
                    environment=None if is_compressed else child_environment(),
                )
            except subprocess.TimeoutExpired:
                why = _("it accepted no login within {seconds:g} s", seconds=timeout_s)
                raise Unreachable(self.alias, why) from None
        words_there = said.read_text(errors="replace")
        if done.returncode == ssh_errors.SSH_FAILED and ssh_errors.is_proxied(words_there):
            self._raise_for_proxy(timeout_s)
        self._raise_for(done.returncode, words_there)
        self._masters.append(control)
        self._pin()
        return control

    def _pin(self) -> None:
        """Keep the key of a box that has let us in: from now on no other one counts."""
        if not self._is_pinned:
            record = host_keys.note_key(self.home, self.alias, self._settings(), self.tell)
            self._is_pinned = record is not None

    def _raise_for_proxy(self, timeout_s: float) -> None:
        """Ask once without ControlPersist, under which ssh gives its proxy no stderr (9.2, 10.6).
        Nothing is raised where that goes well, or says no more.
        """
        words = ["ssh", *self._options(), "-o", "ControlMaster=no", "-o", "ControlPath=none"]
        try:
            done = self._run_program([*words, self.alias, "true"], b"", timeout_s)
        except (subprocess.TimeoutExpired, run_program.TooMuchSaid):
            return
        self._raise_for(done.returncode, done.stderr.decode(errors="replace"))

    def _raise_for(self, code: int, said: str) -> None:
        if code != ssh_errors.SSH_FAILED:
            return
        jumps = self._jumps() if ssh_errors.is_proxied(said) else ()
        raise host_keys.ssh_error(self.home, self.alias, said, jumps)

    def _jumps(self) -> list[str]:
        """Of the last one ssh makes a ProxyCommand of its own, the others lead to it."""
        jump = self._settings().get("proxyjump", "none")
        return [] if jump == "none" else jump.split(",")

    def _settings(self) -> dict[str, str]:
        """What the person's config makes of the alias."""
        words = ["ssh", "-G", *self._options(), self.alias]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    def _options(self) -> list[str]:
        known = self._is_pinned or host_keys.fingerprints(self.home, self.alias)
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_TIMEOUT_S),
            "ServerAliveInterval": str(ALIVE_EVERY_S),
            "ServerAliveCountMax": str(ALIVE_MISSED),
            "StrictHostKeyChecking": "yes" if known else "accept-new",
            "UserKnownHostsFile": str(self._private / "project" / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": self.alias,
            # Addresses are rented out again, and the box must not add keys by itself.
            "CheckHostIP": "no",
            "UpdateHostKeys": "no",
            # What a person's config may hold for their own logins.
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "LogLevel": "INFO",
        }
        settings |= self._address()
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def _address(self) -> dict[str, str]:
        """Of a box that `up` rented under this alias: then it stands in no file of the person's."""
        rented = record_of_alias(self.home.root, self.alias)
        if rented is None or not rented.host:
            return {}
        where = {"HostName": rented.host, "Port": str(rented.port), "ProxyJump": "none"}
        return where | ({"User": rented.user} if rented.user else {})


def check_alias(alias: str) -> None:
    """Raise InputError for what is no plain name."""
    if not _ALIAS.fullmatch(alias):
        raise InputError(
            _(
                "{alias!r} cannot be the alias of a box: use letters, digits and . _ - @ : + (at "
                "most 100, starting with a letter or digit). Give the box a plain name with a "
                "`Host` entry in ~/.ssh/config",
                alias=alias,
            )
        )


def check_ssh() -> None:
    """Raise InputError, with the command to type, where there is no ssh on this machine."""
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        raise InputError(
            _(
                "ssh is not installed on this machine. Type: sudo apt-get install openssh-client "
                "(macOS: brew install openssh)"
            )
        )


def pause_s(failures: int) -> float:
    """How long to wait after so many failures (the first is 0): doubled, and never in step."""
    longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**failures)
    return longest_s * random.uniform(0.5, 1.0)


def _line(words: Sequence[str]) -> bytes:
    """The words on one line for sh; `$n` there is a line feed."""
    if not words or any("\0" in word for word in words):
        raise InputError(_("expected a command without NUL, found {words!r}", words=list(words)))
    quoted = (shlex.quote(word).replace("\n", "'\"$n\"'") for word in words)
    return os.fsencode(" ".join(quoted)) + b"\n"


def _private_folder(folder: Path) -> Path:
    """A short path for sockets, and `project`, a link to `folder` without a space in its path."""
    atomic.make_folder(folder)
    usual = tempfile.gettempdir()
    short = usual if _SAFE_PATH.fullmatch(usual) else "/tmp"
    private = Path(tempfile.mkdtemp(prefix="boxcar-", dir=short))
    (private / "project").symlink_to(folder.resolve(), target_is_directory=True)
    return private


def _can_share(private: Path, tell: Callable[[str], None]) -> bool:
    """Whether ssh can put its socket there, which some file systems refuse; said once."""
    try:
        with socket.socket(socket.AF_UNIX) as tried:
            tried.bind(str(private / ("s" * _SOCKET_CHARS)))
    except OSError as error:
        if not _told_alone:
            _told_alone.append(private)
            told = _(
                "{folder} cannot hold a socket ({why}), so ssh connects anew for each question to "
                "a box, which is slower. Better: set TMPDIR to a folder of a local disk",
                folder=private.parent,
                why=error.strerror or error,
            )
            tell(told)
        return False
    return True


def _end_masters(alias: str, private: Path, masters: Sequence[Path]) -> None:
    for control in masters:
        if control.exists():
            words = ["ssh", "-o", f"ControlPath={control}", "-O", "exit", alias]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(words, capture_output=True, check=False, timeout=5)
    shutil.rmtree(private, ignore_errors=True)
