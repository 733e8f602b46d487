"""The file of a rented box's deadline: `PROVIDER QUIET_S MOST_S`, held by what waits (`onbox
deadline`). It says what the person agreed to, so that a box that was started again has its deadline
again, counted anew, once `onbox resume`, a `launch` or an `up` comes by.
"""

from __future__ import annotations

import time

from boxcar.shared.disk import atomic, lock
from boxcar.shared.paths import ScratchPaths
from boxcar.shared.sentence import Sentence, _
from onbox.machine import end_itself
from onbox.machine.end_itself import OWN

# Of the process that waits; it loads all that the end needs before it holds its file.
STARTS_S = 20.0


def lay(scratch: ScratchPaths, provider: str, quiet_s: int, most_s: int) -> Sentence | None:
    """Leave a process behind that waits, unless one does; why there can be none."""
    names, found = OWN[provider], end_itself.first_environment()
    for name in (names.id, names.key):
        if not found.get(name):
            return _("{name} is not set on this box", name=name)
    mark, words = scratch.deadline, (provider, str(quiet_s), str(most_s))
    if mark.exists() and lock.is_held(mark):
        return None
    atomic.make_folder(mark.parent)
    mark.write_text(" ".join(words) + "\n")
    asked = ["deadline", str(mark), *words, str(scratch.data_dir)]
    end_itself.start_child(asked, end_itself.of_provider(provider, found))
    until_s = time.monotonic() + STARTS_S
    while not lock.is_held(mark):
        if time.monotonic() > until_s:
            return _("what would wait there does not start")
        time.sleep(0.05)
    return None


def lay_again(scratch: ScratchPaths) -> str | None:
    """After a reboot, as it was; what came of it, None where none lay here, or one waits."""
    try:
        provider, quiet_s, most_s = scratch.deadline.read_text("ascii").split()
        if lock.is_held(scratch.deadline):
            return None
        problem = lay(scratch, provider, int(quiet_s), int(most_s))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        return f"no deadline lies on this box: {error}"
    return f"no deadline lies on this box: {problem}" if problem else "its deadline lies again"
