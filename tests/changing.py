"""Consortia that change, for the tests: those of the published table, and random ones."""

import numpy as np
from hypothesis import strategies as st

from fedaccord.files.consortium import example_consortium
from fedaccord.game.changing import ChangingConsortium, State
from fedaccord.game.consortium import Consortium
from fedaccord.game.paper import paper_consortium
from tests.consortia import FEW, consortia, with_satiation

PAPER = paper_consortium()
HOSPITALS = example_consortium()
FIRST = [f"client-{n}" for n in range(1, 51)]
LAST = [f"client-{n}" for n in range(51, 101)]


def leaving(
    everyone: Consortium, who: list[str], leaves: float, returns: float = 0.0
) -> ChangingConsortium:
    """Some leave after a slot with a probability, and return with another."""
    states = [State("all"), State("fewer", without=who)]
    return ChangingConsortium(everyone, states, [[1.0 - leaves, leaves], [returns, 1.0 - returns]])


def passing_through(everyone: Consortium, sizes: list[float]) -> ChangingConsortium:
    """Everyone's data size goes through these, one a slot, and stays at the last."""
    transitions = np.eye(len(sizes), k=1)
    transitions[-1, -1] = 1.0
    states = [State(f"{size:.0f}", samples=size) for size in sizes]
    return ChangingConsortium(everyone, states, transitions)


GROWING = [min(5_000 * 1.1**k, 20_000) for k in range(16)]
SHRINKING = [max(20_000 * 0.9**k, 5_000) for k in range(15)]


def random_chain(seed: int, clients: int = 30, states: int = 3) -> ChangingConsortium:
    """A random chain over clients of which none is a large part of the total."""
    rng = np.random.default_rng(seed)
    samples = rng.uniform(5_000, 15_000, clients)
    eager = samples[: clients // 2].sum()
    everyone = with_satiation(
        eager * rng.uniform(0.7, 1.2, clients), samples, rng.uniform(0.3, 0.95, clients)
    )
    return ChangingConsortium(
        everyone, _random_states(everyone, rng, states), rng.dirichlet(np.ones(states), size=states)
    )


def _random_states(everyone: Consortium, rng: np.random.Generator, states: int) -> list[State]:
    """The usual state, and others with some away, other data sizes and other valuations."""
    found = [State("first")]
    for o in range(1, states):
        away = [name for name in everyone.names[1:] if rng.random() < 0.3]
        samples = np.ceil(everyone.samples * rng.uniform(0.3, 2.0, everyone.size))
        valuation = everyone.valuation * rng.uniform(0.5, 2.0, everyone.size)
        found.append(State(f"state {o}", without=away, samples=samples, valuation=valuation))
    return found


PATIENCE = st.integers(0, 980).map(lambda n: n / 1000)
"""Below what an oracle can tell from 1."""


@st.composite
def chains(draw: st.DrawFn, states: int = 3) -> ChangingConsortium:
    """A random chain over a few clients: some away, data sizes and valuations that differ."""
    everyone = draw(consortia(FEW, PATIENCE, extreme=False))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = _random_states(everyone, rng, states)
    return ChangingConsortium(everyone, found, rng.dirichlet(np.ones(states), size=states))
