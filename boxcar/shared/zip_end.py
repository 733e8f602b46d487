"""Whether a zip is there to its end."""

from __future__ import annotations

import zipfile
from typing import IO


def has_zip_end(file: IO[bytes]) -> bool:
    """Not where what ends there is an archive that lies in it as it is, as in those of
    Stable-Baselines3: its entries do not begin where the file does.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return not min((entry.header_offset for entry in archive.infolist()), default=0)
    except (zipfile.BadZipFile, NotImplementedError):
        return False
