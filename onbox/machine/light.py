"""`signal` and `suppress` for what each attempt's wrapper imports, without what they bring.

signal's own module makes enums of all numbers, and contextlib brings collections and functools: a
quarter and a fifth of what such a program takes to start.
"""

from __future__ import annotations

# Not typing's: see above.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import TracebackType
else:
    import _signal as signal

__all__ = ["signal", "suppress"]


class suppress:
    """As contextlib has it, but for groups of exceptions: what comes of these kinds is passed
    over.
    """

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return kind is not None and issubclass(kind, self._kinds)
