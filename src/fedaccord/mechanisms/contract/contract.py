"""Contract design: the server buys training by a menu of contracts and a deadline.

`design_menu` solves the model of Ding, Fang and Huang in its three information settings.
`Contract` turns a consortium into that model, and the menu into an outcome. The paper that
fedaccord starts from compares with contract design (section 5.2, appendix H) but prints neither
the types nor gamma nor alpha. So `Contract()` is a reconstruction: the choices are ours, and
reproduce what the paper reports.

>>> from fedaccord.game.paper import paper_consortium
>>> outcome = Contract().outcome(paper_consortium())
>>> outcome.contributors, outcome.total
(20, 200000.0)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from fedaccord.checks import LARGEST_COUNT, check_choice, is_number, wrong_whole
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.mechanisms.contract.amounts import (
    Positions,
    best_amounts,
    best_expected_amounts,
    rewards,
)
from fedaccord.mechanisms.contract.model import (
    ContractModel,
    Information,
    Menu,
    MenuKind,
    broken_amount,
)
from fedaccord.mechanisms.mechanism import Outcome, outcome_of
from fedaccord.numbers import FloatArray, count

_TRUTHFUL = {
    "complete": (False, "the server must know each client's cost"),
    "weak": (True, "incentive compatible; numbers of each type known"),
    "strong": (True, "incentive compatible; probabilities of types known"),
}


def design_menu(
    model: ContractModel, information: Information = "complete", kind: MenuKind = "graded"
) -> Menu:
    """The menu that costs the server least, over all deadlines.

    An `all-or-nothing` menu asks a type for all its samples or none: whole lots are bought in
    ascending order of price, as long as even the last sample of the next lot is worth its price.
    """
    check_choice("information", information, get_args(Information))
    check_choice("kind", kind, get_args(MenuKind))
    if kind == "all-or-nothing" and not np.isfinite(model.samples).all():
        raise InvalidInput("an all-or-nothing menu requires finite data sizes", field="samples")
    deadlines = np.unique(model.delay).tolist()
    if information == "strong" or model.law.finite_at_zero:
        deadlines.insert(0, -np.inf)  # the loss is bounded then, and serving nobody may be cheapest
    menus = (_menu_by(model, information, kind, deadline) for deadline in deadlines)
    return min(menus, key=lambda menu: menu.expected_cost)  # the earliest of equal ones


def _menu_by(
    model: ContractModel, information: Information, kind: MenuKind, deadline: float
) -> Menu:
    """The best menu with this deadline; a later deadline than needed is not paid for."""
    eligible = model.eligible(deadline)
    if information == "strong":
        amounts, cost = best_expected_amounts(model, kind, eligible)
        reward = rewards(model, amounts, eligible)
    else:
        amounts = best_amounts(model, information, kind, eligible)
        reward = (
            model.cost_per_sample * amounts
            if information == "complete"
            else rewards(model, amounts, eligible)
        )
        loss = float(model.law.loss(amounts @ model.clients))
        cost = model.valuation * loss + float(reward @ model.clients)
    delay = float(model.delay[amounts > 0].max(initial=0.0))
    return Menu(model, information, kind, amounts, reward, cost + model.delay_price * delay)


@dataclass(frozen=True)
class Contract:
    """Contract design for a consortium: what the server would buy and pay."""

    classes: int = 5
    """Number of delay classes: client n has delay 1 + (n - 1) mod classes."""
    delay: tuple[float, ...] | None = None
    """t_n of each client, in the order of the consortium; by default from the classes."""
    cost_per_sample: tuple[float, ...] | None = None
    """theta_n of each client, in that order; by default E_n, its cost per sample in the game."""
    valuation: float | None = None
    """gamma; by default the largest valuation of a client, 100 in the paper's setting."""
    delay_price: float | None = None
    """alpha; by default a hundredth of gamma, 1 in the paper's setting."""
    information: Information = "complete"
    menu: MenuKind = "all-or-nothing"
    name: str = "contract"

    def __post_init__(self) -> None:
        """Refuse impossible settings."""
        check_choice("information", self.information, get_args(Information))
        check_choice("menu", self.menu, get_args(MenuKind))
        wrong = wrong_whole(self.classes, 1, LARGEST_COUNT)
        problems = [
            *([Problem("classes", wrong)] if wrong else []),
            *_broken_columns({"delay": self.delay, "cost_per_sample": self.cost_per_sample}),
        ]
        if self.valuation is not None:
            problems += broken_amount("valuation", self.valuation)
        if self.delay_price is not None:
            problems += broken_amount("delay_price", self.delay_price, may_be_zero=True)
        if problems:
            raise InvalidInput(problems)

    def design(self, consortium: Consortium) -> Menu:
        """The menu that the server offers the consortium."""
        return self._design(consortium)[0]

    def outcome(self, consortium: Consortium) -> Outcome:
        """What each client trains on and is paid if it takes the item meant for it."""
        menu, type_of = self._design(consortium)
        truthful, why = _TRUTHFUL[self.information]
        return outcome_of(
            consortium,
            consortium.in_samples(menu.amounts[type_of]),
            payments=menu.rewards[type_of],
            enforced_by="a payer",
            punishment=None,
            truthful=truthful,
            truthful_reason=why,
            verified="data sizes",
            notes=(_what_is_bought(menu, menu.amounts[type_of]),),
        )

    def _design(self, consortium: Consortium) -> tuple[Menu, Positions]:
        """The menu, and the position of each client's type in it.

        Amounts in the menu count by quality: the server buys what improves its model.
        """
        by_class = 1.0 + np.arange(consortium.size, dtype=np.float64) % self.classes
        delay = _one_each("delay", self.delay, by_class)
        theta = _one_each("cost_per_sample", self.cost_per_sample, consortium.cost_per_sample)
        theta, data = theta / consortium.quality, consortium.samples * consortium.quality
        order = np.lexsort((data, theta, delay))
        columns = np.stack([delay, theta, data])[:, order]
        fresh = np.append(True, (np.diff(columns, axis=1) != 0).any(axis=0))
        type_of = np.empty(consortium.size, dtype=np.int64)
        type_of[order] = fresh.cumsum() - 1
        valuation = float(consortium.valuation.max()) if self.valuation is None else self.valuation
        types: FloatArray = columns[:, fresh]
        model = ContractModel(
            delay=types[0],
            cost_per_sample=types[1],
            samples=types[2],
            clients=np.bincount(type_of),
            rounds=consortium.rounds,
            law=server_law(consortium),
            valuation=valuation,
            delay_price=valuation / 100.0 if self.delay_price is None else self.delay_price,
        )
        return design_menu(model, self.information, self.menu), type_of


def server_law(consortium: Consortium) -> Law:
    """The law of the server's model: the clients' own, or the mean of theirs if they differ."""
    if not consortium.law.is_personal:
        return consortium.law
    return consortium.law.together(np.full(consortium.size, 1.0 / consortium.size))


def _broken_columns(columns: dict[str, Any]) -> Iterator[Problem]:
    """Problems with the type of these columns; their length is checked against a consortium."""
    for field, given in columns.items():
        listed = isinstance(given, Sequence | np.ndarray)
        if given is not None and not (listed and all(map(is_number, given))):
            yield Problem(field, f"must be numbers, one for each client, got {given!r}")


def _one_each(field: str, given: tuple[float, ...] | None, default: FloatArray) -> FloatArray:
    """The given numbers, which must be one per client, or the default."""
    if given is None:
        return default
    if len(given) != default.size:
        raise InvalidInput(
            f"must have {count(default.size, 'number')}, one for each client, got {len(given)}",
            field=field,
        )
    return np.array(given, dtype=np.float64)


def _what_is_bought(menu: Menu, amounts: FloatArray) -> str:
    served = int((amounts > 0).sum())
    if served == 0:
        return "The server buys nothing: the last sample of any lot is not worth its price."
    return (
        f"The server buys from {count(served, 'client')} with delays up to {menu.deadline:g}, and "
        "pays from its own pocket."
    )
