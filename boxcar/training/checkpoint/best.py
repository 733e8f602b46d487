"""best.pth: the weights of the best result so far, and nothing that only a resume needs.

It is replaced only by one that was read back from the disk. Its content is part of every
checkpoint (its bytes are mapped from best.pth, so this costs room on the disk and no memory):
another box, which gets latest.pth alone, writes the same best.pth again. Of a sharded training the
numbers alone are part of it, because all its boxes share the folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.training.checkpoint import behind, checkpoint_file, checkpoint_folder
from boxcar.training.checkpoint.training_state import TrainingState, weights
from boxcar.training.ranks.side_group import SideGroup
from boxcar.training.reporting.say import say

BEST = "best.pth"
_NUMBERS = ("metric", "mode", "step", "epoch")


class Best:
    """Rank 0 holds the content; all ranks know its numbers, as `state.best`."""

    def __init__(
        self,
        out: Path,
        state: TrainingState,
        side: SideGroup,
        identity: dict[str, Any],
        *,
        is_sharded: bool,
    ) -> None:
        self._path, self._state, self._side = out / BEST, state, side
        self._identity, self._is_sharded = identity, is_sharded
        self._content: dict[str, Any] | None = None

    @property
    def content(self) -> dict[str, Any] | None:
        """What a checkpoint keeps of it."""
        return self._state.best if self._is_sharded else self._content

    def save(self, metric: float, mode: str) -> bool:
        """Whether this was the best so far, and is best.pth now. All ranks."""
        is_best, metric, self._state.best = self._side.on_main(lambda: self._judge(metric, mode))
        if not is_best:
            return False
        modules = self._full() if self._is_sharded else None
        numbers = {"metric": metric, "mode": mode}
        numbers |= {"step": self._state.step, "epoch": self._state.epoch}
        self._side.on_main(lambda: self._write(numbers, modules or self._live()))
        self._state.best = numbers
        return True

    def load(self, saved: dict[str, Any] | None) -> None:
        """What the checkpoint knows. All ranks; `settle` follows on rank 0."""
        # On the others the mapped weights would only keep the file's room on the disk.
        self._content = saved if self._side.rank == 0 else None
        self._state.best = {name: saved[name] for name in _NUMBERS} if saved else None

    def settle(self) -> dict[str, Any] | None:
        """Let best.pth be what the checkpoint says; the numbers of what it is now. Rank 0."""
        there = self._there()
        if self._is_sharded:
            return self._numbers_there(there)
        if there is not None and self._is_ours(there, self._state.best):
            return self._take_over()
        if self._content is None:
            return None
        if there is None or any(there[n] != self._content[n] for n in _NUMBERS):
            checkpoint_file.write(self._path, self._content, is_verified=True)
        self._content = checkpoint_file.load(self._path, checkpoint_file.BEST_FORMAT)
        return self._state.best

    def remove_unfinished(self) -> None:
        """Remove what a killed save left. Rank 0."""
        for path in self._path.parent.glob(f".{BEST}.*.part"):
            path.unlink(missing_ok=True)

    def _judge(self, metric: float, mode: str) -> list[Any]:
        """Whether it is the best, the metric, and the best before it. Rank 0."""
        is_first = self._state.best is None and not self._is_sharded
        if is_first and (there := self._there()) and self._is_ours(there, None):
            self._state.best = self._take_over()
        return [self._beats(metric, mode), metric, self._state.best]

    def _is_ours(self, there: Mapping[str, Any], best: Mapping[str, Any] | None) -> bool:
        """Whether best.pth is this training's, and better than what its checkpoint knows: it was
        killed between the two saves."""
        if checkpoint_folder.differing_settings(there["identity"], self._identity):
            return False
        return best is None or (there["mode"] == best["mode"] and _is_better(there, best))

    def _take_over(self) -> dict[str, Any]:
        content = checkpoint_file.load(self._path, checkpoint_file.BEST_FORMAT)
        self._content = content
        return {name: content[name] for name in _NUMBERS}

    def _beats(self, metric: float, mode: str) -> bool:
        best = self._state.best
        if mode not in ("max", "min"):
            raise InputError(f"mode should be 'max' or 'min', found {mode!r}")
        if best is not None and best["mode"] != mode:
            raise InputError(f"the best so far was taken with mode {best['mode']!r}, not {mode!r}")
        if math.isnan(metric):
            say(f"the metric is NaN at step {self._state.step}: no best result")
            return False
        return best is None or _is_better({"metric": metric, "mode": mode}, best)

    def _write(self, numbers: dict[str, Any], modules: dict[str, Any]) -> None:
        if self._state.best is None:
            self._there()  # another program's file is not overwritten
        head = {"format": checkpoint_file.BEST_FORMAT, "identity": self._identity}
        content = head | numbers | modules
        try:
            checkpoint_file.write(self._path, content, is_verified=True)
        except NoRoomError:
            behind.through()  # an older checkpoint may be on its way out
            checkpoint_file.write(self._path, content, is_verified=True)
        self._content = checkpoint_file.load(self._path, checkpoint_file.BEST_FORMAT)

    def _live(self) -> dict[str, Any]:
        return {name: weights(module) for name, module in self._state.modules.items()}

    def _full(self) -> dict[str, Any]:
        from boxcar.training.checkpoint.sharded import full_weights

        return {name: full_weights(module) for name, module in self._state.modules.items()}

    def _there(self) -> dict[str, Any] | None:
        """What lies there intact; damaged, it is set aside. InputError for a foreign file."""
        if not self._path.exists():
            return None
        try:
            return checkpoint_file.read(self._path, checkpoint_file.BEST_FORMAT)
        except DamagedError as error:
            aside = checkpoint_file.set_aside(self._path)
            say(f"{error}; kept as {aside.name}")
            return None

    def _numbers_there(self, there: dict[str, Any] | None) -> dict[str, Any] | None:
        if there is None and self._state.best is not None:
            say(f"{self._path}: is gone: the best result has to be found again")
        return {name: there[name] for name in _NUMBERS} if there else None


def _is_better(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """By the mode of both."""
    mine, others = float(one["metric"]), float(other["metric"])
    return mine > others if one["mode"] == "max" else mine < others
