"""The place where an exception was raised tells what it is, where its words do not."""

from __future__ import annotations

import pytest

from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge

_TRACE = """Traceback (most recent call last):
  File "/code/train.py", line 3, in <module>
    main()
  File "{place}", line 9, in inner
    call()
{said}
"""


@pytest.mark.parametrize(
    ("place", "said", "id"),
    [
        ("/usr/lib/python3.11/os.py", "KeyError: 'CITIES'", "ENV"),
        ("/x/fvcore/common/registry.py", "KeyError: 'no ResNet51'", "U27"),
        ("/x/omegaconf/base.py", "ValueError: bad", "U27"),
        ("/x/h5py/_hl/group.py", 'KeyError: "it does not exist"', "BADFILE"),
        ("/x/datasets/load.py", "ValueError: nothing there", "NODATA"),
        ("/x/torch/_weights_only_unpickler.py", "EOFError", "C2"),
        ("/x/torch/serialization.py", "RuntimeError: something of bytes", "C2"),
        ("/x/urllib3/connection.py", "OSError: it went away", "NET"),
        ("/x/wandb/sdk/lib/sock.py", "RuntimeError: gone", "WB1"),
        ("/x/torch/nn/functional.py", "RuntimeError: bad input", "SHAPE"),
        ("/x/wandb/sdk/lib/sock.py", "TypeError: a call with a wrong argument", "PY-VALUE"),
        ("/code/model.py", "RuntimeError: bad input", "PY"),
        ("/x/torch/distributed/distributed_c10d.py", "ConnectionResetError: x", "NCCL-S"),
    ],
)
def test_words_that_say_little_are_named_by_their_place(place: str, said: str, id: str) -> None:
    assert judge(Evidence(_TRACE.format(place=place, said=said))).id == id


def test_words_that_say_why_outrank_their_place() -> None:
    said = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    found = judge(Evidence(_TRACE.format(place="/x/torch/nn/functional.py", said=said)))
    assert found.id == "M2"


def test_what_is_written_in_c_is_known_by_the_code_that_calls_it() -> None:
    log = _TRACE.format(place="/code/train.py", said="EOFError")
    assert judge(Evidence(log)).id == "PY"
    assert judge(Evidence(log.replace("call()", "x = pickle.load(f)"))).id == "C2"
    assert judge(Evidence(log.replace("call()", "x = pickle.load(f)\n    ^^^^^^^"))).id == "C2"
