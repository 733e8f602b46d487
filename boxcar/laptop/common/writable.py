"""A folder of a person's that cannot be written to: said with what helps."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared.errors import InputError

_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def results_to(folder: Path) -> Iterator[None]:
    """Raise InputError with advice where `folder` or what is in it may not be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        raise InputError(
            f"{error.filename or folder}: {error.strerror}, and what is known of the run is kept "
            f"in {folder}. Make it writable (whose is it by `ls -ld`, is its disk mounted "
            "read-only?), and type the same command again. On the boxes nothing was touched"
        ) from error
