"""Commands in a pod, by `kubectl exec`, where a box has ssh.

A stream of kubectl's may be cut, and kubectl then ends with 0 (or with 1, as a command may do). So
the pod's own shell says on stderr that the command has begun, and with what it has ended; where the
second is missing, the link was cut.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import kubectl_errors
from boxcar.laptop.hosts.connection import Ran, Ssh
from boxcar.laptop.hosts.kubectl import Kubectl
from boxcar.laptop.hosts.ssh_errors import LinkCut, Unreachable
from boxcar.shared.errors import InputError, Message
from boxcar.shared.sentence import _, said_by

_BEGUN, _ENDED = "boxcar: begun\n", "boxcar: ended "
_IN_POD = (
    "n=$(echo x; echo x); n=${n#x}; n=${n%x}; "
    'read -r c && echo "boxcar: begun" >&2 && (eval "exec $c"); code=$?; '
    'echo "boxcar: ended $code" >&2; exit $code'
)
# $1 is the name that rsync and tar's side give the box; the rest is one command for a shell there.
_SHELL = """#!/bin/sh
shift
exec {exec} /bin/sh -c "$*"
"""


class PodLink(Ssh):
    """See Ssh: what it does by a connection is done by an exec each."""

    def __init__(
        self,
        kubectl: Kubectl,
        pod: str,
        claim: str,
        home: Home,
        tell: Callable[[str | Message], None],
    ) -> None:
        super().__init__(pod, home, tell)
        # Pods come and go, and those of several runs share a claim.
        self.disk_name = f"claim {claim}"
        self._kubectl = kubectl
        self._is_alone = True  # there is no control connection, and no conversation

    def rsync_shell(self, *, has_own: bool = True) -> str:
        script = self._private / "exec"
        if not script.exists():
            script.write_text(_SHELL.format(exec=shlex.join(self._exec())))
            script.chmod(0o700)
        return str(script)

    def own_connection(self) -> tuple[list[str], Path]:
        return [*self._exec(), "/bin/sh", "-c"], self._private / "none"

    def _exec(self) -> list[str]:
        return self._kubectl.words("exec", "-i", self.alias, "--")

    def _command(self, timeout_s: float) -> list[str]:
        return [*self._exec(), "/bin/sh", "-c", _IN_POD]

    def _ended(self, code: int, out: bytes, said: str) -> Ran:
        before, begun, rest = said.partition(_BEGUN)
        ended = re.search(rf"^{_ENDED}(\d+)$", rest, re.MULTILINE)
        if ended:
            return Ran(int(ended[1]), out, before + rest[: ended.start()])
        why = (rest if begun else before).strip()[-300:] or _("no output")
        if begun:
            raise LinkCut(self.alias, _("the exec was cut off ({why})", why=why))
        error = kubectl_errors.error_of(said)
        if isinstance(error, InputError):
            raise error
        raise Unreachable(self.alias, said_by(error))

    def _pin(self) -> None:
        """The cluster says who a pod is."""
