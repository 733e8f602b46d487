"""AutoDL (自动DL): the wallet's balance, by a developer token. Nothing documented starts or ends an
ordinary instance (普通容器实例), so there is no more here; 关机 comes from the box, 释放 by hand.
"""

from __future__ import annotations

from boxcar.laptop.providers.calls import Calls, check_base
from boxcar.laptop.providers.provider import Access, Balance, NoRights
from boxcar.laptop.providers.values import inner, number_of
from boxcar.shared.sentence import _

NAME = "autodl"
TITLE = "AutoDL"
_VARIABLE, _USUAL = "AUTODL_API_URL", "https://api.autodl.com"
# Money is in thousandths.
_PARTS = 1000


def read_balance(key: str, fingerprint: str) -> Balance | None:
    """In CNY; None where the answer has none. Raises NoRights, Doubt, InputError."""
    access = Access(check_base(_VARIABLE, _USUAL), key, fingerprint)
    calls = Calls(TITLE, access, scheme="")
    answer = calls.ask("POST", "/api/v1/dev/wallet/balance", body={})
    # A no comes with status 200, too.
    if answer.document.get("code") != "Success":
        raise NoRights(_("{title} tells no balance{said}", title=TITLE, said=calls.said(answer)))
    amount = number_of(inner(answer.document, "data", "assets"))
    return None if amount is None else Balance(amount / _PARTS, "CNY")
