"""Drafts that the tests of the workshop open."""

import json

import numpy as np

from fedaccord.console.workshop.draft import Draft
from fedaccord.files.consortium import example_text

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "=HYPERLINK(1)",
    "مستشفى الشمال",
    "L" + "o" * 198 + "g",
    "\"quoted\" & 'so' {{ 7 * 7 }}",
]
"""Names that are allowed, and that a careless page would break on."""


def example(change: str = "", to: str = "") -> Draft:
    """The example consortium, with a part of its text changed."""
    assert change in example_text()
    return Draft(example_text().replace(change, to, 1) if change else example_text())


def some(names: list[str], seed: int = 1) -> Draft:
    """Members with these names, and random numbers like those of hospitals."""
    rng = np.random.default_rng(seed)
    head = 'name = "Some"\nrounds = 50\ndiscount_factor = 0.9\ncurrency = "EUR"\nslot = "1 month"\n'
    tables = (
        f"\n[[clients]]\nname = {json.dumps(name, ensure_ascii=False)}\n"
        f"valuation = {rng.uniform(3e5, 9e5):.0f}\n"
        f"cost_per_sample = {rng.uniform(0.003, 0.006):.5f}\n"
        f"samples = {rng.integers(5_000, 30_000)}\ndiscount_factor = {rng.uniform(0.7, 0.95):.2f}\n"
        for name in names
    )
    return Draft(head + "".join(tables))


def many(members: int = 50) -> Draft:
    """As many members as a result must be quick for."""
    return some([f"Hospital {n}" for n in range(1, members + 1)])
