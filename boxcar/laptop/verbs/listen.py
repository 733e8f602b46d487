"""A small webhook receiver for this machine: verifies each request, prints what the boxes say.

Nothing is shown, and nothing remembered, before its signature holds. An event that comes again
(webhooks are delivered at least once) is taken and not shown twice. With `through` it is reached
from boxes by a port of theirs that ssh leads here.

Not covered: TLS, and more than one secret. Behind a tunnel or a reverse proxy it serves boxes
elsewhere.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.project.project import Project
from boxcar.laptop.ssh.connection import Ssh
from boxcar.laptop.ssh.reverse_port import ReversePort
from boxcar.laptop.webhooks import kept_address, webhook_reach
from boxcar.laptop.webhooks.kept_address import Address
from boxcar.laptop.webhooks.receiver import Notification, Receiver, serve
from boxcar.shared import exit_codes
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.message import Message


def listen(
    port: int, secret: str, as_json: bool, *, through: Sequence[str] = (), root: Path | None = None
) -> int:
    """Print events until Ctrl-C; '' takes the secret that is kept in `root`, or makes one there.

    Raises InputError for a secret that is not base64, for a port that is taken, and for a box that
    gives no port; BoxcarError for one that cannot be reached.
    """
    home = Home(root or Path.cwd())
    chosen = secret or kept_address.secret(home.listen_secret)
    with serve(port, chosen, partial(_print, as_json=as_json), show.say) as receiver:
        try:
            show.say(Sentence("listen.here", url=receiver.url))
            with _through(list(dict.fromkeys(through)), home, receiver) as url:
                _say_exports(url, None if secret else home.listen_secret)
                receiver.wait()
        except KeyboardInterrupt:
            return exit_codes.INTERRUPTED  # as its first line says
        finally:
            counts = {"received": receiver.received, "again": receiver.duplicates}
            show.say(Sentence("listen.count", **counts))
    return 0


def unheard(project: Project, endpoints: Sequence[Mapping[str, str]]) -> list[Message]:
    """Of which endpoints nobody would hear: what `plan` and `launch` warn of."""
    if project.profile.is_this_machine:
        return []
    boxes = [box.name for box in project.plan.boxes]
    kept = kept_address.read(Home(project.root).listen)
    return list(webhook_reach.warnings(endpoints, boxes, kept))


@contextlib.contextmanager
def _through(boxes: Sequence[str], home: Home, receiver: Receiver) -> Iterator[str]:
    """The address by which boxes reach the receiver, for as long as the block runs."""
    if not boxes:
        yield receiver.url
        return
    end, here_port = threading.Event(), receiver.server_address[1]
    with contextlib.ExitStack() as opened:
        # One address is told to all boxes, and again after this has ended: agents go on with it.
        port = kept_address.read(home.listen).port
        for box in boxes:
            ssh = Ssh(box, home, show.say)
            opened.callback(ssh.close)
            there = ReversePort(ssh, here_port, port)
            opened.callback(there.close)
            port = there.open()
            show.say(Sentence("listen.through", box=box, port=port))
            thread = threading.Thread(target=there.keep, args=(end, partial(_tell, box)))
            opened.callback(thread.join)
            opened.callback(end.set)
            thread.start()
        kept_address.write(home.listen, Address(port, tuple(boxes)))
        yield f"http://127.0.0.1:{port}/"


def _tell(box: str, what: str) -> None:
    show.say(Sentence(f"listen.{what}", box=box))


def _print(event: Notification, *, as_json: bool) -> None:
    # A pipe is read as it comes, so nothing waits in a buffer.
    if as_json:
        show.json_line("listen", event.document())
    else:
        show.line(event.line())


def _say_exports(url: str, secret_file: Path | None) -> None:
    show.say(Sentence("listen.exports"))
    show.quote(f"export BOXCAR_WEBHOOK_URL={shlex.quote(url)}")
    if secret_file:
        show.quote(f'export BOXCAR_WEBHOOK_SECRET="$(cat {shlex.quote(str(secret_file))})"')
