"""The value of clients' data against pyDVL, a library for data valuation.

Six unlike clients share digits, and all their groups are trained with the same seeds. pyDVL asks
for the value of one group after another, and is given our own engine to train each, with all
threads; a group that it asks for again is not trained again. Ours trains all groups at once. Both
must find the same values: its exact ones, and those that it samples within their standard errors.

With ten clients it is the number of trainings that counts. Each group's value is then looked up in
a table of all 1,023, and the r.m.s. error of sampled values is compared at as many groups.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Contestant, race
from benchmarks.row import Row, faster

AGAINST = "pyDVL"
CLIENTS, SEEDS = 6, 3
MANY, DRAWS, UPDATES = 10, 40, 60
"""Clients whose permutations are sampled, how often, and updates of each value by pyDVL's TMC."""
SAME = 10.0
"""Millionths: less than what a single test example that is judged otherwise does to a value."""
CHANCE = 0.01
"""That one of the sampled values is further off than the target although all of them are right."""

Group = tuple[int, ...]
Value = Callable[[Group], float]


def run() -> Iterator[Row]:
    if find_spec("pydvl") is None or find_spec("torch") is None:
        note = "skipped: needs `make bench PEERS=1`"
        yield Row("value", f"values of {CLIENTS} clients' data", AGAINST, note=note)
        return
    from fedaccord.training.rules import GradientStep, LocalEpochs

    yield from _valued("gradient steps", GradientStep(), target=1.5)
    yield from _valued("mini-batches", LocalEpochs(), target=5.0)
    yield _sampled()


def _valued(name: str, local: Any, target: float) -> list[Row]:
    """All groups of six clients, trained at once and one after another: times, and values."""
    from fedaccord.membership.group_scores import all_groups
    from fedaccord.membership.holdings import holders_course
    from fedaccord.membership.measuring import Cache, measure_groups
    from fedaccord.membership.shapley import exact_worth

    course = holders_course(dataset="digits", clients=CLIENTS, skew=0.3, local=local)

    def ours(_: object) -> Any:
        cache = Cache(lambda groups: measure_groups(course, groups, range(SEEDS)))
        return exact_worth(cache, CLIENTS).of(cache.scores, 0)

    def theirs(_: object) -> Any:
        return _exact(_trained(course), CLIENTS)

    what = f"values of {CLIENTS} clients' data, {name}"
    same = _compared(what, ours(None).mean, _trained(course))
    timings = race(Contestant(ours), Contestant(theirs), repeats=2)
    trainings = f"{len(all_groups(CLIENTS)) - 1} groups x {SEEDS} seeds"
    return [faster("value", f"{what}, {trainings}", AGAINST, *timings, target=target), *same]


def _compared(what: str, values: Any, known: Value) -> list[Row]:
    """How far our values are from its own, and from those that it samples."""
    from scipy.special import stdtrit

    apart = 1e6 * np.abs(values - _exact(known, CLIENTS)).max()
    mean, error = _truncated(known, CLIENTS)
    off = (np.abs(values - mean) / error).max()
    return [
        Row(
            "value",
            f"{what}: largest difference",
            f"{AGAINST}, exact",
            value=float(apart),
            target=SAME,
            unit="millionths",
            note=f"{apart:.0e} millionths of accuracy",
        ),
        Row(
            "value",
            f"{what}: largest difference",
            f"{AGAINST}, TMC with {UPDATES} updates",
            value=float(off),
            target=float(stdtrit(UPDATES - 1, 1 - CHANCE / (2 * CLIENTS))),
            unit="s.e.",
            note=f"of {CLIENTS} values, in its own standard errors",
        ),
    ]


def _sampled() -> Row:
    """How far off sampled values are when about a tenth of the groups have been trained."""
    from fedaccord.membership.group_scores import all_groups
    from fedaccord.membership.holdings import holders_course
    from fedaccord.membership.measuring import Cache, measure_groups
    from fedaccord.membership.shapley import exact_worth, sampled_worth

    course = holders_course(dataset="digits", clients=MANY, skew=0.3, rounds=20)
    every = measure_groups(course, all_groups(MANY), range(2))
    accuracy = 1.0 - every.by_seed().mean(axis=1)
    exact = exact_worth(Cache(lambda _: every), MANY).weights[0] @ accuracy

    def looked_up(groups: Any) -> Any:
        rows = [every.row(group) for group in groups]
        return replace(every, members=groups, errors=every.errors[rows], losses=every.losses[rows])

    ours, theirs, asked = [], [], []
    for seed in range(DRAWS):
        cache = Cache(looked_up)
        worth = sampled_worth(cache, MANY, 1, 0.0, np.random.default_rng(seed))
        values = worth.weights[0] @ (1.0 - cache.scores.by_seed().mean(axis=1))
        ours.append(np.sqrt(np.mean((values - exact) ** 2)))
        groups = len(cache.scores.members) - 1
        values, number = _by_permutations(lambda group: float(accuracy[_bits(group)]), groups, seed)
        theirs.append(np.sqrt(np.mean((values - exact) ** 2)))
        asked.append(number)
    return Row(
        "value",
        f"error of sampled values, {MANY} clients, {groups} of {2**MANY - 1:,} groups",
        f"{AGAINST}, antithetic permutations",
        value=float(np.mean(theirs) / np.mean(ours)),
        sense="at least",
        target=1.0,
        note=f"r.m.s. errors {100 * np.mean(ours):.2f} and {100 * np.mean(theirs):.2f} points, "
        f"means of {DRAWS} draws; it trained {np.mean(asked):.0f} groups",
    )


# --- pyDVL -----------------------------------------------------------------------------------


def _bits(group: Group) -> int:
    return sum(1 << client for client in group)


def _trained(course: Any) -> Value:
    """The mean accuracy of a group over seeds: trained when first asked for."""
    from fedaccord.training.vectorised.engine import VectorisedEngine

    known: dict[Group, float] = {}

    def value(group: Group) -> float:
        if group not in known:
            errors = []
            for seed in range(SEEDS):
                model, held = course.model.start(seed), course.partition(seed).draw(1)
                shares = [own if n in group else own[:0] for n, own in enumerate(held)]
                if group:
                    *_, model = VectorisedEngine().rounds(course.plan(shares, seed), model)
                errors.append(course.model.evaluate_each(model)[1].mean())
            known[group] = 1.0 - float(np.mean(errors))
        return known[group]

    return value


def _utility(value: Value) -> Any:
    """The value of groups as pyDVL asks for it."""
    base = import_module("pydvl.valuation.utility.base").UtilityBase

    def call(_: Any, sample: Any) -> float:
        return value(() if sample is None else tuple(sorted(map(int, sample.subset))))

    return type("Groups", (base,), {"__call__": call})()


def _fitted(value: Value, clients: int, sampler: Any, is_done: Any) -> Any:
    valuation = import_module("pydvl.valuation")
    data = valuation.Dataset(np.zeros((clients, 1)), np.zeros(clients))
    found = valuation.ShapleyValuation(_utility(value), sampler, is_done, progress=False)
    return found.fit(data).result


def _exact(value: Value, clients: int) -> Any:
    valuation = import_module("pydvl.valuation")
    sampler = valuation.DeterministicUniformSampler()
    return _fitted(value, clients, sampler, valuation.NoStopping()).values


def _truncated(value: Value, clients: int) -> tuple[Any, Any]:
    """Ghorbani and Zou's method: values and standard errors."""
    valuation = import_module("pydvl.valuation")
    truncation = valuation.RelativeTruncation(rtol=0.005)
    sampler = valuation.PermutationSampler(truncation=truncation, seed=0)
    found = _fitted(value, clients, sampler, valuation.MinUpdates(UPDATES))
    return found.values, found.stderr


def _by_permutations(value: Value, groups: int, seed: int) -> tuple[Any, int]:
    """Values from so many permutations that they lead through these many groups or more."""
    valuation = import_module("pydvl.valuation")
    asked: set[Group] = set()

    def counted(group: Group) -> float:
        asked.add(group)
        return value(group)

    updates, found = 0, None
    while len(asked) <= groups:
        updates += 2
        asked.clear()
        sampler = valuation.AntitheticPermutationSampler(seed=seed)
        found = _fitted(counted, MANY, sampler, valuation.MinUpdates(updates)).values
    return found, len(asked) - 1
