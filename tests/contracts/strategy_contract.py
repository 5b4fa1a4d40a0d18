"""The tests that every strategy must pass: inherit from the class and define `make`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import Strategy, View, play
from fedaccord.repeated.strategies import as_strategy

SLOTS = 12


@cache
def small_agreement(
    punishment_slots: int | None = 3, kind: Literal["reversion", "suspension"] = "reversion"
) -> fa.Agreement:
    """Six different clients, whose agreement leaves them some slack under either punishment."""
    consortium = fa.Consortium(
        valuation=[10, 20, 35, 50, 80, 100],
        cost_per_sample=[1.2e-5, 0.8e-5, 1e-5, 1e-5, 1.5e-5, 1e-5],
        samples=[900, 1000, 1500, 1100, 2000, 1000],
        rounds=20,
        discount_factor=[0.8, 0.9, 0.85, 0.8, 0.7, 0.95],
    )
    reversion = fa.Reversion(punishment_slots)
    agreement = fa.solve_agreement(consortium, margin=0.05, punishment=reversion)
    if kind == "reversion":
        return agreement
    return replace(agreement, punishment=fa.Suspension(punishment_slots))


def view_of(
    agreement: fa.Agreement,
    slot: int,
    *,
    last_alarm: int | None = None,
    punishing: bool = False,
    last: np.ndarray[Any, np.dtype[np.float64]] | None = None,
    clients: list[int] | None = None,
    slots_left: Sequence[float] = (0.0,) * 6,
) -> View:
    """What some clients (by default all) know when a slot begins."""
    consortium = agreement.consortium
    left = np.array(slots_left)
    chosen = np.array(range(consortium.size) if clients is None else clients)
    return View(
        slot=slot,
        clients=chosen,
        agreed=agreement.profile[chosen],
        equilibrium=agreement.equilibrium.profile[chosen],
        samples=consortium.samples[chosen],
        satiation=consortium.satiation[chosen],
        quality=consortium.quality,
        agreed_total=float(agreement.profile[left == 0].sum()),
        last_alarm=last_alarm,
        punishing=punishing,
        last=last,
        out=left > 0,
        slots_left=left[chosen],
    )


class StrategyContract:
    """Inherited by the tests of each strategy; `make` returns a new one."""

    def make(self) -> Any:
        raise NotImplementedError

    @cached_property
    def agreement(self) -> fa.Agreement:
        return small_agreement()

    @property
    def strategy(self) -> Strategy:
        return as_strategy(self.make())

    def agreements(self, slots: int | None) -> Iterator[fa.Agreement]:
        """Reversion, and suspension too if the strategy has no length of its own."""
        yield small_agreement(slots)
        if getattr(self.strategy, "punishes_for", None) is None:
            yield small_agreement(slots, "suspension")

    def views(self) -> Iterator[View]:
        """The first slot, and later ones in either phase, with different histories."""
        agreed, alone = self.agreement.profile, self.agreement.equilibrium.profile
        yield view_of(self.agreement, 1)
        for slot in range(2, SLOTS):
            yield view_of(self.agreement, slot, last=agreed)
            yield view_of(self.agreement, slot, last=0.3 * agreed)
            yield view_of(self.agreement, slot, last_alarm=1, punishing=slot < 5, last=alone)
            yield view_of(self.agreement, slot, last_alarm=slot - 1, punishing=True, last=agreed)
            two_out = [2.0, 0.0, 0.0, np.inf, 0.0, 0.0]
            yield view_of(self.agreement, slot, last_alarm=1, last=agreed, slots_left=two_out)

    def test_answers_are_within_bounds(self) -> None:
        for view in self.views():
            answer = np.asarray(self.strategy.contribution(view))
            assert answer.shape == view.agreed.shape
            assert ((answer >= 0) & (answer <= view.samples)).all()

    def test_the_answer_for_one_client_is_the_same_as_in_a_group(self) -> None:
        for view in self.views():
            together = self.strategy.contribution(view)
            for n in range(len(view.clients)):
                alone = view_of(
                    self.agreement,
                    view.slot,
                    last_alarm=view.last_alarm,
                    punishing=view.punishing,
                    last=view.last,
                    clients=[n],
                    slots_left=view.slots_left.tolist(),
                )
                assert self.strategy.contribution(alone)[0] == together[n]

    def test_the_same_view_gets_the_same_answer(self) -> None:
        strategy = self.strategy
        for view in self.views():
            first, second = strategy.contribution(view), strategy.contribution(view)
            np.testing.assert_array_equal(first, second)

    def test_it_does_not_modify_the_view(self) -> None:
        for view in self.views():
            numbers = (view.agreed, view.equilibrium, view.samples, view.satiation)
            for values in (*numbers, view.out, view.slots_left):
                values.flags.writeable = False
            self.strategy.contribution(view)

    def test_it_is_steady_for_as_long_as_it_claims(self) -> None:
        """Without an alarm, and in the same phase, it repeats the same answer."""
        for view in self.views():
            until = self.strategy.steady_until(view)
            answer = self.strategy.contribution(view)
            for slot in range(view.slot + 1, int(min(until, SLOTS)) + 1):
                later = replace(view, slot=slot, last=self.agreement.profile)
                np.testing.assert_array_equal(self.strategy.contribution(later), answer)
                assert self.strategy.steady_until(later) == until

    def test_asking_it_in_every_slot_changes_nothing(self) -> None:
        """The match is the same whether the claim is used or the strategy is asked in each slot."""
        asked = _AskedAlways(self.strategy)
        for agreement in self.agreements(3):
            names = agreement.consortium.names
            quick = play(agreement, {names[0]: self.make(), names[3]: self.make()}, SLOTS)
            slow = play(agreement, {names[0]: asked, names[3]: asked}, SLOTS)
            np.testing.assert_array_equal(quick.contributions, slow.contributions)
            np.testing.assert_array_equal(quick.punishing, slow.punishing)
            np.testing.assert_array_equal(quick.suspended, slow.suspended)

    def test_one_instance_serves_several_matches_and_clients(self) -> None:
        one = self.make()
        names = self.agreement.consortium.names
        together = play(self.agreement, dict.fromkeys(names[:3], one), SLOTS)
        again = play(self.agreement, dict.fromkeys(names[:3], one), SLOTS)
        apart = play(self.agreement, {name: self.make() for name in names[:3]}, SLOTS)
        for other in (again, apart):
            np.testing.assert_array_equal(together.contributions, other.contributions)
            np.testing.assert_array_equal(together.discounted_cost, other.discounted_cost)

    @pytest.mark.parametrize("punishment_slots", [None, 1, 4])
    def test_a_whole_match_has_finite_costs(self, punishment_slots: int | None) -> None:
        for agreement in self.agreements(punishment_slots):
            for name in agreement.consortium.names:
                match = play(
                    agreement, {name: self.make()}, SLOTS, noise=0.02, dropout=0.1, tolerance=0.05
                )
                assert np.isfinite(match.discounted_cost).all()


class _AskedAlways:
    """The same strategy, asked again in every slot."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.punishes_for = getattr(strategy, "punishes_for", None)

    def contribution(self, view: View) -> Any:
        return self.strategy.contribution(view)

    def steady_until(self, view: View) -> float:
        return view.slot
