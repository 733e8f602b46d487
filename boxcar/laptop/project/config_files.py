"""Which file of the code folder a queue line's config is, whatever form its name is stored in."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from boxcar.shared.cell.spelling import stored_names


class ConfigFiles:
    """Looks each folder and each config up once: a queue may name thousands of files in one folder,
    and one config in a hundred thousand lines.

    `promised` are paths that count as if they were there.
    """

    def __init__(self, code: Path, promised: Collection[str] = ()) -> None:
        self._code = code
        self._promised = frozenset(promised)
        self._names: dict[str, dict[str, list[str]]] = {}
        self._found: dict[str, list[str]] = {}

    def find(self, cfg: str) -> list[str]:
        """The files that `cfg` (as `config_path` spells it) may mean, by the names they lie under.

        None where it is not there, and more than one where two names differ only in their form.
        """
        if cfg not in self._found:
            self._found[cfg] = [cfg] if cfg in self._promised else self._stored(cfg)
        return self._found[cfg]

    def _stored(self, cfg: str) -> list[str]:
        found = [""]
        for part in cfg.split("/"):
            found = [
                f"{folder}/{name}" if folder else name
                for folder in found
                for name in self._listed(folder).get(part, ())
            ]
        return [name for name in found if (self._code / name).is_file()]

    def _listed(self, folder: str) -> dict[str, list[str]]:
        if folder not in self._names:
            try:
                self._names[folder] = stored_names(
                    path.name for path in (self._code / folder).iterdir()
                )
            except OSError:
                self._names[folder] = {}
        return self._names[folder]
