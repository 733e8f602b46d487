"""The shared secret of a webhook: `whsec_` and base64, as Standard Webhooks spells it."""

from __future__ import annotations

import base64

from boxcar.shared.sentence import _

# An event as it travels to a webhook: `{"type", "timestamp", "data"}`.


# A body stays under it, so that no endpoint has a reason to refuse one for its size.
BODY_BYTES = 20_000


PREFIX = "whsec_"


def key(secret: str) -> bytes:
    """The signing key. Raises ValueError, whose message does not repeat the secret."""
    if not secret.startswith(PREFIX):
        raise ValueError(_("expected {prefix} and base64", prefix=PREFIX))
    text = secret.removeprefix(PREFIX).rstrip("=")
    try:
        # `validate`: else what is no base64 is left out, and a typing error makes another key.
        found = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        found = b""
    if not found:
        raise ValueError(_("expected {prefix} and base64", prefix=PREFIX)) from None
    return found


def is_secret(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(key(value))
    except ValueError:
        return False
