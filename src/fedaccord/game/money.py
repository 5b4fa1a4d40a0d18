"""Amounts of money: how they are written, and some that need no explanation.

What a coffee costs is meant to be rough, and known for common currencies only; where the currency
is unknown nothing is said.

>>> coffee("EUR"), coffee("€"), coffee("points")
(4.0, 4.0, None)
"""

import re
from collections.abc import Sequence

import numpy as np

from fedaccord.numbers import FloatArray, write

_COFFEE = {
    **dict.fromkeys(("EUR", "USD", "GBP", "CHF", "AUD", "CAD", "SGD", "NZD"), 4.0),
    "BRL": 10.0,
    "CNY": 25.0,
    "CZK": 70.0,
    "DKK": 35.0,
    "HUF": 1000.0,
    "INR": 150.0,
    "JPY": 400.0,
    "KRW": 4000.0,
    "NOK": 40.0,
    "PLN": 15.0,
    "SEK": 40.0,
    "ZAR": 35.0,
}
_ALSO = {"€": "EUR", "EURO": "EUR", "EUROS": "EUR", "$": "USD", "DOLLARS": "USD", "£": "GBP"}
_CODE = re.compile("[A-Z]{3}")
"""Of a currency, by ISO 4217."""
_CENT, _WITH_CENTS = 0.01, 1000.0
"""Amounts from the first to the second have two decimals, larger ones none."""
_COFFEES_IN_A_DAY = 100.0
_COFFEES_IN_A_FORTUNE = 1e6


def coffee(currency: str) -> float | None:
    """What a coffee costs, roughly; None if the currency is not known here."""
    code = currency.strip().upper()
    return _COFFEE.get(_ALSO.get(code, code))


def day_of_paperwork(currency: str) -> float | None:
    """What a day of an employee costs, roughly: a hundred coffees, 400 euros."""
    price = coffee(currency)
    return None if price is None else _COFFEES_IN_A_DAY * price


def fortune(currency: str) -> float | None:
    """More than one percentage point is worth to most organisations: a million coffees."""
    price = coffee(currency)
    return None if price is None else _COFFEES_IN_A_FORTUNE * price


def amounts(values: Sequence[float] | FloatArray, currency: str, digits: int = 4) -> list[str]:
    """Amounts of one column or list, without their currency.

    Money has two decimals or none: with three, 6.047 can be read as six thousand. In a unit that is
    no currency, they are written as other numbers are, with so many digits.

    >>> amounts([6.0468, 184.7], "EUR"), amounts([6.0468, 3036.2], "EUR"), amounts([480.0], "EUR")
    (['6.05', '184.70'], ['6', '3,036'], ['480'])
    >>> amounts([6.0468], "kEUR"), amounts([0.0004], "EUR")
    (['6.047'], ['0.00040'])
    """
    array = np.asarray(values, dtype=np.float64)
    written = write(array, digits)
    known = coffee(currency) is not None or _CODE.fullmatch(currency)
    if not known or "e" in "".join(written):
        return written
    largest = float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
    if largest < _CENT:
        return write(array, digits=2)
    decimals = 0 if largest >= _WITH_CENTS or (array == np.round(array)).all() else 2
    return [f"{round(v, decimals) + 0.0:,.{decimals}f}" if np.isfinite(v) else "–" for v in array]


def prices(values: Sequence[float] | FloatArray, currency: str) -> list[str]:
    """What one sample costs, and the like: less than 1 is not rounded to cents.

    >>> prices([0.0199, 0.00021], "EUR"), prices([3.4286, 0.0199], "EUR")
    (['0.01990', '0.00021'], ['3.43', '0.02'])
    """
    largest = float(np.abs(np.asarray(values, dtype=np.float64)).max(initial=0.0))
    return write(values) if largest < 1 else amounts(values, currency)


def money(amount: str | float, currency: str) -> str:
    """An amount with its currency if that is known; a number is written first.

    >>> money(480.25, "EUR"), money("3 to 12", "EUR"), money(480.25, "")
    ('480.25 EUR', '3 to 12 EUR', '480.2')
    """
    text = amount if isinstance(amount, str) else amounts([amount], currency)[0]
    return f"{text} {currency}".strip()
