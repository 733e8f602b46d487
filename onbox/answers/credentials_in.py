"""The credentials that the laptop hands over: to the box's own disk, for its owner alone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import BoxcarError, Command, InputError, TemporaryError
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import credentials

PATIENCE_S = 20.0


def answer(question: box_asks.KeepCredentials, run: RunOnBox) -> box_asks.CredentialsKept:
    """Write `record` to `path` and read it back as the agent will; the names of its secrets.

    Raises InputError where that place is no place for secrets, DamagedError for a record that is
    none. No value is in an error.
    """
    path = paths.on_box(question.path)
    _refuse_place(path, run.tier.durable_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone_with(path):
        remove_unfinished(path)
        atomic.write_whole(path, json.dumps(question.record).encode(), mode=0o600)
        try:
            found = credentials.read(path)
        except BoxcarError:
            path.unlink(missing_ok=True)
            raise
    return box_asks.CredentialsKept(tuple(sorted(found.env)))


@contextlib.contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """The queues of a cluster have one home: what another hand-over writes there is not unfinished.

    Raises TemporaryError where another one takes too long.
    """
    if (fd := lock.hold(path, PATIENCE_S, is_stand_in=True)) is None:
        raise TemporaryError(
            _("{path}: another hand-over of credentials is still at work", path=path),
            Command("launch"),
        )
    try:
        yield
    finally:
        os.close(fd)


def remove_unfinished(path: Path) -> None:
    """What a killed hand-over left beside it holds secrets too."""
    for left in path.parent.iterdir():
        if atomic.is_temporary(left.name) and left.name.startswith(f".{path.name}."):
            left.unlink(missing_ok=True)


def _refuse_place(path: Path, tier: Path) -> None:
    if path.resolve().is_relative_to(tier.resolve()):
        raise InputError(
            _(
                "{path}: lies on the durable tier {tier}, which others may read; expected a file "
                "on the box's own disk. Fix `credentials` in the profile",
                path=path,
                tier=tier,
            )
        )
    if path.is_symlink() or path.parent.is_symlink():
        raise InputError(
            _(
                "{path}: it or its folder is a symbolic link; no secret is written through it",
                path=path,
            )
        )
