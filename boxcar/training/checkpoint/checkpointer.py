"""The full state on the disk, and back: whole or not at all, newest readable first.

    checkpointer = Checkpointer(out, state, identity={"lr": args.lr, "width": args.width})
    checkpointer.load_latest()
    ...
    checkpointer.save()                     # or save_async()
    checkpointer.save_best(accuracy)

In `out`: `checkpoints/step_00000120.pth` (the `keep` newest), `latest.pth` (a hard link to the
newest) and `best.pth`. All ranks make a Checkpointer and call its methods together; rank 0 writes,
and all learn whether it worked: every error below is raised on all of them.

Not covered: two trainings in one folder, and a disk that lies about fsync.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import io
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from boxcar.shared.errors import BoxcarError, DamagedError, InputError
from boxcar.training import finite_check
from boxcar.training.checkpoint import checkpoint_folder, training_state
from boxcar.training.checkpoint.best import Best
from boxcar.training.checkpoint.cadence import Pace
from boxcar.training.checkpoint.checkpoint_folder import CheckpointFolder
from boxcar.training.checkpoint.file_store import FileStore, refuse_shards
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.ranks.side_group import SideGroup
from boxcar.training.reporting.say import say

CHECKPOINTS = "checkpoints"


class Checkpointer:
    """Saves and restores a TrainingState in one folder.

    `identity`: what must be the same to go on (settings, data), plain values.
    `is_sharded`: each rank writes its own part (FSDP), as a folder; see sharded.py.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        state: TrainingState,
        *,
        keep: int = 2,
        identity: Mapping[str, Any] | None = None,
        is_sharded: bool = False,
    ) -> None:
        if keep < 1:
            raise InputError(f"keep should be 1 or more checkpoints, found {keep}")
        if not is_sharded:
            refuse_shards(state)
        self._out = Path(folder)
        self._folder = self._out / CHECKPOINTS
        self._state = state
        self._identity = training_state.plain(dict(identity or {}), "identity")
        self._side = SideGroup()
        self._store = self._make_store(is_sharded)
        self._best = Best(self._out, state, self._side, self._identity, is_sharded=is_sharded)
        self._keeper = CheckpointFolder(self._folder, self._store, keep)
        self._is_begun = self._is_pending = False
        self._mark_s = time.monotonic()
        self.pace = Pace(state.step)
        """What the last save cost; for Cadence."""

    def load_latest(self) -> bool:
        """Go on from the newest checkpoint that is complete and readable; False where none is.

        What is damaged is named on stderr, with its reason, and kept under another name. Raises
        InputError for another program's file, another `identity`, parts that cannot be restored,
        another number of ranks with another global batch, and ranks that see different disks.
        """
        self.wait()
        self._begin()
        while (found := self._side.on_main(self._keeper.choose)) is not None:
            if self._is_loaded(**found):
                self._set_pace()
                return True
        has_none = self._side.rank == 0 or not self._store.names()
        self._refuse_other_disks(has_none, self._folder)
        self._set_pace()
        return False

    def save(self) -> None:
        """Write the state now. When it returns, the state is on the disk.

        What is old goes behind it, once a newer one was read back. Raises NoRoomError with the
        bytes needed; the checkpoints before it are kept and nothing of the new one stays, so
        training may go on. Raises DamagedError, when all is done, where the disk gave back
        something else of an earlier save than was written.
        """
        damage: DamagedError | None = None
        # What else went wrong with an earlier save was said then, and this one makes up for it.
        with contextlib.suppress(BoxcarError, OSError):
            try:
                self.wait()
            except DamagedError as error:
                damage = error
        self._save(self._store.save)
        self._is_pending = True
        if damage:
            raise damage

    def save_async(self) -> None:
        """Copy the state to CPU memory and write it in a thread; only the copy holds up the step.

        Waits for the save before it, and raises what went wrong with that. Needs memory for one
        more state on rank 0 (with shards: for each rank's own).
        """
        self._save(self._store.save_async)
        self._is_pending = True

    def wait(self) -> None:
        """Until the last save_async is on the disk, and what is old is gone; raises what went wrong
        with it.
        """
        if self._is_pending:
            self._is_pending = False
            self.pace = dataclasses.replace(self.pace, write_s=self._store.wait())

    def save_best(self, metric: float, mode: str = "max") -> bool:
        """Replace best.pth by the weights of now if `metric` (rank 0's) is the best so far.

        The new one is read back before it takes the name. `mode`: "max" or "min". A resume goes on
        comparing: the best and its weights are part of every checkpoint.
        """
        self._refuse_unloaded()
        self._side.everywhere(finite_check.settle)
        return self._best.save(float(metric), mode)

    def _make_store(self, is_sharded: bool) -> Any:
        if not is_sharded:
            return FileStore(self._out, self._folder, self._state, self._side)
        from boxcar.training.checkpoint.sharded import Sharded

        return Sharded(self._out, self._folder, self._state, self._side)

    def _save(self, write: Callable[..., Callable[[], None]]) -> None:
        self.wait()
        self._refuse_unloaded()
        started_s = time.monotonic()
        steps, self._mark_s, since_s = self._state.step - self.pace.step, started_s, self._mark_s
        try:
            begin_rest = write(*self._named_head(), self._keeper.tidy)
        finally:
            # Also where it failed, or every step would try again.
            self.pace = dataclasses.replace(self.pace, step=self._state.step)
        self._mark_s = time.monotonic()
        measured = Pace(
            self._state.step,
            stall_s=self._mark_s - started_s,
            write_s=self.pace.write_s,
            step_s=(started_s - since_s) / max(1, steps),
            steps=steps,
            mtbf_s=self._keeper.history.mtbf_s,
        )
        self._set_pace(measured)
        # Last: a thread that begins takes the interpreter from what the ranks have to say.
        begin_rest()

    def _set_pace(self, measured: Pace | None = None) -> None:
        """Rank 0's numbers on all ranks."""
        pace = measured or Pace(self._state.step, mtbf_s=self._keeper.history.mtbf_s)
        self.pace = Pace(**self._side.tell(dataclasses.asdict(pace)))
        self._mark_s = time.monotonic()

    def _named_head(self) -> tuple[str, dict[str, Any]]:
        """The name, and what is saved beside the parts; the same on all ranks."""
        found = self._side.everywhere(self._own_head)
        rngs = [_unpacked(of_rank["rng"]) for of_rank in found]
        name, from_main = found[0]["main"]
        mine = {"world": self._side.world, "identity": self._identity, "rng": rngs}
        return name, from_main | mine | {"best": self._best.content}

    def _own_head(self) -> dict[str, Any]:
        """What the others need of this rank, as JSON: all in one message."""
        finite_check.settle()
        main = self._head_on_main() if self._side.rank == 0 else None
        return {"rng": _packed(training_state.capture_rng()), "main": main}

    def _head_on_main(self) -> tuple[str, dict[str, Any]]:
        history = self._keeper.history
        numbers = {"starts": history.starts, "running_s": history.running_s}
        name = checkpoint_folder.name_checkpoint(self._state.step, self._store.names())
        return name, {"id": secrets.token_hex(8), "history": numbers}

    def _begin(self) -> None:
        if not self._is_begun:
            self._side.on_main(self._keeper.begin)
            self._side.on_main(self._best.remove_unfinished)
            self._is_begun = True

    def _refuse_unloaded(self) -> None:
        """A script that forgot load_latest would start over beside what it should go on from."""
        if self._is_begun:
            return
        self._side.on_main(self._refuse_unloaded_on_main)
        self._begin()

    def _refuse_unloaded_on_main(self) -> None:
        found = [*self._store.names(), *self._out.glob("latest.pth")]
        if found:
            raise InputError(
                f"{self._out}: holds checkpoints that were not loaded: call "
                "checkpointer.load_latest() before the first save, or give another folder"
            )

    def _is_loaded(self, name: str, id: str) -> bool:
        """All ranks, from the same one; False where its bytes turned out to be damaged."""
        path = self._store.path(name)
        self._refuse_other_disks(self._store.sees(name, id), path)
        try:
            content = self._store.head(name)
            self._refuse_another_training(path, content)
            notes, reasons = self._restored(name, content)
        except DamagedError as error:
            reason = str(error)
            self._side.on_main(lambda: self._store.refuse(name, reason))
            return False
        self._side.together([f"{path}: {reason}" for reason in reasons])
        for note in notes:
            say(note)
        self._best.load(content.get("best"))
        self._state.best = self._side.on_main(lambda: self._settle(name, content))
        return True

    def _refuse_another_training(self, path: Path, content: dict[str, Any]) -> None:
        loader = self._state.parts.get("loader")
        position = loader.state_dict() if loader is not None else {}
        reasons = checkpoint_folder.resume_problems(
            content, self._identity, self._side.world, position
        )
        self._side.together([f"{path}: {reason}" for reason in reasons])

    def _restored(self, name: str, content: dict[str, Any]) -> tuple[list[str], list[str]]:
        """Notes, and reasons why it cannot be."""
        try:
            return self._store.restore(name, content, self._side.rank), []
        except InputError as error:
            return [], list(error.problems)

    def _settle(self, name: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """The best of now, on rank 0."""
        self._keeper.anchor(name, content.get("history"))
        return self._best.settle()

    def _refuse_other_disks(self, is_same: bool, path: Path) -> None:
        """Ranks that went on from different files, or some from none, would train nonsense."""
        problem = (
            f"{path} differs from what rank 0 sees: {self._out} must be one folder for all ranks, "
            "on a disk that all nodes share"
        )
        self._side.together([] if is_same else [problem])


def _packed(rng: dict[str, Any]) -> str:
    file = io.BytesIO()
    torch.save(rng, file)
    return base64.b64encode(file.getvalue()).decode()


def _unpacked(text: str) -> dict[str, Any]:
    rng: dict[str, Any] = torch.load(io.BytesIO(base64.b64decode(text)), weights_only=True)
    return rng
