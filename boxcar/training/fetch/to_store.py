"""Data of a job from its URL into the data folders that runs share: a program of its own.

    python -m boxcar.training.fetch.to_store < request.json

    {"base": "/root/autodl-tmp", "box": "box-a", "url": {"name": "pde", "url": "https://…"}}

`url` is as in a plan. Who starts it holds the lock of `of_url(key)`, and this process inherits it.
Killed anywhere, the same call goes on. What it cannot do it leaves as one sentence in `problem`.

Exit codes: 0 the folder is there; 1 what came is not what was asked; 2 it cannot be asked so, or is
refused; 3 no room; 75 the source does not answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Collection
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError, some
from boxcar.shared.files import codec, data_proof, fetched_data, manifest
from boxcar.shared.files.fetched_data import PROBLEM, PROGRESS, RECORD, FetchedData
from boxcar.shared.files.heartbeat import CHECKS, FETCHES, UNPACKS, Fetching
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import DataUrl
from boxcar.shared.paths import DATA_FILES, DataPaths
from boxcar.shared.safe_url import shown
from boxcar.training.fetch import records, staging
from boxcar.training.fetch.data_spec import Candidate, Spec, WantedFile
from boxcar.training.fetch.records import Receipt
from boxcar.training.fetch.unpack import unpack

_EVERY_S = 0.5
_MOST_TOLD = 5


def main() -> int:
    request = json.load(sys.stdin)
    one = codec.decode(DataUrl, request["url"], "the request")
    store = DataPaths(Path(request["base"]))
    work = store.of_url(fetched_data.key_of(one))
    try:
        atomic.make_folder(work)
        (work / PROBLEM).unlink(missing_ok=True)
        bring(store, one, str(request["box"]))
    except (BoxcarError, OSError) as error:
        text = shown("; ".join(line.strip() for line in str(_as_ours(error, work)).splitlines()))
        with contextlib.suppress(OSError):
            atomic.write_whole(work / PROBLEM, text.encode())
        print(text, file=sys.stderr)
        return _as_ours(error, work).exit_code
    finally:
        (work / PROGRESS).unlink(missing_ok=True)
    return 0


def bring(store: DataPaths, one: DataUrl, box: str) -> FetchedData:
    """The folder that is made of what the URL gives. Raises BoxcarError, OSError."""
    if found := fetched_data.find_data(store, one):
        return found
    work = store.of_url(fetched_data.key_of(one))
    come, made = work / "come", work / "made"
    name = fetched_data.file_name(one)
    _put_back(made / DATA_FILES / name, come / name)
    _remove(made)
    receipt = _fetch(come, name, one)
    files = _unpacked(come / name, made, one) if one.unpack else _moved(come, name, made, receipt)
    digest = data_proof.digest_of_files(files)
    target = store.folder(digest)
    if target.exists() and not data_proof.problems_of_data(target):
        _remove(made)  # it came by another way before
    elif target.exists():
        raise DamagedError(f"what lies there of it is damaged: boxcar data --remove {digest[:12]}")
    else:
        data_proof.give_name(made, target, files)
    record = FetchedData(
        url=shown(one.url),
        sha256=receipt.sha256,
        size_bytes=receipt.size_bytes,
        digest=digest,
        box=box,
        fetched_at=timestamp.utc_now(),
    )
    atomic.write_whole(work / RECORD, codec.to_document(record))
    _remove(come)
    return record


def _fetch(come: Path, name: str, one: DataUrl) -> Receipt:
    token = os.environ.get(one.token, "") if one.token else ""
    if one.token and not token:
        raise InputError(f"{one.token} is not set on this box: launch hands it over")
    candidate = Candidate(one.url, name, one.sha256, token)
    spec = Spec(come, (WantedFile("data", one.name, True, (candidate,)),))

    def keep_progress(done: int, total: int, rate: float) -> None:
        doing = CHECKS if total and done >= total else FETCHES
        now = Fetching(one.name, doing, min(done, total or done), total, rate)
        fetched_data.write_progress(come.parent, now)

    keep_progress(0, 0, 0.0)
    staging.fetch(spec, told=keep_progress)
    receipt = records.find_receipt(come / name, by_content=True)
    if receipt is None:
        raise DamagedError(f"{come / name}: changed after it came")
    return receipt


def _moved(come: Path, name: str, made: Path, receipt: Receipt) -> tuple[FileRecord, ...]:
    """Its bytes were read back from the disk when it came."""
    atomic.make_folder(made / DATA_FILES)
    (come / name).rename(made / DATA_FILES / name)
    return (FileRecord(name, receipt.size_bytes, receipt.sha256),)


def _put_back(moved: Path, came: Path) -> None:
    """After a kill between the move and the name: else it would be fetched again."""
    if moved.is_file() and records.receipt_of(came).exists() and not came.exists():
        moved.rename(came)


def _unpacked(archive: Path, made: Path, one: DataUrl) -> tuple[FileRecord, ...]:
    done, next_s = 0, 0.0

    def on_bytes(count: int) -> None:
        nonlocal done, next_s
        done += count
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _EVERY_S
            now = Fetching(one.name, UNPACKS, done, 0, 0.0)
            fetched_data.write_progress(made.parent, now)

    atomic.make_folder(made / DATA_FILES)
    try:
        files = unpack(archive, made / DATA_FILES, on_bytes)
        _refuse_unlike(made / DATA_FILES, files)
    except BaseException:
        _remove(made)
        raise
    return files


def _refuse_unlike(folder: Path, files: Collection[FileRecord]) -> None:
    if found := manifest.compare(folder, tuple(files)):
        told = some([f"{one.path} {one.problem}" for one in found], _MOST_TOLD)
        raise DamagedError(f"what was unpacked did not read back: {told}")


def _as_ours(error: BoxcarError | OSError, work: Path) -> BoxcarError:
    if isinstance(error, BoxcarError):
        return error
    if is_full(error):
        return NoRoomError(f"{work}: the disk is full")
    return BoxcarError(f"{error.filename or work}: {error.strerror or error}")


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
