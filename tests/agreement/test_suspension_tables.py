"""Tables of our notes on suspension that need more than the solver: other ageings, who pays what.

Unless said otherwise everyone trains on all its data. Tolerances are half of the last digit that
the notes print.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.threats import worth_of
from fedaccord.numbers import BoolArray, FloatArray
from tests.agreement.settings import FIVE, HOSPITALS, SETTINGS, all_data, largest
from tests.consortia import with_patience, with_satiation
from tests.oracles import pulls


@dataclass(frozen=True)
class Kept:
    """A consortium that keeps to all data; amounts and costs in the clients' own samples."""

    consortium: fa.Consortium

    @property
    def data(self) -> FloatArray:
        return self.consortium.samples

    @property
    def total(self) -> float:
        return float(self.data.sum())

    @property
    def pull(self) -> FloatArray:
        return pulls(self.consortium)

    @property
    def price(self) -> FloatArray:
        return self.consortium.cost_per_sample

    @property
    def patience(self) -> FloatArray:
        return self.consortium.discount_factor

    @property
    def loss(self) -> FloatArray:
        """What the model's inaccuracy costs."""
        return np.asarray(self.pull / np.sqrt(self.total))

    @property
    def cost(self) -> FloatArray:
        """f_n, what depends on data."""
        return self.loss + self.data

    @property
    def gain(self) -> FloatArray:
        """What the best slip saves in its slot."""
        return fa.certify(all_data(self.consortium)).gain / self.price

    @property
    def equilibrium_cost(self) -> FloatArray:
        """F*_n, what depends on data."""
        saving = all_data(self.consortium).saving
        return self.cost + saving / self.price

    def missing(self) -> FloatArray:
        """What a slot costs each client (columns) more while another (rows) is out."""
        left = (self.total - self.data)[:, np.newaxis]
        more = self.pull / np.sqrt(left) - self.loss
        np.fill_diagonal(more, 0.0)
        return np.asarray(more)

    def reverted(self) -> FloatArray:
        """The same for a slot at the equilibrium after a slip of another."""
        more = np.tile(self.equilibrium_cost - self.cost, (self.data.size, 1))
        np.fill_diagonal(more, 0.0)
        return more


def edge_of(keeps: Callable[[float], BoolArray], low: float, high: float) -> float:
    """Where clients stop (or begin) to keep to all data, by halving."""
    below = keeps(low).all()
    assert below != keeps(high).all()
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle).all() == below else (low, middle)
    return 0.5 * (low + high)


# --- 1. An old model that ages in other ways -----------------------------------------------


@pytest.mark.parametrize(
    ("name", "slots", "least"),
    [
        *(("hospitals", slots, d) for slots, d in ((1, 1.06), (3, 0.41), (10, 0.21))),
        *(("N=100", slots, d) for slots, d in ((1, 1.56), (3, 0.56), (10, 0.23))),
    ],
)
def test_an_old_model_that_loses_a_part_of_its_worth_in_each_slot(
    name: str, slots: int, least: float
) -> None:
    """Its loss is that of the slot of the slip, and d a / sqrt(T) more after each slot.

    The slipper pays that and no training: t d a / sqrt(T) - gain more than on the path.
    """
    kept = Kept(SETTINGS[name])
    gain = kept.gain

    def keeps(d: float) -> BoolArray:
        lost = [kept.patience**t * (t * d * kept.loss - gain) for t in range(1, slots + 1)]
        return np.asarray(gain <= np.sum(lost, axis=0))

    assert edge_of(keeps, 0.0, 10.0) == pytest.approx(least, abs=0.005)
    if slots == 1:
        in_samples = (gain * (1.0 + 1.0 / kept.patience) / kept.loss).max()
        assert in_samples == pytest.approx(least, abs=0.005)


@pytest.mark.parametrize(
    ("name", "slots", "most"),
    [
        *(("hospitals", slots, memory) for slots, memory in ((1, 0.24), (3, 0.55), (5, 0.65))),
        *(("N=100", slots, memory) for slots, memory in ((1, 0.15), (3, 0.48), (5, 0.62))),
    ],
)
def test_models_that_remember_earlier_data(name: str, slots: int, most: float) -> None:
    """A model is worth M' = memory M + (1 - memory) X samples, everyone's.

    One client slips to nothing, is out, trains on what is best for it in each slot meanwhile, and
    returns; the others' model has missed its data.
    """
    kept = Kept(SETTINGS[name])
    pull, data, total = kept.pull, kept.data, kept.total

    def keeps(memory: float) -> BoolArray:
        theirs = memory * total + (1.0 - memory) * (total - data)
        own, extra = theirs, pull / np.sqrt(theirs) - kept.cost
        for t in range(1, 200):  # 0.9^200 is 1e-9
            out = t <= slots
            theirs = memory * theirs + (1.0 - memory) * (total - data * out)
            wanted = (pull * (1.0 - memory) / 2.0) ** (2.0 / 3.0)
            trained = np.clip((wanted - memory * own) / (1.0 - memory), 0.0, data)
            own = memory * own + (1.0 - memory) * trained
            paid = pull / np.sqrt(own) + trained if out else pull / np.sqrt(theirs) + data
            extra = extra + kept.patience**t * (paid - kept.cost)
        return np.asarray(extra >= 0)

    assert edge_of(keeps, 0.01, 0.95) == pytest.approx(most, abs=0.005)


@pytest.mark.parametrize(("name", "times"), [("hospitals", 2.1), ("N=100", 11.7)])
def test_fees_in_training_bills(name: str, times: float) -> None:
    """What a client may save by being out, in what its training costs it: at least this, L = 1."""
    kept = Kept(SETTINGS[name])
    certificate = fa.certify(all_data(kept.consortium, slots=1))
    spare = certificate.saving - certificate.gain / worth_of(kept.patience, 1)
    assert spare.min() == pytest.approx(certificate.margins.fees, rel=1e-9)
    assert (spare / (kept.price * kept.data)).min() == pytest.approx(times, abs=0.05)
    for slots in (3, None):
        longer = fa.certify(all_data(kept.consortium, slots=slots))
        spare = longer.saving - longer.gain / worth_of(kept.patience, slots)
        assert (spare / (kept.price * kept.data)).min() > times


def slips_by_round(kept: Kept, *, by_rounds: bool) -> FloatArray:
    """What a slip in round g saves (rows) if no later model is sent, after the law for g rounds.

    The loss is 1/sqrt(g X) + 1/g, or without the 1/g.
    """
    rounds = kept.consortium.rounds
    g = np.arange(1.0, rounds + 1.0)[:, np.newaxis]

    def loss(done: Any) -> Any:
        return 1.0 / np.sqrt(done * kept.total) + (1.0 / done if by_rounds else 0.0)

    lost = kept.consortium.valuation * (loss(g) - loss(float(rounds)))
    saved = kept.price * kept.data * (rounds - g + 1.0) / rounds
    return np.asarray(saved - lost)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_slip_that_is_seen_in_each_round_is_made_in_the_last_one(name: str) -> None:
    """It saves x/G, 2 to 7 % of a slot's slip."""
    kept = Kept(SETTINGS[name])
    saved = slips_by_round(kept, by_rounds=True)
    assert (saved.argmax(axis=0) == kept.consortium.rounds - 1).all()
    np.testing.assert_allclose(saved[-1], kept.price * kept.data / kept.consortium.rounds)
    part = saved[-1] / (kept.price * kept.gain)
    assert 0.015 < part.min() < part.max() < 0.075
    if name in ("hospitals", "N=100"):
        part = slips_by_round(kept, by_rounds=False).max(axis=0) / (kept.price * kept.gain)
        assert 0.015 < part.min() < part.max() < 0.075


def test_a_slip_among_the_hospitals_in_euro() -> None:
    kept = Kept(HOSPITALS)
    in_a_round = slips_by_round(kept, by_rounds=True).max(axis=0)
    in_a_slot = kept.price * kept.gain
    assert (in_a_round.min(), in_a_round.max()) == pytest.approx((1.06, 2.24), abs=0.005)
    assert (in_a_slot.min(), in_a_slot.max()) == pytest.approx((42, 68), abs=0.5)


# --- 2. What it costs the innocent ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "slots", "suspended", "reverted"),
    [
        ("hospitals", 1, (95.6, 0.05), (340, 0.5)),
        ("hospitals", 2, (174, 0.5), (629, 0.5)),
        ("hospitals", 3, (238, 0.5), (876, 0.5)),
        ("hospitals", 5, (336, 0.5), (1_270, 0.5)),
        ("hospitals", None, None, (2_536, 0.5)),
        ("N=100", 1, (2.85e-3, 5e-6), (226e-3, 5e-4)),
        ("N=100", 2, (5.13e-3, 5e-6), (408e-3, 5e-4)),
        ("N=100", 3, (6.95e-3, 5e-6), (552e-3, 5e-4)),
        ("N=100", 5, (9.58e-3, 5e-6), (761e-3, 5e-4)),
        ("N=100", None, None, (1_132e-3, 5e-4)),
    ],
)
def test_all_innocents_together_pay(
    name: str,
    slots: int | None,
    suspended: tuple[float, float] | None,
    reverted: tuple[float, float],
) -> None:
    """Discounted, the mean over all clients that may slip; `repeated` plays some of them."""
    kept = Kept(SETTINGS[name])
    weight = kept.price * worth_of(kept.patience, slots)
    if suspended:
        found = (kept.missing() * weight).sum(axis=1).mean()
        assert found == pytest.approx(suspended[0], abs=suspended[1])
    found = (kept.reverted() * weight).sum(axis=1).mean()
    assert found == pytest.approx(reverted[0], abs=reverted[1])


@pytest.mark.parametrize(
    ("name", "suspended", "most", "reverted", "times"),
    [
        ("hospitals", (7.2, 0.05), 11.7, 21.4, None),
        ("N=100", (0.49, 0.005), 0.50, 36.9, None),
        ("N=181", (0.27, 0.005), None, 65.5, 256),
        ("N=200", (0.24, 0.005), None, 71.4, 308),
    ],
)
def test_a_slot_in_per_cent_of_what_each_innocent_pays(
    name: str,
    suspended: tuple[float, float],
    most: float | None,
    reverted: float,
    times: float | None,
) -> None:
    kept = Kept(SETTINGS[name])
    innocent = ~np.eye(kept.data.size, dtype=bool)
    share = (100.0 * kept.missing() / kept.cost)[innocent]
    assert share.mean() == pytest.approx(suspended[0], abs=suspended[1])
    if most is not None:
        assert share.max() == pytest.approx(most, abs=0.05)
    at_equilibrium = (100.0 * kept.reverted() / kept.cost)[innocent]
    assert at_equilibrium.mean() == pytest.approx(reverted, abs=0.05)
    if times is not None:  # all prices and discount factors are equal
        less = kept.reverted().sum() / kept.missing().sum()
        assert less == pytest.approx(times, abs=0.5)


def test_a_suspended_slot_costs_all_hospitals_as_much_as_one_of_reversion() -> None:
    """Three quarters of it the slipper, in the mean over the slippers."""
    kept = Kept(HOSPITALS)
    slipper = fa.certify(all_data(HOSPITALS)).saving.mean()
    others = (kept.missing() * kept.price).sum(axis=1).mean()
    everyone = ((kept.equilibrium_cost - kept.cost) * kept.price).sum()
    assert (slipper, others, everyone) == pytest.approx((357, 117, 480), abs=0.5)
    assert slipper / (slipper + others) == pytest.approx(0.75, abs=0.005)


def guarding(kept: Kept, out: int, guardian: int) -> float:
    """How much less a guardian gives while a client is out, so that it pays no more than before.

    Infinite if no amount is enough.
    """
    less = np.linspace(0.0, kept.data[guardian], 100_001)
    left = kept.total - kept.data[out] - less
    paid = kept.pull[guardian] / np.sqrt(left) + kept.data[guardian] - less
    enough = paid <= kept.cost[guardian]
    return float(less[np.argmax(enough)]) if enough.any() else np.inf


@pytest.mark.parametrize(("name", "less"), [("N=100", 73), ("N=181", 16), ("N=200", 13)])
def test_the_papers_guardian(name: str, less: float) -> None:
    """Client 1 guards, whoever of the others is out."""
    kept = Kept(SETTINGS[name])
    for out in (1, kept.data.size // 2, kept.data.size - 1):
        assert guarding(kept, out, guardian=0) == pytest.approx(less, abs=0.5)
    if name == "N=100":
        assert guarding(kept, 0, guardian=1) == pytest.approx(147, abs=0.5)


def test_the_hospitals_guardian() -> None:
    """Lakeside, or Children's if it is Lakeside that slipped."""
    kept, names = Kept(HOSPITALS), HOSPITALS.names
    found = []
    for out in range(6):
        others = {m: guarding(kept, out, m) for m in range(6) if m != out}
        guardian = min(others, key=lambda m: others[m])
        who = "Children's Hospital" if names[out] == "Lakeside Clinic" else "Lakeside Clinic"
        assert names[guardian] == who
        found.append(others[guardian])
    assert (min(found), max(found)) == pytest.approx((2_082, 5_868), abs=0.5)


# --- 3. The best agreements ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "total"), [("N=100", 987_411), ("N=181", 1_791_200), ("N=200", 1_979_854)]
)
def test_a_discount_factor_of_a_half(name: str, total: int) -> None:
    consortium = with_patience(SETTINGS[name], 0.5)
    assert largest(consortium, fa.Reversion()) == pytest.approx(total, abs=0.5)
    for slots in (1, 3, None):
        assert largest(consortium, fa.Suspension(slots)) == consortium.samples.sum()


def test_the_equilibrium_of_the_five_clients() -> None:
    equilibrium = fa.solve_equilibrium(FIVE)
    assert equilibrium.total == pytest.approx(79.37, abs=0.005)
    assert equilibrium.cost.sum() == pytest.approx(8.8066, abs=5e-5)
    assert (FIVE.satiation.min(), FIVE.satiation.max()) == pytest.approx((38, 79), abs=0.5)


@pytest.mark.parametrize(
    ("options", "total", "cost"),
    [
        ({"objective": "most data"}, 323.18, None),
        ({"objective": "most data", "nobody_worse": True}, 323.18, None),
        ({"objective": "least total cost"}, 182.82, 8.1026),
    ],
)
def test_the_five_clients_under_reversion(
    options: dict[str, Any], total: float, cost: float | None
) -> None:
    agreement = fa.solve_agreement(FIVE, punishment=fa.Reversion(), **options)
    assert fa.certify(agreement).holds
    assert agreement.total == pytest.approx(total, abs=0.005)
    if cost is not None:
        assert agreement.cost.sum() == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize(("slots", "patience"), [(2, 0.5613), (3, 0.5005), (5, 0.4730)])
def test_just_below_the_one_number_somebody_slips(slots: int, patience: float) -> None:
    """The worst case, a client with a share of .342666 of the total, and h = D: both sides."""
    share = 0.342666
    for side, holds in ((5e-5, True), (-5e-5, False)):
        consortium = with_satiation([share, 10.0], [share, 1.0 - share], patience + side)
        assert fa.certify(all_data(consortium, slots=slots)).keeps[0] == holds


def test_who_would_rather_have_the_equilibrium() -> None:
    """Enforceable is not acceptable: the paper's first clients pay more, no hospital does."""
    for name, dearer in (("N=100", 1), ("N=181", 2), ("N=200", 2)):
        kept = Kept(SETTINGS[name])
        worse = all_data(kept.consortium).worse_than_equilibrium
        assert np.flatnonzero(worse).tolist() == list(range(dearer))
    paper = Kept(SETTINGS["N=100"])
    both = (paper.cost[0], paper.equilibrium_cost[0])
    assert both == pytest.approx((24_357, 20_203), abs=0.5)
    hospitals = Kept(HOSPITALS)
    assert not all_data(HOSPITALS).worse_than_equilibrium.any()
    better = hospitals.equilibrium_cost - hospitals.cost
    assert HOSPITALS.names[int(better.argmin())] == "Lakeside Clinic"
    assert better.min() == pytest.approx(105, abs=0.5)
