"""Every strategy, built in or custom, passes the contract, and has tests of its own."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    GrimTrigger,
    KeepAndPunish,
    Loyal,
    Myopic,
    Selfish,
    Steady,
    View,
)
from fedaccord.repeated.strategies import OneByOne, as_strategy
from tests.contracts.strategy_contract import StrategyContract, small_agreement, view_of


class TestKeepAndPunish(StrategyContract):
    def make(self) -> KeepAndPunish:
        return KeepAndPunish()

    def test_it_keeps_to_the_agreement_until_it_punishes(self) -> None:
        agreement = self.agreement
        keeping = KeepAndPunish().contribution(view_of(agreement, 9, last_alarm=2))
        punishing = KeepAndPunish().contribution(
            view_of(agreement, 4, last_alarm=3, punishing=True)
        )
        np.testing.assert_array_equal(keeping, agreement.profile)
        np.testing.assert_array_equal(punishing, agreement.equilibrium.profile)


class TestGrimTrigger(StrategyContract):
    def make(self) -> GrimTrigger:
        return GrimTrigger()

    def test_it_never_forgives(self) -> None:
        assert GrimTrigger().punishes_for == inf


class TestForgiving(StrategyContract):
    def make(self) -> Forgiving:
        return Forgiving(slots=2)

    def test_it_punishes_for_its_own_number_of_slots(self) -> None:
        assert Forgiving(7).punishes_for == 7


class TestSelfish(StrategyContract):
    def make(self) -> Selfish:
        return Selfish()

    def test_it_plays_the_equilibrium_in_every_slot(self) -> None:
        for view in self.views():
            np.testing.assert_array_equal(Selfish().contribution(view), view.equilibrium)


class TestMyopic(StrategyContract):
    def make(self) -> Myopic:
        return Myopic()

    def test_it_plays_the_best_response_to_the_last_slot(self) -> None:
        agreement = small_agreement()
        last = np.array([0.0, 100.0, 300.0, 500.0, 900.0, 1000.0])
        answer = Myopic().contribution(view_of(agreement, 5, last=last))
        best = [fa.best_response(agreement.consortium, last.sum() - last[n])[n] for n in range(6)]
        np.testing.assert_allclose(answer, best)


class TestFreeRide(StrategyContract):
    def make(self) -> FreeRide:
        return FreeRide()

    def test_it_contributes_nothing(self) -> None:
        assert all((FreeRide().contribution(view) == 0).all() for view in self.views())


class TestLoyal(StrategyContract):
    def make(self) -> Loyal:
        return Loyal()

    def test_it_always_contributes_what_was_agreed(self) -> None:
        for view in self.views():
            np.testing.assert_array_equal(Loyal().contribution(view), view.agreed)


class TestDeviateOnceToTheBest(StrategyContract):
    def make(self) -> DeviateOnce:
        return DeviateOnce(slot=5)

    def test_the_best_amount_is_that_of_the_certificate(self) -> None:
        agreement = small_agreement()
        answer = DeviateOnce(slot=5).contribution(view_of(agreement, 5))
        certificate = fa.certify(agreement)
        costs, best = certificate.cost_deviation, certificate.deviation
        np.testing.assert_allclose(answer, best, atol=1e-3)
        total = agreement.total - agreement.profile + answer
        np.testing.assert_allclose(fa.cost(agreement.consortium, answer, total), costs, rtol=1e-12)

    def test_during_a_punishment_the_equilibrium_is_best(self) -> None:
        agreement = small_agreement()
        view = view_of(agreement, 5, last_alarm=4, punishing=True)
        alone = agreement.equilibrium
        np.testing.assert_array_equal(DeviateOnce(5).contribution(view), alone.profile)
        best = fa.best_response(agreement.consortium, alone.total - alone.profile)
        np.testing.assert_allclose(alone.profile, best, atol=1e-9 * alone.total)


class TestDeviateOnceToAnAmount(StrategyContract):
    def make(self) -> DeviateOnce:
        return DeviateOnce(slot=5, amount=123.0)


class TestDeviateTwice(StrategyContract):
    def make(self) -> DeviateOnce:
        return DeviateOnce(slot=8, amount=0.0, otherwise=DeviateOnce(3, otherwise=Forgiving(2)))

    def test_it_punishes_as_long_as_its_usual_strategy(self) -> None:
        assert self.make().punishes_for == 2


class TestDeviateOnceFromAFunction(StrategyContract):
    def make(self) -> DeviateOnce:
        return DeviateOnce(slot=2, otherwise=half_hearted)


def half_hearted(view: View) -> Any:
    return 0.5 * view.agreed


class TestFunction(StrategyContract):
    def make(self) -> Any:
        return half_hearted

    def test_the_function_is_called_for_one_client_at_a_time(self) -> None:
        sizes = []

        def watching(view: View) -> float:
            sizes.append(view.agreed.size)
            return 0.0

        as_strategy(watching).contribution(view_of(small_agreement(), 1))
        assert sizes == [1] * 6


class _Grudging:
    """A small custom class: `contribution` and nothing else."""

    def contribution(self, view: View) -> float:
        return float(view.agreed[0]) if view.last_alarm is None else 0.0


class TestSmallClass(StrategyContract):
    def make(self) -> Any:
        return _Grudging()


@dataclass(frozen=True)
class _Shading(Steady):
    """A custom class with parameters that claims to be steady."""

    by: float

    def contribution(self, view: View) -> Any:
        return view.equilibrium if view.punishing else (1.0 - self.by) * view.agreed


class TestSteadyClass(StrategyContract):
    def make(self) -> Any:
        return _Shading(by=0.02)


def test_every_built_in_strategy_passes_the_contract() -> None:
    import fedaccord.repeated as module

    strategies = {
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "contribution") and kind.__name__ != "Strategy"
    }
    tested = {type(contract().make()) for contract in StrategyContract.__subclasses__()}
    assert strategies
    assert strategies <= tested


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: Forgiving(0), "forgiving: slots must be a whole number, 1 or more, got 0"),
        (lambda: Forgiving(2.5), "forgiving: slots must be a whole number, 1 or more, got 2.5"),  # type: ignore[arg-type]
        (lambda: DeviateOnce(0), "deviate once: slot must be a whole number, 1 or more, got 0"),
        (
            lambda: DeviateOnce(True),
            "deviate once: slot must be a whole number, 1 or more, got true",
        ),
        (lambda: DeviateOnce(1, -5.0), "deviate once: amount must be 0 or more, got -5.0"),
        (
            lambda: DeviateOnce(1, float("nan")),
            "deviate once: amount must be 0 or more and finite, got nan",
        ),
        (lambda: as_strategy(3), "a strategy must be a function of a view, got 3"),
        (
            lambda: as_strategy(FreeRide),
            "a strategy must be a function of a view, "
            "got <class 'fedaccord.repeated.strategies.FreeRide'>",
        ),
        (
            lambda: DeviateOnce(1, otherwise="keep"),  # type: ignore[arg-type]
            "a strategy must be a function of a view, got 'keep'",
        ),
    ],
)
def test_invalid_strategies_are_rejected(given: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        given()
    assert str(refused.value) == message


def test_clients_that_play_the_same_function_share_one_strategy() -> None:
    assert as_strategy(half_hearted) == OneByOne(half_hearted)
