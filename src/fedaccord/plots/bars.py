"""Bars for pages that change while one looks: SVG, written directly.

Matplotlib takes a tenth of a second for a picture; these take about a millisecond. They have no
size of their own but as many rows as there are members: widths are percentages, so that text stays
readable on a phone. No style sheet is needed; one that hides `.narrow` and shows `.roomy` gives
longer names one line where there is room for it.

>>> svg = draw_bars([Bar("A & B", 5.0, 2.0, "5")], key="x", title="Two", description="Bars.")
>>> svg.startswith("<svg "), "A &amp; B" in svg
(True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from textwrap import wrap
from xml.sax.saxutils import escape

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.numbers import patience, write

_ROW, _TALL = 24, 30
"""Pixels of a row, and of one whose name has two lines."""
_LINE = 13
"""Pixels from one line of a name to the next."""
_NARROW, _ROOMY = 16, 26
"""Letters of a line, as many as there is room for on a phone and on a wide screen."""
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
    heights = [_ROW if len(_in_lines(bar.name, _NARROW)) < 2 else _TALL for bar in bars]
    tops = [0, *accumulate(heights)]
    rows = "".join(map(_row, bars, tops, heights, repeat(longest)))
    return (
        f'<svg class="bars" role="img" width="100%" height="{tops[-1]}" font-size="13" '
        f'aria-labelledby="{key}-title {key}-about" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{key}-title">{escape(title)}</title>'
        f'<desc id="{key}-about">{escape(description)}</desc>{rows}</svg>'
    )


def _in_lines(name: str, letters: int) -> list[str]:
    """A name in one line or two; the rest of a long one is left out.

    >>> _in_lines("University Hospital of the North", 16)
    ['University', 'Hospital of the…']
    """
    first, *others = wrap(name, letters) or [""]
    if len(others) < 2:
        return [first, *others]
    return [first, f"{others[0][: letters - 1]}…"]


def _name(name: str, middle: float) -> str:
    """A name for narrow screens and one for wide ones, or one for both if they are the same."""
    narrow, roomy = _in_lines(name, _NARROW), _in_lines(name, _ROOMY)
    if narrow == roomy:
        return _texts(narrow, middle)
    return (
        f'<g class="narrow">{_texts(narrow, middle)}</g>'
        f'<g class="roomy" display="none">{_texts(roomy, middle)}</g>'
    )


def _texts(lines: Sequence[str], middle: float) -> str:
    first = middle - _LINE * (len(lines) - 1) / 2
    return "".join(
        f'<text x="0" y="{first + n * _LINE:g}" fill="{_INK}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )


def _row(bar: Bar, top: int, height: int, longest: float) -> str:
    """A name in a line or two, cut off where the bars begin; the bars; the number."""
    name, label, middle = escape(bar.name), escape(bar.label), height / 2 + 4.5
    written = _name(bar.name, middle)
    bars = top + (height - _ROW) // 2
    return "".join(
        (
            f"<g><title>{name}: {label}</title>",
            f'<svg x="0" y="{top}" width="{_FROM - 1.5:g}%" height="{height}">{written}</svg>',
            _rect(bars + 5, 14, longest, longest, f'fill="{_TRACK}"'),
            _rect(bars + 7, 10, bar.filled, longest, f'fill="{bar.colour}"'),
            _rect(bars + 5, 14, bar.outlined, longest, f'fill="none" stroke="{_INK}"'),
            f'<text x="100%" y="{top + middle:g}" text-anchor="end" fill="{_INK}">{label}</text>',
            "</g>",
        )
    )


def _rect(top: int, height: int, value: float, longest: float, look: str) -> str:
    if value <= 0:
        return ""
    width = (_TO - _FROM) * min(value / longest, 1.0)
    return f'<rect x="{_FROM:g}%" y="{top}" width="{width:.3f}%" height="{height}" {look}/>'
