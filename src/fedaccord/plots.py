"""Pictures of an agreement, a match and a training. Results in, figures out.

Clients stand in ascending order of their ratio (valuation / cost per sample), the order in
which they stop free-riding. Few are named, many become bars, very many areas. Everything can
be told apart without colour, too: by hatches, markers and dashes.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.arrays import BoolArray, FloatArray
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.roles import Role
from fedaccord.play.book import Event
from fedaccord.play.deviators import Deviator
from fedaccord.play.match import Match
from fedaccord.play.tolerance import Tolerance

if TYPE_CHECKING:  # PyTorch is heavy, and only needed where something is trained
    from fedaccord.baselines.comparison import MechanismComparison
    from fedaccord.training.calibration import Losses
    from fedaccord.training.comparison import Comparison
    from fedaccord.training.course import TrainingRun

NAMED = 40
"""Up to this many clients have a row of their own, with their name."""
BARS = 300
"""Up to this many have a bar; beyond, bars would be thinner than the gaps between them."""
DRAWN = 1000
"""Of more clients than this only every so manieth is drawn: a page has no more columns."""

_INK = "#222222"
_ROLE_LOOK: dict[Role, dict[str, Any]] = {  # colours of Okabe and Ito, for all kinds of eyes
    Role.CONTRIBUTOR: {"facecolor": "#0072B2"},
    Role.PARTIAL_CONTRIBUTOR: {"facecolor": "#56B4E9", "hatch": "\\\\\\\\"},
    Role.CONVERTED_CONTRIBUTOR: {"facecolor": "#E69F00", "hatch": "////"},
}
_EVENT_LOOK: dict[str, dict[str, Any]] = {
    "deviation": {"marker": "x", "markersize": 7, "markeredgewidth": 2},
    "false alarm": {"marker": "^", "markersize": 6, "markerfacecolor": "none"},
    "absence": {"marker": "|", "markersize": 8},
}
_STEPS = [1, 2, 5, 10]
"""Between ticks, in powers of ten."""
_NO_PATIENCE = 1.08
"""Where a threshold is drawn that no discount factor can meet."""


def plot_contributions(agreement: Agreement) -> Figure:
    """What each client contributes alone (outlined) and under the agreement (filled, by role)."""
    canvas = _Canvas(agreement.consortium)
    after, roles = canvas.take(agreement.profile), canvas.take(np.array(agreement.roles))
    for role, look in _ROLE_LOOK.items():
        canvas.fill(after, roles == role, f"agreement: {role}", look)
    canvas.cross(after, roles == Role.FREE_RIDER, f"agreement: {Role.FREE_RIDER}")
    before = canvas.take(agreement.equilibrium.profile)
    canvas.outline(before, "equilibrium: what it gives alone")
    largest = float(max(before.max(), after.max()))
    return canvas.finish("Contribution (samples in a slot)", (0.0, 1.05 * largest))


def plot_costs(agreement: Agreement) -> Figure:
    """What a slot costs each client alone and under the agreement, less the unavoidable.

    That is the accuracy loss which only more rounds could lower, communication and the
    server's fee: the same before and after, and so large that they would hide the rest.
    """
    canvas = _Canvas(agreement.consortium)
    unavoidable = cost(agreement.consortium, 0.0, np.inf)
    before = canvas.take(agreement.equilibrium.cost - unavoidable)
    after = canvas.take(agreement.cost - unavoidable)
    after[np.isinf(after)] = np.nan  # when nobody contributes there is nothing to draw
    canvas.pair(before, after, ("equilibrium", "agreement"))
    largest = float(np.nanmax([before, after]))
    return canvas.finish("Cost of a slot, above the unavoidable", (0.0, 1.05 * largest))


def plot_thresholds(certificate: Certificate) -> Figure:
    """How patient each client must be for the agreement to hold, and how patient it is."""
    canvas = _Canvas(certificate.agreement.consortium)
    needed = np.minimum(canvas.take(certificate.threshold), _NO_PATIENCE)
    has = canvas.take(certificate.agreement.consortium.discount_factor)
    canvas.pair(needed, has, ("threshold (needed)", "discount factor (its own)"))
    canvas.cross(needed, ~canvas.take(certificate.keeps), "would slip")
    hopeless = bool((needed == _NO_PATIENCE).any())
    if hopeless:
        canvas.mark(1.0, "from here on no patience is enough")
    return canvas.finish("Discount factor", (-0.03, 1.15 if hopeless else 1.03))


# --- A match -------------------------------------------------------------------------------


def plot_totals(match: Match) -> Figure:
    """All samples trained on in each slot, punishments shaded, with the two levels."""
    agreement = match.agreement
    figure, [axes] = _slot_axes([4.0])
    legend = _shade(axes, match.punishing) if agreement.exists else []
    levels: list[tuple[str, float, Any]] = [("equilibrium", agreement.equilibrium.total, ":")]
    if agreement.exists:
        levels.insert(0, ("agreement", agreement.total, "--"))
    for label, total, dashes in levels:
        legend.append(axes.axhline(total, color=_INK, linewidth=1.2, linestyle=dashes, label=label))
    step = -(-match.slots // DRAWN)
    label = "trained on" if step == 1 else f"trained on, one slot in {step}"
    edges = np.append(np.arange(0, match.slots, step), match.slots) + 0.5
    style: dict[str, Any] = {"baseline": None, "color": "#0072B2", "linewidth": 2.0}
    legend.append(axes.stairs(match.totals[::step], edges, label=label, **style))
    largest = max(agreement.total, agreement.equilibrium.total, float(match.totals.max()))
    axes.set(ylim=(0.0, 1.08 * largest), ylabel="Samples trained on in the slot")
    axes.set_xlim(0.5, match.slots + 0.5)
    return _finish_slots(figure, [axes], legend)


def plot_events(match: Match) -> Figure:
    """A strip of the phases, and when clients slipped, were wronged, or were absent."""
    kinds = [kind for kind in _EVENT_LOOK if any(e.kind == kind for e in match.events)]
    figure, [axes] = _slot_axes([0.6 + 0.35 * len(kinds)])
    axes.grid(visible=False)
    rows = {"phase": len(kinds)} | {kind: len(kinds) - 1 - k for k, kind in enumerate(kinds)}
    legend = _shade(axes, match.punishing, (rows["phase"] - 0.35, rows["phase"] + 0.35))
    legend.append(
        axes.broken_barh(
            _runs(~match.punishing),
            (rows["phase"] - 0.35, 0.7),
            facecolor="#0072B2",
            label="cooperating",
        )
    )
    for kind in kinds:
        slots = sorted({s for e in match.events if e.kind == kind for s in _slots_of(e)})
        axes.plot(slots, [rows[kind]] * len(slots), linestyle="", color=_INK, **_EVENT_LOOK[kind])
    axes.set_yticks(list(rows.values()), list(rows))
    axes.set(ylim=(-0.5, len(kinds) + 0.5), xlim=(0.5, match.slots + 0.5))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return _finish_slots(figure, [axes], legend)


def plot_slip(deviator: Deviator) -> Figure:
    """What a client's slips cost it: its costs with and without, and the way between them."""
    figure, [above, below] = _slot_axes([2.2, 2.4])
    x = deviator.slots
    marker: dict[str, Any] = {"markersize": 5.0, "markevery": max(1, x.size // 20)}
    solid: dict[str, Any] = {"marker": "o", "color": "#D55E00", "linewidth": 2.0}
    dashed: dict[str, Any] = {"marker": "D", "color": "#0072B2", "linewidth": 2.0}
    legend = [
        *above.plot(x, deviator.paid, label="with its slips", **solid, **marker),
        *above.plot(x, deviator.paid_if_kept, "--", label="without", **dashed, **marker),
    ]
    legend += below.plot(x, deviator.extra, label="the one less the other", color=_INK, linewidth=2)
    for_ever: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.4, "linestyle": ":"}
    if np.isfinite(deviator.extra_for_ever):
        line = below.axhline(deviator.extra_for_ever, label="the same, for ever after", **for_ever)
        legend.append(line)
    below.axhline(0.0, color=_INK, linewidth=0.8)
    above.set_ylabel("Cost so far,\nabove the unavoidable")
    below.set_ylabel("Lost so far\n(below 0: saved)")
    below.set_xlim(x[0] - 0.5, x[-1] + 0.5)
    for axes in (above, below):
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    return _finish_slots(figure, [above, below], legend)


def plot_tolerance(best: Tolerance, used: float) -> Figure:
    """What each tolerance costs all clients together, the best one and the one in use."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    _plain(axes)
    legend = axes.plot(
        100 * best.tolerances, best.total_costs, label="cost", color="#0072B2", linewidth=2.0
    )
    lowest = float(best.cost.sum())
    style: dict[str, Any] = {"linestyle": "", "marker": "v", "markersize": 9, "color": "#D55E00"}
    legend += axes.plot(100 * best.tolerance, lowest, label="least", **style)
    if used != best.tolerance:
        legend.append(
            axes.axvline(100 * used, color=_INK, linewidth=1.2, linestyle="--", label="in use")
        )
    axes.set_xlabel("Tolerance (% of what was agreed)")
    axes.set_ylabel("Expected discounted cost\nof all clients")
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    axes.yaxis.set_major_formatter(_with_commas)
    figure.legend(handles=legend, loc="outside upper left", ncols=3, frameon=False)
    return figure


def _slot_axes(heights: list[float]) -> tuple[Figure, list[Axes]]:
    """Axes one above the other, all over the same slots."""
    figure = Figure(figsize=(8.0, sum(heights) + 0.9), layout="constrained")
    grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes in grid[:, 0]:
        _plain(axes)
    return figure, list(grid[:, 0])


def _finish_slots(figure: Figure, all_axes: list[Axes], legend: list[Any]) -> Figure:
    for axes in all_axes:
        if axes.get_ylabel():
            axes.yaxis.set_major_formatter(_with_commas)
    last = all_axes[-1]
    last.set_xlabel("Slot")
    last.xaxis.set_major_locator(MaxNLocator(10, integer=True, steps=_STEPS))
    last.xaxis.set_major_formatter(_with_commas)
    figure.legend(handles=legend, loc="outside upper left", ncols=4, frameon=False)
    return figure


def _shade(axes: Axes, punishing: BoolArray, span: tuple[float, float] | None = None) -> list[Any]:
    """Shade the slots of punishment, over the whole height or within `span`."""
    look: dict[str, Any] = {"facecolor": "#E6E6E6", "edgecolor": "#AAAAAA", "hatch": "////"}
    runs = _runs(punishing)
    if not runs:
        return []
    height = (0.0, 1.0) if span is None else (span[0], span[1] - span[0])
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform()} if span is None else {}
    return [axes.broken_barh(runs, height, linewidth=0.0, label="punishing", **look, **where)]


def _runs(chosen: BoolArray) -> list[tuple[float, float]]:
    """Where slots begin that are chosen, and how many there are in a row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
    return [(first + 0.5, last - first) for first, last in edges.reshape(-1, 2).tolist()]


def _slots_of(event: Event) -> range:
    return range(event.slot, event.slot + int(event.lasted))


# --- A training ----------------------------------------------------------------------------

_PROFILE_LOOK: list[dict[str, Any]] = [
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": ":"},
    {"color": "#222222", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
]


def plot_learning(comparison: "Comparison") -> Figure:
    """Test accuracy and test loss, round by round: the mean over seeds, from least to most."""
    figure, [above, below] = _slot_axes([2.6, 2.2])
    slots = len(comparison.runs[0].slots)
    legend: list[Any] = []
    for k, score in enumerate(comparison.scores):
        look = _PROFILE_LOOK[k % len(_PROFILE_LOOK)] | {"linewidth": 1.8}
        curves = [_curves(run) for run in comparison.of(score.profile)]
        where = curves[0][0]
        for axes, field in ((above, 1), (below, 2)):
            values = np.array([curve[field] for curve in curves])
            line = axes.plot(where, values.mean(axis=0), label=score.profile, **look)
            axes.fill_between(
                where, values.min(axis=0), values.max(axis=0), color=look["color"], alpha=0.15
            )
            legend += line if axes is above else []
    punishing = np.zeros(slots, dtype=np.bool_)
    for run in comparison.runs:
        punishing |= np.array([slot.phase == "punishing" for slot in run.slots])
    legend += _shade(above, punishing, None)
    _shade(below, punishing, None)
    above.set_ylabel("Test accuracy (%)")
    below.set_ylabel("Test loss")
    above.set_ylim(bottom=_after_the_start(above))
    below.set_ylim(top=-_after_the_start(below, sign=-1.0))
    for axes in (above, below):
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    _finish_slots(figure, [above, below], legend)
    if slots == 1:
        below.set_xlabel("Round")
        below.set_xlim(0.0, float(comparison.course.rounds))
    else:
        below.set_xlim(0.5, slots + 0.5)
    return figure


def plot_law(losses: "Losses") -> Figure:
    """Measured losses (marks) and the law fitted to them (lines), against data and by rounds."""
    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    _plain(axes)
    law, at_the_end = losses.law(), losses.law_at_the_end()
    smooth = np.geomspace(losses.totals[0], losses.totals[-1], 100)
    shades = np.linspace(0.75, 0.0, len(losses.turns))
    legend: list[Any] = []
    for k, turn in enumerate(losses.turns.tolist()):
        style: dict[str, Any] = {"color": str(shades[k])}
        marker = "osD^vPX*"[k % 8]
        axes.plot(smooth, law.predict(smooth, np.full(100, float(turn))), linewidth=1.0, **style)
        label = f"G = {turn}"
        legend += axes.plot(losses.totals, losses.mean[:, k], marker, label=label, **style)
    end = at_the_end.predict(smooth, np.full(100, float(losses.turns[-1])))
    dashed: dict[str, Any] = {"linestyle": "--", "color": "#D55E00", "linewidth": 2.0}
    legend += axes.plot(smooth, end, label=f"law at G = {losses.turns[-1]} alone", **dashed)
    axes.set(xscale="log", xlabel="Samples trained on in a round, X", ylabel="Test loss")
    axes.xaxis.set_major_formatter(_with_commas)
    figure.legend(handles=legend, loc="outside right center", frameon=False)
    verdict = "fits" if law.fits else "does not fit"
    axes.set_title(
        f"a / √(XG) + b / G + c (lines) {verdict}: it explains {100 * law.explained:.0f} % "
        "of the variance",
        loc="left",
        fontsize="medium",
    )
    return figure


def _after_the_start(axes: Axes, sign: float = 1.0) -> float:
    """Where to cut the axis: the first tenth of the rounds would press the rest together."""
    curves = [sign * np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.get_lines()]
    lowest = min(float(curve[curve.size // 10 :].min()) for curve in curves)
    highest = max(float(curve.max()) for curve in curves)
    return lowest - 0.05 * (highest - lowest)


def _curves(run: "TrainingRun") -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where each round stands on the axis of slots (one slot: of rounds), and its scores."""
    places, accuracies, losses = [], [], []
    for record in run.slots:
        scores = record.rounds or (record.final,)
        steps = np.arange(1, len(scores) + 1)
        one = len(run.slots) == 1
        places.append(steps if one else record.slot - 0.5 + steps / len(scores))
        accuracies += [100 * score.accuracy for score in scores]
        losses += [score.loss for score in scores]
    return np.concatenate(places), np.array(accuracies), np.array(losses)


# --- Clients in order ----------------------------------------------------------------------


class _Canvas:
    """Axes on which clients stand in ascending order of their ratio: named rows, or columns."""

    def __init__(self, consortium: Consortium) -> None:
        order = np.argsort(consortium.ratio, kind="stable")
        self.step = -(-order.size // DRAWN)
        self.order = order[:: self.step]
        self.ranks = 1.0 + np.arange(0, order.size, self.step)
        self.names = consortium.names
        self.named = consortium.size <= NAMED
        self.legend: list[Any] = []
        height = 1.2 + 0.38 * max(consortium.size, 2) if self.named else 4.2
        self.figure = Figure(figsize=(8.0, height), layout="constrained")
        self.axes: Axes = self.figure.add_subplot()
        _plain(self.axes, "x" if self.named else "y")

    def take(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What is drawn of one value a client, in order."""
        return values[self.order]

    def fill(
        self, values: FloatArray, members: BoolArray, label: str, look: dict[str, Any]
    ) -> None:
        """Bars or areas from 0 for some of the clients."""
        if not members.any():
            return
        style = look | {"label": label, "edgecolor": "white", "linewidth": 0.0}
        ranks, amounts = self.ranks[members], values[members]
        if self.named:
            self.legend.append(self.axes.barh(ranks, amounts, height=0.66, **style))
        elif self.ranks.size <= BARS:
            self.legend.append(self.axes.bar(ranks, amounts, width=1.0, **style))
        else:
            heights = np.where(members, values, 0.0)
            self.legend.append(self.axes.fill_between(self.ranks, heights, step="mid", **style))

    def outline(self, values: FloatArray, label: str) -> None:
        """The outline of bars from 0, over whatever is filled."""
        if self.named:
            style: dict[str, Any] = {"fill": False, "edgecolor": _INK, "linewidth": 1.6}
            drawn: Any = self.axes.barh(self.ranks, values, height=0.66, label=label, **style)
        else:
            edges = np.append(self.ranks, self.ranks[-1] + self.step) - 0.5 * self.step
            width = 1.6 if self.ranks.size <= BARS else 0.8
            drawn = self.axes.stairs(values, edges, color=_INK, linewidth=width, label=label)
        self.legend.append(drawn)

    def pair(self, first: FloatArray, second: FloatArray, labels: tuple[str, str]) -> None:
        """Two values a client, the first open, the second full, and the way between them."""
        size = 1.0 if self.named else 0.5 if self.ranks.size <= BARS else 0.3
        way = self.axes.hlines if self.named else self.axes.vlines
        shade = "#CCCCCC" if self.ranks.size <= BARS else "#EAEAEA"
        way(self.ranks, first, second, color=shade, linewidth=3.0 * size, zorder=1)
        hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "color": "#D55E00"}
        full: dict[str, Any] = {"marker": "D", "markeredgewidth": 0.0, "color": "#0072B2"}
        self._points(first, labels[0], markersize=11 * size, **hollow)
        self._points(second, labels[1], markersize=7 * size, **full)

    def cross(self, values: FloatArray, members: BoolArray, label: str) -> None:
        """A cross at the value of some of the clients."""
        if members.any():
            style: dict[str, Any] = {"marker": "x", "markersize": 7 if self.named else 4}
            self._points(np.where(members, values, np.nan), label, color=_INK, zorder=4, **style)

    def _points(self, values: FloatArray, label: str, **style: Any) -> None:
        along = (values, self.ranks) if self.named else (self.ranks, values)
        self.legend += self.axes.plot(*along, linestyle="", label=label, clip_on=False, **style)

    def mark(self, value: float, label: str) -> None:
        """A dotted line at a value."""
        line = self.axes.axvline if self.named else self.axes.axhline
        self.legend.append(line(value, color=_INK, linewidth=1.0, linestyle=":", label=label))

    def finish(self, value_label: str, limits: tuple[float, float]) -> Figure:
        """Label the axes, and put the legend above them, where it hides nothing."""
        around = (0.4, self.ranks[-1] + 0.6)
        if self.named:
            self.axes.set(xlim=limits, ylim=around, xlabel=value_label)
            self.axes.set_yticks(self.ranks, [self.names[n] for n in self.order])
            for label in self.axes.get_yticklabels():
                label.set_parse_math(False)  # a name may hold dollar signs
            values: Axis = self.axes.xaxis
        else:
            self.axes.set(ylim=limits, xlim=around, ylabel=value_label)
            who = "Clients" if self.step == 1 else f"One client in {self.step}"
            self.axes.set_xlabel(f"{who}, by ascending ratio (valuation / cost per sample)")
            self.axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=_STEPS))
            self.axes.xaxis.set_major_formatter(_with_commas)
            values = self.axes.yaxis
        values.set_major_locator(MaxNLocator(6, steps=_STEPS))
        values.set_major_formatter(_with_commas)
        self.figure.legend(handles=self.legend, loc="outside upper left", ncols=2, frameon=False)
        return self.figure


def _plain(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """No more lines than help to read."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def _with_commas(value: float, _: float | None) -> str:
    return f"{value:,.10g}"


# --- Mechanisms ----------------------------------------------------------------------------


def plot_mechanisms(comparison: "MechanismComparison") -> Figure:
    """Mechanisms side by side: who contributes, how much, and what all clients save by it."""
    entries = comparison.entries[::-1]  # rows are counted from below
    places = np.arange(len(entries))
    figure = Figure(figsize=(8.0, 1.5 + 0.42 * len(entries)), layout="constrained")
    people, data, money = figure.subplots(1, 3, sharey=True, width_ratios=[1.2, 1.0, 1.0])
    looks = _ROLE_LOOK | {Role.FREE_RIDER: {"facecolor": "white", "edgecolor": _INK}}
    start = np.zeros(len(entries))
    for role, look in looks.items():
        count = np.array([entry.outcome.roles.count(role) for entry in entries], dtype=np.float64)
        style: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6} | look
        some = count > 0
        if some.any():
            where: dict[str, Any] = {"left": start[some], "height": 0.66, "label": str(role)}
            people.barh(places[some], count[some], **where, **style)
        start += count
    holds = np.array([entry.self_enforcing for entry in entries])
    totals = np.array([entry.outcome.total for entry in entries])
    _bars_by_verdict(data, places, totals, holds, labelled=True)
    costs = np.array([entry.total_cost for entry in entries])
    saved = np.where(np.isfinite(costs), comparison.equilibrium.cost.sum() - costs, np.nan)
    _bars_by_verdict(money, places, saved, holds, labelled=False)
    for place in places[np.isnan(saved)].tolist():
        at: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        money.annotate("nobody trains", (0.0, place), fontsize=8, **at)
    money.axvline(0.0, color=_INK, linewidth=0.8)
    people.set_yticks(places, [entry.name for entry in entries])
    labels = ("Clients", "Samples in a slot", "Saved by all clients")
    for axes, label in zip((people, data, money), labels, strict=True):
        _plain(axes, "x")
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(3, steps=_STEPS))
        axes.xaxis.set_major_formatter(_with_commas)
    for text in people.get_yticklabels():
        text.set_parse_math(False)  # a name may hold dollar signs
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    return figure


def _bars_by_verdict(
    axes: Axes, places: np.ndarray[Any, Any], values: FloatArray, holds: BoolArray, labelled: bool
) -> None:
    """A bar a mechanism, hatched for those that do not hold by themselves."""
    style: dict[str, Any] = {"height": 0.66, "color": "#777777", "edgecolor": "white"}
    for members, label, hatch in (
        (holds, "holds by itself", None),
        (~holds, "needs someone to enforce it", "////"),
    ):
        if members.any():
            name = label if labelled else "_" + label  # matplotlib leaves those out of the legend
            axes.barh(places[members], values[members], label=name, hatch=hatch, **style)
