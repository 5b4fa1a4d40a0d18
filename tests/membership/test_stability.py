"""Which groups hold together, against a search that shares no code with ours."""

from itertools import chain, combinations

import numpy as np
import pytest

from fedaccord.errors import InvalidInput
from fedaccord.membership.group_scores import COMMON, GroupScores, all_groups
from fedaccord.membership.stability import Payoffs, Stability, find_stability
from fedaccord.numbers import FloatArray

Group = tuple[int, ...]


def groups_in(clients: range | Group) -> list[Group]:
    """Every group of these clients, but for nobody."""
    sizes = range(1, len(clients) + 1)
    return list(chain.from_iterable(combinations(clients, size) for size in sizes))


def number(group: Group) -> int:
    return sum(2**client for client in group)


class Searched:
    """Stability by its definition, one group after another."""

    def __init__(self, mean: FloatArray, error: FloatArray, surely: float) -> None:
        self.mean, self.error, self.surely = mean, error, surely
        self.clients = mean.shape[1]

    def gain(self, client: int, there: Group, here: Group) -> tuple[float, float]:
        """What a client has more in one group than in another, and by how many s.e."""
        more = self.mean[number(there), client] - self.mean[number(here), client]
        error = np.hypot(self.error[number(there), client], self.error[number(here), client])
        return more, more / error

    def blocking(self, group: Group, *, surely: bool) -> list[int]:
        found = []
        for part in groups_in(group):
            gains = [self.gain(client, part, group) for client in part]
            needed = [z > self.surely if surely else more > 0 for more, z in gains]
            if part != group and all(needed):
                found.append(number(part))
        return sorted(found)

    def surely_stable(self, group: Group) -> bool:
        return all(
            any(self.gain(client, part, group)[1] < -self.surely for client in part)
            for part in groups_in(group)
            if part != group
        )


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5])
def test_against_a_search(clients: int) -> None:
    rng = np.random.default_rng(clients)
    for _ in range(10):
        mean = rng.normal(size=(2**clients, clients)) + 0.3 * all_groups(clients).sum(
            axis=1, keepdims=True
        )
        error = rng.uniform(0.05, 0.4, mean.shape)
        found = find_stability(Payoffs.of_errors(mean, error, surely=2.0))
        searched = Searched(mean, error, 2.0)
        for group in groups_in(range(clients)):
            at = number(group)
            for surely in (False, True):
                blocking = searched.blocking(group, surely=surely)
                assert found.blocking(at, surely=surely).tolist() == blocking
                stable = ~found.surely_unstable if surely else found.stable
                assert stable[at] == (not blocking)
            assert found.surely_stable[at] == searched.surely_stable(group)
            for client in group:
                more, errors = searched.gain(client, group, (client,))
                assert found.gain[at, client] == pytest.approx(more)
                if len(group) > 1:
                    assert found.standard_errors[at, client] == pytest.approx(errors)
        for client in range(clients):
            having = [group for group in groups_in(range(clients)) if client in group]
            best = max(having, key=lambda group: mean[number(group), client])
            assert found.best(client) == number(best)
            near = [g for g in having if searched.gain(client, best, g)[1] <= 2.0 or g == best]
            assert found.perhaps_best(client).tolist() == sorted(map(number, near))


def test_of_groups_that_are_as_good_the_largest_is_best() -> None:
    """For the first of three clients being alone, with the second and with both are the same."""
    mean = np.where(all_groups(3), 0.3, np.nan)
    mean[5, 0] = 0.2  # with the third
    mean[7, 0] += 1e-12  # rounding
    found = find_stability(Payoffs.of_errors(mean, 0.1))
    assert found.best_groups(0).tolist() == [1, 3, 7]
    assert found.best(0) == 7
    mean[7, 0] = 0.1
    assert find_stability(Payoffs.of_errors(mean, 0.1)).best(0) == 3


def test_sure_answers_are_likely_ones() -> None:
    rng = np.random.default_rng(0)
    found = find_stability(Payoffs.of_errors(rng.normal(size=(64, 6)), 0.1))
    assert (found.surely_stable <= found.stable).all()
    assert (found.surely_unstable <= ~found.stable).all()
    assert found.surely_unstable.any()
    assert (~found.surely_stable & ~found.surely_unstable).any()


def scores(clients: int, shared: float, own: float) -> GroupScores:
    """All groups with noise that they share, and noise of their own; larger groups are better."""
    rng = np.random.default_rng(1)
    members = all_groups(clients)
    mean = 0.5 - 0.02 * members.sum(axis=1)
    examples = 400 * clients
    errors = mean[:, np.newaxis, np.newaxis] + shared * rng.normal(size=(1, 5, examples))
    errors = errors + own * rng.normal(size=(len(members), 5, examples))
    tests = (np.arange(examples), *np.split(np.arange(examples), clients))
    return GroupScores(members, tuple(range(5)), errors, errors, tests)


def test_noise_that_groups_share_cancels() -> None:
    everyone = 15
    paired = find_stability(Payoffs.of_scores(scores(4, shared=1.0, own=0.005)))
    assert paired.surely_stable[everyone]
    assert paired.surely_better()[everyone].all()
    loose = find_stability(Payoffs.of_scores(scores(4, shared=0.0, own=1.0)))
    assert not loose.surely_stable[everyone]
    assert not loose.surely_better()[everyone].any()
    assert not loose.surely_better(-1)[everyone].any()


def test_payoffs_are_errors_on_the_own_test_times_what_they_cost() -> None:
    measured = scores(3, shared=1.0, own=0.01)
    plain, money = Payoffs.of_scores(measured), Payoffs.of_scores(measured, [10.0, 20.0, 30.0], 1.0)
    assert plain.mean[7] == pytest.approx([-measured.by_seed(n + 1)[7].mean() for n in range(3)])
    assert money.mean[7] == pytest.approx(plain.mean[7] * [10, 20, 30] - 1)
    assert np.isnan(plain.mean[1]).tolist() == [False, True, True]
    weights = np.eye(8)[7] - np.eye(8)[1]
    estimate = measured.combine(weights, test=1)
    more, error = money.difference(0)
    assert more[7, 1] == pytest.approx(-10 * estimate.mean)
    assert error[7, 1] == pytest.approx(10 * estimate.error)
    assert money.noise[0][7, 1] == pytest.approx(10 * estimate.half_width())


def test_few_seeds_do_not_hide_a_loss_that_the_test_shows() -> None:
    """Each difference has its own degrees of freedom: seeds hardly matter to this one."""
    rng = np.random.default_rng(0)
    right = rng.random((4, 1, 200)) < np.array([0.5, 0.5, 0.9, 0.3])[:, np.newaxis, np.newaxis]
    errors = np.repeat(1.0 - right, 2, axis=1) + 0.001 * rng.normal(size=(4, 2, 200))
    measured = GroupScores(all_groups(2), (0, 1), errors, errors, (np.arange(200),))
    assert measured.combine(np.array([0.0, 0.0, 1.0, -1.0])).sure()
    found = find_stability(Payoffs.of_scores(measured))
    assert found.surely_better(-1)[3, 1]
    assert found.surely_unstable[3]


def test_without_own_tests_the_common_one_is_everyones() -> None:
    measured = scores(3, shared=1.0, own=0.01)
    common = GroupScores(
        measured.members, measured.seeds, measured.errors, measured.losses, measured.tests[:1]
    )
    found = Payoffs.of_scores(common)
    assert found.mean[7] == pytest.approx([-common.by_seed(COMMON)[7].mean()] * 3)


@pytest.mark.slow
def test_ten_clients_are_quick_and_more_are_refused() -> None:
    rng = np.random.default_rng(0)
    payoffs = Payoffs.of_errors(rng.normal(size=(1024, 10)), 0.1)
    found: Stability = find_stability(payoffs)
    assert found.stable[1 << np.arange(10)].all()
    with pytest.raises(InvalidInput, match="at most 10 clients, got 2,048 groups of 11"):
        Payoffs.of_errors(np.zeros((2048, 11)), 0.1)
    with pytest.raises(InvalidInput, match="must be those of all groups"):
        Payoffs.of_errors(np.zeros((7, 3)), 0.1)
