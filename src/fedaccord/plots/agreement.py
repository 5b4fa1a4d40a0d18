"""Pictures of an agreement: contributions, costs, thresholds."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.cost import cost
from fedaccord.game.roles import Role
from fedaccord.plots.axes import ROLE_LOOK, Canvas

_NO_PATIENCE = 1.08
"""Where a threshold is drawn that no discount factor reaches."""


def plot_contributions(agreement: Agreement, *, ax: Axes | None = None) -> Figure:
    """What each client contributes alone (outlined) and under the agreement (filled, by role).

    When there is no agreement, what it contributes alone is filled.
    """
    canvas = Canvas(agreement.consortium, ax)
    after, roles = canvas.take(agreement.profile), canvas.take(np.array(agreement.roles))
    filled = "agreement" if agreement.exists else "equilibrium"
    for role, look in ROLE_LOOK.items():
        canvas.fill(after, roles == role, f"{filled}: {role}", look)
    canvas.cross(after, roles == Role.FREE_RIDER, f"{filled}: {Role.FREE_RIDER}")
    before = canvas.take(agreement.equilibrium.profile)
    if agreement.exists:
        canvas.outline(before, "equilibrium: trained on alone")
    largest = float(max(before.max(), after.max()))
    return canvas.finish("Contribution (samples in a slot)", (0.0, 1.05 * largest))


def plot_costs(agreement: Agreement, *, ax: Axes | None = None) -> Figure:
    """What a slot costs each client alone and under the agreement, above the unavoidable cost.

    The unavoidable cost is the accuracy loss that only more rounds could lower, communication
    and the server's fee: it is the same in both cases, and so large that it would hide the rest.
    """
    canvas = Canvas(agreement.consortium, ax)
    unavoidable = cost(agreement.consortium, 0.0, np.inf)
    before = canvas.take(agreement.equilibrium.cost - unavoidable)
    after = canvas.take(agreement.cost - unavoidable)
    after[np.isinf(after)] = np.nan  # when nobody contributes there is nothing to draw
    canvas.pair(before, after, ("equilibrium", "agreement"))
    largest = float(np.nanmax([before, after]))
    return canvas.finish("Cost of a slot, above the unavoidable", (0.0, 1.05 * largest))


def plot_thresholds(certificate: Certificate, *, ax: Axes | None = None) -> Figure:
    """How patient each client must be for the agreement to hold, and how patient it is."""
    canvas = Canvas(certificate.agreement.consortium, ax)
    needed = np.minimum(canvas.take(certificate.threshold), _NO_PATIENCE)
    has = canvas.take(certificate.agreement.consortium.discount_factor)
    canvas.pair(needed, has, ("threshold (required)", "discount factor (its own)"))
    canvas.cross(needed, ~canvas.take(certificate.keeps), "does not keep to it")
    hopeless = bool((needed == _NO_PATIENCE).any())
    if hopeless:
        canvas.mark(1.0, "from here on no patience is enough")
    return canvas.finish("Discount factor", (-0.03, 1.15 if hopeless else 1.03))
