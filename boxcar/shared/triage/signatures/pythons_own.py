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
        mark("a code file is not valid Python"),
        mark("correct the line it names"),
    ),
    _own(
        "PY-NAME",
        _raised("Name|UnboundLocal") + r"|referenced before assignment|cannot access local variable"
        r"|\bname '\w+' is not defined",
        mark("a name is not defined: its import or assignment is missing"),
        mark("import or assign it; a try/except import may have failed"),
    ),
    _own(
        "PY-NONE",
        r"(?<!\w)'?NoneType\b",
        mark("a value is None where the script uses it"),
        mark("check what should have set it: an argument, a file or a search without a result"),
    ),
    _own(
        "PY-API",
        r"got an unexpected keyword argument|has no attribute\b|required (?:positional"
        r"|keyword-only)"
        r"|positional arguments? but|takes (?:from )?\d+ (?:to \d+ )?positional|takes no arguments"
        r"|takes no keyword arguments|multiple values for (?:keyword )?argument"
        r"|abstract (?:class|method)|' object is not callable|No `\w+\(\)` method"
        r"|must be (?:implemented|overridden)|(?:was|been) removed\b",
        mark("the code does not match the API that it calls: misspelt, or another library version"),
        mark("check the call against the installed version: pip show NAME on the box"),
    ),
    _own(
        "PY-KEY",
        _raised("Key|Lookup") + r"|\] not in index\b",
        mark("a key or column is missing"),
        mark("print the existing keys of the batch, the dataset, the config or the checkpoint"),
    ),
    _own(
        "PY-INDEX",
        _raised("Index") + r"|index out of range$",
        mark("an index is out of range"),
        mark("check its length, and whether it is empty"),
    ),
    _own(
        "PY-CHECK",
        _raised("Assertion"),
        mark("an assertion in the code failed"),
        mark("the traceback shows the assertion"),
    ),
    _own(
        "PY-VALUE",
        _raised(r"Type|Value|Attribute|Overflow|ZeroDivision|Arithmetic|Unicode\w*")
        + r"|values to unpack \(expected|' object is not (?:subscriptable|iterable)"
        r"|unsupported operand type|invalid literal for",
        mark("a value does not have the type or form that the code expects"),
        mark("the traceback names the line; test the fix with smoke before you push"),
    ),
    _own(
        "PY",
        _raised("NotImplemented|Recursion|Runtime|StopIteration|EOF")
        + r"(?![^\n]*(?:root cause|stack trace) above|[^\n]*for (?:the )?root cause)",
        mark("the script failed with an error of its own"),
        mark("the traceback names the line; test the fix with smoke before you push"),
    ),
)
