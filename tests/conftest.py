"""For all tests: `announce`, by which a slow fixture says what it does; no clock of hypothesis;
no search for garbage in what pytest itself has collected."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from robot import Robot
from side_by_side import HAS_GPUS, TRAINING, SideBySide, hide_gpus

from boxcar.shared import errors
from onbox.machine import cgroup

# A busy machine must not fail a test; what hangs is ended by pytest's own limit.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Hundreds of commands are typed: each finds its modules compiled by the one before.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A job in the background of a script ignores ^C, and so would what a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    hide_gpus(config.option.markexpr, HAS_GPUS, os.environ)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--side-by-side", type=int, default=0, help="so many forked processes")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    at_once: int = session.config.option.side_by_side
    if not at_once or session.config.option.collectonly or session.testsfailed:
        return None
    if any(item.nodeid.startswith(TRAINING) for item in session.items):
        importlib.import_module("ranks_at_work").server()
    SideBySide(session, at_once).run()
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """All that is made here stays, and to go through it again and again is a third of the time;
    later too, whenever Python looks for garbage. It looks seldom then: tests that read all of our
    sources make millions of objects, and others have memory for it."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def _a_list_of_runs_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests launch is not remembered in the person's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _commands_are_spelled_as_ever() -> Iterator[None]:
    """A program of ours that a test runs within this process says once and for all what it is."""
    before = errors.program()
    yield
    errors.type_as(before)


@pytest.fixture(scope="session", autouse=True)
def _no_cgroup_is_left() -> Iterator[None]:
    """Wrappers that tests have killed leave an empty one, which the next wrapper would remove."""
    yield
    with contextlib.suppress(OSError):
        cgroup.remove_empty()


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to 127.0.0.1 gets there, and no certificate is trusted but the system's."""
    known = ("http_proxy", "https_proxy", "all_proxy", "requests_ca_bundle", "curl_ca_bundle")
    for name in [name for name in os.environ if name.lower() in known]:
        monkeypatch.delenv(name)


@pytest.fixture
def robot() -> Iterator[Robot]:
    server = Robot()
    yield server
    server.end()


@pytest.fixture(scope="session")
def announce(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a line past pytest's capture; also from a process that was forked."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def print_line(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", file=sys.stderr, flush=True)

    return print_line
