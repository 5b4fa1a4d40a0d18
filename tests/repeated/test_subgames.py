"""Suspension in all subgames, with the agreed amounts kept by whoever is active.

Nobody gains by any plan of slips, whoever is out for however long, exactly if for each client n and
each state k in which it is active

    gain_n  <=  sum over t = 1..L of delta_n^t (V_n - f_n(M_t)),

where M_t are those that are active t slots later if nobody slips. The plans are searched by value
iteration here; the condition is written down by hand. The certificate looks at the worst states: on
the path, with one other client out, and with all others out. Of two or three clients those are all.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.repeated import DeviateOnce, play
from tests.consortia import with_satiation

CLOSE = 1e-6
"""Relative to a cost: a condition that holds or fails by less is not decided here, since slips and
what a client does alone are searched on grids."""


@dataclass(frozen=True)
class Game:
    """A consortium, what everyone contributes, and how long a slip is punished."""

    consortium: fa.Consortium
    profile: FloatArray
    slots: int

    @property
    def states(self) -> list[tuple[int, ...]]:
        """How many slots each client is still out."""
        return list(product(range(self.slots + 1), repeat=self.consortium.size))

    def cost(self, n: int, own: float | FloatArray, others: float) -> float:
        """What a slot costs client n if it gets the model; of several amounts, the least."""
        c, total = self.consortium, np.asarray(own + others)
        loss = 1.0 / np.sqrt(total * c.rounds) + 1.0 / c.rounds
        return float((c.valuation[n] * loss + c.cost_per_sample[n] * own).min())

    def others(self, n: int, state: tuple[int, ...]) -> float:
        """What the others contribute that are active."""
        return sum(float(self.profile[m]) for m, k in enumerate(state) if m != n and k == 0)

    def kept(self, n: int, state: tuple[int, ...]) -> float:
        """What a slot costs an active client that keeps to the agreement."""
        return self.cost(n, float(self.profile[n]), self.others(n, state))

    def slips(self, n: int) -> dict[float, float]:
        """The least that a slot costs client n if it contributes less, by what others do."""
        amounts = np.linspace(0.0, float(self.profile[n]), 2_001)
        amounts[-1] *= 1.0 - 1e-12  # the smallest slip
        together = {self.others(n, state) for state in self.states}
        return {others: self.cost(n, amounts[others == 0 :], others) for others in together}

    def alone(self, n: int) -> float:
        """What a slot costs a client that is out."""
        c = self.consortium
        amounts = np.linspace(0.0, float(c.samples[n]), 4_001)[1:]
        return self.cost(n, amounts, 0.0)


def later(state: tuple[int, ...], slots: int = 1) -> tuple[int, ...]:
    """The state after some slots in which nobody slips."""
    return tuple(max(k - slots, 0) for k in state)


@st.composite
def games(draw: st.DrawFn) -> Game:
    """Two or three clients, and amounts of which some are kept and some are not."""
    size, slots = draw(st.integers(2, 3)), draw(st.integers(1, 3))

    def each(low: float, high: float) -> FloatArray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=size, max_size=size)))

    samples = each(200.0, 1_000.0)
    satiation = samples * np.exp(each(-1.3, 1.9))  # h_n
    consortium = with_satiation(satiation, samples, each(0.02, 0.9), 20, each(0.5e-3, 2e-3))
    return Game(consortium, samples * each(0.05, 1.0), slots)


def slack(game: Game, n: int) -> float:
    """By how much the condition holds in the state in which it holds least."""
    delta, alone = float(game.consortium.discount_factor[n]), game.alone(n)
    worst, slips = np.inf, game.slips(n)
    for state in game.states:
        if state[n]:
            continue
        gain = game.kept(n, state) - slips[game.others(n, state)]
        lost = sum(
            delta**t * (alone - game.kept(n, later(state, t))) for t in range(1, game.slots + 1)
        )
        worst = min(worst, (lost - gain) / game.kept(n, state))
    return worst


def slips_where(game: Game, n: int) -> BoolArray:
    """In which states the best plan of client n is to slip, by value iteration."""
    states = game.states
    place = {state: i for i, state in enumerate(states)}
    delta, active = float(game.consortium.discount_factor[n]), np.array([s[n] == 0 for s in states])
    after = np.array([place[later(s)] for s in states])
    punished = np.array([place[(*later(s)[:n], game.slots, *later(s)[n + 1 :])] for s in states])
    alone, least = game.alone(n), game.slips(n)
    keep = np.array([game.kept(n, s) if s[n] == 0 else alone for s in states])
    slip = np.array([least[game.others(n, s)] if s[n] == 0 else np.inf for s in states])
    value = np.zeros(len(states))
    for _ in range(300):  # 0.9^300 is 2e-14
        value = np.minimum(keep + delta * value[after], slip + delta * value[punished])
    pays = slip + delta * value[punished] < (keep + delta * value[after]) * (1.0 - 1e-12)
    return np.asarray(pays & active)


@pytest.mark.slow
@settings(max_examples=50)
@given(game=games())
def test_no_plan_of_slips_pays_in_any_subgame_exactly_if_the_condition_holds(game: Game) -> None:
    certificate = fa.certify(
        fa.agreement_on(game.consortium, game.profile, fa.Suspension(game.slots))
    )
    assert certificate.keeps_if_one_is_out is not None
    assert certificate.keeps_if_all_are_out is not None
    proved = certificate.keeps & certificate.keeps_if_one_is_out & certificate.keeps_if_all_are_out
    for n in range(game.consortium.size):
        margin = slack(game, n)
        if abs(margin) < CLOSE:
            continue
        slips = bool(slips_where(game, n).any())
        assert slips == (margin < 0)
        if not certificate.gives_more[n]:  # which is no slip
            assert proved[n] != slips


@pytest.mark.parametrize("slips", [False, True])
def test_clients_of_both_kinds_are_drawn(slips: bool) -> None:
    """Some that keep their amounts in all states, and some that do not."""

    def found(game: Game) -> bool:
        margins = [slack(game, n) for n in range(game.consortium.size)]
        return min(margins) < -0.01 if slips else max(margins) > 0.01

    find(games(), found, settings=settings(max_examples=500, phases=[Phase.generate]))


@given(game=games(), data=st.data())
def test_play_charges_what_the_condition_says_in_any_state(game: Game, data: st.DataObject) -> None:
    """Others slip first, so that any state is reached; then one client slips, or keeps."""
    size, slots, names = game.consortium.size, game.slots, game.consortium.names
    agreement = fa.agreement_on(game.consortium, game.profile, fa.Suspension(slots))
    n = data.draw(st.integers(0, size - 1))
    left = data.draw(st.lists(st.integers(0, slots), min_size=size, max_size=size))
    state = tuple(0 if m == n else k for m, k in enumerate(left))
    now = slots + 1
    slips = {names[m]: DeviateOnce(now - 1 - (slots - k), 0.0) for m, k in enumerate(state) if k}
    amount = 0.3 * float(game.profile[n])
    kept = play(agreement, slips, now)
    slipped = play(agreement, {**slips, names[n]: DeviateOnce(now, amount)}, now)
    delta = float(game.consortium.discount_factor[n])
    extra = (slipped.discounted_cost - kept.discounted_cost)[n] / delta ** (now - 1)
    gain = game.kept(n, state) - game.cost(n, amount, game.others(n, state))
    lost = sum(
        delta**t * (game.alone(n) - game.kept(n, later(state, t))) for t in range(1, slots + 1)
    )
    # a sum over slots from the first one on is divided by the weight of slot `now`
    rounding = 1e-13 * game.alone(n) / delta ** (now - 1)
    assert extra == pytest.approx(lost - gain, rel=1e-5, abs=1e-6 * game.alone(n) + rounding)
