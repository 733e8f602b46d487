"""`.boxcar/` beside job.yaml: what Boxcar keeps on this machine for one project."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared.record import dataclass

FOLDER = ".boxcar"


@dataclass(frozen=True)
class Home:
    """Every path below `.boxcar/`. Nobody else joins these names. `root` is the project's folder.

    Lost with it are only the addresses of boxes, what was tried and shown already, and copies.
    """

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    def release(self, digest: str) -> Path:
        return self.folder / "releases" / digest

    def agent(self, file_name: str) -> Path:
        """The agent's zipapp, which boxes of this machine run from here."""
        return self.folder / "onbox" / file_name

    @property
    def mirror(self) -> Path:
        """The copy of what the boxes of all runs reported, laid out as a durable tier."""
        return self.folder / "mirror"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def host(self, alias: str) -> Path:
        """Which box answered under this name in ~/.ssh/config."""
        return self.folder / "hosts" / f"{alias}.json"

    def smoke(self, run: str) -> Path:
        """Where the cells of a run are tried."""
        return self.folder / "smoke" / run

    @property
    def smoke_passes(self) -> Path:
        return self.folder / "smoke" / "passes"

    def seen(self, profile: str) -> Path:
        """That the dangers of a platform were shown."""
        return self.folder / "seen" / f"{profile}.json"

    def hashed(self, run: str) -> Path:
        """Which files of the results `pull` has hashed before, and how they looked then."""
        return self.folder / "hashed" / f"{run}.json"

    def reported(self, run: str) -> Path:
        """What `watch --once-if-changed` said last."""
        return self.folder / "watch" / f"{run}.json"

    def told(self, run: str, queue: str) -> Path:
        """How far each endpoint is that this machine sends to."""
        return self.folder / "told" / run / f"{queue}.json"

    @property
    def split(self) -> Path:
        """There while the queue files are being rewritten."""
        return self.folder / "split.json"

    @property
    def listen_secret(self) -> Path:
        """The secret of `listen`, alone, for a shell to read."""
        return self.folder / "listen.secret"

    @property
    def demo(self) -> Path:
        """The demo's port and secret."""
        return self.folder / "demo.json"
