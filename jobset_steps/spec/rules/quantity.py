"""Quantities such as "500m" and "4Gi": their form and their amount.

Source: apimachinery's quantity grammar, and the pattern that JobSet's CRD holds quantities against.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

__all__ = ["amount_of"]

_UNITS: dict[str, Decimal] = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip
_FORM = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)?|[eE]([+-]?[0-9]{1,9}))"
)


def amount_of(value: Any) -> Decimal | None:
    """The amount of a quantity (text or a number); None where it is not one."""
    match = _FORM.fullmatch(str(value).strip())
    if match is None:
        return None
    number, unit, exponent = match.groups()
    if exponent:
        return Decimal(number).scaleb(int(exponent))
    return Decimal(number) * _UNITS[unit or ""]
