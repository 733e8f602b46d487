"""What Python says of a script's own faults, by the kind of exception. Data; the last are families.

Their ids begin with PY: in journals they are the script's own, named by its exit code.
"""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import Signature


def _raised(names: str) -> str:
    """Of these types; a notebook's heading has the type alone before its traceback."""
    return rf"^(?:[\w.]+\.)?(?:{names})(?:Error|Exception)?\b(?!\s+Traceback)"


def _own(id: str, pattern: str, words: str, todo: str) -> Signature:
    return Signature(id, Course.FIX_CODE, pattern, words, todo, is_general=True)


SIGNATURES = (
    _own(
        "PY-SYNTAX",
        _raised("Syntax|Indentation|Tab"),
        mark("a file of the code is no valid Python"),
        mark("correct the line that it names"),
    ),
    _own(
        "PY-NAME",
        _raised("Name|UnboundLocal") + r"|referenced before assignment|cannot access local variable"
        r"|\bname '\w+' is not defined",
        mark("a name is not defined: its import or assignment is missing"),
        mark("import or assign it; a guarded import may have failed"),
    ),
    _own(
        "PY-NONE",
        r"(?<!\w)'?NoneType\b",
        mark("a value is None where the script uses it"),
        mark("see what should have set it: an argument, a file or a search that found nothing"),
    ),
    _own(
        "PY-API",
        r"got an unexpected keyword argument|has no attribute\b|required (?:positional"
        r"|keyword-only)"
        r"|positional arguments? but|takes (?:from )?\d+ (?:to \d+ )?positional|takes no arguments"
        r"|takes no keyword arguments|multiple values for (?:keyword )?argument"
        r"|abstract (?:class|method)|' object is not callable|No `\w+\(\)` method"
        r"|must be (?:implemented|overridden)|(?:was|been) removed\b",
        mark("the code does not fit what it calls: misspelt, or of another version of a library"),
        mark("compare the call with the version that is installed: pip show NAME on the box"),
    ),
    _own(
        "PY-KEY",
        _raised("Key|Lookup") + r"|\] not in index\b",
        mark("a key or column is not there"),
        mark("print which ones are there: of the batch, the dataset, the config or the checkpoint"),
    ),
    _own(
        "PY-INDEX",
        _raised("Index") + r"|index out of range$",
        mark("an index is beyond the end"),
        mark("see how long it is there, and whether it is empty"),
    ),
    _own(
        "PY-CHECK",
        _raised("Assertion"),
        mark("a check of the code itself failed"),
        mark("the traceback shows what it checks"),
    ),
    _own(
        "PY-VALUE",
        _raised(r"Type|Value|Attribute|Overflow|ZeroDivision|Arithmetic|Unicode\w*")
        + r"|values to unpack \(expected|' object is not (?:subscriptable|iterable)"
        r"|unsupported operand type|invalid literal for",
        mark("a value is not of the type or form that the code expects"),
        mark("the traceback names the line; try it with smoke before you push"),
    ),
    _own(
        "PY",
        _raised("NotImplemented|Recursion|Runtime|StopIteration|EOF")
        + r"(?![^\n]*(?:root cause|stack trace) above|[^\n]*for (?:the )?root cause)",
        mark("the script failed with an error of its own"),
        mark("the traceback names the line; try it with smoke before you push"),
    ),
)
