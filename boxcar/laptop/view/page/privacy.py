"""What of other people's words leaves this machine with a page: no address, URL, login or secret.

A box's own name is what the job calls it. What ssh, a script or a library printed may hold more,
and a page may be read by others. Pure.
"""

from __future__ import annotations

import re

from boxcar.shared.known_secrets import LEFT_OUT, NONE_KNOWN, KnownSecrets

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+",
        r"(?i)(?<=\bbearer )\S+",
        r"(?i)(?<=token=)\S+|(?<=secret=)\S+|(?<=password=)\S+|(?<=api_key=)\S+|(?<=apikey=)\S+",
        r"\b(?:sk-|hf_|ghp_|whsec_|AKIA)[A-Za-z0-9_+/=-]{8,}",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+(?::\d+)?",
        # As ssh names who does not answer.
        r"(?<=\bhostname )[^\s:]+|(?<=\bhost )[\w-]+(?:\.[\w-]+)+(?: port \d+)?",
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+|(?: port \d+))?\b",
        r"(?i)(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}(?![\w:])",
    )
)


class Private:
    """What is `known` is in no page, however it looks."""

    def __init__(self, known: KnownSecrets = NONE_KNOWN) -> None:
        self._known = known

    def cleaned(self, text: str) -> str:
        cleaned: str = self._known.left_out_of(text)
        for pattern in _PATTERNS:
            cleaned = pattern.sub(LEFT_OUT, cleaned)
        return cleaned
