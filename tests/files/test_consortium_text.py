"""A consortium that is written to a file reads back unchanged."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given

from fedaccord.files.consortium import load_consortium
from fedaccord.files.consortium_text import consortium_text
from fedaccord.game.consortium import Consortium
from tests.consortia import consortia

FIELDS = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")


def read_back(consortium: Consortium, *comments: str) -> Consortium:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "consortium.toml"
        path.write_text(consortium_text(consortium, comments), encoding="utf-8")
        return load_consortium(path)


def assert_same(one: Consortium, other: Consortium) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert (one.name, one.names) == (other.name, other.names)
    assert (one.rounds, one.server_fee) == (other.rounds, other.server_fee)


@given(consortia())
def test_numbers_survive_a_round_trip(consortium: Consortium) -> None:
    consortium = Consortium(
        **{field: getattr(consortium, field) for field in FIELDS}
        | {"samples": np.ceil(consortium.samples)},
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
        name=consortium.name,
        names=consortium.names,
    )
    assert_same(read_back(consortium, "one line", "another"), consortium)


def test_names_of_all_kinds_survive_a_round_trip() -> None:
    names = ['with "quotes"', "back\\slash", "Zürich ☃", "# no comment"]
    consortium = Consortium(
        valuation=1.0,
        cost_per_sample=1e-300,
        samples=[1, 2, 3, 4e14],
        rounds=3,
        discount_factor=0.1,
        name='a "name"',
        names=names,
    )
    assert_same(read_back(consortium), consortium)
