"""What the log of an unchanged script seems to say of its progress: `Epoch 3/20`, tqdm's bars, a
trainer's dicts, tables, `loss=0.31`. Pure.

It is for people who look, and proves nothing: what `metrics:` takes is another reader's.
Each pattern starts at a word or a sign and takes a bounded number of characters from there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.record import dataclass, replace

# Words of a name by which a number is known as a measure, and what is better of it.
LESS = frozenset(
    {
        *("loss", "losses", "nll", "bpb", "ppl", "perplexity", "mse", "mae", "rmse", "wer", "cer"),
        *("fid", "eer", "lpips", "rmsle", "mape"),
    }
)
MORE = frozenset(
    {
        *("acc", "accuracy", "top1", "top5", "auc", "auroc", "f1", "dice", "iou", "miou", "psnr"),
        *("ssim", "bleu", "ap", "recall", "reward", "kappa", "mcc", "ndcg", "mrr", "r2"),
    }
)
_RATES = ("lr", "learning_rate")
_MEASURES = LESS | MORE | {*_RATES, "map"}
_GIVEN = {"weight", "weights", "coef", "scale", "scaling", "lambda", "fn", "type", "steps", "py"}
MOST_BYTES = 32 * 1024
MOST_NUMBERS, LONGEST_NAME, _LONGEST_LINE = 8, 40, 600
_MOST_BARS, _STALE_AFTER = 8, 3

_BREAK = re.compile(rb"[\r\n\x08]+|\x1b\[A")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,12}[A-Za-z]")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|-?inf"
_NAMED = re.compile(
    r"(?:(?<![\w@/.-])(train|training|val|valid|validation|test|eval|dev)[ ]{1,2})?"
    r"(?<![\w@/.-])([a-z][\w@/.-]{0,39})(?:[ ]?\(\w{1,8}\))?['\"]?(?:\s{0,24}[:=|]\s{0,8}|\s{1,8})"
    rf"['\"]?(?:tensor\()?({_NUMBER})(?![\w/]|\.\d|:\d)",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"(?<![\w/.-])(?<!best )(epochs?|ep)(?:\(train\))?['\"]?[\s:=#'\"\[(]{0,8}"
    r"(\d{1,6}(?:\.\d{1,6})?)(?![\w.])\s{0,3}[\])]?(?:\s?(?:/|of)\s{0,6}(\d{1,6})(?![\w.]))?",
    re.IGNORECASE,
)
_EPOCH_ZH = re.compile(
    r"(第)\s{0,3}(\d{1,6})(?:\s{0,3}[/／]\s{0,3}(\d{1,6}))?\s{0,3}(?:轮|个\s?epoch)"
)
_STEP = re.compile(
    r"(?<![\w/.-])((?:global|train)[ _]step|total_timesteps|steps?|iter(?:ation)?s?|batch(?:es)?"
    r"|updates?)['\"]?[\s:=#'\"\[(|]{0,24}(\d{1,9})(?![\w.])\s{0,6}[\])]?(?:\s?(?:/|of)\s{0,6}(\d{1,9})(?![\w.]))?",
    re.IGNORECASE,
)
_COUNTS = ("step", "iter", "iteration", "update")
_PAIR = r"(\d{1,9})\s{0,6}/\s{0,6}(\d{1,9})(?![\w/.-])"
_PAIR_BEHIND = re.compile(rf"[\s|:,\[(\]-]{{0,8}}{_PAIR}")
# timm's `Train: 3 [ 100/1251`, and what some scripts begin their lines with: `[3/25][10/1583]`.
_OF_TIMM = re.compile(rf"Train:\s{{1,4}}(\d{{1,6}})(?:/\d{{1,6}})?\s{{1,4}}\[\s{{0,6}}{_PAIR}")
_BARE = re.compile(rf"\s{{0,8}}[\[(]?\s{{0,6}}{_PAIR}[\])]?(?!\s?\d\d?:)")
_RICH = re.compile(rf"━\s{{1,4}}{_PAIR}")
_BAR = re.compile(
    r"(?<!\d)\d{1,3}%(?:\|[^|]{0,300}\|| [━╸╺─ ]{1,99})?\s{0,6}"
    r"(\d{1,12})/(\d{1,12})(?![\w/.])\s?(.{0,60})"
)
_BAR_LEFT = re.compile(r"<\s{0,2}(?:(\d{1,4}):)?(?:(\d{1,2}):)?(\d{1,5})(?:\.\d)?[s,\]\s]")
_SPEED = re.compile(r"(\d{1,9}(?:\.\d{1,4})?)\s?([a-z]{1,12})/([a-z]{1,12})", re.IGNORECASE)
_ETA = re.compile(
    r"\beta['\"]?[\s:=]{1,3}'?(?:(\d{1,3}) days?,? )?(?:(\d{1,3}):)?(\d{1,2}):(\d\d)\b",
    re.IGNORECASE,
)
# Bars of what is no training.
_OTHER = re.compile(
    r"\b(?:val|valid\w*|eval\w*|test\w*|infer\w*|predict\w*|sanity)\b|download|fetch|extract|load|"
    r"\bmap\b|tokeni|filter|generat|scann|cach|shard|split|resolv|convert|mAP50",
    re.IGNORECASE,
)
_OF_TEST = re.compile(
    r"(?:^|[\W_])(?:val|valid|validation|test|eval|dev)(?:$|[\W_])", re.IGNORECASE
)
_ROW = re.compile(r"\s{0,12}(\d{1,6})(?:/(\d{1,6}))?\s{1,12}[\d.]")


@dataclass(frozen=True)
class _Bar:
    """`is_within` an epoch, or of the epochs themselves. `others` have ended since it moved."""

    n: int
    of: int
    left_s: float | None
    per_s: float | None = None
    is_within: bool = False
    is_of_epochs: bool = False
    others: int = 0

    @property
    def order(self) -> tuple[bool, bool, float]:
        return not self.is_within, self.left_s is None, self.left_s or 0.0


class LogReader:
    """Is fed with what is new in a log, and keeps what it last saw. `feed` raises nothing."""

    def __init__(self) -> None:
        self._rest = b""
        self._seen = Seen()
        self._is_ended_epoch = self._counts_from_0 = self._is_within = False
        self._columns: list[str] = []
        self._bars: dict[str, _Bar] = {}
        self._ended: set[str] = set()
        self._eta: float | None = None
        self._told: tuple[float, float] | None = None
        self._pace = _Pace()
        self._steps_pace: tuple[float, float] | None = None

    def feed(self, data: bytes, now_s: float, *, is_cut: bool = False) -> Seen:
        """What is known now. `is_cut`: bytes before these were left out."""
        data = data if is_cut else self._rest + data
        *whole, self._rest = _BREAK.split(data)
        self._rest = self._rest[-_LONGEST_LINE:]
        for line in whole[is_cut:]:
            if line:
                self._read(_COLOUR.sub("", line[: 2 * _LONGEST_LINE].decode("utf-8", "replace")))
        if self._eta is not None:
            self._told, self._eta = (self._eta, now_s), None
        return self._with_times(now_s)

    def _read(self, line: str) -> None:
        line = line[:_LONGEST_LINE]
        if not any(map(str.isdigit, line)):
            self._note_columns(line)
            return
        if bar := _BAR.search(line):
            self._read_bar(line, bar)
            return
        numbers = dict(_numbers(line)) | dict(self._of_row(line))
        self._note_numbers(numbers)
        self._read_counts(line, bool(numbers))
        if eta := _ETA.search(line):
            days, hours, minutes, seconds = (int(part or 0) for part in eta.groups())
            self._eta = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

    # --- counts in words

    def _read_counts(self, line: str, has_numbers: bool) -> None:
        step = _STEP.search(line)
        if epoch := _EPOCH.search(line) or _EPOCH_ZH.search(line):
            behind = _PAIR_BEHIND.match(line, epoch.end()) or _RICH.search(line)
            pair = _pair(behind) or _pair(step, 2)
            self._note_epoch(epoch, has_numbers and pair is None)
            self._note_steps(pair, is_within=True)
            if not pair:
                self._note_step(step, has_numbers)
        elif timm := _OF_TIMM.match(line):
            self._seen = replace(self._seen, epoch=float(timm[1]))
            self._note_steps(_pair(timm, 2), is_within=True)
        elif pair := _pair(step, 2):
            self._note_steps(pair, is_within=False)
        elif self._note_step(step, has_numbers):
            return
        elif has_numbers and (bare := _BARE.match(line)):
            self._read_bare(line, bare)

    def _note_step(self, step: re.Match[str] | None, has_numbers: bool) -> bool:
        """One without an end; `Step 1: load the data` is none. SB3 counts in a table."""
        if step is None:
            return False
        word = step[1].lower()
        is_one = word == "total_timesteps" or (has_numbers and word.endswith(_COUNTS))
        if is_one:
            self._seen = replace(self._seen, step=int(step[2]), steps=None)
        return is_one

    def _read_bare(self, line: str, bare: re.Match[str]) -> None:
        behind = _PAIR_BEHIND.match(line, bare.end())
        if behind and (pair := _pair(bare)):
            epoch, of = pair
            self._counts_from_0 = self._counts_from_0 or epoch == 0
            self._seen = replace(self._seen, epoch=float(epoch), epochs=of)
            self._note_steps(_pair(behind), is_within=True)
        elif not self._columns or not _ROW.match(line):
            # Keras: below its `Epoch 3/20`.
            self._note_steps(_pair(bare), is_within=self._seen.epochs is not None)

    def _note_epoch(self, found: re.Match[str], is_ended: bool) -> None:
        epoch, of = float(found[2]), int(found[3] or 0)
        is_many = found[1].lower().endswith("s")
        if (is_many and not of) or (of and epoch > of):
            return
        self._counts_from_0 = self._counts_from_0 or epoch == 0
        self._is_ended_epoch = is_ended
        if of or self._seen.epoch != epoch:
            self._seen = replace(self._seen, epoch=epoch, epochs=of or self._seen.epochs)

    def _note_steps(self, pair: tuple[int, int] | None, *, is_within: bool) -> None:
        if pair is None:
            return
        step, steps = pair
        self._is_within = is_within
        if step < steps or not is_within:
            self._seen = replace(self._seen, step=step, steps=steps)
        else:
            self._seen = replace(self._seen, step=None, steps=None)

    # --- bars

    def _read_bar(self, line: str, found: re.Match[str]) -> None:
        name, n, of = line[: found.start()].strip(), int(found[1]), int(found[2])
        speed = _SPEED.search(found[3])
        if _OTHER.search(name) or of < 2 or n > of or (speed and "b" in _units(speed)):
            return
        epoch = _EPOCH.search(name) or (_ROW.match(name) if self._columns else None)
        is_of_epochs = epoch is None and "epoch" in name.lower()
        self._note_numbers(dict(_numbers(f"{name} {line[found.end(2) :]}")))
        self._note_numbers(dict(self._of_row(name)))
        if epoch and epoch.re is _EPOCH:
            self._note_epoch(epoch, is_ended=False)
        # One that is in this epoch may say so itself: `Epoch 3/20`, while two of 20 have ended.
        if is_of_epochs and (self._seen.epochs != of or self._seen.epoch not in (n, n + 1)):
            self._seen = replace(self._seen, epoch=float(n), epochs=of)
            self._counts_from_0, self._is_ended_epoch = False, True
        key = f"{re.sub(r'[0-9.]+', '', name)[:LONGEST_NAME]} {of}"
        if n == of:
            self._end_bar(key)
        else:
            is_within = bool(epoch) or key in self._ended
            times = _bar_left_s(found[3]), _per_s(speed)
            self._bars.pop(key, None)
            self._bars[key] = _Bar(n, of, *times, is_within, is_of_epochs)
            self._bars = dict(list(self._bars.items())[-_MOST_BARS:])
        self._choose_bar()

    def _end_bar(self, key: str) -> None:
        """What has ended is no training that goes on; it may have been its data."""
        self._bars.pop(key, None)
        if len(self._ended) < 4 * _MOST_BARS:
            self._ended.add(key)
        aged = {name: replace(bar, others=bar.others + 1) for name, bar in self._bars.items()}
        self._bars = {name: bar for name, bar in aged.items() if bar.others < _STALE_AFTER}

    def _choose_bar(self) -> None:
        """Of those within each other the one that ends last."""
        found = [bar for bar in self._bars.values() if not bar.is_of_epochs]
        last = max(found, key=lambda bar: bar.order, default=None)
        self._is_within = last is not None and last.is_within
        step, steps, per_s = (last.n, last.of, last.per_s) if last else (None, None, None)
        self._seen = replace(self._seen, step=step, steps=steps, per_s=per_s)

    # --- numbers

    def _note_columns(self, line: str) -> None:
        words = line.split()
        if len(words) > 2 and words[0].lower() == "epoch":
            self._columns = words[:20]

    def _of_row(self, line: str) -> Iterator[tuple[str, float | None]]:
        """A row below the names that ultralytics and fastai print."""
        row = _ROW.match(line) if self._columns else None
        if row is None or (words := line.split())[1:] == []:
            return
        self._seen = replace(
            self._seen, epoch=float(row[1]), epochs=int(row[2]) if row[2] else self._seen.epochs
        )
        self._counts_from_0 = self._counts_from_0 or row[1] == "0"
        for name, word in zip(self._columns[1:], words[1:], strict=False):
            if is_measure(name) and re.fullmatch(_NUMBER, word.rstrip(":")):
                yield name, _finite(word.rstrip(":"))

    def _note_numbers(self, numbers: dict[str, float | None]) -> None:
        kept = self._seen.numbers | numbers
        if numbers and kept != self._seen.numbers:
            first = sorted(kept, key=place)[:MOST_NUMBERS]
            self._seen = replace(self._seen, numbers={name: kept[name] for name in first})

    # --- times

    def _with_times(self, now_s: float) -> Seen:
        seen, per_s = self._seen, self._seen.per_s
        if not self._bars:
            per_s = None
            if seen.step is not None:
                before = self._steps_pace
                if before is None or seen.step < before[0]:
                    self._steps_pace = before = (seen.step, now_s)
                if seen.step > before[0] and now_s > before[1]:
                    per_s = (seen.step - before[0]) / (now_s - before[1])
        self._pace.note(self._done(), now_s)
        return replace(seen, per_s=per_s, left_s=self._left_s(now_s))

    def _left_s(self, now_s: float) -> float | None:
        if self._told:
            left_s, at_s = self._told
            return max(0.0, left_s - (now_s - at_s))
        whole = [bar for bar in self._bars.values() if bar.is_of_epochs]
        if not whole and not self._seen.epochs:
            whole = list(self._bars.values())
        last = max(whole, key=lambda bar: bar.order, default=None)
        if last and not last.is_within and last.left_s is not None:
            return last.left_s
        return self._pace.left_s(now_s)

    def _done(self) -> float | None:
        """The part of the whole."""
        seen = self._seen
        part = seen.step / seen.steps if seen.step is not None and seen.steps else 0.0
        if seen.epoch is not None and seen.epochs:
            begun = seen.epoch - (0 if self._counts_from_0 or self._is_ended_epoch else 1)
            ended = 1 if self._is_ended_epoch and self._counts_from_0 else 0
            within = part if self._is_within else 0.0
            return min(1.0, max(0.0, (begun + ended + within) / seen.epochs))
        return part if part and not self._is_within else None


class _Pace:
    """How fast the part that is done grows."""

    def __init__(self) -> None:
        self._first = self._last = math.inf, 0.0

    def note(self, part: float | None, now_s: float) -> None:
        if part is None:
            return
        if self._first[0] >= part < self._last[0]:  # also the next of five folds
            self._first = self._last = part, now_s
        elif part > self._last[0]:
            self._last = part, now_s

    def left_s(self, now_s: float) -> float | None:
        (was, from_s), (part, at_s) = self._first, self._last
        if part <= was:
            return None
        return max(0.0, (1 - part) * (at_s - from_s) / (part - was) - (now_s - at_s))


def is_measure(name: str) -> bool:
    words = {name.lower(), *re.split(r"[\W_]+", name.lower())}
    words |= {word.rstrip("0123456789") for word in words}
    return words.isdisjoint(_GIVEN) and not words.isdisjoint(_MEASURES)


def place(name: str) -> int:
    """Those of a validation stand first, a learning rate last."""
    if name.lower() in _RATES:
        return 3
    return (0 if _OF_TEST.search(name) else 1) if is_measure(name) else 2


def _numbers(line: str) -> Iterator[tuple[str, float | None]]:
    for of, name, text in _NAMED.findall(line):
        if is_measure(name):
            yield f"{of}_{name}"[-LONGEST_NAME:] if of else name, _finite(text)


def _finite(text: str) -> float | None:
    """None of a NaN."""
    number = float(text)
    return number if math.isfinite(number) else None


def _pair(found: re.Match[str] | None, first: int = 1) -> tuple[int, int] | None:
    if found is None or found[first + 1] is None:
        return None
    n, of = int(found[first]), int(found[first + 1])
    return (n, of) if n <= of and of > 1 else None


def _per_s(speed: re.Match[str] | None) -> float | None:
    if speed is None or "s" not in (speed[2], speed[3]) or not (per := float(speed[1])):
        return None
    return per if speed[3] == "s" else 1 / per


def _units(speed: re.Match[str]) -> set[Any]:
    return {unit.lower().lstrip("kmgi") or unit for unit in (speed[2], speed[3])}


def _bar_left_s(text: str) -> float | None:
    found = _BAR_LEFT.search(text)
    if found is None:
        return None
    left = 0.0
    for part in found.groups():
        left = left * 60 + float(part) if part is not None else left
    return left
