"""What `--help` says of the verbs and their flags. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark

VERBS = {
    "demo": mark("The whole life of a run on this machine, on real data, in two minutes."),
    "init": mark(
        "Read a folder of training code, and write a job.yaml, a first queue and a .boxcarignore."
    ),
    "plan": mark("Resolve job, profile and queues, and show what would run. Spends nothing."),
    "smoke": mark("Every cell for two batches on this machine's CPU, before money is spent."),
    "rehearse": mark(
        "Run a cell on the CPU, run it again with a SIGKILL, and compare the two results."
    ),
    "grid": mark(
        "One line for each combination of values, spread over the queue files; none twice."
    ),
    "push": mark("Build the release, put it on the durable tier, append new queue lines."),
    "launch": mark(
        "Audit, push, start the agents, and check that the first cells run. Safe to repeat."
    ),
    "move": mark("Give one cell of a box that is dead or stopped to another queue."),
    "split": mark(
        "Spread the cells over the queue files so that all queues end at about the same time."
    ),
    "drain": mark("Let each queue finish its running cell, then end it."),
    "stop": mark("Let each queue save a checkpoint, and end it now."),
    "status": mark("The state of the run, once."),
    "watch": mark("The state of the run, live, until the queues have ended."),
    "board": mark(
        "The state of the run as a page of HTML: with --serve on this machine, refreshed by "
        "itself until Ctrl-C; with --to written to a file, once."
    ),
    "tb": mark(
        "TensorBoard of the run's event files, on the boxes where they lie (through ssh) and "
        "here, until Ctrl-C."
    ),
    "logs": mark("One cell's log."),
    "explain": mark(
        "Why a cell is in its state, what a failure is and what to try, a platform and its "
        "deadlines, or a page of the documentation. Alone: the platform."
    ),
    "triage": mark(
        "Why a training failed, by its log: what it is, what follows, what to type. Needs no run; "
        "- reads stdin."
    ),
    "audit": mark("What each box is and has, and whether the run may start there."),
    "notify": mark(
        "Where news of the run goes. With --test a message to each, and what its service answers."
    ),
    "listen": mark(
        "A small webhook receiver: checks signatures and prints what arrives. Ctrl-C ends it."
    ),
    "runs": mark(
        "All runs that you launched from this machine, as they were last seen; asks no box."
    ),
    "pull": mark("Copy published results here, each checked against its manifest. Safe to repeat."),
    "verify": mark("Compare the roster with the results, load every artifact, write the receipt."),
    "report": mark(
        "The ablation as a table and a page: groups, differences, curves; only what is proven."
    ),
    "export": mark(
        "What is proven as files for TensorBoard, W&B, MLflow or SwanLab; nothing is sent. Safe "
        "to repeat."
    ),
    "repair": mark("Show which of the run's files are damaged, and put back what they were."),
    "down": mark(
        "The teardown gate: it opens when every result is here and loads, and you say yes."
    ),
    "check-profiles": mark("List profiles that cannot work, and facts older than six months."),
}
# Where a verb has one line.
SHORTER = {
    "launch": mark("Audit, push, and start the agents. Safe to repeat."),
    "explain": mark("Why a cell is as it is; a failure's id, a platform, a page."),
    "pull": mark("Copy published results here, checked. Safe to repeat."),
    "verify": mark("Compare roster and results, load every artifact."),
    "down": mark("The gate: it opens when all is here and loads, and you agree."),
}
GROUPS = {
    "begin": mark("to begin"),
    "run": mark("to run"),
    "look": mark("to look"),
    "home": mark("to bring home"),
    "end": mark("to end"),
    "other": mark("other"),
}
# By its name, or as VERB.FLAG where it means another thing there.
FLAGS = {
    "profile": mark(
        "the platform, a name from profiles/ (default: the one this run was launched with, or "
        "first audited, smoked or pushed; else invoke.yaml's, else the first of the job's "
        "candidates that fits, else local)"
    ),
    "job": mark("the job file (default: job.yaml)"),
    "box": mark("only this box"),
    "queue": mark("only this queue"),
    "cell": mark("only this cell"),
    "json": mark("one JSON document on stdout, on an error too"),
    "lang": mark("en or zh (default: your locale's language)"),
    "init.script": mark(
        "the train script (default: the one that looks most like it, or you are asked)"
    ),
    "init.yes": mark("take all guesses and ask nothing"),
    "init.run-help": mark(
        "run the script's --help as well, for flags that its source does not say"
    ),
    "push.mixed": mark("new lines may run other code than the cells before them"),
    "smoke.all": mark("try each cell also where there are more than 12, not one of each kind"),
    "rehearse.cell": mark(
        "rehearse this cell (default: the first of each task and number of ranks)"
    ),
    "rehearse.kills": mark("how often the second run is killed (default: 1)"),
    "rehearse.seed": mark(
        "picks the moments of the kills; give the same one to repeat a rehearsal"
    ),
    "rehearse.tolerance": mark("relative difference that still counts as equal (default: 1e-6)"),
    "split.speed": mark("2 for a box that is twice as fast"),
    "split.minutes": mark("how many minutes a cell of this task, or this cell, takes"),
    "split.write": mark("rewrite the local queue files; without it the new order is only shown"),
    "grid.cfg": mark("the config of all cells, as in a queue line; - for none"),
    "grid.task": mark(
        "their task, as in a queue line; may be left out where the command takes none"
    ),
    "grid.epochs": mark("their epochs (default: those of the job)"),
    "grid.set": mark(
        "the values of one key, a,b,c or 0..2; `boxcar grid` takes them without --set too"
    ),
    "grid.queue": mark("a queue for the lines (default: all)"),
    "grid.configs": mark(
        "write one config file for each cell into this folder below the code folder, for scripts "
        "that take no overrides"
    ),
    "grid.write": mark("write the lines and files; without it they are only shown"),
    "launch.start-index": mark(
        "skip the first N cells of each queue (default: as it was launched before)"
    ),
    "launch.no-smoke": mark(
        "on a platform that bills, launch cells that have not passed smoke; it is recorded"
    ),
    "launch.beside": mark(
        "start on a box although another run, or somebody's program on its GPU, is at work there"
    ),
    "watch.every": mark("time between two looks, such as 10s, 30m or 2h (default: 30s over ssh)"),
    "watch.once-if-changed": mark(
        "look once, and print only what is new since the last such look (for cron)"
    ),
    "watch.json": mark("one JSON document a line on stdout"),
    "board.serve": mark("on 127.0.0.1, under a path that only you are told"),
    "board.port": mark("the port of --serve (default: a free one)"),
    "board.to": mark("write the page to this file, whole or not at all"),
    "logs.cell": mark("the cell; `logs NAME` works too"),
    "logs.follow": mark("keep printing until the cell ends; waits for its first line"),
    "logs.lines": mark("the last N lines (default: 50)"),
    "logs.json": mark("one JSON document a line on stdout"),
    "verify.allow-pickle": mark("load this file even though it may run code"),
    "report.to": mark("html (a file beside the results), md, latex, csv or json (on stdout)"),
    "report.metric": mark("show this number (default: those of the job's report or metrics)"),
    "report.baseline": mark(
        "the cell or group to compare with (default: the job's, else the one that is called so, "
        "else the first of its task)"
    ),
    "report.run": mark("a run whose results lie here (default: the job's own)"),
    "report.incomplete": mark("LaTeX gets incomplete groups too, in brackets"),
    "export.to": mark("tensorboard, wandb, mlflow or swanlab"),
    "export.out": mark("the folder to write to (default: results/RUN/export/TRACKER)"),
    "export.run": mark("a run whose results lie here (default: the job's own)"),
    "export.incomplete": mark("0 as the exit code also where a cell is left out"),
    "down.abandon": mark("give up the cell of this name; needs --because"),
    "down.gone": mark(
        "this box, or the durable tier by its path, is gone for good; needs --because"
    ),
    "down.because": mark(
        "the reason, which is recorded: one for all, or one for each in the same order"
    ),
    "down.approve": mark("the digest of the receipt, instead of typing the run's name"),
    "down.rotated": mark("this credential was replaced after its box was given up"),
    "move.cell": mark("the cell to be moved"),
    "move.queue": mark("the queue that gets it"),
    "move.gone": mark("its box will never answer again; needs --because"),
    "move.because": mark("why, for the record"),
    "repair.put-back": mark("put back what is proven; else it is only shown"),
    "notify.test": mark(
        "send one test message to each endpoint, and show the service's own answer"
    ),
    "notify.from": mark("the box that sends it, as it would send news; without it this machine"),
    "notify.only": mark("only this endpoint, such as feishu"),
    "listen.port": mark("the port to listen on (default: 8765); 0 takes a free one"),
    "listen.through": mark("a rented box, by its ssh alias, whose own 127.0.0.1 is to lead here"),
    "triage.log": mark("the log, or - for stdin"),
    "triage.add": mark("write a row for this failure into the project's failures.yaml"),
    "triage.rc": mark("its exit code, where you know it"),
    "explain.cell": mark("explain the state of this cell"),
    "explain.about": mark(
        "a cell, a failure's id, a profile, or a page of the documentation; the first that fits"
    ),
}
