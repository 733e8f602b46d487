from __future__ import annotations

from boxcar.shared.files.plan import OwnSignature
from boxcar.shared.triage import own_rows
from boxcar.shared.triage.evidence import Course

# Of a line that nearly matches, it tries more ways than there are atoms.
ENDLESS = OwnSignature("ENDLESS", "FIX_CODE", "((?:a+)+)$", "never")
STORE = OwnSignature("STORE", "WAIT_NETWORK", r"store \S+ is locked", "locked", waits_s=(60.0,))
LOG = "a\nstore x is locked\n" + "a" * 64 + "!\n"


def test_an_expression_that_never_ends_keeps_nobody_and_the_next_one_is_looked_for() -> None:
    found = own_rows.match((ENDLESS, STORE), LOG, 10)
    assert found is not None
    assert (found.id, found.course, found.waits_s) == ("STORE", Course.WAIT_NETWORK, (60.0,))
    assert (found.quotes[0].line, found.quotes[0].text) == (11, "store x is locked")


def test_what_stands_nowhere_or_is_no_expression_is_not_found() -> None:
    broken = OwnSignature("BROKEN", "FIX_CODE", "(", "x")
    assert own_rows.match((broken,), LOG) is None
    assert own_rows.match((), LOG) is None
