"""Ranges in consortium files: numbers, pairs, tables, text, classes and spreadsheets."""

from pathlib import Path

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.ranges import read_within
from tests.agreement.settings import HOSPITALS

HEAD = "rounds = 50\ndiscount_factor = 0.8\n"


def client(name: str, **fields: str) -> str:
    given = {"valuation": "3e4", "cost_per_sample": "1.0", "samples": "500"} | fields
    lines = [f"{key} = {value}" for key, value in given.items() if value]
    return f'[[clients]]\nname = "{name}"\n' + "\n".join(lines) + "\n"


def load(directory: Path, text: str) -> fa.Consortium:
    path = directory / "c.toml"
    path.write_text(text, encoding="utf-8")
    return fa.load_consortium(path)


def ends(consortium: fa.Consortium, field: str, n: int = 0) -> list[float]:
    assert consortium.ranges is not None
    low, high = getattr(consortium.ranges, field)[:, n].tolist()
    return [low, getattr(consortium, field)[n].item(), high]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[20_000, 40_000]", [2e4, 3e4, 4e4]),
        ("[20_000, 25_000, 40_000]", [2e4, 2.5e4, 4e4]),
        ('{ about = 30_000, within = "30 %" }', [2.1e4, 3e4, 3.9e4]),
        ("{ about = 30_000, within = 0.1 }", [2.7e4, 3e4, 3.3e4]),
        ('{ about = 30_000, within = "x2" }', [1.5e4, 3e4, 6e4]),
        ("{ low = 2e4, high = 4e4 }", [2e4, 3e4, 4e4]),
        ("{ low = 2e4, likely = 2.2e4, high = 4e4 }", [2e4, 2.2e4, 4e4]),
        ('"30000 give or take 20 %"', [2.4e4, 3e4, 3.6e4]),
        ('"between 20k and 40k"', [2e4, 3e4, 4e4]),
        ('"20 000 to 40 000 €"', [2e4, 3e4, 4e4]),
        ('"20.000,50 to 30.000,50"', [20_000.5, 25_000.5, 30_000.5]),
        ('"0,004 to 0,006"', [0.004, 0.005, 0.006]),
    ],
)
def test_how_a_range_is_written(tmp_path: Path, written: str, expected: list[float]) -> None:
    consortium = load(tmp_path, HEAD + client("A", valuation=written) + client("B"))
    assert ends(consortium, "valuation") == pytest.approx(expected)
    assert ends(consortium, "valuation", 1) == [3e4, 3e4, 3e4]


def test_every_number_may_be_a_range(tmp_path: Path) -> None:
    text = "rounds = 50\ndiscount_factor = [0.7, 0.9]\n" + client(
        "A", cost_per_sample="[0.9, 1.1]", samples="[400, 601]"
    )
    consortium = load(tmp_path, text + client("B", discount_factor="0.5"))
    assert ends(consortium, "cost_per_sample") == pytest.approx([0.9, 1.0, 1.1])
    assert ends(consortium, "samples") == [400, 500, 601]
    assert ends(consortium, "discount_factor") == pytest.approx([0.7, 0.8, 0.9])
    assert ends(consortium, "discount_factor", 1) == [0.5, 0.5, 0.5]


def test_a_range_of_the_ratio_is_one_of_the_valuation(tmp_path: Path) -> None:
    ratio = client("A", valuation="", ratio="[2e4, 4e4]", cost_per_sample="2.0")
    consortium = load(tmp_path, HEAD + ratio + client("B", valuation="", ratio="1e4"))
    assert ends(consortium, "valuation") == [4e4, 6e4, 8e4]
    assert consortium.ratio.tolist() == [3e4, 1e4]


def test_a_class_gives_what_a_client_leaves_out(tmp_path: Path) -> None:
    text = HEAD + client("A", valuation='"unknown"', **{"class": '"small"'})
    text += client("B", valuation="", cost_per_sample="", **{"class": '"small"'})
    text += client("C", **{"class": '"small"'})
    text += "[classes.small]\nvaluation = [1e4, 5e4]\ncost_per_sample = 2.0\n"
    consortium = load(tmp_path, text)
    for n in (0, 1):
        assert ends(consortium, "valuation", n) == [1e4, 3e4, 5e4]
    assert ends(consortium, "valuation", 2) == [3e4, 3e4, 3e4]
    assert consortium.cost_per_sample.tolist() == [1.0, 2.0, 1.0]


def test_what_was_observed(tmp_path: Path) -> None:
    selfish = fa.solve_equilibrium(HOSPITALS).profile
    text = f"rounds = {HOSPITALS.rounds}\n"
    for one, seen in zip(HOSPITALS, selfish.tolist(), strict=True):
        text += client(
            one.name,
            valuation=f'{{ about = {one.valuation}, within = "30 %" }}',
            cost_per_sample=repr(one.cost_per_sample),
            samples=repr(one.samples),
            discount_factor=repr(one.discount_factor),
            observed=repr(seen),
        )
    agreement = fa.solve_agreement(load(tmp_path, text), objective="most data")
    assert agreement.total == pytest.approx(95_516, abs=0.51)
    with pytest.raises(fa.InvalidInput, match="is missing, and other clients have it"):
        load(tmp_path, text.replace(f"observed = {float(selfish[0])!r}", ""))


def test_ranges_in_a_spreadsheet(tmp_path: Path) -> None:
    (tmp_path / "clients.csv").write_text(
        "name,valuation,cost_per_sample,samples,discount_factor\n"
        "A,20000-40000,1.0,500,0.7 to 0.9\nB,30000 ± 30 %,0.9 to 1.1,500,0.8\n",
        encoding="utf-8",
    )
    consortium = load(tmp_path, 'rounds = 50\nclients = "clients.csv"\n')
    assert ends(consortium, "valuation") == [2e4, 3e4, 4e4]
    assert ends(consortium, "valuation", 1) == pytest.approx([2.1e4, 3e4, 3.9e4])
    assert ends(consortium, "cost_per_sample", 1) == pytest.approx([0.9, 1.0, 1.1])
    assert ends(consortium, "discount_factor") == pytest.approx([0.7, 0.8, 0.9])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + client("A", valuation="[4e4, 2e4]"),
            "must go from low to high, got 40000 to 20000",
        ),
        (
            HEAD + client("A") + 'discount_factor = "3 %"\n',
            "'3 %' is either 0.03 or an interest rate, whose factor is 1 / (1 + rate)",
        ),
        (
            HEAD + client("A") + 'discount_factor = "0.96 to 0.98 %"\n',
            "'0.96 to 0.98 %' is either 0.0096 to 0.0098 or 0.96 to 0.98; write the factor",
        ),
        (HEAD + client("A", valuation="[-1.0, 2e4]"), "valuation: must be more than 0, got -1"),
        (HEAD + client("A", valuation="[nan, 2e4]"), "valuation: must be finite"),
        (HEAD + client("A", valuation="[1, 2, 3, 4]"), "valuation: must be a number or a range"),
        (HEAD + client("A", valuation='["a", "b"]'), "must have numbers as its ends, got 'a'"),
        (HEAD + client("A", valuation="[1, 5, 2]"), "must have its likely number from 1 to 2"),
        (HEAD + client("A", valuation='{ about = 1.0, within = "lots" }'), "must be a percentage"),
        (HEAD + client("A", valuation='{ about = 1.0, within = "120 %" }'), "must be a percentage"),
        (HEAD + client("A", valuation='"many"'), "must be a number or a range like 5-8"),
        (
            HEAD + client("A", valuation='"40,000 to 50,000"'),
            "valuation: '40,000' is either 40 or 40000; write the one that is meant",
        ),
        (
            HEAD + 'currency = "EUR"\n' + client("A", valuation='"2-3 USD"'),
            "valuation: is in USD, and this consortium counts in EUR",
        ),
        (
            HEAD + client("A", valuation='"2-3 €"') + client("B", valuation='"2-3 £"'),
            "clients[1].valuation: is in GBP, and clients[0].valuation in EUR; give all amounts",
        ),
        (HEAD + client("A", samples='"2-3 €"'), "samples: must be a number, not an amount of"),
        (HEAD + client("A", valuation='"2-3 %"'), "valuation: must be a number, not a percentage"),
        (HEAD + client("A", valuation='"unknown"'), "is unknown, and its class gives no range"),
        (HEAD + client("A", **{"class": '"big"'}), "unknown class 'big'; there are no [classes]"),
        (
            HEAD + client("A", **{"class": '"big"'}) + "[classes.small]\nvaluation = [1, 2]\n",
            "unknown class 'big'; choose one of small",
        ),
        (HEAD + client("A") + "[classes.small]\nquality = [1, 2]\n", "classes.small.quality"),
        (HEAD + client("A", quality="[1, 2]"), "clients[0].quality: must be a number, got a list"),
        (
            "rounds = [40, 60]\ndiscount_factor = 0.8\n" + client("A"),
            "rounds: must be a whole number, got a list",
        ),
        (HEAD + client("A", samples="[100.5, 0]"), "must go from low to high"),
        (
            "rounds = 50\ndiscount_factor = [0.7, 1.9]\n" + client("A"),
            "must be less than 1, got 1.9",
        ),
        (HEAD + client("A", ratio="[1, 2]"), "give one or the other"),
        (
            HEAD + client("A", valuation="", ratio="3.0", cost_per_sample="[1, 2]"),
            "ratio: needs a cost_per_sample that is a number",
        ),
        (HEAD + client("A", observed="[1, 2]"), "observed: must be a number, got a list"),
        (HEAD + client("A", observed="900.0"), "observed: must be from 0 to 500, got 900"),
    ],
)
def test_wrong_ranges(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(fa.InvalidInput) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)
    assert "mistakes" not in str(caught.value)  # each is reported once


def test_widths() -> None:
    assert read_within("30 %") == read_within("30%") == pytest.approx((0.7, 1.3))
    assert read_within("x2") == read_within("2 x") == (0.5, 2.0)
    for wrong in ("", "30", "-3 %", "x0.5", "100 %", "xx", 1.0, -0.1, None, np.nan, "x1e9"):
        with pytest.raises(fa.InvalidInput, match="within: must be a percentage below 100"):
            read_within(wrong)
