"""Runs one box of a Boxcar run in a notebook session. Written by `boxcar render`; not to be edited.

An earlier session's folder is brought back first, so that cells go on from their last copied
checkpoint. The agent is told to stop before the session's time is up, since a session that is cut
off may keep nothing.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SESSION: dict[str, Any] = {}  # `boxcar render` writes what is said here
_LOOK_S = 2.0
_KEEP_S = 60.0


def main() -> int:
    began_s = time.monotonic()
    session = json.loads(os.environ.get("BOXCAR_SESSION", "null")) or SESSION
    tier = Path(session["durable_dir"]) / "boxcar" / session["run"]
    tier.mkdir(parents=True, exist_ok=True)
    for earlier in earlier_tiers(session):
        copy_new(earlier, tier)
    release = unpack_release(session, tier)
    write_queues(session, tier)
    for question in session["questions"]:
        ask(session, release, with_secrets(question, session))
    for queue in session["queues"]:
        run_queue(session, release, queue, tier, began_s)
    keep(session, tier)
    print(f"[boxcar] what this session leaves lies in {tier}", flush=True)
    return 0  # also where a cell failed: a session that ends with an error may lose its output


def earlier_tiers(session: dict[str, Any]) -> list[Path]:
    """The folders that earlier sessions of this run have left, the oldest first."""
    wanted = ("boxcar", session["run"])
    found = [
        path.parent
        for folder in session["earlier_dirs"]
        for path in sorted(Path(folder).glob("**/journal"))
        if path.parent.parts[-2:] == wanted
    ]
    return sorted(found, key=_length_of_journals)


def _length_of_journals(tier: Path) -> int:
    return sum(path.stat().st_size for path in (tier / "journal").glob("*.jsonl"))


def copy_new(source: Path, target: Path) -> None:
    """Each file that is not there alike, whole or not at all; what proves a folder comes last."""
    for path in files_below(source):
        there = target / path.relative_to(source)
        if is_alike(path, there):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        part = there.with_name(f".{there.name}.session.part")
        shutil.copyfile(path, part)
        shutil.copystat(path, part)
        part.replace(there)


def files_below(folder: Path) -> Iterator[Path]:
    """All but locks and unfinished files, which are of who wrote them, and the releases."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    mine = [path for path in found if not _is_passing(path.relative_to(folder))]
    yield from sorted(mine, key=lambda path: (path.name in ("manifest.json", "receipt.json"), path))


def _is_passing(path: Path) -> bool:
    unfinished = any(part.startswith(".") and part.endswith(".part") for part in path.parts)
    return unfinished or path.suffix == ".lock" or path.parts[0] == "releases"


def is_alike(path: Path, there: Path) -> bool:
    if not there.is_file():
        return False
    one, other = path.stat(), there.stat()
    return one.st_size == other.st_size and int(one.st_mtime) == int(other.st_mtime)


def unpack_release(session: dict[str, Any], tier: Path) -> Path:
    """The release under its unfinished name; the first question has the agent check and name it."""
    release = tier / "releases" / session["digest"]
    if release.is_dir():
        return release
    unfinished = release.with_name(session["unfinished"])
    shutil.rmtree(unfinished, ignore_errors=True)
    with zipfile.ZipFile(_packed(session)) as archive:
        for entry in archive.infolist():
            archive.extract(entry, unfinished)
            (unfinished / entry.filename).chmod(entry.external_attr >> 16 & 0o777)
    return release


def _packed(session: dict[str, Any]) -> Path:
    if session["release"]:
        path = Path(session["work_dir"]) / "release.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(session["release"]))
        return path
    name = f"boxcar-{session['digest'][:12]}.bin"
    for folder in session["earlier_dirs"]:
        for path in Path(folder).glob(f"**/{name}"):
            return path
    sys.exit(f"[boxcar] {name} is in no input of this session: add the data set of this run to it")


def write_queues(session: dict[str, Any], tier: Path) -> None:
    """The lines that are new, behind those that ran before."""
    for name, text in session["lines"].items():
        path, data = tier / "queues" / f"{name}.txt", text.encode()
        before = path.read_bytes() if path.exists() else b""
        if not data.startswith(before):
            sys.exit(f"[boxcar] {name}: its lines do not go on from those of the earlier session")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.session.part")
        part.write_bytes(data)
        part.replace(path)


def with_secrets(question: dict[str, Any], session: dict[str, Any]) -> dict[str, Any]:
    if question["ask"] != "credentials":
        return question
    env = {name: secret(name) for name in session["secrets"]}
    return {**question, "record": {**question["record"], "env": env}}


def secret(name: str) -> str:
    """From the environment, else from the platform's own store of secrets."""
    if name in os.environ:
        return os.environ[name]
    for module, read in (
        ("kaggle_secrets", lambda found: found.UserSecretsClient().get_secret(name)),
        ("google.colab.userdata", lambda found: found.get(name)),
    ):
        try:
            return str(read(importlib.import_module(module)))
        except ImportError:
            continue
        except Exception as error:
            sys.exit(f"[boxcar] the secret {name} cannot be read: {type(error).__name__}")
    sys.exit(f"[boxcar] the secret {name} is not set: add it to this notebook's secrets")


def ask(session: dict[str, Any], release: Path, question: dict[str, Any]) -> None:
    """One question to the agent's program, as the laptop asks it. Ends the session at a no."""
    at = release if release.is_dir() else release.with_name(session["unfinished"])
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(at / session["agent"]), "answer"],
        input=json.dumps(question).encode(),
        capture_output=True,
        check=False,
    )
    marked = [line for line in done.stdout.splitlines() if line.startswith(b"BOXCAR-ANSWER ")]
    answer = json.loads(marked[-1].partition(b" ")[2]) if marked else {}
    if done.returncode or "error" in answer or not marked:
        why = answer.get("error") or done.stderr.decode("utf-8", "replace")[-2000:]
        sys.exit(f"[boxcar] {question['ask']}: {why}")


def run_queue(
    session: dict[str, Any], release: Path, queue: str, tier: Path, began_s: float
) -> None:
    agent = subprocess.Popen(["bash", str(release / "run_queue.sh"), queue])
    kept_s = time.monotonic()
    is_told = False
    while agent.poll() is None:
        time.sleep(_LOOK_S)
        now_s = time.monotonic()
        if not is_told and now_s - began_s > session["most_s"]:
            print("[boxcar] the session's time is nearly up: checkpoint, then end", flush=True)
            ask(session, release, session["stop"][queue])
            is_told = True
        if now_s - kept_s > _KEEP_S:
            keep(session, tier)
            kept_s = now_s
    print(f"[boxcar] {queue}: its agent ended with {agent.returncode}", flush=True)


def keep(session: dict[str, Any], tier: Path) -> None:
    """A second copy where the session's own disk is lost, such as on a mounted drive."""
    if session["kept_dir"]:
        copy_new(tier, Path(session["kept_dir"]) / "boxcar" / session["run"])


if __name__ == "__main__":
    code = main()
    if code:
        sys.exit(code)
