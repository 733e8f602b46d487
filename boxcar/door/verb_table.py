"""All verbs, each declared once: Invoke's tasks (tasks.py), the program `boxcar`, its help and its
completion are made from this table. What a verb and its flags do is said in help_texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.shared.record import dataclass

# What a flag takes: run_verb reads its text as this.
SWITCH, OFF, TEXT, MANY = "switch", "off", "text", "many"
COUNT, FRACTION, TIME, RATE = "count", "fraction", "time", "rate"
PORT, EXIT_CODE = "port", "exit code"
# Words without a flag before them: the first is this flag's value, must be or may be; or all are.
FIRST, OPTIONAL, REST = "first", "optional", "rest"
# What the verb's function is given beside its flags; `run_verb` makes it.
NOTHING, FOLDER, JOB_FOLDER, SECRET = "nothing", "folder", "job folder", "secret"
PROJECT, DRAFT, LAUNCHED, WHERE = "project", "draft", "launched", "where"


@dataclass(frozen=True)
class Flag:
    """`to`: the function's parameter, where it has another name; `takes`: what help shows."""

    name: str
    kind: str = TEXT
    to: str = ""
    takes: str = "NAME"
    letter: str = ""
    place: str = ""

    @property
    def parameter(self) -> str:
        return self.to or self.name.replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return self.kind not in (SWITCH, OFF)

    @property
    def spellings(self) -> tuple[str, ...]:
        """`--profile`, `-p`."""
        return (f"--{self.name}", *([f"-{self.letter}"] if self.letter else []))


@dataclass(frozen=True)
class Verb:
    """`given`: what its function gets beside its flags. `examples` can be copied."""

    name: str
    group: str
    given: str
    flags: Sequence[Flag]
    examples: Sequence[str]

    @property
    def function(self) -> str:
        """`module:function`. One that is given WHERE opens the project by itself."""
        name = self.name.replace("-", "_")
        module = "boxcar.door.odd_verbs" if self.given == WHERE else f"boxcar.laptop.verbs.{name}"
        return f"{module}:{name}"

    @property
    def spelled(self) -> Mapping[str, Flag]:
        return {spelling: flag for flag in self.flags for spelling in flag.spellings}

    def placed(self, place: str) -> list[Flag]:
        return [flag for flag in self.flags if flag.place == place]


PROFILE, JOB = Flag("profile", letter="p"), Flag("job", takes="PATH")
JSON = Flag("json", SWITCH, "as_json")
# More lines than a screen has, on a terminal; `run_verb` tells who shows them.
ALL = Flag("all", SWITCH)
_RUN = (PROFILE, JOB)
_CELLS, _QUEUES = Flag("cell", MANY, "cells"), Flag("queue", MANY, "queues")
_BOXES, _RUNS = Flag("box", MANY, "boxes"), Flag("run", MANY, "runs")
_GONE, _WRITE = Flag("gone", MANY), Flag("write", SWITCH)
_MAX_PRICE = Flag("max-price", FRACTION, "most_rate", "PRICE")
_INCOMPLETE = Flag("incomplete", SWITCH, "is_incomplete_shown")

# In the order of a run.
GROUPS = ("begin", "run", "look", "home", "end", "other")
# Those that stand in `boxcar --help` with a line each.
EVERYDAY = ("launch", "status", "watch", "logs", "explain", "pull", "verify", "down")

# fmt: off
_TABLE = (
    Verb("init", "begin", FOLDER,
         (Flag("script", TEXT, "named", "FILE"), Flag("yes", SWITCH),
          Flag("run-help", SWITCH, "with_help")),
         ("init", "init --script train.py --yes")),
    Verb("demo", "begin", NOTHING, (), ("demo",)),
    Verb("plan", "begin", PROJECT, (*_RUN, JSON), ("plan", "plan -p autodl")),
    Verb("smoke", "begin", PROJECT, (*_RUN, _CELLS, Flag("all", SWITCH, "is_all"), JSON),
         ("smoke", "smoke --cell seg_baseline")),
    Verb("rehearse", "begin", PROJECT,
         (*_RUN, _CELLS, Flag("kills", COUNT, takes="N"), Flag("seed", COUNT, takes="N"),
          Flag("tolerance", FRACTION, takes="NUMBER"), JSON),
         ("rehearse", "rehearse --cell seg_baseline --kills 3")),
    Verb("grid", "begin", WHERE,
         (Flag("cfg", takes="PATH", place=FIRST), *_RUN, Flag("task"),
          Flag("epochs", COUNT, takes="N"), Flag("set", MANY, "words", "KEY=VALUES", place=REST),
          _QUEUES, Flag("configs", takes="FOLDER"), Flag("write", SWITCH, "is_to_write"), JSON),
         ("grid configs/base.yaml lr=1e-3,3e-4 seed=0..2",
          "grid configs/base.yaml lr=1e-3,3e-4 --task seg --write")),
    Verb("split", "begin", WHERE,
         (*_RUN, Flag("speed", MANY, "speeds", "BOX=FACTOR"),
          Flag("minutes", MANY, takes="NAME=MINUTES"), _WRITE, JSON),
         ("split", "split --speed box-a=2 --write")),
    Verb("offers", "run", DRAFT,
         (*_RUN, Flag("spot", SWITCH, "is_spot"), _MAX_PRICE, JSON),
         ("offers", "offers --spot --max-price 0.4")),
    Verb("up", "run", PROJECT,
         (*_RUN, Flag("boxes", COUNT, takes="N"), _MAX_PRICE,
          Flag("hours", FRACTION, takes="HOURS"), Flag("spot", SWITCH, "is_spot"),
          Flag("approve", takes="DIGEST"), Flag("replace", takes="BOX")),
         ("up", "up --boxes 2 --hours 12", "up --spot --max-price 0.3", "up --replace box-b")),
    Verb("push", "run", PROJECT, (*_RUN, Flag("mixed", SWITCH, "is_mixed"), JSON),
         ("push", "push --mixed")),
    Verb("launch", "run", PROJECT,
         (*_RUN, _BOXES, Flag("start-index", COUNT, takes="N"), Flag("no-smoke", OFF, "is_smoked"),
          Flag("beside", SWITCH, "is_beside"), Flag("setup", SWITCH, "sets_up_again"), _GONE,
          Flag("because", takes="TEXT"), JSON),
         ("launch -p autodl", "launch --box box-a")),
    Verb("render", "run", PROJECT,
         (*_RUN, Flag("for", TEXT, "platform", "PLATFORM"), Flag("user"), Flag("out"),
          Flag("hours", FRACTION, takes="N")),
         ("render --for kaggle --user ada", "render --for colab --hours 11")),
    Verb("move", "run", LAUNCHED,
         (Flag("cell", place=FIRST), Flag("queue", place=FIRST), *_RUN, _GONE,
          Flag("because", takes="TEXT"), JSON),
         ("move --cell seg_baseline --queue queue_2",)),
    Verb("drain", "run", LAUNCHED, (*_RUN, _QUEUES, _BOXES), ("drain", "drain --queue queue_2")),
    Verb("stop", "run", LAUNCHED, (*_RUN, _QUEUES, _BOXES), ("stop", "stop --box box-a")),
    Verb("status", "look", LAUNCHED, (*_RUN, ALL, JSON), ("status", "status --json")),
    Verb("watch", "look", WHERE,
         (*_RUN, Flag("every", TIME, "interval_s", "TIME"),
          Flag("once-if-changed", SWITCH, "is_once"), JSON),
         ("watch", "watch --every 30s")),
    Verb("cost", "look", LAUNCHED, (*_RUN, ALL, JSON), ("cost", "cost --json")),
    Verb("board", "look", LAUNCHED,
         (*_RUN, Flag("serve", SWITCH, "is_served"), Flag("port", PORT, takes="N"),
          Flag("to", takes="FILE"), Flag("logs", SWITCH, "has_logs"),
          Flag("beside", MANY, takes="RUN"), JSON),
         ("board --serve", "board --serve --beside other-run", "board --to /var/www/run.html")),
    Verb("tb", "look", LAUNCHED, _RUN, ("tb",)),
    Verb("logs", "look", LAUNCHED,
         (Flag("cell", place=FIRST), *_RUN, Flag("follow", SWITCH, letter="f"),
          Flag("lines", COUNT, takes="N"), JSON),
         ("logs seg_baseline -f", "logs seg_baseline --lines 500")),
    Verb("explain", "look", WHERE,
         (Flag("about", takes="WORD", place=OPTIONAL), *_RUN, Flag("cell"),
          Flag("box"), Flag("lang", takes="en|zh"), JSON),
         ("explain seg_baseline", "explain --box box-a", "explain M2", "explain autodl --lang zh",
          "explain notify")),
    Verb("triage", "look", JOB_FOLDER,
         (Flag("log", place=FIRST), Flag("rc", EXIT_CODE), Flag("add", SWITCH), JOB, JSON),
         ("triage train.log", "triage slurm-81.out --rc 137 --json", "triage train.log --add")),
    Verb("runs", "look", NOTHING, (ALL, JSON), ("runs",)),
    Verb("sentinel", "look", NOTHING, (), ("sentinel",)),
    Verb("audit", "look", PROJECT, (*_RUN, _BOXES, Flag("data", SWITCH, "reads_data"), ALL, JSON),
         ("audit -p autodl", "audit --box box-a", "audit --data")),
    Verb("data", "look", PROJECT, (*_RUN, _BOXES, Flag("remove", MANY, takes="DIGEST"), JSON),
         ("data", "data --remove 9205493162")),
    Verb("notify", "look", DRAFT,
         (*_RUN, Flag("test", SWITCH, "is_test"), Flag("from", TEXT, "box", "BOX"),
          Flag("only", MANY), JSON),
         ("notify --test", "notify --test --from box-a --only feishu")),
    Verb("listen", "look", SECRET, (Flag("port", PORT, takes="N"), Flag("through", MANY)),
         ("listen", "listen --port 9000")),
    Verb("pull", "home", LAUNCHED,
         (*_RUN, _CELLS, Flag("bwlimit", RATE, "most_kib_s", "RATE"),
          Flag("from", TEXT, "source", "FOLDER"), ALL, JSON),
         ("pull", "pull --cell seg_baseline", "pull --bwlimit 2M", "pull --from output")),
    Verb("verify", "home", LAUNCHED, (*_RUN, Flag("allow-pickle", MANY, takes="FILE"), ALL, JSON),
         ("verify", "verify --allow-pickle seg_baseline/model.pkl")),
    Verb("report", "home", WHERE,
         (*_RUN, Flag("to", takes="KIND"), Flag("metric", MANY, "metrics"), Flag("baseline"),
          Flag("sort", takes="COLUMN"), _RUNS, _INCOMPLETE, ALL, JSON),
         ("report", "report --to latex --metric psnr --baseline seg_baseline")),
    Verb("export", "home", WHERE,
         (*_RUN, Flag("to", takes="KIND"), Flag("out"), _RUNS, _INCOMPLETE, JSON),
         ("export --to tensorboard", "export --to wandb --out wandb-ablation")),
    Verb("repair", "home", LAUNCHED, (*_RUN, Flag("put-back", SWITCH, "is_to_write"), JSON),
         ("repair", "repair --put-back")),
    Verb("down", "end", LAUNCHED,
         (*_RUN, Flag("abandon", MANY), _GONE, Flag("because", MANY, takes="TEXT"),
          Flag("approve", takes="DIGEST"), Flag("rotated", MANY),
          Flag("seen-off", MANY, takes="BOX"), Flag("verb"), ALL, JSON),
         ("down", "down --abandon seg_baseline --because 'no memory at any batch size'",
          "down --seen-off box-a")),
    Verb("orphans", "end", NOTHING, (Flag("end", takes="ID"), JSON),
         ("orphans", "orphans --end 1234567")),
    Verb("check-profiles", "other", FOLDER, (JSON,), ("check-profiles",)),
    Verb("skill", "other", WHERE, (), ("skill",)),
)
# fmt: on
VERBS: Mapping[str, Verb] = {verb.name: verb for verb in _TABLE}
