"""The `[law]` table of a consortium file, laws of single clients, and how both are written."""

from pathlib import Path

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_text, load_consortium
from fedaccord.files.consortium_text import with_law, with_numbers
from fedaccord.files.curve import curve_text
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law

TOP = 'rounds = 50\ndiscount_factor = 0.8\ncurrency = "EUR"\nslot = "3 months"\n'
CLIENTS = """
[[clients]]
name = "North"
valuation = 700_000
cost_per_sample = 0.0042
samples = 20_000

[[clients]]
name = "South"
valuation = 520_000
cost_per_sample = 0.0041
samples = 22_000
quality = 0.8
"""
MEASURED = '[law]\nkind = "measured"\nmeasure = "error"\ncurve = "curve.csv"\n'


def curve(scale: float = 1.0) -> Curve:
    sizes = np.round(np.geomspace(100, 42_000, 12))
    noise = np.random.default_rng(0).normal(0, 0.001, (12, 5))
    return Curve(sizes, range(5), (scale * 2 * sizes**-0.3)[:, np.newaxis] + noise)


def load(folder: Path, text: str) -> fa.Consortium:
    (folder / "c.toml").write_text(text, encoding="utf-8")
    return load_consortium(folder / "c.toml")


def test_the_papers_law_unless_given(tmp_path: Path) -> None:
    plain = load(tmp_path, TOP + CLIENTS)
    said = load(tmp_path, TOP + '[law]\nkind = "paper"\n' + CLIENTS)
    for consortium in (plain, said):
        assert consortium.law.kind == "paper"
        assert consortium.law.loss(1000.0) == Law.paper(50).loss(1000.0)
    assert (plain.currency, plain.slot) == ("EUR", "3 months")
    assert plain.quality.tolist() == [1.0, 0.8]


def test_a_power(tmp_path: Path) -> None:
    table = '[law]\nkind = "power"\nscale = 3\nexponent = 0.4\nshift = 10.0\nfloor = 0.1\n'
    law = load(tmp_path, TOP + table + 'measure = "1 - AUC"\n' + CLIENTS).law
    assert (law.kind, law.measure) == ("power", "1 - AUC")
    assert law.loss(90.0) == pytest.approx(3 * 100**-0.4 + 0.1)


def test_a_measured_law(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text(curve_text(curve()), encoding="utf-8")
    law = load(tmp_path, TOP + MEASURED + "resamples = 50\nseed = 3\n" + CLIENTS).law
    assert (law.kind, law.measure) == ("measured", "error")
    assert law.evidence is not None
    assert (law.evidence.resamples, law.evidence.seed, law.evidence.seeds) == (50, 3, 5)
    assert law.loss(1000.0) == pytest.approx(2 * 1000**-0.3, rel=0.01)


def test_laws_of_single_clients(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text(curve_text(curve()), encoding="utf-8")
    (tmp_path / "south.csv").write_text(curve_text(curve(2.0)), encoding="utf-8")
    consortium = load(tmp_path, TOP + MEASURED + CLIENTS + 'curve = "south.csv"\n')
    north, south = (consortium.law.of(n).loss(1000.0) for n in range(2))
    assert south / north == pytest.approx(2.0, rel=0.01)
    table = '[clients.law]\nkind = "power"\nscale = 1.0\nexponent = 0.5\nmeasure = "error"\n'
    consortium = load(tmp_path, TOP + MEASURED + CLIENTS + table)
    assert consortium.law.of(1).loss(100.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ('kind = "cubic"', "law.kind: there is no law of kind 'cubic'"),
        ('kind = "powr"', "did you mean 'power'?"),
        ("kind = 3", "law.kind: must be text in quotes, got 3"),
        ('measure = "loss"', "law.kind: is missing"),
        ('kind = "paper"\ncurv = "a"', "law.curv: unknown key; did you mean 'curve'?"),
        ('kind = "paper"\nscale = 1.0', 'law.scale: goes with kind = "power", not with "paper"'),
        ('kind = "power"\nscale = 1.0', 'law.exponent: is missing; kind = "power" needs it'),
        ('kind = "power"\nscale = -1.0\nexponent = 1.0', "law.scale: must be more than 0, got -1"),
        ('kind = "power"\nscale = 1.0\nexponent = 1.0\nshift = -1.0', "law.shift: must be 0 or"),
        ('kind = "measured"\nmeasure = "error"', 'law.curve: is missing; kind = "measured"'),
        (
            'kind = "measured"\nmeasure = "accuracy"\ncurve = "curve.csv"',
            "law.measure: there is no measure 'accuracy'",
        ),
        (
            'kind = "measured"\nmeasure = "error"\ncurve = "none.csv"',
            "law.curve: none.csv: there is no such file",
        ),
        (
            'kind = "measured"\nmeasure = "error"\ncurve = "rises.csv"',
            "law.curve: rises.csv: at 400 samples 0.3, at 800 0.5: more data made it worse",
        ),
        (
            'kind = "measured"\nmeasure = "error"\ncurve = "wrong.csv"',
            "law.curve: wrong.csv: line 3, value: must be a number, 0 or more, got 'x'",
        ),
        (
            'kind = "measured"\nmeasure = "error"\ncurve = "rises.csv"\nresamples = 0',
            "law.resamples: must be a whole number, 1 or more, got 0",
        ),
    ],
)
def test_refused(tmp_path: Path, table: str, wrong: str) -> None:
    rises = "samples,value\n100,0.6\n200,0.4\n400,0.3\n800,0.5\n"
    (tmp_path / "rises.csv").write_text(rises, encoding="utf-8")
    (tmp_path / "wrong.csv").write_text("samples,value\n100,0.6\n200,x\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        load(tmp_path, f"{TOP}[law]\n{table}\n{CLIENTS}")
    assert wrong in str(refused.value)


def test_laws_of_different_measures_are_refused(tmp_path: Path) -> None:
    table = '[clients.law]\nkind = "power"\nscale = 1.0\nexponent = 0.5\nmeasure = "1 - AUC"\n'
    with pytest.raises(InvalidInput, match="law: all clients' laws must be of one measure"):
        load(tmp_path, TOP + CLIENTS + table)


def test_a_law_is_written_and_comments_stay(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(example_text(), encoding="utf-8")
    (tmp_path / "curve.csv").write_text(curve_text(curve()), encoding="utf-8")
    before = load_consortium(file)
    table = {"kind": "measured", "measure": "error", "curve": "curve.csv"}
    text = with_law(file, table, ["Measured with softmax."])
    assert text.startswith("# Measured with softmax.\n\n# A consortium")
    comments = [line for line in example_text().splitlines() if line.startswith("#")]
    assert set(comments) <= set(text.splitlines())
    file.write_text(text, encoding="utf-8")
    after = load_consortium(file)
    assert after.law.kind == "measured"
    assert np.array_equal(before.valuation, after.valuation)
    ours = 'kind = "measured" # ours\nresamples = 50\nmeasure'
    noted = text.replace('kind = "measured"\nmeasure', ours)
    file.write_text(noted, encoding="utf-8")
    again = with_law(file, table | {"measure": "loss"}, ["Measured with mlp."])
    assert again.count("[law]\nkind") == 1
    assert 'kind = "measured" # ours\nresamples = 50\n' in again
    power = with_law(file, {"kind": "power", "scale": 1.0, "exponent": 0.5})
    assert "resamples" not in power
    assert 'curve = "curve.csv"\n' not in power.partition("\n[law]\n")[2]
    assert 'measure = "loss"' in again
    assert "softmax" not in again


def test_a_law_stays_when_numbers_change(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text(curve_text(curve()), encoding="utf-8")
    file = tmp_path / "c.toml"
    table = "name,valuation,cost_per_sample,samples,quality\nNorth,1,2,400,0.5\nSouth,2,3,400,\n"
    (tmp_path / "clients.csv").write_text(table, encoding="utf-8")
    file.write_text(TOP + 'clients = "clients.csv"\n' + MEASURED, encoding="utf-8")
    assert load_consortium(file).quality.tolist() == [0.5, 1.0]
    file.write_text(with_numbers(file, {"North": {"valuation": 5.0}}), encoding="utf-8")
    after = load_consortium(file)
    assert (after.valuation[0], after.quality[0], after.law.kind) == (5.0, 0.5, "measured")
