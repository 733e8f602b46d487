"""The mirrors of a cell's environment, tried once by each agent: a dead one is not used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from boxcar.shared import paths
from boxcar.shared.sentence import Sentence, _
from onbox.machine import mirrors
from onbox.machine.mirrors import CONDA, HUB, PIP, Tried
from onbox.machine.place import Place

Warn = Callable[[str, Sentence], None]


class DeadMirrors:
    def __init__(self, place: Place, warn: Warn) -> None:
        """`warn(what, text)` hears of a dead one."""
        self._warn = warn
        self._tried: tuple[Tried, ...] = ()
        plan = place.plan
        env = {**plan.env, **plan.job_env}
        named = {name: env[name] for name in (PIP, HUB, CONDA) if name in env}
        python = paths.program_on_box(plan.training_python)
        self._thread = threading.Thread(target=self._try, args=(python, named), daemon=True)
        self._is_asked, self._is_begun = bool(named), False

    @property
    def is_awaited(self) -> bool:
        """Whether it is not known yet what is dead."""
        return self._is_asked and (not self._is_begun or self._thread.is_alive())

    def wait(self) -> None:
        """Until it is known; the first call has it tried."""
        if not self._is_begun:
            self._is_begun = True
            self._thread.start()
        self._thread.join(mirrors.TIMEOUT_S)

    def without(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment in which none is used that is known to be dead."""
        return mirrors.without_dead(environ, self._tried)

    def _try(self, python: str, named: Mapping[str, str]) -> None:
        self._tried = mirrors.try_mirrors(python, "", named, has_pip=False)
        for text in told(self._tried):
            self._warn("mirror_dead", text)


def told(tried: tuple[Tried, ...]) -> list[Sentence]:
    """What is said of the dead ones."""
    return [
        _(
            "{name}: {url} is dead from here and is not used: {problem}",
            name=one.name,
            url=one.url,
            problem=one.problem,
        )
        for one in tried
        if one.problem
    ]
