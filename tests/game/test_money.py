"""Amounts of money that need no explanation."""

import pytest

from fedaccord.game.money import amounts, coffee, day_of_paperwork, fortune, money


@pytest.mark.parametrize(
    ("currency", "price"), [("EUR", 4.0), ("eur", 4.0), ("€", 4.0), (" $ ", 4.0), ("JPY", 400.0)]
)
def test_limits_grow_with_the_price_of_a_coffee(currency: str, price: float) -> None:
    assert coffee(currency) == price
    assert day_of_paperwork(currency) == 100 * price
    assert fortune(currency) == 1e6 * price


@pytest.mark.parametrize("currency", ["", "points", "thalers"])
def test_nothing_is_known_of_other_units(currency: str) -> None:
    assert coffee(currency) is day_of_paperwork(currency) is fortune(currency) is None


def test_amounts_have_their_currency() -> None:
    assert money("3", "EUR") == "3 EUR"
    assert money("3", "") == "3"


def test_what_is_not_known_is_a_dash_and_the_rest_as_ever() -> None:
    assert amounts([6.0468, float("nan"), 184.7], "EUR") == ["6.05", "–", "184.70"]
    assert amounts([float("inf"), 3036.2], "EUR") == ["–", "3,036"]
    assert amounts([480.0, -0.0], "EUR") == ["480", "0"]
