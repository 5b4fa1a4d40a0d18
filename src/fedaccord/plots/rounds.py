"""A small curve of what happened round by round, as SVG: quick enough for a page that is alive."""

from collections.abc import Sequence

_WIDTH, _HEIGHT = 640, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 12, 14, 30


def round_curve(
    values: Sequence[float | None],
    rounds: int,
    label: str,
    *,
    top: float | None = None,
    unit: str = "",
) -> str:
    """A line over the rounds of a slot; None where a round has no value, so the line has a gap.

    `label` says in words what is shown, to whoever cannot see it. The scale ends at `top`, by
    default at the largest value. The style sheet has the colours.

    >>> "polyline" in round_curve([3.0, 2.0, 1.5], 10, "how far the model moved")
    True
    """
    known = [value for value in values if value is not None]
    most = top or max(known, default=0.0) or 1.0
    rounds = max(rounds, len(values), 2)

    def x(number: int) -> float:
        return _LEFT + (number - 1) * (_WIDTH - _LEFT - _RIGHT) / (rounds - 1)

    def y(value: float) -> float:
        part = min(max(value / most, 0.0), 1.0)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    lines = "".join(
        f'<polyline class="curve" points="{" ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in part)}"/>'
        if len(part) > 1
        else f'<circle class="after" cx="{x(part[0][0]):.1f}" cy="{y(part[0][1]):.1f}" r="3"/>'
        for part in _parts(values)
    )
    last = [(n, v) for n, v in enumerate(values, start=1) if v is not None][-1:]
    dots = "".join(
        f'<circle class="after" cx="{x(n):.1f}" cy="{y(v):.1f}" r="4"/>' for n, v in last
    )
    floor = _HEIGHT - _BOTTOM
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_escaped(label)}">'
        f'<line class="axis" x1="{_LEFT}" y1="{floor}" x2="{_WIDTH - _RIGHT}" y2="{floor}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{floor}"/>'
        f"{_text(_LEFT - 6, _TOP + 5, f'{most:.3g}{unit}', 'end')}"
        f"{_text(_LEFT - 6, floor + 1, '0', 'end')}"
        f"{_text(_LEFT, _HEIGHT - 8, 'round 1', 'start')}"
        f"{_text(_WIDTH - _RIGHT, _HEIGHT - 8, f'{rounds:,}', 'end')}"
        f"{lines}{dots}</svg>"
    )


def _parts(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The stretches without a gap, each value with the number of its round."""
    parts: list[list[tuple[int, float]]] = [[]]
    for number, value in enumerate(values, start=1):
        if value is None:
            parts.append([])
        else:
            parts[-1].append((number, value))
    return [part for part in parts if part]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="label" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def _escaped(text: str) -> str:
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(sign, name)
    return text
