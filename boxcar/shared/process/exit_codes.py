"""What an exit code means, of a verb, of the agent and of a train script. See docs/job.md.

0 and 1 mean what they mean everywhere. The others are reserved: nothing else ends with them.
"""

from __future__ import annotations

DONE = 0
FAILED = 1
INPUT = 2  # a person has to change a file or the command
NO_ROOM = 3
NO_RETRY = 42  # the identical command would fail again
STOP_QUEUE = 43  # no other cell would fare better here
TEMPORARY = 75  # the same call may succeed later
PREEMPTED = 85  # told to leave; the identical command goes on
NOT_FOUND = 127  # of a shell: no such program
INTERRUPTED = 130  # of a shell: Ctrl-C
