"""Whether a zip is there to its end."""

from __future__ import annotations

import zipfile
from typing import IO

from boxcar.shared.file_kinds import ZIP


def has_zip_end(file: IO[bytes]) -> bool:
    """Not where what ends there is an archive that lies in it as it is, as in those of
    Stable-Baselines3: its entries do not begin where the file does.
    """
    file.seek(0)
    begins_with_entry = file.read(len(ZIP)) == ZIP
    try:
        with zipfile.ZipFile(file) as archive:
            first = min((entry.header_offset for entry in archive.infolist()), default=0)
            return not (begins_with_entry and first)
    except (zipfile.BadZipFile, NotImplementedError):
        return False
