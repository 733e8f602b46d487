"""`suppress`, as contextlib has it but for groups of exceptions, for what each attempt's wrapper
imports.

contextlib brings collections and functools: a fifth of what such a program takes to start.
"""

from __future__ import annotations

# Not typing's: see above.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class suppress:
    """What comes of these kinds within is passed over."""

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
