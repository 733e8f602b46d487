"""Death at every step: SIGKILL at the n-th call that changes the disk, for n = 1, 2, 3, … until the
command lives to its end. After each death the same command is typed once more, and all is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from straced import CHANGES, killed_at, skip_without_strace
from tiny_project import MakeProject, TinyProject

pytestmark = pytest.mark.faults
CELLS = ["a", "b"]
# More steps than any of these commands has.
MOST = 1000
# So many are tried one by one.
EACH = 25


@pytest.fixture(autouse=True)
def _strace() -> None:
    skip_without_strace()


@pytest.fixture
def run(project: MakeProject) -> TinyProject:
    made = project({"q1": [f"configs/{cell}.json one" for cell in CELLS]})
    # As what is killed: all that is typed is to mean the same release.
    return made.as_programs


def deaths(run: TinyProject, *words: str, at_least: int, anew: Callable[[], None]) -> Iterator[int]:
    """The verb, killed at every step in turn, until it lives; each time how many deaths there were.

    strace counts the calls of each kind for themselves, so each kind has its own deaths. `anew`
    brings back what was there before the verb.
    """
    count = 0
    for call in CHANGES.split(","):
        for number in numbers():
            # Where a child of it died it ends with 1, and is typed again as well.
            is_alive = replace(run, before=killed_at(number, call)).boxcar(*words).code == 0
            if not is_alive:
                count += 1
                yield count
            anew()
            if is_alive:
                break
        else:
            raise AssertionError(f"boxcar {words[0]} is still killed at its {call} {MOST}")
    print(f"boxcar {words[0]}: killed at each of {count} steps")
    assert count > at_least, "too few: it was not killed where it changes the disk"


def numbers() -> Iterator[int]:
    """Each of the first, and some of the many that remove one file after another."""
    yield from range(1, EACH)
    yield from range(EACH, MOST, EACH)


@pytest.mark.usefixtures("tell")
def test_a_push_that_dies_anywhere_is_typed_again(run):
    def anew() -> None:
        shutil.rmtree(run.root / ".boxcar")

    for _ in deaths(run, "push", at_least=40, anew=anew):
        run.boxcar("push").ended(0)
        assert len(run.releases) == 1, "an unfinished release was left, or taken for one"


@pytest.mark.usefixtures("tell")
def test_a_pull_that_dies_anywhere_is_typed_again(run):
    def anew() -> None:
        shutil.rmtree(run.results)

    finish(run)
    for _ in deaths(run, "pull", at_least=20, anew=anew):
        run.boxcar("pull").ended(0)
        assert_pulled(run, CELLS)
        left = [path.name for path in run.results.iterdir()]
        assert sorted(set(left) - {".lock", ".partial"}) == ["cells", "journal"], left


@pytest.mark.usefixtures("tell")
def test_a_verify_that_dies_anywhere_is_typed_again(run):
    def anew() -> None:
        (run.results / "receipt.json").unlink()

    finish(run)
    run.boxcar("pull").ended(0)
    for _ in deaths(run, "verify", at_least=2, anew=anew):
        said = run.boxcar("verify", "--json").ended(0)
        assert said.document["is_full"]


@pytest.mark.usefixtures("tell")
def test_a_down_that_dies_anywhere_is_typed_again(run):
    finish(run)
    run.boxcar("pull").ended(0)
    digest = run.boxcar("verify", "--json").ended(0).document["digest"]
    approved = ("down", "--approve", digest)
    for _ in deaths(run, *approved, at_least=30, anew=keep(run)):
        run.boxcar(*approved).ended(0)
        assert not [path for path in run.local.rglob("*") if path.is_file()]
        assert_pulled(run, CELLS)


@pytest.mark.usefixtures("tell")
def test_an_agent_or_wrapper_that_dies_anywhere_is_started_again(run):
    """Each process is killed at its own n-th step: the agent, its thread's, and the wrappers."""
    run.boxcar("push").ended(0)
    restore, count = keep(run), 0
    for call in CHANGES.split(","):
        for number in numbers():
            if run.agent("q1", killed_at(number, call)).returncode == 0:
                restore()
                break
            count += 1
            where = f"after a death at {call} {number}"
            assert run.agent("q1").returncode == 0, f"{where}: {run.told()}"
            assert_published_once(run, CELLS)
            assert_nothing_torn(run)
            restore()
        else:
            raise AssertionError(f"the agent is still killed at its {call} {MOST}")
    print(f"agent: {count} steps, killed at each")
    assert count > 20


def finish(run: TinyProject) -> None:
    run.boxcar("push").ended(0)
    assert run.agent("q1").returncode == 0, run.told()


def keep(run: TinyProject) -> Callable[[], None]:
    """What brings the project back to how it is now, in the same place."""
    kept = run.root.with_name("kept")
    shutil.copytree(run.root, kept)

    def restore() -> None:
        shutil.rmtree(run.root)
        shutil.copytree(kept, run.root)

    return restore
