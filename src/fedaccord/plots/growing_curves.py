"""A learning curve that grows while a training runs: small SVG, drawn again after each round.

The picture of a finished training is `plot_learning`. This one is drawn several times a second, so
it is written by hand, with room for the rounds that are still to come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from fedaccord.plots.training import PROFILE_LOOK

_WIDTH, _HEIGHT = 560, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 150, 12, 44
_SOFT, _LINE = "#55616e", "#d5dce3"
_TEXT = f'fill="{_SOFT}" font-size="13"'
_CLIP = "above-the-rounds"
_TICKS = 4
_APART = 17.0
"""Pixels between two names at the right, at least."""
_DASHES = {"-": "", "--": "8 4", "-.": "8 3 2 3", ":": "2 4"}


@dataclass(frozen=True)
class _Frame:
    """Where a round and a score are on the picture."""

    rounds: int
    low: float
    high: float

    def x(self, turn: float) -> float:
        share = (turn - 1) / max(self.rounds - 1, 1)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def growing_curves(
    curves: Mapping[str, Sequence[float]], rounds: int, measure: str = "accuracy"
) -> str:
    """The mean score of each profile after each round so far, as SVG.

    Args:
        curves: By profile, the scores of its rounds so far.
        rounds: How many there will be.
        measure: What the scores are: accuracies are drawn in per cent.
    """
    times = 100.0 if measure == "accuracy" else 1.0
    drawn = {name: [times * value for value in curve] for name, curve in curves.items() if curve}
    frame = _frame(drawn, rounds, times)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Test {escape(measure)} after each round so far">',
        *_axes(frame),
        f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" {_TEXT} text-anchor="middle">Round</text>',
        # the first rounds may be below the axis
        f'<clipPath id="{_CLIP}"><rect x="0" y="0" width="{_WIDTH}" height="{_HEIGHT - _BOTTOM}"/>'
        "</clipPath>",
    ]
    looks = [PROFILE_LOOK[k % len(PROFILE_LOOK)] for k in range(len(drawn))]
    for (_, curve), look in zip(drawn.items(), looks, strict=True):
        parts.append(_curve(curve, frame, look["color"], look["linestyle"]))
    heights = _spread([frame.y(curve[-1]) for curve in drawn.values()])
    for (name, curve), look, y in zip(drawn.items(), looks, heights, strict=True):
        x = frame.x(len(curve)) + 8
        parts.append(
            f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="{look["color"]}" font-size="13" '
            f'font-weight="600">{escape(name)} {curve[-1]:.{1 if times > 1 else 3}f}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _frame(curves: Mapping[str, Sequence[float]], rounds: int, times: float) -> _Frame:
    """Axes for all curves so far; of many rounds, the first tenth does not count."""
    late = [value for curve in curves.values() for value in curve[len(curve) // 10 :]]
    if not late:
        return _Frame(rounds, 0.0, times)
    low, high = min(late), max(late)
    room = max(0.08 * (high - low), 0.01 * times)
    return _Frame(rounds, max(low - room, 0.0), min(high + room, times))


def _axes(frame: _Frame) -> list[str]:
    """Lines across with their values, and the numbers of some rounds."""
    parts = []
    for value in _ticks(frame.low, frame.high):
        y = frame.y(value)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{_LINE}"/><text x="{_LEFT - 8}" y="{y + 4:.1f}" {_TEXT} '
            f'text-anchor="end">{value:.6g}</text>'
        )
    ground = _HEIGHT - _BOTTOM
    parts.append(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{ground}" y2="{ground}" stroke="{_SOFT}"/>'
    )
    for turn in {1.0, *_ticks(1, frame.rounds)}:
        if turn.is_integer():
            parts.append(
                f'<text x="{frame.x(turn):.1f}" y="{ground + 18}" {_TEXT} '
                f'text-anchor="middle">{turn:.0f}</text>'
            )
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`.

    >>> _ticks(83.0, 96.0)
    [85.0, 90.0, 95.0]
    """
    step = _step(high - low) if high > low else 1.0
    return [k * step for k in range(ceil(low / step), floor(high / step) + 1) if k]


def _step(width: float) -> float:
    """A round distance between lines.

    >>> _step(100.0), _step(7.0), _step(0.3)
    (20.0, 2.0, 0.1)
    """
    rough = width / _TICKS
    size = 10.0 ** floor(log10(rough))
    return float(next(size * each for each in (1, 2, 5, 10) if size * each >= 0.8 * rough))


def _curve(curve: Sequence[float], frame: _Frame, color: str, style: object) -> str:
    dashes = _DASHES.get(style, "5 1 1 1") if isinstance(style, str) else "5 1 1 1"
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    if len(curve) == 1:
        return f'<circle cx="{frame.x(1):.1f}" cy="{frame.y(curve[0]):.1f}" r="3" fill="{color}"/>'
    points = " ".join(f"{frame.x(n):.1f},{frame.y(value):.1f}" for n, value in enumerate(curve, 1))
    return (
        f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2.2" '
        f'clip-path="url(#{_CLIP})"{dashed}/>'
    )


def _spread(heights: Sequence[float]) -> list[float]:
    """The same heights, each far enough from the next for a line of text.

    >>> _spread([100.0, 102.0])
    [100.0, 117.0]
    """
    moved = list(heights)
    order = sorted(range(len(moved)), key=lambda n: moved[n])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + _APART)
    lowest = _HEIGHT - _BOTTOM
    over = max(moved, default=0.0) - lowest
    return [y - over for y in moved] if over > 0 else moved
