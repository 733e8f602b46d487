"""How one file is looked at: whether its code may run, and what job.yaml calls it."""

from __future__ import annotations

from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class How:
    """`is_trusted`: of `load: trusted`. Where it may not run code either, it is only listed."""

    may_run_code: bool = False
    is_trusted: bool = False
    said_as: str = ""

    @property
    def is_listed(self) -> bool:
        return self.is_trusted and not self.may_run_code
