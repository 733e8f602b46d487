from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.shared.errors import TemporaryError
from boxcar.shared.paths import DurablePaths
from boxcar.shared.process.second_home_child import Child, ask, url_of, variables

ECHO = """
import json, os, sys
request = json.load(sys.stdin)
print(json.dumps({"done": {"request": request, "argv": sys.argv, "key": os.environ.get("KEY")}}))
"""


def child(text: str, **words: Any) -> Child:
    words = {"environment": {"PATH": os.environ["PATH"]}} | words
    return Child(sys.executable, text=text, **words)


def test_the_request_and_the_secrets_are_in_no_command_line():
    given = child(ECHO, environment={"KEY": "s3cret"}, secrets=("s3cret",))
    answer = ask(given, {"do": "try", "url": "s3://bucket"})
    assert answer == {
        "request": {"do": "try", "url": "s3://bucket"},
        "argv": ["-c"],
        "key": "s3cret",
    }
    assert not any("s3cret" in word or "bucket" in word for word in given.argv)
    assert "s3cret" not in repr(given)


SUMS = "AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"
TELL_SUMS = f"import json, os; print(json.dumps({{'done': {{n: os.environ[n] for n in {SUMS}}}}}))"


def test_object_stores_are_sent_no_checksums_that_many_refuse_unless_a_person_wants_them():
    assert ask(child(TELL_SUMS), {}) == dict.fromkeys(SUMS, "when_required")
    own = {SUMS[0]: "when_supported"}
    assert ask(child(TELL_SUMS, environment=own), {}) == {SUMS[1]: "when_required"} | own


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('print(\'{"problem": "the key s3cret is not known"}\')', "the key … is not known"),
        ("raise SystemExit('the key s3cret is not known')", "ended with code 1: the key … is not"),
        ("print('{}')", "ended with code 0: no output on stderr"),
        ("print('[1]')", "ended with code 0"),
    ],
)
def test_what_goes_wrong_is_told_without_a_secret(text, told):
    with pytest.raises(TemporaryError) as raised:
        ask(child(text, secrets=("s3cret", "")), {})
    assert told in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_a_python_that_is_not_there_is_told():
    with pytest.raises(TemporaryError, match="/no/python: cannot be started"):
        ask(Child("/no/python", {}), {})


def test_a_child_that_moves_nothing_is_ended():
    with pytest.raises(TemporaryError, match="nothing moved for"):
        ask(child("import time; time.sleep(600)"), {}, silent_s=0.3)


def test_a_child_that_is_given_up_is_ended(tmp_path):
    mark = tmp_path / "pid"
    text = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(TemporaryError, match="given up"):
        ask(child(text), {}, lambda: mark.exists() and mark.read_text() != "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_its_variables_are_those_of_platform_and_job():
    plan = make_plan(
        env={"A": "profile", "B": "profile"},
        job_env={"B": "job", "KEY": "job", "OUT": "{out}/x", "JSON": '{"a": 1}'},
    )
    assert variables(plan) == {"A": "profile", "B": "job", "KEY": "job", "JSON": '{"a": 1}'}


def test_it_is_laid_out_as_the_tier():
    tier = DurablePaths(Path("/mnt/x"), "tiny")
    assert url_of("s3://b/p", tier, tier.cell("a")) == "s3://b/p/boxcar/tiny/cells/a"


def test_the_module_runs_as_the_program_that_it_is(tmp_path):
    (tmp_path / "m").write_bytes(b"{}")
    sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    last = {"path": "m", "size_bytes": 2, "sha256": sha256}
    request = {"do": "put", "url": f"file://{tmp_path}/second", "folder": str(tmp_path)}
    assert ask(Child(sys.executable, os.environ), request | {"files": [], "last": last}) == {}
    assert json.loads((tmp_path / "second" / "m").read_bytes()) == {}
