"""What all pictures have in common: colours, ticks, plain axes."""

from typing import Any, Literal

from matplotlib.axes import Axes

from fedaccord.game.roles import Role

INK = "#222222"
ROLE_LOOK: dict[Role, dict[str, Any]] = {  # colours of Okabe and Ito, for all kinds of eyes
    Role.CONTRIBUTOR: {"facecolor": "#0072B2"},
    Role.PARTIAL_CONTRIBUTOR: {"facecolor": "#56B4E9", "hatch": "\\\\\\\\"},
    Role.CONVERTED_CONTRIBUTOR: {"facecolor": "#E69F00", "hatch": "////"},
}
STEPS = [1, 2, 5, 10]
"""Between ticks, in powers of ten."""


def plain(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """No more lines than help to read."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def with_commas(value: float, _: float | None) -> str:
    """A tick's label."""
    return f"{value:,.10g}"
