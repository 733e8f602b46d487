"""`onbox answer`: one question of the laptop, as JSON on stdin, and its answer in a marked line."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from boxcar.shared import errors
from boxcar.shared.disk.mounts import is_full
from boxcar.shared.errors import BoxcarError, NoRoomError, message_of
from boxcar.shared.files import codec
from boxcar.shared.wire import box_asks, cluster_asks, envelope, news_asks, run_asks
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
    box_asks.Audit: "onbox.answers.audit",
    box_asks.TierProbe: "onbox.answers.tier_check",
    run_asks.Repair: "onbox.answers.repair",
    run_asks.Accept: "onbox.answers.accept",
    run_asks.KnowResults: "onbox.answers.know_results",
    run_asks.TakeResults: "onbox.answers.take_results",
    box_asks.TrySecondHome: "onbox.answers.try_second_home",
    cluster_asks.SlurmLook: "onbox.slurm.squeue",
    cluster_asks.SlurmSubmit: "onbox.slurm.submit",
    cluster_asks.SlurmCancel: "onbox.slurm.cancel",
    cluster_asks.SlurmAudit: "onbox.slurm.cluster_facts",
    cluster_asks.SlurmTry: "onbox.slurm.node_probe",
}


def run() -> int:
    """Answer what stands on stdin. 0 also where the answer is an error: it was told."""
    # A line of ours among somebody's banner is found by its mark. What else is printed here, also
    # by a child, must not come between.
    out = os.dup(1)
    os.dup2(2, 1)
    line = envelope.write_answer(answer(sys.stdin.buffer.read()))
    with os.fdopen(out, "wb") as stdout:
        stdout.write(line)
    return 0


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
