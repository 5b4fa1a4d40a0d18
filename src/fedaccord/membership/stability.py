"""Which groups hold together: nobody is better off alone, and no subgroup on its own.

Every group of clients is worth something to each of its members: less error on the member's own
test, or money. A group *blocks* a larger one that it is a part of if all its members are better off
in the smaller one: it would break away. A group that none of its subgroups blocks is stable; a
single client is a subgroup as well. All pairs of groups are looked at, so there can be at most ten
clients.

Payoffs are measured, so that each answer comes twice. *Likely* goes by the means; *sure* only by
differences beyond noise. Differences of one member between two groups are taken with their common
noise (the same seeds, the same test examples), which mostly cancels. A group can be neither surely
stable nor surely unstable.

>>> alone, pair = [[0.0, np.nan], [np.nan, 0.0]], [0.5, -0.1]
>>> payoffs = Payoffs.of_errors([[np.nan, np.nan], *alone, pair], 0.1)
>>> found = find_stability(payoffs)
>>> found.stable.tolist(), found.gain[3].tolist()
([True, True, True, False], [0.5, -0.1])
>>> found.blocking(3).tolist(), found.surely_unstable.tolist()  # the second client, but for noise
([2], [False, False, False, False])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput
from fedaccord.membership.estimates import Estimates
from fedaccord.membership.group_scores import COMMON, GroupScores, all_groups
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Value
from fedaccord.training.estimates import CONFIDENCE

MOST_CLIENTS = 10
"""With more there are too many pairs of groups to look at."""
_SAME = 1e-9
"""The relative difference up to which two means differ by rounding alone."""
Groups = npt.NDArray[np.int64]
"""Rows of `all_groups`: bit n of the number of a group says whether client n is in it."""


@dataclass(frozen=True, eq=False)
class Payoffs(Value):
    """What each group is worth to each of its members, and the noise of that."""

    mean: FloatArray
    """By group, in the order of `all_groups`, and client; only those of members are looked at."""
    errors: tuple[FloatArray, ...]
    """For each client, by two groups: the standard error of the difference between its payoffs."""
    noise: tuple[FloatArray, ...]
    """Likewise: how large that difference must be to be no noise (half of its 95 % interval)."""

    def __post_init__(self) -> None:
        """Refuse payoffs that are not those of all groups."""
        groups, clients = self.mean.shape
        if clients > MOST_CLIENTS or groups != 2**clients:
            raise InvalidInput(
                f"must be those of all groups of at most {MOST_CLIENTS} clients, got "
                f"{groups:,} groups of {clients}",
                field="payoffs",
            )

    @classmethod
    def of_errors(
        cls, mean: npt.ArrayLike, error: npt.ArrayLike, surely: float | None = None
    ) -> Payoffs:
        """Payoffs by group and client, with standard errors, and no noise in common.

        A difference is no noise if it is more than `surely` standard errors; those of a normal
        distribution by default.
        """
        from scipy.special import ndtri

        means = np.asarray(mean, dtype=np.float64)
        each = np.broadcast_to(np.asarray(error, dtype=np.float64), means.shape)
        errors = [np.hypot.outer(own, own) for own in each.T]
        for own in errors:
            np.fill_diagonal(own, 0.0)
        times = float(ndtri((1 + CONFIDENCE) / 2)) if surely is None else surely
        return cls(means, tuple(errors), tuple(times * own for own in errors))

    @classmethod
    def of_scores(
        cls, scores: GroupScores, valuation: npt.ArrayLike = 1.0, cost: npt.ArrayLike = 0.0
    ) -> Payoffs:
        """Minus what its error on its own test costs a member, and minus what training costs it.

        Without own tests the common test is everyone's. `valuation` is the cost of an error of 1,
        for all clients or each; `cost` may also differ by group (rows). All groups must have been
        measured, except the group of nobody.
        """
        clients = scores.clients
        members = all_groups(clients)
        rows = [0] + [scores.row(group) for group in members[1:]]
        value = np.broadcast_to(np.asarray(valuation, dtype=np.float64), (clients,))
        tests = [n + 1 if scores.own_tests else COMMON for n in range(clients)]
        error = np.stack([scores.by_seed(test)[rows].mean(axis=1) for test in tests], axis=1)
        mean = -value * error - np.asarray(cost, dtype=np.float64)
        paired = [_paired(scores, rows, test) for test in tests]
        return cls(
            np.where(members, mean, np.nan),
            tuple(value[n] * each.error for n, each in enumerate(paired)),
            tuple(value[n] * each.as_differences.half_width() for n, each in enumerate(paired)),
        )

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return int(self.mean.shape[1])

    def difference(self, client: int) -> tuple[FloatArray, FloatArray]:
        """How much more a group (row) is worth to a client than another (column), and its s.e."""
        mean = self.mean[:, client]
        return np.subtract.outer(mean, mean), self.errors[client]


def _paired(scores: GroupScores, rows: list[int], test: int) -> Estimates:
    """The difference between the errors of any two groups, as `GroupScores.combine` has it.

    Two examples are added there, which are half of the test's scale above 0 and below. Each
    difference has degrees of freedom of its own.
    """
    seeds, examples = scores.by_seed(test)[rows], scores.by_example(test)[rows]
    size, number = seeds.shape[1], examples.shape[1] + 2
    mean = seeds.mean(axis=1)
    squares = _squares(seeds) - size * np.subtract.outer(mean, mean) ** 2
    variance = np.maximum(squares, 0.0) / (size * max(size - 1, 1))
    total = np.subtract.outer(examples.sum(axis=1), examples.sum(axis=1))
    squares = _squares(examples) + scores.scale(test) ** 2 / 2 - total**2 / number
    among = np.maximum(squares, 0.0) / (number * (number - 1))
    np.fill_diagonal(variance, 0.0)
    np.fill_diagonal(among, 0.0)
    return Estimates.of(
        np.subtract.outer(mean, mean), (variance, max(size - 1, 1)), (among, number - 1)
    )


def _squares(values: FloatArray) -> FloatArray:
    """The sum of the squared differences between any two rows."""
    product = values @ values.T
    own = np.diag(product)
    return np.asarray(np.add.outer(own, own) - 2 * product)


@dataclass(frozen=True, eq=False)
class Stability(Value):
    """What every group is worth to its members, and whether it holds together."""

    payoffs: Payoffs
    gain: FloatArray
    """By group and client: how much better off than alone; NaN for those that are not members."""
    gain_error: FloatArray
    """The standard errors of that."""
    gain_noise: FloatArray
    """How large it must be to be no noise."""
    blocked: BoolArray
    """By group (rows) and a larger one (columns): whether it is better for all its members."""
    surely_blocked: BoolArray
    """The same, each by more than noise."""
    surely_kept: BoolArray
    """Whether it is worse, by more than noise, for one of its members at least."""

    @property
    def members(self) -> BoolArray:
        """Who is in each group."""
        return all_groups(self.payoffs.clients)

    @cached_property
    def stable(self) -> BoolArray:
        """Which groups are likely to be stable."""
        return np.asarray(~self.blocked.any(axis=0))

    @cached_property
    def surely_stable(self) -> BoolArray:
        """Which groups are stable beyond noise."""
        return np.asarray((self.surely_kept | ~_parts(self.payoffs.clients)).all(axis=0))

    @cached_property
    def surely_unstable(self) -> BoolArray:
        """Which groups are blocked beyond noise."""
        return np.asarray(self.surely_blocked.any(axis=0))

    @property
    def standard_errors(self) -> FloatArray:
        """By how many standard errors each member is better off than alone; 0 if it is alone."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.gain == 0, 0.0, self.gain / self.gain_error)

    def surely_better(self, sign: int = 1) -> BoolArray:
        """Who is better off than alone beyond noise, by group; with -1, who is worse off."""
        return np.asarray(sign * self.gain > self.gain_noise)

    def blocking(self, group: int, *, surely: bool = False) -> Groups:
        """The subgroups that would break away from a group."""
        found = self.surely_blocked if surely else self.blocked
        return np.flatnonzero(found[:, group])

    def best_groups(self, client: int) -> Groups:
        """The groups with the largest mean for a client; several if they are worth the same."""
        mean = np.where(self.members, self.payoffs.mean, -np.inf)[:, client]
        most = float(mean.max())
        return np.flatnonzero(mean >= most - _SAME * max(abs(most), 1.0))

    def best(self, client: int) -> int:
        """The group that is likely to be best for a client: of several, the largest."""
        groups: list[int] = self.best_groups(client).tolist()
        return max(groups, key=int.bit_count)

    def perhaps_best(self, client: int) -> Groups:
        """All groups that are not worse for a client than the best, beyond noise."""
        mean, _ = self.payoffs.difference(client)
        best = self.best(client)
        near = mean[best] <= self.payoffs.noise[client][best]
        return np.flatnonzero(near & self.members[:, client])


def find_stability(payoffs: Payoffs) -> Stability:
    """Look at every group and all of its subgroups."""
    members, parts = all_groups(payoffs.clients), _parts(payoffs.clients)
    blocked, surely_blocked = parts.copy(), parts.copy()
    surely_kept = np.zeros_like(parts)
    gain, gain_error, gain_noise = np.full((3, *members.shape), np.nan)
    for n in range(payoffs.clients):
        more, error = payoffs.difference(n)
        noise, inside = payoffs.noise[n], members[:, [n]]
        blocked &= ~inside | (more > 0)
        surely_blocked &= ~inside | (more > noise)
        surely_kept |= inside & parts & (more < -noise)
        gain[:, n] = np.where(inside[:, 0], more[:, 1 << n], np.nan)
        gain_error[:, n] = np.where(inside[:, 0], error[:, 1 << n], np.nan)
        gain_noise[:, n] = np.where(inside[:, 0], noise[:, 1 << n], np.nan)
    return Stability(payoffs, gain, gain_error, gain_noise, blocked, surely_blocked, surely_kept)


def _parts(clients: int) -> BoolArray:
    """Which groups (rows) are a part of another (columns), but not all of it, and not nobody."""
    group = np.arange(2**clients)
    inside = np.asarray((group[:, np.newaxis] & ~group) == 0)
    inside[0] = False
    np.fill_diagonal(inside, False)
    return inside
