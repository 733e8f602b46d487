"""NVIDIA's numbers (Xid) for errors of a card itself, apart from what a crashed program leaves.

As regular expressions, for the lines of a log; `is_of_card` is for a number that a driver tells.
Source: NVIDIA's table of Xid errors (docs.nvidia.com/deploy/xid-errors), read for the signatures.
"""

from __future__ import annotations

import re

# Memory that nothing corrected, and rows of it that were replaced.
OF_MEMORY = "48|63|64|92|94|95"
# The card, its bus, its links or its processor are gone until it is reset.
OF_DEAD_CARD = (
    "46|48|54|56|57|58|61|62|64|69|74|79|8[0-9]|9[2356]|109|110"
    "|11[0-9]|12[0-9]|13[0-9]|14[0-9]|15[0-9]"
)
_OF_CARD = re.compile(f"{OF_MEMORY}|{OF_DEAD_CARD}")


def is_of_card(number: int) -> bool:
    """
    >>> [is_of_card(number) for number in (79, 94, 13, 31)]
    [True, True, False, False]
    """
    return _OF_CARD.fullmatch(str(number)) is not None
