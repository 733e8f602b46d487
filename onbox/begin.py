"""Starts an attempt by what lies unpacked: `python -I -S program/onbox/begin.py attempt SPEC`, and
what leads it over several pods: `begin.py lead SPEC torchrun ...`.

Without the door of the other verbs, whose parser takes as long to load as a bare Python starts.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Behind Python's own: what somebody may have left there is never imported for one of these.
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    if sys.argv[1] == "lead":
        from onbox.nodes import lead

        sys.exit(lead.main(Path(sys.argv[2]), sys.argv[3:]))
    from onbox.attempt import attempt

    sys.exit(attempt.main(Path(sys.argv[2])))
