"""What is said about who gains by lying."""

from typing import TYPE_CHECKING

import numpy as np

from fedaccord.game.money import money
from fedaccord.mechanisms.misreport.everyone import TRIED
from fedaccord.numbers import count, write
from fedaccord.summaries.agreement import so_many

if TYPE_CHECKING:
    from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports

OVERVIEW_HEADINGS = (
    "Samples\nif honest",
    "Gain by\na lie",
    "Largest gain,\n% of training",
    "Samples\nthen",
    "If everyone lies",
)
CLIENT_HEADINGS = (
    "Best report",
    "Gain\nper slot",
    "% of its\ntraining",
    "% of its\nsaving",
    "Samples\nthen",
)
"""What the columns of the two tables are called."""

OVERVIEW_NOTE = (
    "Gain by a lie: how many clients have a false report that saves them something, if they alone "
    "lie. Largest gain: what the best one saves its client, in per cent of what training costs it; "
    "samples then: what is trained on after it. If everyone lies: where clients end that change "
    "their reports one after another, in several orders."
)
CLIENTS_NOTE = (
    "Best report: of the ratio (valuation / cost per sample), data size or discount factor. "
    "Gain: what the client saves per slot by it, at its true costs; in per cent of what training "
    "costs it, and of what it saves anyway against the equilibrium."
)
_FIELDS = {
    "ratio": "a ratio",
    "samples": "a data size",
    "discount_factor": "a discount factor",
}


def overview_cells(entry: "Misreport") -> tuple[str, ...]:
    """One mechanism in the table of all."""
    best = entry.best
    then = "–" if best is None else write([float(entry.total[best])])[0]
    return (
        write([entry.truthful_total])[0],
        f"{entry.gaining:,} of {len(entry.names):,}",
        _percent(entry.largest_gain),
        then,
        _ends(entry),
    )


def _ends(entry: "Misreport") -> str:
    """The totals at which runs settled, or a dash."""
    if not entry.everyone:
        return "–"
    totals = entry.totals_if_all_lie
    if not totals:
        return "never settles"
    low, high = write([totals[0], totals[-1]])
    return low if low == high else f"{low} to {high}"


def client_cells(entry: "Misreport") -> list[tuple[str, tuple[str, ...]]]:
    """Each client's name and the cells of its row; the largest gains first."""
    order = np.argsort(-entry.gain_of_computation, kind="stable").tolist()
    gains, totals = write(entry.gain), write(entry.total)
    return [
        (
            entry.names[n],
            (
                report_of(entry, n) or "the truth",
                gains[n] if entry.gain[n] > 0 else "0",
                _percent(float(entry.gain_of_computation[n])),
                _percent(float(entry.gain_of_saving[n])),
                totals[n],
            ),
        )
        for n in order
    ]


def report_of(entry: "Misreport", n: int) -> str | None:
    """What a client says: "ratio 0", "ratio x 0.58", or that it refuses; None for the truth."""
    field = entry.fields[n]
    if field is None or field == "refusal":
        return None if field is None else "refuses"
    factor = float(entry.factor[n])
    words = field.replace("_", " ")
    return f"{words} 0" if factor == 0 else f"{words} x {factor:.3g}"


def misreport_sentences(entry: "Misreport", currency: str) -> list[str]:
    """Who gains most by which lie, what it does to the total, and what is left if all lie."""
    if not entry.gaining:
        if not entry.asks:
            return [
                f"{_headed(entry)}: nothing is asked, so there is nothing to lie about, and nobody "
                "gains by refusing."
            ]
        return [f"{_headed(entry)}: nobody gains by any of {entry.reports:,} false reports."]
    assert entry.best is not None
    n = entry.best
    said = so_many(entry.gaining, len(entry.names), "client")
    gain = money(float(entry.gain[n]), currency)
    before, after = write([entry.truthful_total, float(entry.total[n])])
    share = entry.gain_of_computation[n]
    part = f", {_percent(float(share))} of what training costs it" if np.isfinite(share) else ""
    verb = "gains" if entry.gaining == 1 else "gain"
    lines = [
        f"{_headed(entry)}: {said} {verb} by a lie. {entry.best_liar} gains most: {_lie(entry, n)} "
        f"saves it {gain} per slot{part}, and {_moves(before, after)}."
    ]
    if not entry.keeps.all():
        slipping = int((~entry.keeps).sum())
        lines.append(
            f"{count(slipping, 'liar')} would not even keep to the smaller amount, and gain more."
        )
    return [*lines, *_if_everyone(entry)]


def _headed(entry: "Misreport") -> str:
    """The mechanism, and what its amounts are computed for."""
    if entry.name == "free equilibrium":
        return "free equilibrium (the others do as computed, the liar what is best for it)"
    if entry.objective is None:
        return entry.name
    ranges = "" if entry.asks else ", from public ranges"
    return f"{entry.name} ({entry.objective}{ranges})"


def _lie(entry: "Misreport", n: int) -> str:
    field, factor = entry.fields[n], float(entry.factor[n])
    if field is None or field == "refusal":
        return "to refuse"
    if factor == 0:
        return f"to report {_FIELDS[field]} of 0"
    return f"to report {_FIELDS[field]} of {100 * factor:.3g} % of the true one"


def _moves(before: str, after: str) -> str:
    if before == after:
        return f"{before} samples are trained on as before"
    return f"{after} samples are trained on instead of {before}"


def _if_everyone(entry: "Misreport") -> list[str]:
    """What is left when everyone lies."""
    if not entry.everyone:
        return []
    settled = sum(run.settled for run in entry.everyone)
    orders = f"{count(len(entry.everyone), 'order')} of turns tried, {TRIED} ratios in each turn"
    honest, selfish = write([entry.truthful_total, entry.equilibrium_total])
    against = f"against {honest} if all were honest and {selfish} at the equilibrium"
    totals = entry.totals_if_all_lie
    if not totals:
        last = write(sorted(run.total for run in entry.everyone))
        return [
            f"If everyone lies, reports never settle ({orders}): in the end {last[0]} to "
            f"{last[-1]} samples are trained on, {against}."
        ]
    written = write(totals)
    ends = " or ".join(filter(None, [", ".join(written[:-1]), written[-1]]))
    rest = "" if settled == len(entry.everyone) else f"; {settled} of the orders settled"
    return [f"If everyone lies, {ends} samples are left ({orders}{rest}), {against}."]


def advice(found: "Misreports") -> str:
    """What to do instead."""
    safe = [entry.name for entry in found.entries if not entry.gaining]
    if len(safe) == len(found.entries):
        return "No client gains by a lie here."
    return (
        "Amounts that are computed from private reports invite lies. Instead, post amounts that "
        "are computed from public ranges, and suspend whoever refuses or slips (posted): nothing "
        "is asked, so nobody can lie. Where nothing is known of the members, let them say when to "
        "stop (serial clock)."
    )


def _percent(share: float) -> str:
    return f"{100 * share:,.1f} %" if np.isfinite(share) else "–"
