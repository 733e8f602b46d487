"""The door of the box: `python -I -S onbox-<digest>.pyz <verb>`. The wrappers call it, people can.

agent    run one queue to its end
attempt  run one attempt at one cell, as SPEC says it (what run_one.sh becomes)
follow   start what an attempt over several pods has to run in this one
deliver  send the webhooks that a queue's agent could not deliver any more
linger   the same in the background, for a day at most; an agent leaves it behind
answer   answer one question of the laptop: JSON on stdin, one marked line on stdout
deadline  have a box that `up` rented stop itself when nothing moves there
idle-end  have the box stop itself once it is through with its cells; an agent leaves it behind
resume   start again what ran on this box when it went down
gpus     what NVML says of the GPUs, as JSON
end-itself  call the provider's API, by the box's own key, which is in the environment
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from boxcar.shared import errors
from boxcar.shared.errors import BoxcarError
from onbox.machine import terminal


def main(argv: Sequence[str] | None = None) -> int:
    words = _parser().parse_args(argv)
    errors.type_as("boxcar")
    try:
        return int(words.verb(words))
    except (BoxcarError, OSError) as error:
        return terminal.say_error(error)


def _agent(words: argparse.Namespace) -> int:
    # Late, here and below: an attempt's wrapper stays in memory for as long as its cell runs, and
    # what a zip holds is compiled at each start.
    from boxcar.shared.disk import atomic
    from boxcar.shared.files import plan
    from boxcar.shared.files.release import PLAN
    from boxcar.shared.process import exit_codes
    from onbox import idle_end
    from onbox.agent import agent
    from onbox.attempt import stage
    from onbox.machine import credentials, place
    from onbox.queue import next_cell
    from onbox.webhooks import deliver
    from onbox.webhooks.life_signs import LifeSigns

    release = stage.check_release(words.release)
    where = place.of_queue(
        plan.read_plan(words.release / PLAN), words.release, release, words.queue
    )
    for folder in (*where.durable.folders(), where.scratch.root):
        atomic.make_folder(folder)
    path = _credentials_path()
    journal, cursor = where.durable.journal(where.queue), where.durable.delivered(where.queue)
    known = credentials.read(path) if path else credentials.Credentials()
    deliverer = deliver.of(journal, cursor, known, len(where.plan.queues))
    begin = next_cell.Begin(words.start_index, words.start_cell)
    signs = LifeSigns(known.heartbeats, where.box) if known.heartbeats else None
    ended = agent.run(where, release, begin, deliverer, signs)
    if deliverer and deliverer.pending():
        deliver.leave_behind(words.release, where.queue)
    if where.plan.idle_end and ended == exit_codes.DONE:
        idle_end.leave_behind(words.release, where.queue)
    return ended


def _attempt(words: argparse.Namespace) -> int:
    from onbox.attempt import attempt

    return attempt.main(words.spec)


def _follow(words: argparse.Namespace) -> int:
    from boxcar.shared.environment import POD_INDEX
    from boxcar.shared.files import release
    from onbox.attempt import stage
    from onbox.machine import place
    from onbox.nodes import follower

    found = stage.check_release(words.release)
    where = place.of_queue(release.read_plan(words.release), words.release, found, words.queue)
    return follower.run(where.scratch, int(os.environ.get(POD_INDEX) or 0) + 1)


def _deliver(words: argparse.Namespace) -> int:
    from boxcar.shared.errors import counted
    from onbox.answers.deliver_late import deliver_late

    left = deliver_late(words.release, words.queue, _credentials_path())
    print(f"{words.queue}: {counted(left, 'event')} not delivered")
    return 1 if left else 0


def _linger(words: argparse.Namespace) -> int:
    from boxcar.shared.files import release
    from onbox.machine import place
    from onbox.webhooks import deliver

    path = _credentials_path()
    made = release.read_plan(words.release)
    if not path:
        return 0
    left = deliver.linger(place.tier(made), words.queue, path, sharing=len(made.queues))
    return 1 if left else 0


def _idle_end(words: argparse.Namespace) -> int:
    from boxcar.shared.files import release
    from onbox import idle_end
    from onbox.machine import credentials, place

    made = release.read_plan(words.release)
    where = place.of_queue(made, words.release, release.read_release(words.release), words.queue)
    path = _credentials_path()
    known = credentials.read(path) if path and path.exists() else credentials.Credentials()
    return idle_end.run(where, made.idle_end, known) if made.idle_end else 0


def _answer(words: argparse.Namespace) -> int:
    import gc

    from onbox.answers import door

    code = door.run()
    gc.freeze()  # all that was imported would be looked through: a tenth of an answer
    return code


def _resume(words: argparse.Namespace) -> int:
    from boxcar.shared import paths
    from onbox.after_reboot import resume

    for told in resume(paths.on_box(words.data_dir)):
        print(told, flush=True)
    return 0


def _gpus(words: argparse.Namespace) -> int:
    import json

    from onbox.machine import card_reader, gpus

    if words.follow:
        gpus.follow(words.follow, card_reader.EVERY_S)
    else:
        print(json.dumps(gpus.rows()))
    return 0


def _end_itself(words: argparse.Namespace) -> int:
    from onbox.machine import end_itself

    return end_itself.call_provider(words.record, words.provider, words.ending, os.environ)


def _deadline(words: argparse.Namespace) -> int:
    from boxcar.shared import paths
    from onbox import deadline

    data_dir = paths.on_box(words.data_dir)
    return deadline.run(words.mark, words.provider, words.quiet_s, words.most_s, data_dir)


def _credentials_path() -> Path | None:
    from boxcar.shared import paths
    from boxcar.shared.environment import CREDENTIALS

    named = os.environ.get(CREDENTIALS)
    return paths.on_box(named) if named else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onbox", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    agent = verbs.add_parser("agent", help="run one queue to its end")
    agent.add_argument("--release", type=_folder, required=True, help="the release's folder")
    agent.add_argument("--queue", required=True)
    agent.add_argument("--start-index", type=int, default=0, help="skip the first N cells")
    agent.add_argument("--start-cell", default="", help="skip the cells above this one")
    agent.set_defaults(verb=_agent)
    attempt = verbs.add_parser("attempt", help="run one attempt at one cell")
    attempt.add_argument("spec", metavar="SPEC", type=Path, help="as the agent wrote it: what runs")
    attempt.set_defaults(verb=_attempt)
    follow = verbs.add_parser(
        "follow", help="run what an attempt over several pods has in this one"
    )
    follow.add_argument("--release", type=_folder, required=True)
    follow.add_argument("--queue", required=True)
    follow.set_defaults(verb=_follow)
    send = verbs.add_parser("deliver", help="send the webhooks that are still due")
    send.add_argument("--release", type=_folder, required=True)
    send.add_argument("--queue", required=True)
    send.set_defaults(verb=_deliver)
    stay = verbs.add_parser("linger", help="the same for a day, until somebody else delivers")
    stay.add_argument("--release", type=_folder, required=True)
    stay.add_argument("--queue", required=True)
    stay.set_defaults(verb=_linger)
    end = verbs.add_parser("idle-end", help="have the box stop itself once it is idle and proven")
    end.add_argument("--release", type=_folder, required=True)
    end.add_argument("--queue", required=True)
    end.set_defaults(verb=_idle_end)
    answer = verbs.add_parser("answer", help="answer one question of the laptop, from stdin")
    answer.set_defaults(verb=_answer)
    resume = verbs.add_parser("resume", help="start again what ran when this box went down")
    resume.add_argument("--data-dir", required=True, help="absolute, or below the home by ~/")
    resume.set_defaults(verb=_resume)
    gpus = verbs.add_parser("gpus", help="what NVML says of the GPUs, as JSON")
    gpus.add_argument("--follow", type=int, metavar="PID", help="again and again, while it lives")
    gpus.set_defaults(verb=_gpus)
    own_end = verbs.add_parser("end-itself", help="end this box through its provider's API")
    own_end.add_argument("record", type=Path, help="where what was said is kept")
    own_end.add_argument("provider")
    own_end.add_argument("ending", metavar="VERB", help="stop or destroy")
    own_end.set_defaults(verb=_end_itself)
    deadline = verbs.add_parser("deadline", help="stop this box when nothing moves on it")
    deadline.add_argument("mark", type=Path, help="the file that it holds; without it it ends")
    deadline.add_argument("provider")
    deadline.add_argument("quiet_s", type=float)
    deadline.add_argument("most_s", type=float)
    deadline.add_argument("data_dir")
    deadline.set_defaults(verb=_deadline)
    return parser


def _folder(text: str) -> Path:
    return Path(text).resolve()


if __name__ == "__main__":
    sys.exit(main())
