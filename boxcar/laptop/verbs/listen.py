"""A small webhook receiver for this machine: verifies each request, prints what the boxes say.

Nothing is shown, and nothing remembered, before its signature holds. An event that comes again
(webhooks are delivered at least once) is taken and not shown twice.

Not covered: TLS, and more than one secret. Behind a tunnel or a reverse proxy it serves boxes
elsewhere; by itself it hears this machine only.
"""

from __future__ import annotations

import shlex
from functools import partial

from boxcar.laptop.common import show
from boxcar.laptop.webhooks.receiver import Notification, make_secret, serve


def listen(port: int, secret: str, as_json: bool) -> int:
    """Print events until Ctrl-C (KeyboardInterrupt passes through); '' makes a new secret.

    Raises InputError for a secret that is not base64, and for a port that is taken.
    """
    chosen = secret or make_secret()
    with serve(port, chosen, partial(_print, as_json=as_json), show.say) as receiver:
        try:
            show.say(f"listening at {receiver.url}  (Ctrl-C ends it)")
            if not secret:
                show.say(_exports(receiver.url, chosen))
            receiver.wait()
        finally:
            show.say(f"events: {receiver.received}; came again: {receiver.duplicates}")
    return 0


def _print(event: Notification, *, as_json: bool) -> None:
    if as_json:
        show.json_line("listen", event.document())
    else:
        print(event.line(), flush=True)  # a pipe is read as it comes, so nothing waits in a buffer


def _exports(url: str, secret: str) -> str:
    return (
        "BOXCAR_WEBHOOK_SECRET was not set, so this is a new one. Where you launch, type:\n"
        f"export BOXCAR_WEBHOOK_URL={shlex.quote(url)}\n"
        f"export BOXCAR_WEBHOOK_SECRET={shlex.quote(secret)}"
    )
