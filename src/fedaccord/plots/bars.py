"""Bars for pages that change while one looks: SVG, written directly.

Matplotlib takes a tenth of a second for a picture; these take about a millisecond. They have no
size of their own but as many rows as there are members: widths are percentages, so that text stays
readable on a phone, and no style sheet is needed.

>>> svg = draw_bars([Bar("A & B", 5.0, 2.0, "5")], key="x", title="Two", description="Bars.")
>>> svg.startswith("<svg "), "A &amp; B" in svg
(True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.numbers import patience, write

_ROW = 24
"""Pixels of a row."""
_FROM, _TO = 37.0, 83.0
"""Where bars begin and end, in per cent of the width; names are to the left, numbers right."""
_INK, _FILLED, _TRACK = "#1d2733", "#0072b2", "#e9edf1"


@dataclass(frozen=True)
class Bar:
    """A row: a filled bar inside or around an outlined one, between a name and a number."""

    name: str
    filled: float
    outlined: float
    label: str
    colour: str = _FILLED


def contribution_bars(agreement: Agreement, chosen: Sequence[int], key: str) -> str:
    """What each of the chosen clients trains on, with the agreement and without."""
    names, before = agreement.consortium.names, agreement.equilibrium.profile
    labels = write(agreement.profile[np.asarray(chosen)])
    bars = [
        Bar(names[n], float(agreement.profile[n]), float(before[n]), label)
        for n, label in zip(chosen, labels, strict=True)
    ]
    return draw_bars(
        bars,
        key=key,
        title="What each member trains on in a slot",
        description="A filled bar is the amount that is agreed, an outlined one the amount without "
        "an agreement. The table below has the same numbers.",
    )


def patience_bars(certificate: Certificate, chosen: Sequence[int], key: str) -> str:
    """How patient each of the chosen clients must be, and is."""
    names, has = certificate.agreement.consortium.names, certificate.agreement.consortium
    bars = []
    for n in chosen:
        needed, given = float(certificate.threshold[n]), float(has.discount_factor[n])
        colour = _FILLED if certificate.keeps[n] else "#b3261e"
        bars.append(Bar(names[n], min(needed, 1.0), given, patience(needed), colour))
    return draw_bars(
        bars,
        key=key,
        title="How patient each member must be",
        description="A filled bar is the discount factor that a member needs, an outlined one what "
        "it has. The table below has the same numbers.",
        most=1.0,
    )


def draw_bars(
    bars: Sequence[Bar], *, key: str, title: str, description: str, most: float | None = None
) -> str:
    """A picture with a row for each bar.

    Args:
        bars: The rows.
        key: Makes the picture's ids different from those of others on a page.
        title: What it shows, for those who cannot see it.
        description: How it shows it.
        most: The number at the right end; by default the largest there is.
    """
    longest = most or max((max(bar.filled, bar.outlined) for bar in bars), default=0.0) or 1.0
    height = _ROW * len(bars)
    rows = "".join(_row(bar, n * _ROW, longest) for n, bar in enumerate(bars))
    return (
        f'<svg class="bars" role="img" width="100%" height="{height}" font-size="13" '
        f'aria-labelledby="{key}-title {key}-about" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{key}-title">{escape(title)}</title>'
        f'<desc id="{key}-about">{escape(description)}</desc>{rows}</svg>'
    )


def _row(bar: Bar, top: int, longest: float) -> str:
    """A name, cut off where the bars begin; the bars; the number."""
    name, label, line = escape(bar.name), escape(bar.label), _ROW / 2 + 4.5
    return "".join(
        (
            f"<g><title>{name}: {label}</title>",
            f'<svg x="0" y="{top}" width="{_FROM - 1.5:g}%" height="{_ROW}">',
            f'<text x="0" y="{line:g}" fill="{_INK}">{name}</text></svg>',
            _rect(top + 5, 14, longest, longest, f'fill="{_TRACK}"'),
            _rect(top + 7, 10, bar.filled, longest, f'fill="{bar.colour}"'),
            _rect(top + 5, 14, bar.outlined, longest, f'fill="none" stroke="{_INK}"'),
            f'<text x="100%" y="{top + line:g}" text-anchor="end" fill="{_INK}">{label}</text></g>',
        )
    )


def _rect(top: int, height: int, value: float, longest: float, look: str) -> str:
    if value <= 0:
        return ""
    width = (_TO - _FROM) * min(value / longest, 1.0)
    return f'<rect x="{_FROM:g}%" y="{top}" width="{width:.3f}%" height="{height}" {look}/>'
