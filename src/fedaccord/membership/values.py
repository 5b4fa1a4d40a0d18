"""What each client's data is worth to whom: measured, on the common test and on everyone's own.

All groups of clients are trained, or so many that sampled orders need (`membership.shapley`). The
same trainings answer for every test: whose data helps whom is a table, with a row for each client
whose data it is and a column for each test.

>>> values = value_data(dataset="digits", clients=3, skew=0.5, rounds=10, seeds=2)
>>> values.shapley.mean.shape  # the common test and three own ones, three clients
(4, 3)
>>> gained = values.together.mean - values.untrained.mean
>>> np.allclose(values.shapley.mean.sum(axis=1), gained)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.checks import check_choice, check_number, check_whole
from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.membership.estimates import Estimates
from fedaccord.membership.holdings import holders_course
from fedaccord.numbers import BoolArray
from fedaccord.record import Columns, Record, Tables, jsonable

if TYPE_CHECKING:
    from fedaccord.membership.group_scores import GroupScores
    from fedaccord.membership.quality import QualityWeight
    from fedaccord.membership.shapley import Worth
    from fedaccord.training.course import Course
    from fedaccord.training.learning_curve import Measure
    from fedaccord.training.optimisers import ServerOptimiser
    from fedaccord.training.rules import LocalRule
    from fedaccord.training.task import Task
    from fedaccord.trials.setting import Progress

SEEDS = 10
"""Unless another number is asked for."""
TOLERANCE = 0.005
"""Half a percentage point: closer to everyone than this, a permutation is truncated."""
EXACT = 6
"""Up to this many clients all groups are trained."""
MOST_EXACT = 12
"""With more clients there are too many groups (4,095 of 12) to ask for all of them."""
_CYCLES = 5
"""Of sampled orders, unless another number of orders is asked for."""
_FEWEST_CYCLES = 2
"""With one, nothing would be known of how much they differ."""


@dataclass(frozen=True, eq=False, repr=False)
class DataValues(Record):
    """What everyone's data is worth, with its noise."""

    course: Course
    scores: GroupScores
    """The errors of all groups that were trained."""
    worth: Worth
    """How Shapley values follow from them."""
    quality: tuple[QualityWeight, ...] = ()
    """Weights for the game; empty if they were not asked for, or there is no law to go by."""
    no_quality: str = ""
    """Why there are no weights, if they were asked for."""

    @property
    def names(self) -> Sequence[str]:
        """The clients."""
        return self.course.names

    @property
    def tests(self) -> int:
        """How many tests there are: the common one, and everyone's own if they have any."""
        return len(self.scores.tests)

    @property
    def measure(self) -> str:
        """What is gained: accuracy, or concordance."""
        return self.course.model.task.measure.name

    @cached_property
    def shapley(self) -> Estimates:
        """By test and client: what the client's data adds to the measure."""
        tests = range(self.tests)
        found = Estimates.stacked([self.worth.of(self.scores, test) for test in tests])
        return found.as_differences

    @cached_property
    def leave_one_out(self) -> Estimates:
        """By test and client: how much lower the measure is if only this client leaves."""
        from fedaccord.membership.shapley import leave_one_out_weights

        weights = -leave_one_out_weights(self.scores.members)
        tests = range(self.tests)
        found = Estimates.stacked([self.scores.combine(weights, test) for test in tests])
        return found.as_differences

    @cached_property
    def together(self) -> Estimates:
        """By test: the measure of everyone's model."""
        return self._measured(np.ones(len(self.names), dtype=np.bool_))

    @cached_property
    def untrained(self) -> Estimates:
        """By test: the measure of the model that training starts from."""
        return self._measured(np.zeros(len(self.names), dtype=np.bool_))

    @cached_property
    def alone(self) -> Estimates:
        """For each client: the measure of its own model, on its own test if it has one."""
        alone = [self._measured(row) for row in np.eye(len(self.names), dtype=np.bool_)]
        return Estimates.stacked([one.at(self.own(n)) for n, one in enumerate(alone)])

    @cached_property
    def gain(self) -> Estimates:
        """For each client: how much better everyone's model is for it than its own."""
        weights = np.zeros(len(self.scores.members))
        weights[self.scores.row(np.ones(len(self.names)))] = -1.0
        found = []
        for n, row in enumerate(np.eye(len(self.names))):
            against = weights.copy()
            against[self.scores.row(row)] += 1.0
            found.append(self.scores.combine(against, self.own(n)))
        return Estimates.stacked(found).as_differences

    def own(self, client: int) -> int:
        """The place of a client's own test; of the common one if it has none."""
        return client + 1 if self.scores.own_tests else 0

    def _measured(self, group: BoolArray) -> Estimates:
        """By test: the measure of a group's model."""
        weights = np.zeros(len(self.scores.members))
        weights[self.scores.row(group)] = 1.0
        tests = range(self.tests)
        error = Estimates.stacked([self.scores.combine(weights, test) for test in tests])
        return error.as_measures

    # --- As a record ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What was trained, and for each client what its data does for whom."""
        return {
            **jsonable(self._facts()),
            "untrained": number_of(self.untrained.at(0)),
            "together": number_of(self.together.at(0)),
            "clients": [self._client(n) for n in range(len(self.names))],
        }

    def _client(self, n: int) -> dict[str, Any]:
        sizes = self.course.partition(self.scores.seeds[0]).draw(1)
        own = self.own(n)
        return {
            "name": self.names[n],
            "samples": len(sizes[n]) / self.course.scale,
            "test_examples": len(self.scores.tests[own]) if own else None,
            "alone": number_of(self.alone.at(n)),
            "together": number_of(self.together.at(own)),
            "gain": number_of(self.gain.at(n)),
            "shapley": number_of(self.shapley.at(0, n)),
            "leave_one_out": number_of(self.leave_one_out.at(0, n)),
            "helps": [
                {
                    "client": self.names[test - 1],
                    "shapley": number_of(self.shapley.at(test, n)),
                    "leave_one_out": number_of(self.leave_one_out.at(test, n)),
                }
                for test in range(1, self.tests)
            ],
            "quality": self.quality[n].to_dict() if self.quality else None,
        }

    def _facts(self) -> dict[str, Any]:
        model, scores = self.course.model, self.scores
        groups = int(scores.members.any(axis=1).sum())
        return {
            "dataset": model.dataset.name,
            "task": model.task.name,
            "rounds": self.course.rounds,
            "measure": self.measure,
            "seeds": len(scores.seeds),
            "test_examples": len(scores.tests[0]),
            "scale": self.course.scale,
            "groups": groups,
            "trainings": groups * len(scores.seeds),
            "exact": self.worth.exact,
            "permutations": self.worth.permutations,
            "truncated": self.worth.truncated,
            "no_quality": self.no_quality or None,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients, "helps": self._helps}

    def _clients(self) -> Columns:
        return {
            "name": self.names,
            "shapley": self.shapley.mean[0],
            "shapley_error": self.shapley.error[0],
            "leave_one_out": self.leave_one_out.mean[0],
            "leave_one_out_error": self.leave_one_out.error[0],
            "alone": self.alone.mean,
            "gain": self.gain.mean,
            "gain_error": self.gain.error,
        }

    def _helps(self) -> Columns:
        tests = [name for name in self.names for _ in self.names] if self.tests > 1 else []
        whose = list(self.names) * (self.tests - 1)
        columns: dict[str, Sequence[Any]] = {"client": whose, "test": tests}
        for name, values in (("shapley", self.shapley), ("leave_one_out", self.leave_one_out)):
            columns[name] = values.mean[1:].ravel().tolist()
            columns[f"{name}_error"] = values.error[1:].ravel().tolist()
        return columns


def number_of(estimate: Estimates) -> dict[str, Any]:
    """A single number with its noise, for JSON."""
    return {
        "mean": jsonable(float(estimate.mean)),
        "error": jsonable(float(estimate.error)),
        "half_width": jsonable(float(estimate.half_width())),
    }


def value_data(
    consortium: Consortium | None = None,
    *,
    dataset: str | Dataset | None = None,
    data: Any = None,
    clients: int | None = None,
    task: str | Task | None = None,
    local: LocalRule | None = None,
    server: ServerOptimiser | str | None = None,
    fine_tuning: int = 0,
    rounds: int | None = None,
    skew: float | None = None,
    scale: float | None = None,
    seeds: int = SEEDS,
    seed: int = 0,
    exact: bool = False,
    permutations: int | None = None,
    tolerance: float | None = None,
    quality: Measure | None = None,
    progress: Progress | None = None,
) -> DataValues:
    """Measure how much each client's data helps everyone: Shapley values and leave-one-out.

    Args:
        consortium: who has how many samples; without one, whoever the data is of.
        dataset: a dataset, or the name of one; `digits` by default. If it comes with centres, these
            are the clients.
        data: your own data instead, as for `fedaccord.train`.
        clients: how many share a dataset without centres evenly; 5 by default.
        task: `softmax`, `mlp`, `cnn`, `cox`, one that another package adds, or a `Task`.
        local: what a client does in a round, as for `fedaccord.train`.
        server: what the server does with the clients' average: `FedAvg()` by default.
        fine_tuning: epochs that each member of a group adds for itself, judged on its own test.
        rounds: rounds in a slot; the consortium's, or else 50.
        skew: gives each client its own mixture of labels, and its own test.
        scale: examples of the dataset per sample of a client.
        seeds: how many runs of each group.
        seed: the seed of the first run, of what is drawn, and of the permutations.
        exact: train all groups, for up to 12 clients. Up to 6 this is done anyway, and whenever
            sampled permutations would lead through as many groups.
        permutations: how many to sample, rounded up to whole cycles of twice as many as there are
            clients; by default 5 cycles. There are at least 2.
        tolerance: a permutation is truncated once a group is this close to everyone, on all tests;
            0.005 by default.
        quality: also measure quality weights for the game, by the law of the `error` or the `loss`:
            the consortium's if that was measured, or else one that is measured here.
        progress: called as the work proceeds; see `Progress`.
    """
    check_whole("seeds", seeds, least=2)
    check_whole("seed", seed, least=0)
    if tolerance is not None:
        check_number("tolerance", tolerance, least=0)
    if quality is not None:
        check_choice("quality", quality, ("error", "loss"))
    course = holders_course(
        consortium,
        dataset=dataset,
        data=data,
        clients=clients,
        skew=skew,
        seed=seed,
        progress=progress,
        task=task,
        local=local,
        server=server,
        fine_tuning=fine_tuning,
        rounds=rounds,
        scale=scale,
    )
    _check_fine_tuning(course, seed)
    cycles = _cycles(len(course.names), exact, permutations)
    if tolerance is None:
        tolerance = TOLERANCE
    elif not cycles:
        raise InvalidInput(
            "goes with sampled permutations, but here all groups are trained", field="tolerance"
        )
    found = _valued(course, range(seed, seed + seeds), cycles, tolerance, progress)
    if quality is None:
        return found
    law = None if consortium is None else consortium.law
    return _with_quality(found, quality, law, progress)


def _check_fine_tuning(course: Course, seed: int) -> None:
    from fedaccord.training.fine_tuning import check_fine_tuning

    check_fine_tuning(course.fine_tuning, course.partition(seed))


def _cycles(clients: int, exact: bool, permutations: int | None) -> int:
    """How many cycles of permutations to sample; 0: all groups are trained."""
    if permutations is not None:
        check_whole("permutations", permutations, least=1)
    if exact and permutations is not None:
        raise InvalidInput("cannot be combined with exact, which needs none", field="permutations")
    if permutations is not None and clients <= EXACT:
        raise InvalidInput(
            f"with {EXACT} clients or fewer all groups are trained, and there is nothing to sample",
            field="permutations",
        )
    if exact and clients > MOST_EXACT:
        raise InvalidInput(
            f"{clients} clients have {2**clients - 1:,} groups: at most {MOST_EXACT} can be valued "
            "exactly",
            field="exact",
        )
    wanted = _CYCLES if permutations is None else ceil(permutations / (2 * clients))
    cycles = max(wanted, _FEWEST_CYCLES)
    few = clients <= EXACT or cycles * clients * (clients - 1) + 1 >= 2**clients - 1
    return 0 if exact or few else cycles


def _valued(
    course: Course, seeds: range, cycles: int, tolerance: float, progress: Progress | None
) -> DataValues:
    """Train the groups that are needed, and weigh them."""
    from fedaccord.membership.measuring import Cache, measure_groups
    from fedaccord.membership.shapley import exact_worth, sampled_worth

    clients, done = len(course.names), 0
    groups = cycles * clients * (clients - 1) + 2 if cycles else 2**clients

    def measure(some: BoolArray) -> GroupScores:
        nonlocal done
        before = done
        scores = measure_groups(course, some, seeds, lambda now: tell(before + now))
        done += len(some) * len(seeds)
        return scores

    def tell(now: int) -> None:
        if progress is not None:
            progress(now, groups * len(seeds), "Training groups")

    cache = Cache(measure)
    if cycles:
        rng = np.random.default_rng(seeds[0])
        worth = sampled_worth(cache, clients, cycles, tolerance, rng)
    else:
        worth = exact_worth(cache, clients)
    return DataValues(course, cache.scores, worth)


def _with_quality(
    found: DataValues, measure: Measure, law: Law | None, progress: Progress | None
) -> DataValues:
    """The values with quality weights, or with the reason why there are none."""
    from fedaccord.membership.quality import measure_quality

    course, seeds = found.course, found.scores.seeds
    runs = 2 * len(course.names) * len(seeds)

    def tell(now: int) -> None:
        if progress is not None:
            progress(now, runs, "Training for quality weights")

    if len(course.names) == 1:
        return replace(found, no_quality="there is nobody else's data to compare with")
    try:
        if law is None or not _is_measured(law, measure):
            law = _law_of(course, measure, len(seeds), progress)
        return replace(found, quality=measure_quality(course, found.scores, law, tell))
    except InvalidInput as refused:
        return replace(found, no_quality=str(refused))


def _is_measured(law: Law, measure: Measure) -> bool:
    """Whether a law was measured, once for all clients, and is of the loss if that is asked for."""
    same = (law.measure == "loss") == (measure == "loss")
    return law.evidence is not None and not law.is_personal and same


def _law_of(course: Course, measure: Measure, seeds: int, progress: Progress | None) -> Law:
    """The law of a measure on this course; refused if the curve can have none."""
    from fedaccord.training.learning_curve import measure_curves, spread_sizes

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(done, of, "Training for the law")

    sizes = spread_sizes(sum(len(share) for share in course.partition(0).draw(1)))
    curves = measure_curves(course, sizes, seeds, progress=tell)
    return fit_law(curves.curve(measure, course.scale))
