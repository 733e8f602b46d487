"""Whether this box reaches the run's second home: one small file is written there and removed."""

from __future__ import annotations

import os

from boxcar.shared.environment import after_hook
from boxcar.shared.errors import TemporaryError, words_of
from boxcar.shared.process import second_home_child
from boxcar.shared.process.second_home_child import Child
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox

# A store's package tries for minutes to reach what is not there.
SILENT_S = 90.0


def answer(question: box_asks.TrySecondHome, run: RunOnBox) -> box_asks.SecondHomeTried:
    """Tried by the training's interpreter, after the hook. What goes wrong is a `problem`."""
    child = Child(
        question.training_python,
        {**os.environ, **question.env, **question.secrets},
        secrets=tuple(question.secrets.values()),
        text=question.program,
        before=tuple(after_hook(question.hook)),
    )
    try:
        second_home_child.ask(child, {"do": "try", "url": question.url}, silent_s=SILENT_S)
    except TemporaryError as error:
        return box_asks.SecondHomeTried(words_of(error))
    return box_asks.SecondHomeTried()
