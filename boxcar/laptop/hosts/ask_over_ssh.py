"""What the laptop asks of a box: `onbox answer`, one question and one answer in one round trip.

The agent's file is shipped once and its name says its content. Each question first looks, in the
same round trip, that this is still the box that was met and that the file is there. If not, the box
is greeted again (which checks who it is) and gets the file again; then the question is put again.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import TRIES, Ran, Ssh
from boxcar.laptop.hosts.identify import MARKER, Hello, Marker, fits_plan, greet, kept_hello
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.release import archives
from boxcar.shared.disk import atomic, digest, mounts
from boxcar.shared.errors import InputError, NoRoomError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import _
from boxcar.shared.wire import envelope
from boxcar.shared.wire.question import A, Question, RunOnBox

# What `onbox answer` says on this machine: in a child, as on a rented box.


def ask_here(
    python: str,
    home: Home,
    who: str,
    question: Question[A],
    run: RunOnBox,
    *,
    environ: Mapping[str, str],
    timeout_s: float,
) -> A:
    """`who` is named where nothing answers. Secrets travel on stdin. Raises what
    envelope.read_answer raises, and TemporaryError.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-S", str(_agents_file(home)), "answer"],
            input=envelope.write_question(question, run),
            capture_output=True,
            timeout=timeout_s,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        told = _(
            "{who}: no answer to {question} within {seconds:.0f} s",
            who=who,
            question=question.NAME,
            seconds=timeout_s,
        )
        raise TemporaryError(told) from None
    err = done.stderr.decode("utf-8", "replace")
    return envelope.read_answer(question, who, done.returncode, done.stdout, err)


def agent_program() -> tuple[str, bytes]:
    """The agent as it is shipped: the name of its file, which says its content, and that."""
    data = archives.build_onbox()
    return archives.file_name("onbox", data, ".pyz"), data


def _agents_file(home: Home) -> Path:
    """The same on this machine, written once for each content."""
    name, data = agent_program()
    path = home.agent(name)
    if not path.exists():
        atomic.make_folder(path.parent)
        atomic.write_whole(path, data)
    return path


HELLO_TIMEOUT_S = 30.0
SHIP_TIMEOUT_S = 300.0
_NOT_READY = 111
# Also where the shell cannot start the interpreter: the image may have changed.
_NOT_READY_CODES = (_NOT_READY, 126, 127)
_NO_ROOM, _NOT_WRITTEN = exit_codes.NO_ROOM, 112
# $1 host name, or nothing where it may be any, $2 marker, $3 its content, $4 the agent's file,
# $5 interpreter. The empty line ends what a login shell may have printed without an end of line.
_ASK = """
{ [ -z "$1" ] || [ "$(uname -n)" = "$1" ]; } && [ "$(cat "$2")" = "$3" ] && [ -f "$4" ] || exit 111
echo
exec "$5" -I -S "$4" answer
"""
# $1 to $3 as above, then a program and its words, which begin once this is on stderr.
_STARTING = "boxcar: starting"
_RUN = f"""
[ "$(uname -n)" = "$1" ] && [ "$(cat "$2")" = "$3" ] || exit 111
echo "{_STARTING}" >&2
shift 3
exec "$@"
"""
# Runs on the box, from the agent's interpreter, with nothing else there yet. Behind the file the
# question comes on stdin, of which not a byte too many may be read.
_SHIP = (
    f"""
NAMES, NO_ROOM, NOT_WRITTEN = {mounts.ERRNO_NAMES!r}, {exit_codes.NO_ROOM}, {_NOT_WRITTEN}
"""
    + """
import errno, hashlib, os, secrets, sys
folder, name, size, sha256, marker, text = sys.argv[1:]
stdin, data = open(0, "rb", buffering=0), b""
while len(data) < int(size) and (more := stdin.read(int(size) - len(data))):
    data += more
if hashlib.sha256(data).hexdigest() != sha256:
    print("what arrived is not what was sent", file=sys.stderr)
    sys.exit(NOT_WRITTEN)
def put(name, data):
    path = os.path.join(folder, name)
    if os.path.exists(path) and open(path, "rb").read() == data:
        return
    part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)
try:
    os.makedirs(folder, exist_ok=True)
    put(name, data)
    if not os.path.exists(os.path.join(folder, marker)):
        put(marker, text.encode())
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
except OSError as error:
    print(f"{folder}: {error.strerror}", file=sys.stderr)
    sys.exit(NO_ROOM if errno.errorcode.get(error.errno) in NAMES else NOT_WRITTEN)
print(flush=True)
agent = os.path.join(folder, name)
os.execv(sys.executable, [sys.executable, "-I", "-S", agent, "answer"])
"""
)


class Hand:
    """One box. `onbox` is the agent's zipapp, `name` its file name. For several threads at once.

    `is_one_machine` is False where several stand behind the alias, such as login nodes, which one
    file system tells from others; then their host names are not compared.
    """

    def __init__(
        self,
        ssh: Ssh,
        profile: Profile,
        data_dir: str,
        name: str,
        onbox: bytes,
        *,
        is_one_machine: bool = True,
    ) -> None:
        self.ssh = ssh
        self._identity = profile.connection.identity
        self._agent_python = profile.env.agent_python
        self._data_dir = data_dir
        self._name, self._onbox = name, onbox
        self._is_one_machine = is_one_machine
        self._lock = threading.Lock()
        self._hello: Hello | None = None
        self._shipped = 0

    def ask(
        self,
        question: Question[A],
        run: RunOnBox,
        *,
        timeout_s: float = 30.0,
        tries: int = TRIES,
    ) -> A:
        """The box's answer. `tries` counts connections that were refused at once.

        Raises what envelope.read_answer raises; InputError where it is another box than expected;
        NoRoomError where the agent's file has no room there.
        """
        data = envelope.write_question(question, run)
        shipped = self._shipped
        ran = self._put(data, timeout_s, tries)
        if _is_not_ready(ran):
            ran = self._ship(data, shipped, timeout_s) or self._put(data, timeout_s, tries)
        return envelope.read_answer(question, self.ssh.alias, ran.code, ran.out, ran.err)

    def run(
        self,
        words: Sequence[str],
        *,
        tries: int = TRIES,
        on_start: Callable[[], None] = lambda: None,
    ) -> Ran:
        """Run a program of the box's own, once this is known to be the box that was met.

        `on_start` is called as soon as the box says that it begins, also where the program then
        takes the connection along. Raises InputError where it is another box; nothing was run
        there then.
        """
        box = self.hello()
        marker = [str(PurePosixPath(box.data_dir) / MARKER), self._marker().rstrip("\n")]
        script = ["sh", "-c", _RUN, "sh", box.hostname, *marker]
        mark, is_heard = f"{_STARTING}\n", False

        def hear(said: bytes) -> None:
            nonlocal is_heard
            if not is_heard and mark.encode() in said:
                is_heard = True
                on_start()

        ran = self.ssh.run([*script, *words], tries=tries, hear=hear)
        if ran.code == _NOT_READY and not is_heard:
            raise InputError(
                _(
                    "{alias}: a different box answers under this name, or its {marker} is gone, "
                    "so {words} was not run. Check `Host {alias}` in ~/.ssh/config, and the "
                    "platform's console",
                    alias=self.ssh.alias,
                    marker=MARKER,
                    words=words[0],
                )
            )
        return replace(ran, err=ran.err.replace(mark, "", 1))

    def hello(self) -> Hello:
        """What the box is and has: as it was when it was last asked."""
        with self._lock:
            self._hello = self._met() or self._greet(HELLO_TIMEOUT_S)
            return self._hello

    def _put(self, data: bytes, timeout_s: float, tries: int) -> Ran:
        box = self._met()
        if box is None:
            return Ran(_NOT_READY, b"", "")
        folder = PurePosixPath(box.data_dir)
        marker = [str(folder / MARKER), self._marker().rstrip("\n")]
        hostname = box.hostname if self._is_one_machine else ""
        words = [hostname, *marker, str(folder / "boxcar" / self._name), box.python]
        script = ["sh", "-c", _ASK, "sh", *words]
        return self.ssh.converse(script, data, envelope.MARK, timeout_s=timeout_s, tries=tries)

    def _ship(self, data: bytes, shipped: int, timeout_s: float) -> Ran | None:
        """Greet the box, which checks who it is, give it the agent's file, and put the question in
        the same round trip.

        `shipped` is how often that had been done when the question was put before: None where
        another thread has done it meanwhile.
        """
        with self._lock:
            if shipped != self._shipped:
                return None
            box = self._hello = self._greet(timeout_s)
            folder = PurePosixPath(box.data_dir) / PurePosixPath(MARKER).parent
            size, sha256 = str(len(self._onbox)), digest.of_bytes(self._onbox)
            marker = [PurePosixPath(MARKER).name, self._marker()]
            script = [box.python, "-I", "-S", "-c", _SHIP]
            ran = self.ssh.run(
                [*script, str(folder), self._name, size, sha256, *marker],
                self._onbox + data,
                timeout_s=max(timeout_s, SHIP_TIMEOUT_S),
            )
            self._refuse_unwritten(ran)
            self._shipped += 1
            return ran

    def _refuse_unwritten(self, ran: Ran) -> None:
        if ran.code in (_NO_ROOM, _NOT_WRITTEN, *_NOT_READY_CODES) and envelope.MARK not in ran.out:
            error = NoRoomError if ran.code == _NO_ROOM else TemporaryError
            told = ran.err.strip()[-500:] or _("exit code {code}", code=ran.code)
            raise error(
                _(
                    "{alias}: could not write the agent's file there: {told}",
                    alias=self.ssh.alias,
                    told=told,
                )
            )

    def _greet(self, timeout_s: float) -> Hello:
        return greet(
            self.ssh,
            self._identity,
            self._data_dir,
            self._agent_python,
            timeout_s=timeout_s,
            is_one_machine=self._is_one_machine,
        )

    def _met(self) -> Hello | None:
        """What an earlier contact left on the laptop, if it still fits the plan."""
        if self._hello is not None:
            return self._hello
        kept = kept_hello(self.ssh)
        if kept and fits_plan(kept, self._identity, self._data_dir, self._agent_python):
            return kept
        return None

    def _marker(self) -> str:
        return codec.to_document(Marker(self.ssh.disk_name)).decode()


def _is_not_ready(ran: Ran) -> bool:
    return ran.code in _NOT_READY_CODES and envelope.MARK not in ran.out
