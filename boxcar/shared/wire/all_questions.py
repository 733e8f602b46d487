"""Every question that the laptop asks of a box, by the name that travels."""

from __future__ import annotations

from typing import Any

from boxcar.shared.wire import box_asks, cluster_asks, data_asks, news_asks, run_asks
from boxcar.shared.wire.question import Question

QUESTIONS: dict[str, type[Question[Any]]] = {
    question.NAME: question
    for question in (
        run_asks.Report,
        run_asks.Wait,
        run_asks.FindRelease,
        run_asks.Prepare,
        run_asks.CopyUnchanged,
        run_asks.Install,
        data_asks.FindData,
        data_asks.PrepareData,
        data_asks.InstallData,
        data_asks.RemoveData,
        data_asks.LookAtUrls,
        run_asks.PointTo,
        run_asks.Append,
        run_asks.CommentOut,
        run_asks.WriteControl,
        run_asks.Start,
        news_asks.Deliver,
        run_asks.MoveClaim,
        run_asks.TakeCheckpoint,
        run_asks.ReadLog,
        box_asks.KeepCredentials,
        box_asks.SeeOthers,
        box_asks.End,
        box_asks.EndItself,
        box_asks.KeepDeadline,
        box_asks.Audit,
        box_asks.TierProbe,
        run_asks.Repair,
        run_asks.Accept,
        run_asks.KnowResults,
        run_asks.TakeResults,
        box_asks.TrySecondHome,
        news_asks.PostNews,
        cluster_asks.SlurmLook,
        cluster_asks.SlurmSubmit,
        cluster_asks.SlurmCancel,
        cluster_asks.SlurmAudit,
        cluster_asks.SlurmTry,
        box_asks.Several,
    )
}
