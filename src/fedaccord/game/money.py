"""Amounts of money that need no explanation: what a coffee costs, and multiples of it.

Limits such as "less than a coffee" are meant to be rough, and known for common currencies only;
where the currency is unknown nothing is said.

>>> coffee("EUR"), coffee("€"), coffee("points")
(4.0, 4.0, None)
"""

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


def money(amount: str, currency: str) -> str:
    """An amount that is already written, with its currency if that is known.

    >>> money("480.0", "EUR"), money("480.0", "")
    ('480.0 EUR', '480.0')
    """
    return f"{amount} {currency}".strip()
