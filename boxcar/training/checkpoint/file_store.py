"""Checkpoints of one file each, which rank 0 writes: `checkpoints/step_00000120.pth`.

`latest.pth` is the same file as the newest one (a hard link): what job.yaml's `resume:` mirrors. A
latest.pth that is no link to any of them was put there, by the mirror or by a person, and is what
the training goes on from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxcar.shared.disk import atomic
from boxcar.shared.errors import DamagedError, InputError
from boxcar.training.checkpoint import checkpoint_file, checkpoint_folder
from boxcar.training.checkpoint.behind import Behind, copy_to_cpu
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks.side_group import SideGroup
from boxcar.training.reporting.say import say

LATEST = "latest.pth"


class FileStore:
    """The store of a Checkpointer whose checkpoints are files. Methods say who calls them."""

    def __init__(self, out: Path, folder: Path, state: TrainingState, side: SideGroup) -> None:
        self._out, self._folder, self._state, self._side = out, folder, state, side
        # The writing of the last save, or only what may go since.
        self._behind = Behind("boxcar-checkpoint")

    @property
    def latest(self) -> Path:
        return self._out / LATEST

    def path(self, name: str) -> Path:
        """Where a checkpoint lies."""
        return self._folder / f"{name}.pth"

    def names(self) -> list[str]:
        """What is there, newest first. Rank 0."""
        return checkpoint_folder.newest_first(
            [path.stem for path in self._folder.glob("step_*.pth")]
        )

    def wrong_kind(self) -> str | None:
        """Why these are not for this store. Rank 0."""
        folders = [path.name for path in self._folder.glob("step_*") if path.is_dir()]
        if not checkpoint_folder.newest_first(folders):
            return None
        return f"{self._folder}: holds sharded checkpoints: give Checkpointer is_sharded=True"

    def remove_unfinished(self) -> None:
        """Remove what killed saves left. Rank 0."""
        atomic.remove_unfinished(self._folder)
        for path in self._out.glob(f".{LATEST}.*.part"):
            path.unlink(missing_ok=True)

    def adopt(self) -> bool:
        """Give a latest.pth that was put there a name of its own, as the newest. Rank 0.

        True where it was damaged and was set aside.
        """
        names = self.names()
        if not self.latest.exists() or self._is_linked(names):
            return False
        try:
            content = checkpoint_file.read(self.latest)
        except DamagedError as error:
            self._refuse_file(self.latest, str(error))
            return True
        for name in names:
            if checkpoint_folder.age_of_checkpoint(name) >= (content["step"] + 1, 0):  # type: ignore[operator]
                self.refuse(name, f"{self.path(name)}: {LATEST} was put there, of an earlier step")
        if not self._is_copied(self.names(), content):
            name = checkpoint_folder.name_checkpoint(content["step"], self.names())
            checkpoint_file.link(self.latest, self.path(name))
        return False

    def check(self, name: str) -> str:
        """The id of an intact checkpoint, else DamagedError or InputError. Rank 0."""
        content = checkpoint_file.read(self.path(name))
        identity = content.get("id")
        if not isinstance(identity, str) or type(content.get("step")) is not int:
            raise DamagedError(f"{self.path(name)}: its step or its id is missing")
        return identity

    def refuse(self, name: str, reason: str) -> None:
        """Set a checkpoint aside, and say why. Rank 0."""
        path = self.path(name)
        if checkpoint_file.is_same(path, self.latest):
            self.latest.unlink()
        self._refuse_file(path, reason)

    def sees(self, name: str, number: str) -> bool:
        """Whether this rank sees what rank 0 has checked. Each rank by itself."""
        try:
            return bool(self.head(name).get("id") == number)
        except (OSError, InputError):
            return False

    def head(self, name: str) -> dict[str, Any]:
        """The whole content, mapped, of a file that rank 0 has checked. All ranks."""
        return checkpoint_file.load(self.path(name))

    def restore(self, name: str, content: dict[str, Any], rank: int) -> list[str]:
        """Put the state where it was; its notes. All ranks."""
        return self._state.load_state_dict(content, rank=rank)

    def save(self, name: str, head: dict[str, Any], tidy: Callable[[], None]) -> Callable[[], None]:
        """Write it; what begins the rest, `tidy` in a thread: to read one back takes as long as to
        write it. All ranks; all raise what rank 0 raises.
        """
        self._state.gather()
        self._side.on_main(lambda: self._write(name, self._content(head)))
        return lambda: self._begin_on_main(name, tidy)

    def save_async(
        self, name: str, head: dict[str, Any], tidy: Callable[[], None]
    ) -> Callable[[], None]:
        """Copy it to CPU memory; what begins to write it, in a thread. All ranks."""
        self._state.gather()
        copies: list[tuple[dict[str, Any], Callable[[], None]]] = []
        self._side.on_main(lambda: copies.append(self._copy(head)))

        def write() -> None:
            copied, wait = copies.pop()
            wait()
            self._write(name, copied)
            tidy()

        return lambda: self._begin_on_main(name, write)

    def wait(self) -> float:
        """Until the thread is through with the last save: the seconds that it took; its error is
        raised on all ranks.
        """
        return self._side.on_main(self._behind.joined)

    def verify(self, name: str) -> None:
        """Read it back from the disk; DamagedError. Rank 0."""
        checkpoint_file.check_intact(self.path(name), from_disk=True)

    def publish(self, name: str) -> None:
        """It is the newest: latest.pth. Rank 0."""
        if not checkpoint_file.is_same(self.path(name), self.latest):
            checkpoint_file.link(self.path(name), self.latest)

    def delete(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    def _content(self, head: dict[str, Any]) -> dict[str, Any]:
        return {"format": checkpoint_file.FORMAT} | self._state.state_dict() | head

    def _begin_on_main(self, name: str, work: Callable[[], None]) -> None:
        if self._side.rank == 0:
            self._behind.begin(name, work)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        checkpoint_file.write(self.path(name), content)
        self.publish(name)

    def _copy(self, head: dict[str, Any]) -> tuple[dict[str, Any], Callable[[], None]]:
        # The best's weights are mapped from its file: nobody changes them, so nobody copies them.
        copied, wait = copy_to_cpu(self._content({k: v for k, v in head.items() if k != "best"}))
        return copied | {"best": head["best"]}, wait

    def _is_linked(self, names: list[str]) -> bool:
        return any(checkpoint_file.is_same(self.path(name), self.latest) for name in names)

    def _is_copied(self, names: list[str], latest: dict[str, Any]) -> bool:
        """Where there are no links, latest.pth is a copy of one of them."""
        same_step = [
            n
            for n in names
            if (checkpoint_folder.age_of_checkpoint(n) or (0,))[0] == latest["step"]
        ]
        return any(self.sees(name, latest["id"]) for name in same_step)

    def _refuse_file(self, path: Path, reason: str) -> None:
        aside = checkpoint_file.set_aside(path)
        say(f"{reason}; not loaded, kept as {aside.name}")


def refuse_shards(state: TrainingState) -> None:
    """Raise InputError for a model of which each rank holds a part."""
    # What only a DTensor has: its module has moved, and to import it takes half a second.
    if any(hasattr(parameter, "placements") for parameter in state.model.parameters()):
        raise InputError(
            "the model is sharded over the ranks: one file would hold only rank 0's part; "
            "give Checkpointer is_sharded=True"
        )
