"""`join`: who gains by training together, with whom, and which group would hold together.

Every group of clients trains, and each member is judged by its own test: is its model better than
the one it trains alone? A group is worth joining for a client if it is, and the group holds
together if no subgroup is better for all of its members (`stability`). All of it is measured, so
that every answer has its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fedaccord.checks import check_whole
from fedaccord.data.inputs import scale_note
from fedaccord.data.notes import partition_notes
from fedaccord.data.own import OwnPartition
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.membership.estimates import Estimates
from fedaccord.membership.group_scores import COMMON, GroupScores, all_groups
from fedaccord.membership.measuring import measure_groups
from fedaccord.membership.stability import MOST_CLIENTS, Payoffs, Stability, find_stability
from fedaccord.membership.ways import Setting, TriedWays, Way, try_ways
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, columns_of, jsonable
from fedaccord.training.comparison import Estimate
from fedaccord.training.task import Task
from fedaccord.trials.setting import Progress

SEEDS = 10
"""Trainings of each group, unless another number is asked for."""
_CHOOSING_SEEDS = 3
"""For each part that is held out when a way is chosen."""

_LIKELY = 1.0
"""Standard errors below 0 at which a loss is likely: some five in six such clients do lose."""

Verdict = Literal["gains", "loses", "unclear"]


@dataclass(frozen=True, eq=False)
class Prospect(Record):
    """What a client can expect: the measure on its own test, and what a group changes about it."""

    name: str
    records: int
    """That it has to train with."""
    tested: int
    """Examples that it is judged by."""
    alone: Estimate
    together: Estimate
    """With everyone."""
    gain: Estimate
    """By training with everyone rather than alone."""
    verdict: Verdict
    """Whether that is a gain or a loss, beyond noise."""
    best_group: tuple[str, ...]
    """The group that is likely to be best for it; of several that are as good, the largest."""
    best_gain: Estimate
    """In that group."""
    loss_gain: Estimate
    """How much lower the loss on its own test is with everyone than alone."""
    saving: Estimate | None = None
    """With everyone rather than alone, in money and in a slot, fees paid; None without a
    consortium."""

    @property
    def says_nothing(self) -> bool:
        """Whether its test leaves everything possible: the gain's interval is the whole range."""
        return self.gain.half_width >= 1.0 + abs(self.gain.mean)

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "records": self.records,
            "tested": self.tested,
            "alone": self.alone,
            "together": self.together,
            "gain": self.gain,
            "verdict": self.verdict,
            "best_group": list(self.best_group),
            "best_gain": self.best_gain,
            "loss_gain": self.loss_gain,
            "saving": self.saving,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Joining(Record):
    """What every group would reach, and what follows for each client."""

    setting: Setting
    ways: TriedWays
    scores: GroupScores
    """Of all groups; clients by themselves train in the way that is best for that."""
    stability: Stability
    consortium: Consortium | None = None
    plain: Joining | None = None
    """The same by plain FedAvg, to compare with; None if it is, or if no other way was tried."""

    @property
    def own_tests(self) -> bool:
        """Whether clients are judged by tests of their own, and not by the common one."""
        return self.scores.own_tests

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Whose data, or whose test, is too little to say much."""
        data = self.setting.partition
        uneven = scale_note(data.dataset)
        return (*partition_notes(data), *([uneven] if uneven else []))

    @property
    def names(self) -> tuple[str, ...]:
        """The clients."""
        return tuple(self.setting.partition.names)

    @property
    def everyone(self) -> int:
        """The group of all."""
        return int(2 ** len(self.names) - 1)

    def members_of(self, group: int) -> tuple[str, ...]:
        """The names of a group's members."""
        return tuple(name for n, name in enumerate(self.names) if group >> n & 1)

    @cached_property
    def prospects(self) -> tuple[Prospect, ...]:
        """What each client can expect."""
        return tuple(self._prospect(n) for n in range(len(self.names)))

    def gain(self, client: int, group: int) -> Estimate:
        """How much better a client's measure is in a group than alone."""
        return _estimate(self._gain(client, group).as_differences)

    def _gain(self, client: int, group: int, scores: GroupScores | None = None) -> Estimates:
        weights = np.zeros(len(self.scores.members))
        members = all_groups(len(self.names))
        weights[self.scores.row(members[1 << client])] += 1.0
        weights[self.scores.row(members[group])] -= 1.0
        return (scores or self.scores).combine(weights, self._test(client))

    def saving(self, client: int, group: int) -> Estimate | None:
        """What a group saves a client in a slot, against training alone; None without prices."""
        if self.consortium is None:
            return None
        found = self.stability
        return Estimate(float(found.gain[group, client]), float(found.gain_noise[group, client]))

    def level(self, client: int, group: int) -> Estimate:
        """A client's measure in a group."""
        weights = np.zeros(len(self.scores.members))
        weights[self.scores.row(all_groups(len(self.names))[group])] = 1.0
        return _estimate(self.scores.combine(weights, self._test(client)).as_measures)

    def _test(self, client: int) -> int:
        return client + 1 if self.scores.own_tests else COMMON

    def _prospect(self, n: int) -> Prospect:
        gain = self._gain(n, self.everyone)
        sure = bool(gain.sure())
        best = self.stability.best(n)
        return Prospect(
            name=self.names[n],
            records=int(self.setting.partition.sizes[n]),
            tested=len(self.scores.tests[self._test(n)]),
            alone=self.level(n, 1 << n),
            together=self.level(n, self.everyone),
            gain=self.gain(n, self.everyone),
            verdict=("gains" if gain.mean > 0 else "loses") if sure else "unclear",
            best_group=self.members_of(best),
            best_gain=self.gain(n, best),
            loss_gain=_estimate(self._gain(n, self.everyone, self.scores.by_loss)),
            saving=self.saving(n, self.everyone),
        )

    @cached_property
    def recommended(self) -> int | None:
        """The group to form: the largest that gains in all, and in which nobody is likely to lose.

        Likely is by more than one standard error. No subgroup of it is better for all its members
        beyond noise; of several groups of one size it has the most to gain. The group with the
        largest gain of all would often have it by chance. None if there is no such group.
        """
        gain, size = self.stability.gain, self.stability.members.sum(axis=1)
        good = (size > 1) & ~self.stability.surely_unstable & (np.nansum(gain, axis=1) > 0)
        good &= ~self._likely_to_lose.any(axis=1)
        if not good.any():
            return None
        total = np.nansum(gain, axis=1)
        return int(max(np.flatnonzero(good), key=lambda group: (size[group], total[group])))

    @property
    def _likely_to_lose(self) -> BoolArray:
        """By group and client, fees included."""
        return np.asarray(self.stability.standard_errors < -_LIKELY)

    def likely_losers(self, group: int) -> tuple[str, ...]:
        """The members of a group that are likely to be worse off than alone."""
        likely = self._likely_to_lose[group]
        return tuple(name for name, loses in zip(self.names, likely, strict=True) if loses)

    @property
    def surely_recommended(self) -> bool:
        """Whether every member of that group gains beyond noise."""
        return self.recommended is not None and not self.unsure_of(self.recommended)

    def unsure_of(self, group: int) -> tuple[str, ...]:
        """The members of a group that do not gain beyond noise."""
        return tuple(
            name
            for n, name in enumerate(self.names)
            if group >> n & 1 and not (self._gain(n, group).sure() and self.gain(n, group).mean > 0)
        )

    def to_dict(self) -> dict[str, Any]:
        """What each client can expect, the groups, and the ways that were tried."""
        together, alone = self.ways.together, self.ways.alone
        return {
            **jsonable(self._facts()),
            "clients": [prospect.to_dict() for prospect in self.prospects],
            "ways": [each.to_dict() for each in self.ways.tried],
            "way": {"together": str(together), "alone": str(alone)},
            "plain": None if self.plain is None else self.plain._as_plain(),
            "groups": [self._group(group) for group in range(1, self.everyone + 1)],
            "notes": list(self.notes),
        }

    def _as_plain(self) -> dict[str, Any]:
        """What is told of the comparison with plain FedAvg."""
        best = self.recommended
        return {
            "way": str(self.ways.together),
            "gain": [prospect.gain.to_dict() for prospect in self.prospects],
            "recommended": None if best is None else list(self.members_of(best)),
            "surely_recommended": self.surely_recommended,
        }

    def _group(self, group: int) -> dict[str, Any]:
        """A group: what it is worth to its members, and who would break away from it."""
        found, members = self.stability, self.stability.members[group]
        return {
            "members": list(self.members_of(group)),
            "gain": jsonable(found.gain[group][members]),
            "stable": bool(found.stable[group]),
            "surely_stable": bool(found.surely_stable[group]),
            "surely_unstable": bool(found.surely_unstable[group]),
            "blocked_by": [list(self.members_of(int(one))) for one in found.blocking(group)],
        }

    def _facts(self) -> dict[str, Any]:
        best = self.recommended
        return {
            "dataset": self.setting.partition.dataset.name,
            "task": self.setting.task.name,
            "measure": self.setting.task.measure.name,
            "rounds": self.setting.rounds,
            "seeds": len(self.scores.seeds),
            "own_tests": self.own_tests,
            "unit": self.unit,
            "recommended": None if best is None else list(self.members_of(best)),
            "surely_recommended": self.surely_recommended,
        }

    @property
    def unit(self) -> str:
        """What groups are compared by: the measure, or money."""
        if self.consortium is None:
            return self.setting.task.measure.name
        return self.consortium.currency or "cost"

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return columns_of([prospect._facts() for prospect in self.prospects])


def _estimate(found: Estimates) -> Estimate:
    return Estimate(float(found.mean), float(found.half_width()))


def join_groups(
    partition: OwnPartition,
    task: Task,
    ways: Sequence[Way],
    *,
    rounds: int,
    scale: float = 1.0,
    seeds: int = SEEDS,
    seed: int = 0,
    consortium: Consortium | None = None,
    progress: Progress | None = None,
) -> Joining:
    """Measure what every group of clients would reach, and find out who should join.

    Args:
        partition: everyone's examples and, if they have any, their own tests.
        task: what is trained.
        ways: how they may train together; the best is chosen on training examples alone.
        rounds: rounds in a slot.
        scale: examples per sample of the consortium.
        seeds: how often each group is trained.
        seed: the seed of the first training.
        consortium: what an error and a slot cost each client: groups are then compared by money.
        progress: called as the work proceeds.
    """
    check_whole("seeds", seeds, least=2)  # one run does not show any noise
    clients = len(partition.names)
    if not 2 <= clients <= MOST_CLIENTS:
        raise InvalidInput(
            f"all groups are looked at, so that there must be 2 to {MOST_CLIENTS}, got {clients}",
            field="clients",
        )
    if not len(partition.tests) and any(way.fine_tuning for way in ways):
        raise InvalidInput("needs a test of each client's own to judge by", field="fine_tune")
    setting = Setting(partition, task, rounds, scale)
    choosing, training = range(seed, seed + _CHOOSING_SEEDS), range(seed, seed + seeds)
    tried = try_ways(setting, ways, choosing, _telling(progress, "Choosing"))
    groups = all_groups(clients)[1:]
    larger = groups.sum(axis=1) > 1

    def measured(way: Way, some: BoolArray, doing: str) -> GroupScores:
        tell, of = _telling(progress, doing), len(some) * len(training)
        return measure_groups(setting.course(way), some, training, lambda done: tell(done, of))

    alone = measured(tried.alone, groups[~larger], "Training alone")

    def joining(ways: TriedWays, doing: str, plain: Joining | None = None) -> Joining:
        scores = measured(ways.together, groups[larger], doing).joined(alone)
        payoffs = Payoffs.of_scores(scores, *_prices(consortium, clients))
        return Joining(setting, ways, scores, find_stability(payoffs), consortium, plain)

    plain = None if tried.plain is None else joining(tried.plain, "Training by FedAvg")
    return joining(tried, "Training", plain)


def _prices(consortium: Consortium | None, clients: int) -> tuple[FloatArray, FloatArray]:
    """What an error of 1 costs each, and what a slot in a group does (rows: groups).

    Everyone trains on all it has, alone or not, so that only fees differ.
    """
    if consortium is None:
        return np.ones(clients), np.zeros((1, clients))
    fee = consortium.communication_cost + consortium.server_fee
    together = all_groups(clients).sum(axis=1, keepdims=True) > 1
    return consortium.valuation, np.where(together, fee, 0.0)


def _telling(progress: Progress | None, doing: str) -> Any:
    """Reports progress under a name, if anyone listens."""
    return lambda done, of: None if progress is None else progress(done, of, doing)
