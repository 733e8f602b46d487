"""`boxcar skill`: what a coding agent has to know to work with Boxcar for its person.

In English: agents read it, not people. The verbs come from the table that the help is made of.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from boxcar.door.help import verb_text
from boxcar.door.verb_table import GROUPS, JSON, VERBS, Verb

# What costs money, or cannot be taken back: only a person says yes to these.
PERSONS: dict[str, str] = {
    "up": "it rents boxes and begins to spend. Never pass `--approve` by yourself; `offers` and "
    "`cost` are free",
    "launch": "on rented boxes: it begins to use what the person pays for. On `local` it is yours",
    "stop": "it ends trainings that somebody may be waiting for; so does `drain`",
    "move": "with `--gone`: it says that a box is dead. If it is not, two boxes train one cell",
    "orphans": "with `--end`: it destroys a box",
    "down": "it ends boxes for good. Never type the run's name for your person, and never pass "
    "`--approve`, `--abandon`, `--seen-off` or `--rotated` by yourself",
}

_HEAD = """\
---
name: boxcar
description: Run ML training sweeps with Boxcar, on this machine or on rented GPU boxes. Use it
  where a folder has a job.yaml with `queues:`, or where somebody wants to run ablations, look
  at a run, find out why a cell failed, or bring results home.
---

# Boxcar

Boxcar runs a queue of training cells on boxes. A cell is one line of a queue file: a config, a
task, a number of epochs, overrides. `job.yaml` says which script runs, what it leaves
(artifacts) and which queue runs on which box. An agent on each box runs the lines in order, and
copies what they leave to durable storage. Results count when they are pulled and verified here.

## What only your person may say

Ask first, each time, and show the command that you would type:

"""

_BODY = """\

A wish that was said in advance ("... and then tear it down") is not their yes: show the command
first. Where `next.command` or a message names one of these verbs, show it and stop.

Do not delete or edit `results/` or `.boxcar/`, on any machine. Never put a password or a key into a
file: `job.yaml` names environment variables. A result that is not verified is no result: never
report its number as one. If `down` refuses, tell your person what is missing; do not look for a
way around it.

## The life of a run

1. `boxcar init --yes` reads the code and writes job.yaml, a first queue and .boxcarignore. Open
   TODOs in it are questions for your person. Check `metrics:` and `artifacts:` against what the
   script really leaves: a number from a file is better than one from a log. `boxcar explain job`
   has every key; it is long.
2. Write the lines of the queue: by hand, or for overrides by `boxcar grid configs/base.yaml
   lr=0.1,0.01 seed=0..2 --write`, and for a script with flags and no config by `boxcar grid -
   --set=--lr=0.1,0.01 --set=--seed=0..2 --write`.
3. `boxcar plan --json` says what would run and what is wrong with the files. It starts nothing.
4. `boxcar smoke --json` tries every cell here for two batches. Do not launch while it ends with 1.
5. `boxcar launch --profile local` on this machine, or a platform (`boxcar explain` lists them). It
   audits the boxes, sends the code and starts. It is safe to repeat.
6. `boxcar status --json` as often as you like; `next.command` is what comes next, or null. Wait
   with `boxcar watch --json`, which prints a line for each look and ends when the queues have
   ended.
7. `boxcar pull`, then `boxcar verify --json`: exit code 0 means that every result is here, whole,
   and loads.
8. `boxcar report --json`, or in Python from any folder `import boxcar;
   boxcar.run("NAME").metrics()`: a list of records with cell, task, seed, settings, numbers, lack
   (why there are none), doubt and attempts.
9. Your person types `boxcar down`.

Before the first launch a queue file may be edited freely. After it, only append lines, which run
after another launch, or put a `#` before a line.

## When something failed

- `boxcar status --json`: a failed cell has `state`, `class` and `detail` with the reason.
- `boxcar explain --cell CELL --json`: why, what Boxcar does next, what to change. `boxcar logs CELL
  --lines 200`: its log. `boxcar explain U27` tells of a failure by its id.
- `boxcar triage FILE` reads any training log, without a run.
- After a mend type `launch` again: it retries failed cells, but not those with `detail.is_final`
  on the same code. Where the line itself is wrong, put a `#` before it and append the right one
  under another name. The failed cell stays in the run, and `verify` ends with 1, until your person
  gives it up: `boxcar down --abandon CELL --because TEXT`.

## Reading answers

`--json` gives one document on stdout, everything else is on stderr. The first key is `format`,
such as `boxcar.status/1`; a verb that refused gives `boxcar.error/1` with `messages`, each with
the `command` that helps. Skip keys that you do not know. Times are UTC, units stand in names,
null means not known.

| exit code | what it means |
| --- | --- |
| 0 | done, and nothing is wrong |
| 1 | it ran, and something is wrong: read its document |
| 2 | the command or a file is wrong: change it, and type it again |
| 75 | not now: the same command may succeed later |
| 130 | interrupted: the same command goes on |

All commands may be typed again. Run them in the folder of job.yaml, or with `--job PATH`;
`--profile` is remembered after `launch`.

## All verbs

"""


def skill_text() -> str:
    """A skill file: YAML between `---`, then Markdown."""
    asked = (f"- `{verb}`: {why}." for verb, why in PERSONS.items())
    wrapped = (textwrap.fill(each, 96, subsequent_indent="  ") for each in asked)
    return _HEAD + "\n".join(wrapped) + "\n" + _BODY + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "| verb | what it does | `--json` |"
    yield "| --- | --- | --- |"
    for group in GROUPS:
        yield from (_row(verb) for verb in VERBS.values() if verb.group == group)


def _row(verb: Verb) -> str:
    examples = ", ".join(f"`{words}`" for words in verb.examples)
    return f"| {examples} | {verb_text(verb)} | {'yes' if JSON in verb.flags else ''} |"
