"""The fast method for very many clients, compared with the simple one."""

import numpy as np
import pytest

from fedaccord.game.filling import _SORTED_AT_ONCE, fill
from fedaccord.numbers import FloatArray

MANY = 3 * _SORTED_AT_ONCE + 17


def plainly(satiation: FloatArray, samples: FloatArray) -> float:
    order = np.argsort(-satiation)
    return float(np.minimum(satiation[order], samples[order].cumsum()).max())


def crowd(kind: str) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(7)
    satiation, samples = rng.random(MANY) * MANY, rng.random(MANY)
    if kind == "sorted":
        satiation.sort()
    elif kind == "tied":
        satiation = np.round(satiation, -4)
    elif kind == "all the same":
        satiation[:] = MANY / 5
    elif kind == "misleading":  # a regular sample is unlike the rest
        step = MANY // 10_000
        samples[::step] *= 1e6
        satiation[::step] /= 1e3
    elif kind == "one giant":
        samples[12_345] = 1e12
    elif kind == "wild":
        satiation = MANY * 10.0 ** rng.uniform(-9, 9, MANY)
    elif kind == "everyone":
        satiation += 2 * MANY
    elif kind == "hardly anyone":
        satiation *= 1e-9
    return satiation, samples


KINDS = [
    "plain",
    "sorted",
    "tied",
    "all the same",
    "misleading",
    "one giant",
    "wild",
    "everyone",
    "hardly anyone",
]


@pytest.mark.parametrize("kind", KINDS)
def test_very_many_clients_are_filled_like_few(kind: str) -> None:
    satiation, samples = crowd(kind)
    filling = fill(satiation[np.newaxis], samples[np.newaxis])
    # running sums of 60,000 numbers in two orders
    assert filling.total.item() == pytest.approx(plainly(satiation, samples), rel=1e-12)
    assert filling.profile.sum() == pytest.approx(filling.total.item(), rel=1e-11)


def test_a_client_alone_at_the_margin_contributes_any_small_remainder() -> None:
    for tiny in (1e-11, 1e-13, 1e-200):
        filling = fill(np.array([[tiny, tiny / 2]]), np.array([[1e4, 1e4]]))
        assert filling.profile.tolist() == [[pytest.approx(tiny, rel=1e-14), 0.0]]
    beside = fill(np.array([[2.0, 1.0]]), np.array([[1.0 - 1e-14, 1e4]]))
    assert beside.profile[0, 1] == 0.0  # of which the second would owe a rounding's worth


def test_rows_are_independent() -> None:
    rng = np.random.default_rng(3)
    satiation, samples = rng.random((40, 9)) * 9, rng.random((40, 9))
    together = fill(satiation, samples)
    for n in range(40):
        alone = fill(satiation[n : n + 1], samples[n : n + 1])
        assert together.total[n] == alone.total[0]
        assert (together.profile[n] == alone.profile[0]).all()


def test_a_row_in_which_nobody_wants_anything_changes_no_other() -> None:
    satiation = np.array([[0.0, 0.0, 0.0], [50.0, 30.0, 10.0]])
    samples = np.array([[20.0, 20.0, 20.0], [20.0, 20.0, 20.0]])
    both = fill(satiation, samples)
    assert both.total.ravel().tolist() == [0.0, 30.0]
    assert both.profile.tolist() == [[0.0, 0.0, 0.0], [20.0, 10.0, 0.0]]
    assert both.at_margin.tolist() == [[False] * 3, [False, True, False]]
