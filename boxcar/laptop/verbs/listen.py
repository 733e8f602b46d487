"""A small webhook receiver for this machine: verifies each request, prints what the boxes say.

An event that comes again (webhooks are delivered at least once) is taken and not shown twice. With
`through` it is reached from boxes by the same port of theirs, which ssh leads here.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.reverse_port import AGAIN, CUT, ReversePort
from boxcar.laptop.project.project import Project
from boxcar.laptop.webhooks.receiver import kept_secret, serve
from boxcar.shared.errors import Command, Message
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import Sentence, _, mark

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def listen(
    port: int = 8765, secret: str = "", *, through: Sequence[str] = (), root: Path | None = None
) -> int:
    """Print events until Ctrl-C; '' takes the secret that is kept in `root`, or makes one there.

    Raises InputError for a secret that is not base64, for a port that is taken, and for a box that
    gives no port; BoxcarError for one that cannot be reached.
    """
    home = Home(root or Path.cwd())
    chosen = secret or kept_secret(home.listen_secret)
    # A pipe is read as it comes, so nothing waits in a buffer.
    with serve(port, chosen, lambda event: show.line(event.line()), show.say) as receiver:
        try:
            show.say(_("listening at {url}  (Ctrl-C to stop)", url=receiver.url))
            with _through(dict.fromkeys(through), home, receiver.server_address[1]):
                _say_exports(receiver.url, None if secret else home.listen_secret)
                receiver.thread.join()
        except KeyboardInterrupt:
            return exit_codes.INTERRUPTED  # as its first line says
        finally:
            counts = {"received": receiver.received, "again": receiver.duplicates}
            show.say(
                _(
                    "{received} {received:event|events} received, {again} "
                    "{again:duplicate|duplicates}",
                    **counts,
                )
            )
    return 0


def unheard(project: Project, endpoints: Sequence[Mapping[str, str]]) -> list[Message]:
    """Of which endpoints rented boxes would be heard by a `listen` through them alone. Nothing of a
    URL but its host is said: the rest may be a secret.
    """
    hosts = [urlsplit(one["url"]).hostname or "" for one in endpoints]
    if project.profile.is_this_machine:
        return []
    boxes = [box.name for box in project.plan.boxes]
    words = tuple(word for box in boxes for word in ("--through", box))
    return [
        Message(
            _(
                "for a box, the webhook address {address} is the box itself. To receive its "
                "webhooks here, keep this running",
                address=host,
            ),
            Command("listen", words),
        )
        for host in hosts
        if host in _LOOPBACK
    ]


_TOLD = {
    CUT: mark("{box}: connection lost, reconnecting; events wait on the box"),
    AGAIN: mark("{box}: reconnected"),
}


@contextlib.contextmanager
def _through(boxes: Mapping[str, None], home: Home, port: int) -> Iterator[None]:
    """Boxes reach the receiver for as long as the block runs."""
    end = threading.Event()
    with contextlib.ExitStack() as opened:
        for box in boxes:
            ssh = Ssh(box, home, show.say)
            opened.callback(ssh.close)
            there = ReversePort(ssh, port)
            opened.callback(there.close)
            there.open()
            show.say(_("{box}: its 127.0.0.1:{port} is forwarded here", box=box, port=port))
            thread = threading.Thread(target=there.keep, args=(end, partial(_tell, box)))
            opened.callback(thread.join)
            opened.callback(end.set)
            thread.start()
        yield


def _tell(box: str, what: str) -> None:
    show.say(Sentence(_TOLD[what], box=box))


def _say_exports(url: str, secret_file: Path | None) -> None:
    show.say(_("In the terminal where you launch, type:"))
    show.quote(f"export BOXCAR_WEBHOOK_URL={shlex.quote(url)}")
    if secret_file:
        show.quote(f'export BOXCAR_WEBHOOK_SECRET="$(cat {shlex.quote(str(secret_file))})"')
