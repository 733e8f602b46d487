"""`onbox answer`: each line of JSON on stdin is a question of the laptop, and is answered by a
marked line. It ends with its stdin, or where no question has come for a while: a laptop that slept,
or whose line is cut, leaves no process here.
"""

from __future__ import annotations

import importlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Any

from boxcar.shared import errors
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import BoxcarError, NoRoomError, message_of
from boxcar.shared.files import codec
from boxcar.shared.wire import box_asks, cluster_asks, data_asks, envelope, news_asks, run_asks
from boxcar.shared.wire.question import Question

# Who answers what. Imported late, because a look every few seconds must not load what sends
# webhooks.
MODULES: dict[type[Question[Any]], str] = {
    box_asks.Several: "onbox.answers.several",
    run_asks.Report: "onbox.answers.report",
    run_asks.Wait: "onbox.answers.wait",
    run_asks.FindRelease: "onbox.answers.receive_release",
    run_asks.Prepare: "onbox.answers.receive_release",
    run_asks.CopyUnchanged: "onbox.answers.receive_release",
    run_asks.Install: "onbox.answers.receive_release",
    run_asks.PointTo: "onbox.answers.newest_release",
    run_asks.Append: "onbox.answers.append_lines",
    run_asks.CommentOut: "onbox.answers.append_lines",
    run_asks.WriteControl: "onbox.answers.control",
    box_asks.KeepCredentials: "onbox.answers.credentials_in",
    run_asks.Start: "onbox.answers.start",
    run_asks.MoveClaim: "onbox.answers.move_claim",
    run_asks.TakeCheckpoint: "onbox.answers.take_checkpoint",
    run_asks.ReadLog: "onbox.answers.log_slice",
    news_asks.Deliver: "onbox.answers.deliver_late",
    news_asks.PostNews: "onbox.webhooks.post_news",
    box_asks.SeeOthers: "onbox.answers.others",
    box_asks.End: "onbox.answers.end",
    box_asks.EndItself: "onbox.answers.end",
    box_asks.KeepDeadline: "onbox.answers.end",
    box_asks.Audit: "onbox.answers.audit",
    box_asks.TierProbe: "onbox.answers.tier_check",
    run_asks.Repair: "onbox.answers.repair",
    run_asks.Accept: "onbox.answers.accept",
    run_asks.KnowResults: "onbox.answers.know_results",
    run_asks.TakeResults: "onbox.answers.take_results",
    data_asks.FindData: "onbox.answers.data_folders",
    data_asks.PrepareData: "onbox.answers.data_folders",
    data_asks.InstallData: "onbox.answers.data_folders",
    data_asks.RemoveData: "onbox.answers.data_folders",
    data_asks.LookAtUrls: "onbox.answers.data_urls",
    box_asks.TrySecondHome: "onbox.answers.try_second_home",
    cluster_asks.SlurmLook: "onbox.slurm.squeue",
    cluster_asks.SlurmSubmit: "onbox.slurm.submit",
    cluster_asks.SlurmCancel: "onbox.slurm.cancel",
    cluster_asks.SlurmAudit: "onbox.slurm.cluster_facts",
    cluster_asks.SlurmTry: "onbox.slurm.node_probe",
}


# Longer than a laptop believes that its connection lives.
IDLE_S = 60.0
_PART_BYTES = 1024 * 1024


def run() -> int:
    """Answer what stands on stdin. 0 also where the answer is an error: it was told."""
    # A line of ours among somebody's banner is found by its mark. What else is printed here, also
    # by a child, must not come between; nor may a child read the next question.
    stdin, nothing = sys.stdin.fileno(), os.open(os.devnull, os.O_RDONLY)
    questions, out = os.dup(stdin), os.dup(1)
    os.dup2(nothing, stdin)
    os.close(nothing)
    os.dup2(2, 1)
    with os.fdopen(out, "wb") as stdout:
        for question in _lines(questions):
            stdout.write(envelope.write_answer(answer(question)))
            stdout.flush()
    return 0


def _lines(fd: int) -> Iterator[bytes]:
    """What comes, up to its end or a silence; one at least."""
    rest, has_come = b"", False
    while select.select([fd], [], [], IDLE_S)[0]:
        part = os.read(fd, _PART_BYTES)
        *whole, rest = (rest + part).split(b"\n")
        has_come = has_come or bool(whole)
        yield from whole
        if not part:
            break
    if rest or not has_come:
        yield rest


def answer(data: bytes) -> dict[str, Any]:
    """The answer to a question as it travels, as a JSON object; also what goes wrong is one."""
    try:
        question, on_box = envelope.read_question(data)
        module = importlib.import_module(MODULES[type(question)])
        answered: dict[str, Any] = codec.encode(module.answer(question, on_box))
    except BoxcarError as error:
        return envelope.error(_kind(error), message_of(error))
    except OSError as error:
        return envelope.error(NoRoomError if is_full(error) else BoxcarError, message_of(error))
    return answered


def _kind(error: BoxcarError) -> type[BoxcarError]:
    """The class as the laptop knows it: the first of its bases that stands in shared.errors."""
    return next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
