"""A `#` before lines of a queue on the durable tier: the file is replaced, whole or not at all.

A person may edit the same file: who did not see what it holds now is refused.
"""

from __future__ import annotations

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import InputError
from boxcar.shared.files import queue_line
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import append_lines


def answer(question: run_asks.CommentOut, run: RunOnBox) -> run_asks.Appended:
    """Write `data` in place of what the laptop has read. Done twice it is done once.

    Raises InputError where the file was changed meanwhile, or `data` does more than it may.
    """
    path, data = append_lines.queue_file(run, question.queue), question.data
    with append_lines.locked(path):
        there = path.read_bytes()
        if there != data:
            if (len(there), digest.of_bytes(there)) != question.expected:
                append_lines.refuse_changed(path, question.expected, there)
            if not queue_line.is_commented_out(queue_line.normalise(there), data):
                raise InputError(f"{path}: a line would be changed by more than a # before it")
            mode = path.stat().st_mode
            atomic.write_whole(path, data)
            path.chmod(mode & 0o777)  # a group that types there goes on to
    return run_asks.Appended(len(data), digest.of_bytes(data))
