"""Agreements whose slips are seen by audits against plain ones, for one large consortium."""

from collections.abc import Iterator

import fedaccord as fa
from benchmarks.consortia import fresh, random_consortium
from benchmarks.measure import Contestant, race
from benchmarks.row import Row, slower

CLIENTS = 1_000_000


def run() -> Iterator[Row]:
    yield _against("audits of one client in ten", fa.Monitoring(audit=0.1))
    yield _against("checks of one sample", fa.Monitoring(audit=0.5, samples_checked=1))


def _against(what: str, monitoring: fa.Monitoring) -> Row:
    consortium = random_consortium(1, CLIENTS)
    ours, plain = race(
        Contestant(
            lambda one: fa.solve_agreement(one, monitoring=monitoring),
            prepare=lambda: fresh(consortium),
        ),
        Contestant(fa.solve_agreement, prepare=lambda: fresh(consortium)),
        repeats=5,
    )
    return slower(
        "monitoring",
        f"individual agreement of {CLIENTS:,} clients with {what}",
        "the same with counts that are believed",
        ours,
        plain,
        target=2.0,
        note="reversion for ever; the time includes the equilibrium",
    )
