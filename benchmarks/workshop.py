"""How long the workshop takes for what a slider asks: the result for 50 members."""

from itertools import chain
from time import perf_counter, process_time

import numpy as np

from benchmarks.measure import Timing
from benchmarks.row import Row

MEMBERS = 50
TARGET = 0.2
"""Seconds, for 95 of 100 answers."""

_SLIDERS = {
    "exact numbers": [
        *(f"discount_factor={0.6 + n / 200:g}" for n in range(40)),
        *(f"margin={n / 400:g}" for n in range(20)),
        *(f"audit_rate={0.4 + n / 50:g}" for n in range(20)),
        *(f"punishment=reversion&margin={n / 400:g}" for n in range(20)),
        *(f"without={n + 1}" for n in range(20)),
    ],
    "numbers off by some per cent": [
        *(f"within={n + 1}" for n in range(40)),
        *(f"within={n + 1}&punishment=reversion" for n in range(20)),
    ],
    "one level for many": [
        *(f"kind=uniform&discount_factor={0.6 + n / 200:g}" for n in range(20)),
        *(f"kind=uniform&punishment=reversion&margin={n / 400:g}" for n in range(20)),
    ],
    "the fair share": [f"objective=fair-share&margin={n / 400:g}" for n in range(20)],
    "one level for many, numbers off by some per cent": [
        *(f"kind=uniform&within={n + 1}" for n in range(20)),
        *(f"kind=uniform&within={n + 1}&punishment=reversion" for n in range(20)),
    ],
    "audits, numbers off by some per cent": [
        *(f"audit_rate=0.5&within={n + 1}" for n in range(20)),
        *(f"audit_rate=0.5&within={n + 1}&punishment=reversion" for n in range(20)),
    ],
    "the fair share, numbers off by some per cent": [
        *(f"objective=fair-share&within={n + 1}" for n in range(20)),
        *(f"objective=fair-share&within={n + 1}&punishment=reversion" for n in range(20)),
    ],
    "whole samples, numbers off by some per cent": [
        f"whole_samples=yes&within={n + 1}" for n in range(20)
    ],
    "the fair share whole samples, numbers off by some per cent": [
        f"objective=fair-share&whole_samples=yes&within={n + 1}" for n in range(20)
    ],
    "one more member, numbers off by some per cent": [
        f"joins={n + 1}&within={n + 1}" for n in range(20)
    ],
}
"""What is asked, by the name of its row; the first of each is not timed."""


def run() -> list[Row]:
    try:
        from fastapi.testclient import TestClient
    except ImportError:
        return [Row("workshop", "a slider", "nothing", note="skipped: needs the console extra")]
    from fedaccord.console.workshop.app import create_workshop
    from fedaccord.console.workshop.draft import Draft

    client = TestClient(create_workshop(), base_url="http://127.0.0.1:8321")
    draft = Draft(consortium_text(MEMBERS))

    def ask(query: str) -> tuple[float, float]:
        wall, cpu = perf_counter(), process_time()
        answer = client.get(f"/w/{draft.packed}/design?{query}", headers={"HX-Request": "true"})
        assert answer.status_code == 200, answer.text
        return perf_counter() - wall, process_time() - cpu

    for query in chain.from_iterable(queries[:1] for queries in _SLIDERS.values()):
        ask(query)
    return [_row(name, [ask(query) for query in asked[1:]]) for name, asked in _SLIDERS.items()]


def _row(name: str, asked: list[tuple[float, float]]) -> Row:
    walls, cpus = np.array(asked).T
    slow, busy = (1_000.0 * float(np.quantile(times, 0.95)) for times in (walls, cpus))
    typical = 1_000.0 * float(np.median(cpus))
    return Row(
        "workshop",
        f"the result after a slider moved, {MEMBERS} members, {name}",
        "a target",
        value=slow,
        target=1_000.0 * TARGET,
        unit="ms",
        ours=Timing(float(np.median(walls)), float(np.median(cpus)), len(asked), "median"),
        note=f"95 of 100 answers are as quick or quicker; of CPU time they take {busy:.0f} ms or "
        f"less, in the median {typical:.0f} ms; none was remembered",
    )


def consortium_text(members: int) -> str:
    """A consortium file with so many hospitals."""
    rng = np.random.default_rng(1)
    head = 'name = "Many"\nrounds = 50\ndiscount_factor = 0.9\ncurrency = "EUR"\nslot = "1 month"\n'
    tables = (
        f'\n[[clients]]\nname = "Hospital {n + 1}"\nvaluation = {rng.uniform(3e5, 9e5):.0f}\n'
        f"cost_per_sample = {rng.uniform(0.003, 0.006):.5f}\n"
        f"samples = {rng.integers(5_000, 30_000)}\ndiscount_factor = {rng.uniform(0.7, 0.95):.2f}\n"
        for n in range(members)
    )
    return head + "".join(tables)
