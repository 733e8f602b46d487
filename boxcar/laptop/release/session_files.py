"""The files that run one box of a run on a platform without ssh. Pure, but for what is read.

Kaggle gets a data set with the release and a script for each box; Colab a notebook that holds
both. `templates/session.py` is what runs there.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxcar.laptop.common import home
from boxcar.shared.errors import InputError
from boxcar.shared.files.control import RUN, STOP, Control
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.release import Release
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks, envelope, run_asks
from boxcar.shared.wire.question import Question, RunOnBox

KAGGLE, COLAB = "kaggle", "colab"
_LINE = "SESSION: dict[str, Any] = {}"
# A notebook that holds more opens slowly, or not at all.
_MOST_EMBEDDED_BYTES = 20_000_000
_LONGEST_SLUG = 50


@dataclass(frozen=True)
class Where:
    """`earlier_dirs`: where what earlier sessions left is looked for; `kept_dir`: where a second
    copy goes, because the session's own disk is lost.
    """

    earlier_dirs: tuple[str, ...]
    kept_dir: str = ""


PLACES = {
    KAGGLE: Where(("/kaggle/input",)),
    COLAB: Where(("/content/drive/MyDrive/boxcar",), "/content/drive/MyDrive/boxcar"),
}


@dataclass(frozen=True)
class Session:
    """What all boxes of one run have alike. `lines` are the queue files, by the queue's name."""

    plan: Plan
    release: Release
    secrets: tuple[str, ...]
    lines: Mapping[str, str]
    most_s: float
    at: str

    def settings(self, platform: str, box: str) -> dict[str, Any]:
        """What `session.py` is told of this box. It holds no secret, only names of secrets."""
        plan, digest = self.plan, self.release.digest
        known = plan.box(box)
        on_box = RunOnBox(plan.run, plan.durable_dir, known.data_dir)
        queues = [queue for queue, at in plan.queues.items() if at == box]
        unfinished = f".{digest}.{digest[:8]}.part"
        questions: list[Question[Any]] = [
            run_asks.Install(digest, unfinished),
            run_asks.PointTo(digest),
            box_asks.KeepCredentials(known.credentials, {"env": {}, "webhooks": []}),
            *(run_asks.WriteControl(queue, Control(RUN, self.at)) for queue in queues),
        ]
        stops = {queue: run_asks.WriteControl(queue, Control(STOP, self.at)) for queue in queues}
        where = PLACES[platform]
        return {
            "run": plan.run,
            "box": box,
            "queues": queues,
            "digest": digest,
            "unfinished": unfinished,
            "agent": self.release.onbox,
            "durable_dir": plan.durable_dir,
            "work_dir": known.data_dir,
            "earlier_dirs": where.earlier_dirs,
            "kept_dir": where.kept_dir,
            "secrets": self.secrets,
            "lines": {queue: self.lines[queue] for queue in queues},
            "most_s": self.most_s,
            "release": "",
            "questions": [_document(question, on_box) for question in questions],
            "stop": {queue: _document(question, on_box) for queue, question in stops.items()},
        }


def _document(question: Question[Any], on_box: RunOnBox) -> Any:
    return json.loads(envelope.write_question(question, on_box))


def session_program(settings: Mapping[str, Any]) -> str:
    """`session.py` as it runs there."""
    text = (home.assets_root() / "templates" / "session.py").read_text(encoding="utf-8")
    before, line, after = text.partition(_LINE)
    assert line
    _comment, _end, rest = after.partition("\n")
    told = json.dumps(settings)
    return f"{before}SESSION: dict[str, Any] = json.loads({told!r})\n{rest}"


def pack_release(folder: Path) -> bytes:
    """As a zip that keeps which files are programs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()


def kaggle_files(session: Session, user: str, packed: bytes) -> dict[str, bytes]:
    """By their path below the folder: `release/` is the data set, a folder for each box its script.

    Raises InputError for names that Kaggle does not take.
    """
    digest = session.release.digest[:12]
    data = _slug(f"boxcar-{session.plan.run}")
    files = {
        f"release/boxcar-{digest}.bin": packed,
        "release/dataset-metadata.json": _json(
            {
                "title": data,
                "id": f"{user}/{data}",
                "licenses": [{"name": "other"}],
            }
        ),
    }
    for box in session.plan.boxes:
        slug = kaggle_slug(session.plan.run, box.name)
        settings = session.settings(KAGGLE, box.name)
        files[f"{box.name}/session.py"] = session_program(settings).encode()
        files[f"{box.name}/kernel-metadata.json"] = _json(
            {
                "id": f"{user}/{slug}",
                "title": slug,
                "code_file": "session.py",
                "language": "python",
                "kernel_type": "script",
                "is_private": True,
                "enable_gpu": True,
                "enable_internet": True,
                "dataset_sources": [f"{user}/{data}"],
                # What its session before has left. The first push says that there is none.
                "kernel_sources": [f"{user}/{slug}"],
                "competition_sources": [],
                "model_sources": [],
            }
        )
    return files


def colab_files(session: Session, packed: bytes) -> dict[str, bytes]:
    """A notebook for each box. Raises InputError for a release that is too large for one."""
    if len(packed) > _MOST_EMBEDDED_BYTES:
        raise InputError(
            _(
                "the release has {size_mb:,.0f} MB, and a notebook holds at most {most_mb:.0f}. "
                "Leave data out of the code: name it in .boxcarignore",
                size_mb=len(packed) / 1e6,
                most_mb=_MOST_EMBEDDED_BYTES / 1e6,
            )
        )
    release = base64.b64encode(packed).decode()
    made = {}
    for box in session.plan.boxes:
        settings = session.settings(COLAB, box.name) | {"release": release}
        made[f"{session.plan.run}-{box.name}.ipynb"] = _json(
            _notebook(session.plan.run, box.name, session_program(settings))
        )
    return made


def _notebook(run: str, box: str, program: str) -> dict[str, Any]:
    mount = "from google.colab import drive\n\ndrive.mount('/content/drive')"
    end = "drive.flush_and_unmount()  # what is written reaches Drive only now"
    cells = [
        {
            "cell_type": "code",
            "id": f"boxcar-{name}",
            "execution_count": None,
            "metadata": {"cellView": "form"} if name == "run" else {},
            "outputs": [],
            "source": text.splitlines(keepends=True),
        }
        for name, text in (("mount", mount), ("run", program), ("end", end))
    ]
    about = {
        "cell_type": "markdown",
        "id": "boxcar-about",
        "metadata": {},
        "source": [f"Box {box} of the run {run}. Choose a GPU runtime, then run all cells."],
    }
    return {
        "cells": [about, *cells],
        "metadata": {
            "accelerator": "GPU",
            "colab": {"name": f"{run}-{box}.ipynb"},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def kaggle_slug(run: str, box: str) -> str:
    """What the script of a box is called there. Raises InputError."""
    return _slug(f"{run}-{box}")


def _slug(name: str) -> str:
    """As Kaggle makes one of a title. Raises InputError where too little or too much is left."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not 6 <= len(slug) <= _LONGEST_SLUG:
        raise InputError(
            _(
                "{name}: Kaggle takes names of 6 to {most} letters, digits and hyphens. Give the "
                "run or the box another name in job.yaml",
                name=name,
                most=_LONGEST_SLUG,
            )
        )
    return slug


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"
