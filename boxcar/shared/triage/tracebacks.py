"""The tracebacks of a log: those of each rank, chained ones as one, and which were survived."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from boxcar.shared.record import dataclass
from boxcar.shared.triage.log_lines import WARNING, Line

# What the place where an exception was raised says of it, where its own words say little.


_OWN_FAULT = r"(?:Type|Attribute|Name|UnboundLocal)Error"
_OUTSIDE = (
    r"(?:[\w.]+\.)?(?:OSError|IOError|Exception|RuntimeError|EOFError|\w*(?:Timeout|Connection)\w*)"
)
_LOST = r"EOFError|Connection\w*Error|BrokenPipeError|FileNotFoundError"
# By the rows that an exception's words gave it, its words, and its last frame: the row it gets.
# An empty name stands for words that no row knows.
_RULES = tuple(
    (frozenset(rows.split(",")), re.compile(words), re.compile(frame), id)
    for rows, words, frame, id in (
        (
            "NET,RESET,NOFILE,PY,",
            _LOST,
            r"\bmultiprocessing[/\\](?:\w+_)?(?:connection|managers|reduction|sharer|popen)",
            "DPW",
        ),
        # A child that reads what its parent could not write.
        ("C2,PY,", "EOFError", r"multiprocessing[/\\]spawn\.py", "DP6"),
        ("NET,RESET,", "", r"torch/distributed/[^\n]*rendezvous", "RDZV"),
        ("NET,RESET,", "", "torch/distributed/", "NCCL-S"),
        ("PY,", "KeyError", r"/os\.py\"|<frozen os>", "ENV"),
        ("PY,", "KeyError", r"/torch/distributed/(?:_shard/)?checkpoint/", "C18"),
        # Of a checkpoint that is not there some libraries say no more than what they missed first.
        (
            "NOFILE,",
            "FileNotFoundError",
            r"/torch/serialization\.py|/accelerate/accelerator\.py\"[^\n]* in load_state\b",
            "C17",
        ),
        (
            "PY,",
            "IndexError|AssertionError",
            r"/accelerate/accelerator\.py\"[^\n]* in load_state\b|\bin check_ckpt_list\b",
            "C17",
        ),
        # Of an earlier run, or of a rank that makes it at the same time.
        ("PATH,", "FileExistsError", r"[/\\]shared_memory\.py|shm_open", "STALE"),
        (
            "PY,ARGS,",
            rf"(?!{_OWN_FAULT})",
            r"/(?:argparse|registry|tyro/\w+)\.py|/(?:omegaconf|hydra|yaml|jsonargparse|absl/flags"
            r"|configobj|simple_parsing)/|/(?:training_args|configuration_\w+)\.py"
            r"|/deepspeed/[^\n]*config\w*\.py|/connectors/\w+\.py",
            "U27",
        ),
        (
            "PY,",
            rf"(?!{_OWN_FAULT})",
            r"/(?:json/decoder|csv|tarfile|zipfile|gzip|lzma|bz2|imghdr)\.py|\.pyx\""
            r"|/(?:PIL|pyarrow|h5py|lmdb|soundfile|decord|av|nibabel|pydicom|rasterio|tifffile"
            r"|imageio|cv2|SimpleITK|netCDF4|zarr|pandas/io|plyfile|trimesh)/"
            r"|/(?:npyio|_npyio_impl|format)\.py|/datasets/(?:table|arrow_\w+|packaged_modules"
            r"|features)\b",
            "BADFILE",
        ),
        ("PY,", "", r"/datasets/(?:load|builder|data_files)\.py|/data/sampler\.py", "NODATA"),
        (
            "PY,",
            rf"(?!{_OWN_FAULT}|\w+: don't know)",
            r"/torch/serialization\.py|/torch/_weights_only\w+\.py|/safetensors/"
            r"|\bpickle\.loads?\(",
            "C2",
        ),
        # Of a file that is cut off.
        (
            "SHAPE,",
            "ValueError: cannot reshape array",
            r"\b(?:fromfile|frombuffer|memmap|load\w*|read\w*)\(",
            "BADFILE",
        ),
        ("PY,", "", r"/_utils/collate\.py", "DP4"),
        # What gym's reset and step give has changed between its versions.
        (
            "PY,",
            "ValueError|TypeError",
            r"/gym(?:nasium)?/|= *\w*\.?env\w*\.(?:reset|step)\(",
            "MOD-VER",
        ),
        ("PY,", "", r"/bitsandbytes/|/op_builder/|/triton/|cpp_extension\.py", "MOD"),
        ("PY,", "Assertion|Runtime", r"/torch/cuda/__init__\.py", "U31"),
        (
            "PY,",
            _OUTSIDE,
            r"/(?:requests|urllib3|httpx|httpcore|aiohttp|botocore|s3fs|gcsfs|s3transfer)/"
            r"|/(?:http/client|socket|ssl|urllib/request)\.py",
            "NET",
        ),
        ("PY,", _OUTSIDE, r"/(?:wandb|mlflow|neptune|comet_ml|swanlab|clearml)/", "WB1"),
        (
            "PY,",
            r"(?:Runtime|Value|Index)Error",
            r"/torch/(?:nn/(?:modules/(?!module\.py)|functional\.py)|functional\.py|_tensor\.py)",
            "SHAPE",
        ),
    )
)


def id_of_frames(row_id: str, words: str, frame: str) -> str:
    """The row by the place; where that says nothing, the one by the words, '' for none."""
    family = "PY" if row_id.startswith("PY-") else row_id
    for rows, of_words, of_frame, id in _RULES:
        if family in rows and frame and of_words.match(words) and of_frame.search(frame):
            return id
    return row_id


_HEAD = re.compile(r"(Original )?Traceback \(most recent call last\)")
_LINK = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
)
# Python says of these itself that it goes on.
_IGNORED = re.compile(r"Exception ignored in|--- Logging error ---")
_BESIDE = re.compile(r"Exception in thread |Error in atexit|Error in sys\.excepthook")
# A line of another record ends the words of an exception.
_RECORD = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d|\[(?:\d{4}|rank|INFO|WARN|ERROR)|(?:INFO|WARN(?:ING)?|ERROR|DEBUG)\b"
    r"|wandb: |[IWEF]\d{4} |[=*-]{5,}|srun: |slurmstepd|terminate called|\d+%\||Exception in thread"
)
_BARE = re.compile(
    r"(?:\*\*\* )?(?:(?:[a-zA-Z_]\w*\.)*"
    r"(?:[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Timeout)|Exception)(?::|$)"
    r"|(?:[a-z_]\w*\.)+_?[A-Z]\w*: )"
)
# C++ says first of what type it was, and on the next line what it says.
_THROWN = re.compile(r"terminate called after throwing an instance of '([\w:]+)")
_WHAT = re.compile(r"\bwhat\(\): +(\S.*)")
# Python's own, and that of rich.
_FRAME = re.compile(r'File "|│ \S+\.pyx?:\d+ in')
_MOST_WORDS = 24
PROGRESS_AFTER = 2
# pip shows what a build said, and then says itself what failed.
_OF_PIP = "[end of output]"


@dataclass(frozen=True)
class Raised:
    """An exception: where its words begin, all of them, and the last frame with its code."""

    number: int
    words: str
    frame: str = ""

    @property
    def first(self) -> str:
        return self.words.partition("\n")[0]


@dataclass(frozen=True)
class Traceback:
    """Of one exception with those that led to it, the last one last. `is_survived`: what was
    written after it shows that the script went on, or what was before it calls it a warning.
    """

    chain: tuple[Raised, ...]
    rank: int | None
    is_survived: bool

    @property
    def last(self) -> Raised:
        return self.chain[-1]


def tracebacks(lines: Sequence[Line]) -> list[Traceback]:
    """All of them, in the order in which they ended."""
    streams: dict[int | None, list[Line]] = {}
    for line in lines:
        streams.setdefault(line.rank, []).append(line)
    found = [one for stream in streams.values() for one in _of_stream(stream)]
    return sorted(found, key=lambda one: one.last.number)


def bare_errors(lines: Sequence[Line]) -> list[Raised]:
    """Lines that look like an exception's, without their traceback."""
    found = (_bare(lines, at) for at, line in enumerate(lines) if not line.is_warning)
    return [raised for raised in found if raised]


def _bare(lines: Sequence[Line], at: int) -> Raised | None:
    number, text = lines[at].number, lines[at].text
    if "what():" in text and (what := _WHAT.search(text)):
        thrown = _THROWN.search(lines[at - 1].text) if at else None
        return Raised(number, "\n".join([what[1], *(thrown.groups() if thrown else ())]))
    if _BARE.match(text.strip()):
        words = _words(lines[at : at + _MOST_WORDS])
        return Raised(number, "\n".join(words), _frame_before(lines, at))
    return None


def headless(lines: Sequence[Line], errors: Sequence[Raised]) -> list[Traceback]:
    """Those whose beginning was cut off: an exception below a frame, where none has its head."""
    if any(_HEAD.search(line.text) for line in lines):
        return []
    return [
        Traceback((one,), None, False) for one in errors if one.frame and _OF_PIP not in one.words
    ]


def _frame_before(lines: Sequence[Line], at: int) -> str:
    before = [line.text.strip() for line in lines[max(0, at - 3) : at]]
    files = [n for n, text in enumerate(before) if text.startswith("File ")]
    return "\n".join(before[files[-1] :][:2]) if files else ""


def _of_stream(lines: Sequence[Line]) -> Iterator[Traceback]:
    at = 0
    # Of a line how many of those after it tell of progress.
    left = sum(line.is_progress for line in lines)
    seen = 0
    while at < len(lines):
        if not _HEAD.search(lines[at].text):
            seen += lines[at].is_progress
            at += 1
            continue
        begin = at
        chain, at = _chain(lines, at)
        chain = [*_led_to(lines, begin), *chain]
        seen += sum(line.is_progress for line in lines[begin:at])
        before = next(
            (one.text for one in reversed(lines[max(0, begin - 3) : begin]) if one.text.strip()), ""
        )
        if not chain or _IGNORED.search(before):
            continue
        is_survived = (
            left - seen >= PROGRESS_AFTER
            or _is_by_the_way(before, lines[begin].text)
            or any(_OF_PIP in line.text for line in lines[begin : at + 3])
        )
        yield Traceback(tuple(chain), lines[begin].rank, is_survived)


def _led_to(lines: Sequence[Line], head: int) -> list[Raised]:
    """The exception before a link whose own head was cut off with the log's beginning."""
    before = [line for line in lines[max(0, head - 6) : head] if line.text.strip()]
    if len(before) < 2 or not _LINK.search(before[-1].text):
        return []
    said = before[-2]
    return [Raised(said.number, said.text.strip())] if _BARE.match(said.text.strip()) else []


def _is_by_the_way(before: str, head: str) -> bool:
    said = f"{before}\n{head}"
    # torchrun warns of the signals that it sends, and then raises.
    return bool(_BESIDE.search(said) or (WARNING.search(said) and "closing signal" not in before))


def _chain(lines: Sequence[Line], at: int) -> tuple[list[Raised], int]:
    chain: list[Raised] = []
    while True:
        raised, at = _one(lines, at)
        if raised:
            chain.append(raised)
        ahead = _next_said(lines, at)
        if ahead is None:
            return chain, at
        head = _HEAD.search(lines[ahead].text)
        if head and head[1]:
            at = ahead
        elif _LINK.search(lines[ahead].text):
            after = _next_said(lines, ahead + 1)
            if after is None or not _HEAD.search(lines[after].text):
                return chain, at
            at = after
        else:
            return chain, at


def _next_said(lines: Sequence[Line], at: int) -> int | None:
    return next((i for i in range(at, min(at + 5, len(lines))) if lines[i].text.strip()), None)


def _one(lines: Sequence[Line], head: int) -> tuple[Raised | None, int]:
    """The exception below this head, and where its words end."""
    strip = _Prefix(lines[head].text)
    base = _indent(strip(lines[head].text))
    at, frame = head + 1, ""
    while at < len(lines) and _is_frame(strip(lines[at].text), base):
        said = strip(lines[at].text).strip()
        # Its place, and the code that stands there: what is written in C has no place of its own.
        is_code = frame.count("\n") == 0 and said.strip("^~ ")
        frame = said if _FRAME.match(said) else f"{frame}\n{said}" if is_code else frame
        at += 1
    if at >= len(lines) or _HEAD.search(lines[at].text):
        return None, at
    begin = at
    words = _words(lines[at : at + _MOST_WORDS], strip)
    return Raised(lines[begin].number, "\n".join(words), frame), at + len(words)


def _words(lines: Sequence[Line], strip: Callable[[str], str] = str) -> list[str]:
    """Of an exception whose first words the first line has."""
    words = [strip(lines[0].text).strip()]
    for line in lines[1:_MOST_WORDS]:
        if not _goes_on(strip(line.text), words):
            break
        words.append(strip(line.text).strip())
    return words


class _Prefix:
    """What a launcher or a logger puts before each line of a traceback, taken off."""

    def __init__(self, head: str) -> None:
        before = head[: _HEAD.search(head).start()]  # type: ignore[union-attr]
        is_label = "traceback" in before.lower() or "│" in before or "╭" in before
        self._shape = "" if is_label or not before.strip() else _shape(before)

    def __call__(self, text: str) -> str:
        size = len(self._shape)
        return text[size:] if size and _shape(text[:size]) == self._shape else text


def _shape(text: str) -> str:
    return re.sub(r"\d", "0", text)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_frame(text: str, base: int) -> bool:
    stripped = text.strip()
    return (
        not stripped
        or _indent(text) > base
        or stripped[0] in "│╭╰❱^~"
        or stripped.startswith("[Previous line")
    )


def _goes_on(text: str, words: Sequence[str]) -> bool:
    stripped = text.strip()
    if not stripped:
        # The words of a hub and of a compiler have empty lines in them.
        return words[-1] != "" and any(
            mark in words[0] for mark in ("Client Error", "Server Error", "http")
        )
    is_next = (
        _RECORD.match(stripped)
        or _HEAD.search(stripped)
        or _LINK.search(stripped)
        or _BARE.match(stripped)
    )
    return not (is_next or WARNING.search(stripped))


# Which lines of a log may tell of its end: none that was survived, guessed or of others. Pure.


# Some libraries list all that may have happened, and all that may help.
_GUESSES = re.compile(
    r"(?i)(?:potential|possible|likely|common) (?:root )?(?:causes?|reasons?)\b|\bsolutions?: "
    r"|\bsuggestions?: "
)
_SRUN_ENDS = re.compile(r"srun: error: \S+ tasks? \S+ Exited with exit code [1-9]")
_STEP_ENDED = re.compile(
    r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+(?: DUE to SIGNAL [^*\n]+)? \*\*\*"
    r"|: (?:Terminated|Killed)$"
)
# Of a frame's code: what it would say, or what it says in another case.
_RAISES = re.compile(r"(?:[│|❱> \d]*[│|] )?\s*raise \w")
_MOST_JUDGED = 200_000  # characters


def without_guesses(line: Line) -> Line:
    found = _GUESSES.search(line.text)
    return replace(line, text=line.text[: found.start()]) if found else line


def without_ended(lines: Sequence[Line], pids: set[str]) -> list[Line]:
    """Without what is said of the ranks that torchrun or srun ended, as another had failed."""
    told_of = re.compile(r"(?:\bPID|\(pid:) (\d+)")
    has_srun_ended = any(_SRUN_ENDS.search(line.text) for line in lines)
    return [
        line
        for line in lines
        if not (pids and (found := told_of.search(line.text)) and found[1] in pids)
        and not (has_srun_ended and _STEP_ENDED.search(line.text))
    ]


def without_raises(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if not _RAISES.match(line.text)]


def not_survived(lines: Sequence[Line]) -> list[Line]:
    """Those after which their rank did not go on."""
    left = Counter(line.rank for line in lines if line.is_progress)
    kept = []
    for line in lines:
        left[line.rank] -= line.is_progress
        if left[line.rank] < PROGRESS_AFTER:
            kept.append(line)
    return kept


def worth_a_look(lines: Sequence[Line]) -> list[Line]:
    """The last ones that are no progress; of those that say the same but for numbers the last."""
    kept: dict[str, Line] = {}
    left = _MOST_JUDGED
    for line in reversed(lines):
        shape = re.sub(r"\d+", "0", line.text[:300])
        if line.text.strip() and shape not in kept:
            kept[shape] = line
            left -= len(line.text)
            if left < 0:
                break
    return sorted(kept.values(), key=lambda line: line.number)
