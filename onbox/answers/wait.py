"""Tells when there is something to look at, so that who waits need not look again and again."""

from __future__ import annotations

from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import hold, report


def answer(question: run_asks.Wait, run: RunOnBox) -> run_asks.Waited:
    is_other = lambda: report.mark(run, question.queues) != question.mark  # noqa: E731
    return run_asks.Waited(hold.until(is_other, question.most_s))
