"""Terms under which nobody reports, for the consortia of `tests.flower.consortia`."""

from collections.abc import Sequence
from typing import Any

from fedaccord.agreement.solve import solve_agreement
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.terms import Terms
from tests.flower.consortia import privates_of, terms_of

NAMES = ("a", "b", "c", "d", "e")
KINDS = ("posted", "everything", "clock", "serial clock")


def lowest_of(names: Sequence[str] = NAMES, within: float = 0.3) -> Consortium:
    """The clients with the lowest ratios that they may have, if these are known to 30 %."""
    privates = privates_of(names)
    return Consortium(
        valuation=[(1.0 - within) * private.ratio for private in privates],
        cost_per_sample=1.0,
        samples=[private.samples for private in privates],
        discount_factor=0.7,
        rounds=2,
        names=list(names),
    )


def public_of(kind: str, names: Sequence[str] = NAMES) -> dict[str, dict[str, Any]]:
    """What the terms say about each client."""
    sizes = {private.name: {"samples": private.samples} for private in privates_of(names)}
    if kind != "posted":
        return sizes
    lowest = lowest_of(names)
    amounts = solve_agreement(
        lowest, punishment="suspension", objective="most data", whole_samples=True, margin=0.1
    ).profile
    return {
        name: {
            **sizes[name],
            "contribution": int(amount),
            "lowest_ratio": float(ratio),
            "lowest_discount_factor": 0.7,
        }
        for name, amount, ratio in zip(names, amounts, lowest.ratio, strict=True)
    }


def unreported(kind: str, names: Sequence[str] = NAMES, **changes: Any) -> Terms:
    """Terms of this kind; a clock has few steps, to be quick."""
    given = {"agreement": kind, "public": public_of(kind, names), "punishment_slots": 1}
    steps = {"clock_steps": 8} if "clock" in kind else {}
    return terms_of(names, **(given | steps | changes))
