"""What `--help` says of the verbs and their flags. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark

VERBS = {
    "demo": mark(
        "Run a whole life of Boxcar on this machine, with real training. Takes two minutes."
    ),
    "init": mark("Read your training code, and write job.yaml, a first queue and .boxcarignore."),
    "plan": mark(
        "Show what would run, where, and what is wrong with the files. Starts nothing, "
        "costs nothing."
    ),
    "smoke": mark(
        "Try every cell for two batches on this machine's CPU, before you pay for a GPU."
    ),
    "rehearse": mark(
        "Run a cell on this CPU, run it again with SIGKILLs, and compare the two results."
    ),
    "grid": mark(
        "Make one queue line for each combination of values. Existing cells are not repeated."
    ),
    "offers": mark(
        "Show what this job could run on now at vast.ai, RunPod or Lambda Cloud. Spends nothing."
    ),
    "up": mark(
        "Rent the boxes that the job names: shows offers and the sum, asks once. Safe to repeat."
    ),
    "push": mark("Build a release, send it to the durable tier, and append new queue lines there."),
    "launch": mark(
        "Audit the boxes, push, start the agents, and check that the first cells run. Safe to "
        "repeat."
    ),
    "render": mark(
        "Write the files that run this on a platform without ssh: Kaggle or Colab. Starts nothing."
    ),
    "move": mark("Move one cell from a dead or stopped box to another queue."),
    "split": mark(
        "Spread cells over the queue files so that all queues end at about the same time."
    ),
    "drain": mark("Let each queue finish its current cell, then end."),
    "stop": mark("Save a checkpoint and end each queue now."),
    "status": mark("Show the state of the run, once."),
    "watch": mark(
        "Show the run live: on a terminal until you press q, elsewhere until its queues have ended."
    ),
    "cost": mark("Show what the run cost, by box and cell, what is to come, and its budget."),
    "board": mark(
        "Show the run as a web page. --serve: on this machine, live until Ctrl-C. --to: as a "
        "file, once."
    ),
    "tb": mark(
        "Open TensorBoard on the run's event files, here and on the boxes (over ssh), until Ctrl-C."
    ),
    "logs": mark("Show the log of one cell."),
    "explain": mark(
        "Say why a cell is in its state, or describe a failure, a platform with its deadlines, or "
        "a page of the documentation. Alone: the platform."
    ),
    "triage": mark(
        "Say why a training failed, from its log: the cause, what follows, what to type. Works "
        "without a run; - reads stdin."
    ),
    "audit": mark("Show what each box has, and whether the run may start there."),
    "data": mark("List the data folders that boxes have, and remove those that nobody needs."),
    "notify": mark(
        "Show where notifications go. --test sends a message to each, and shows what its service "
        "answers."
    ),
    "listen": mark(
        "Run a small webhook receiver that checks signatures and prints what arrives, until Ctrl-C."
    ),
    "sentinel": mark(
        "Look once at all runs, and say what needs attention; for cron on a machine that stays on."
    ),
    "runs": mark("List the runs launched from this machine, as last seen. Asks no box."),
    "pull": mark(
        "Copy published results here, and check each against its manifest. Safe to repeat."
    ),
    "verify": mark(
        "Compare the results with the expected cells, load every artifact, and write the receipt."
    ),
    "report": mark(
        "Show the results as tables and a page: groups, differences, curves. Verified results only."
    ),
    "export": mark(
        "Write verified results as files for TensorBoard, W&B, MLflow or SwanLab. Sends nothing. "
        "Safe to repeat."
    ),
    "repair": mark("Show which files of the run are damaged, and restore them."),
    "down": mark(
        "End the run and its boxes. Refused until every result is here, loads, and you approve."
    ),
    "orphans": mark(
        "List your rented boxes by the providers' own lists: those that bill and that no run goes "
        "on with."
    ),
    "check-profiles": mark("List profiles that cannot work, and facts older than six months."),
    "skill": mark("Print what a coding agent has to know to work with Boxcar, as a skill file."),
}
# Where a verb has one line.
SHORTER = {
    "launch": mark("Audit, push and start the agents. Safe to repeat."),
    "explain": mark("Say why a cell is as it is; describe a failure, a platform or a box."),
    "pull": mark("Copy published results here and check them. Safe to repeat."),
    "verify": mark("Check that every cell is here and every artifact loads."),
    "down": mark("End the boxes, once every result is here and loads, and you approve."),
}
GROUPS = {
    "begin": mark("to set up"),
    "run": mark("to run"),
    "look": mark("to watch"),
    "home": mark("to get results"),
    "end": mark("to end"),
    "other": mark("other"),
}
# By its name, or as VERB.FLAG where it means another thing there.
FLAGS = {
    "profile": mark(
        "a platform of profiles/ (default: the one this run was launched with, or first audited, "
        "smoked or pushed with; else that of invoke.yaml, else the first of the job's candidates "
        "that fits, else local)"
    ),
    "up.approve": mark("rent without a question: the digest that the question showed"),
    "spot": mark("boxes that may be taken away for a higher bid (vast.ai only)"),
    "max-price": mark("the most that an hour of one box may cost; with --spot it is the bid"),
    "boxes": mark("how many of the job's boxes are to be up in all (default: all that it names)"),
    "hours": mark("how long you expect to need them: for the sum that is shown (default: 12)"),
    "replace": mark("rent another box in the place of this one, which is lost or outbid"),
    "end": mark(
        "the id of one of these boxes: end it, with all that is on it, and look until it is gone"
    ),
    "job": mark("the job file (default: job.yaml)"),
    "box": mark("only this box"),
    "queue": mark("only this queue"),
    "cell": mark("only this cell"),
    "all": mark("print everything on a terminal, not only 40 lines"),
    "json": mark("print one JSON document on stdout, for an error too"),
    "lang": mark("en or zh (default: your locale's language)"),
    "pull.from": mark("a folder with a session's output, from a platform without ssh"),
    "render.for": mark("kaggle or colab"),
    "render.user": mark("your name on Kaggle (default: KAGGLE_USERNAME, else ~/.kaggle)"),
    "render.out": mark("the folder for the files (default: .boxcar/PLATFORM)"),
    "render.hours": mark("checkpoint and end after so many hours (default: the platform's limit)"),
    "init.script": mark("the training script (default: the most likely one, or you are asked)"),
    "init.yes": mark("accept all guesses, ask nothing"),
    "init.run-help": mark(
        "also run the script's --help, to find flags that its source does not show"
    ),
    "push.mixed": mark("let new lines run other code than the earlier cells"),
    "smoke.all": mark(
        "try every cell, also where there are more than 12 (default: one of each kind)"
    ),
    "rehearse.cell": mark(
        "the cell to rehearse (default: the first of each task and number of ranks)"
    ),
    "rehearse.kills": mark("how often to kill the second run (default: 1)"),
    "rehearse.seed": mark("seed for the moments of the kills; the same seed repeats a rehearsal"),
    "rehearse.tolerance": mark(
        "the relative difference that still counts as equal (default: 1e-6)"
    ),
    "split.speed": mark("how fast a box is: 2 for twice as fast"),
    "split.minutes": mark("how many minutes a cell of this task, or this cell, takes"),
    "split.write": mark("rewrite the local queue files (default: only show the new order)"),
    "grid.cfg": mark("the config of all cells, as in a queue line; - for none"),
    "grid.task": mark("their task, as in a queue line; leave it out where the command takes none"),
    "grid.epochs": mark("their epochs (default: the job's)"),
    "grid.set": mark(
        "the values of one key: a,b,c or 0..2; `boxcar grid` also takes them without --set"
    ),
    "grid.queue": mark("a queue for the lines (default: all)"),
    "grid.configs": mark(
        "write one config file for each cell into this folder of the code, for scripts that take "
        "no overrides"
    ),
    "grid.write": mark("write the lines and files (default: only show them)"),
    "launch.start-index": mark(
        "skip the first N cells of each queue (default: as at the last launch)"
    ),
    "launch.no-smoke": mark(
        "launch cells that have not passed smoke, on a platform that bills; it is recorded"
    ),
    "launch.setup": mark("do each box's set-up (setup:, install:) again before its first cell"),
    "launch.beside": mark(
        "start on a box even if another run, or somebody's program, is using its GPU"
    ),
    "launch.gone": mark(
        "this box of a pool is gone for good: the others get its cells; needs --because"
    ),
    "launch.because": mark("the reason, for the record"),
    "watch.every": mark(
        "time between two looks, such as 10s, 30m or 2h (default: when a box has news)"
    ),
    "watch.once-if-changed": mark(
        "update once, and print only what is new since the last time (for cron)"
    ),
    "watch.json": mark("print JSON on stdout, one document a line"),
    "board.serve": mark("serve on 127.0.0.1, at a secret address that only you are told"),
    "audit.data": mark("read the job's data on each box again, whole"),
    "data.remove": mark("remove the data folder whose digest begins so"),
    "board.port": mark("the port of --serve (default: a free one)"),
    "board.to": mark("write the page to this file"),
    "board.beside": mark("another run of this machine, in the same tables and charts"),
    "board.logs": mark("with --to: add the last log lines of cells that run or failed"),
    "logs.cell": mark("the cell; `logs NAME` works too"),
    "logs.follow": mark("keep printing until the cell ends; waits for it to start"),
    "logs.lines": mark("the last N lines (default: 50)"),
    "logs.json": mark("print JSON on stdout, one document a line"),
    "pull.bwlimit": mark("use at most so much of the line a second, such as 800K or 2M"),
    "verify.allow-pickle": mark("load this file although it may run code"),
    "report.to": mark("html (a file beside the results); md, latex, csv or json (on stdout)"),
    "report.metric": mark("show this number (default: those of the job's report, or its metrics)"),
    "report.baseline": mark(
        "the cell or group to compare with (default: the job's, else the one named baseline, else "
        "the first of its task)"
    ),
    "report.sort": mark("sort by this column: a number, cell, n, changed, GPU-h, cost, attempts"),
    "report.run": mark("a run whose results are here (default: the job's)"),
    "report.incomplete": mark("include incomplete groups in LaTeX, in brackets"),
    "export.to": mark("tensorboard, wandb, mlflow or swanlab"),
    "export.out": mark("the folder to write to (default: results/RUN/export/TRACKER)"),
    "export.run": mark("a run whose results are here (default: the job's)"),
    "export.incomplete": mark("exit with 0 even if a cell is left out"),
    "down.abandon": mark("give up this cell; needs --because"),
    "down.gone": mark(
        "this box (or the durable tier, by its path) is gone for good; needs --because"
    ),
    "down.because": mark(
        "the reason, for the record: one for all, or one for each in the same order"
    ),
    "down.approve": mark("approve the receipt with this digest, instead of typing the run's name"),
    "down.rotated": mark("this credential has been replaced, since its box was given up"),
    "down.seen-off": mark("you saw in the console that this box ended and bills no more"),
    "down.verb": mark(
        "stop: have the provider stop the boxes instead of destroying them; their disks bill"
    ),
    "move.cell": mark("the cell to move"),
    "move.queue": mark("the queue to move it to"),
    "move.gone": mark("the cell's box is gone for good; needs --because"),
    "move.because": mark("the reason, for the record"),
    "repair.put-back": mark("restore the files that have a proven copy (default: only show them)"),
    "notify.test": mark("send a test message to each endpoint, and show what its service answers"),
    "notify.from": mark(
        "send it from this box, as notifications are sent (default: from this machine)"
    ),
    "notify.only": mark("only this endpoint, such as feishu"),
    "listen.port": mark("the port to listen on (default: 8765); 0 picks a free one"),
    "listen.through": mark("forward 127.0.0.1 of this rented box (an ssh alias) to here"),
    "triage.log": mark("the log, or - for stdin"),
    "triage.add": mark("add a row for this failure to the project's failures.yaml"),
    "triage.rc": mark("its exit code, if you know it"),
    "explain.about": mark(
        "a cell, a failure's id, a profile, or a page of the documentation; the first that fits"
    ),
    "explain.cell": mark("explain the state of this cell"),
    "explain.box": mark("show what this box had left over the last hours"),
}
