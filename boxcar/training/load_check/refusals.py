"""How one file is looked at, and why one that names code is not loaded, with the line to write."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# How one file is looked at: whether its code may run, and what job.yaml calls it.


@dataclass(frozen=True)
class How:
    """`is_trusted`: of `load: trusted`. Where it may not run code either, it is only listed."""

    may_run_code: bool = False
    is_trusted: bool = False
    said_as: str = ""

    @property
    def is_listed(self) -> bool:
        return self.is_trusted and not self.may_run_code


_NAMED = 10
_OF_THE_SCRIPT = re.compile(r"attribute '([^']+)' on <module '__main__'")


def would_run(names: Sequence[str], how: How) -> str:
    more = _(" and {n} more", n=len(names) - _NAMED) if len(names) > _NAMED else ""
    return _(
        "would execute code when it is loaded: {names}{more}. Save plain values and tensors, or "
        "write into job.yaml {how} where that is your own code, and its box alone loads it; or "
        "{how_2}, and nobody looks into it. verify --allow-pickle loads it once on your machine, "
        "if you trust who wrote it",
        names=", ".join(names[:_NAMED]),
        more=more,
        how=line(how, "trusted"),
        how_2=line(how, "bytes"),
    )


def of_old_torch(names: Sequence[str], how: How) -> str:
    """Nothing in it would run, and this torch cannot be told so: 2.4 makes no object at all."""
    return _(
        "names {names}, which this torch does not take without running code: a newer one does; or "
        "write into job.yaml {how}",
        names=", ".join(names[:_NAMED]),
        how=line(how, "trusted"),
    )


def of_protocol(said: str, how: How) -> str:
    """Of `torch.save(..., pickle_protocol=4)`, which torch.load reads with code alone."""
    return _(
        "was saved with a pickle protocol that torch reads only with its code {said}: save with "
        "protocol 2, or write into job.yaml {how} or {how_2}",
        said=said,
        how=line(how, "trusted"),
        how_2=line(how, "bytes"),
    )


class NotItsKindError(ValueError):
    """What a file is not, of which only the name says that it is one: it may be another's."""

    def sentence(self, how: How) -> str:
        return _(
            "{what}. If it is as it should be, {how} in job.yaml has it judged anew, without "
            "training",
            what=self,
            how=line(how, "bytes"),
        )


def line(how: How, load: str) -> str:
    """An entry of `artifacts` in job.yaml."""
    path = how.said_as
    is_plain = re.fullmatch(r"[\w.][\w./*?-]*", path) is not None
    spelled = path if is_plain else f'"{path}"'
    return f"{{path: {spelled}, load: {load}}}"


def own_code_problem(error: BaseException, how: How) -> str | None:
    """What a file of `load: trusted` lacks of the code that wrote it; None for another error."""
    if isinstance(error, ModuleNotFoundError) and error.name == "joblib":
        return _(
            "was written by joblib, which its box has not: install joblib for {executable}, or "
            "write {how}",
            executable=sys.executable,
            how=line(how, "bytes"),
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _(
            "needs the module {error!r}, which is neither in the code of its release nor "
            "installed on its box: add it to the code folder, or its folder to PYTHONPATH in "
            "`env` of job.yaml; or write {how}",
            error=error.name,
            how=line(how, "bytes"),
        )
    if found := _OF_THE_SCRIPT.search(str(error)):
        return _(
            "holds a {found} of the script itself (__main__.{found}), which nothing else can "
            "load: move {found} into a module of its own, or write {how}",
            found=found[1],
            how=line(how, "bytes"),
        )
    return None
