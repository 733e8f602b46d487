"""How lines are matched, and what is read of a traceback."""

from __future__ import annotations

import pytest

from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge
from boxcar.shared.triage.log_lines import lines_of
from boxcar.shared.triage.matching import hit_of_chain, hit_of_lines
from boxcar.shared.triage.signatures.all_rows import BY_ID
from boxcar.shared.triage.tracebacks import Raised, Traceback


def test_of_lines_that_a_row_fits_the_last_is_quoted():
    lines = lines_of("Killed\nsomething else\n77 Killed\nthe end\n")
    hit = hit_of_lines([BY_ID["M2"], BY_ID["137-N"]], lines)
    assert hit and (hit.row.id, hit.quotes[0].line) == ("137-N", 3)
    assert hit_of_lines([BY_ID["M2"]], lines) is None


def test_of_a_chain_what_says_why_outranks_what_says_little():
    little, why = Raised(9, "RuntimeError: it failed"), Raised(3, "CUDA out of memory")
    for chain in ((why, little), (little, why)):
        hit = hit_of_chain(Traceback(chain, None, False))
        assert hit and (hit.row.id, hit.quotes[0].line) == ("M2", 3)
    alone = hit_of_chain(Traceback((little,), None, False))
    assert alone and alone.row.id == "PY"


def test_of_words_that_only_point_on_the_last_that_tell_are_quoted_too():
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "RuntimeError: Failed to import transformers.models because of the following error:\n"
        "/opt/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
    )
    quote = judge(Evidence(log)).quotes[0].text
    assert "Failed to import" in quote and "undefined symbol" in quote


def test_where_to_look_an_error_of_cuda_up_is_no_word_of_it():
    """As torch 2.11 says it on an H100."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 10, in <module>\n'
        "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
        "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/"
        "group__CUDART__TYPES.html for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\n"
    )
    cause = judge(Evidence(log))
    assert cause.id == "DEVSIDE"
    said = "torch.AcceleratorError: CUDA error: device-side assert triggered"
    assert cause.quotes[0].text == said


# --- frames


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
def test_words_that_say_little_are_named_by_their_place(place, said, id):
    assert judge(Evidence(_TRACE.format(place=place, said=said))).id == id


def test_words_that_say_why_outrank_their_place():
    said = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    found = judge(Evidence(_TRACE.format(place="/x/torch/nn/functional.py", said=said)))
    assert found.id == "M2"


def test_what_is_written_in_c_is_known_by_the_code_that_calls_it():
    log = _TRACE.format(place="/code/train.py", said="EOFError")
    assert judge(Evidence(log)).id == "PY"
    assert judge(Evidence(log.replace("call()", "x = pickle.load(f)"))).id == "C2"
    assert judge(Evidence(log.replace("call()", "x = pickle.load(f)\n    ^^^^^^^"))).id == "C2"
