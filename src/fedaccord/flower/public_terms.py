"""From a consortium to terms under which nobody reports: what they say in public of each client."""

from typing import Any, Literal

from fedaccord.agreement.agreement import Objective
from fedaccord.agreement.punishment import Punishment
from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray

UnreportedKind = Literal["individual", "uniform", "everything", "clock", "serial clock"]
"""How amounts are found without reports. The first two are computed once, and posted."""


def public_terms(
    consortium: Consortium,
    kind: UnreportedKind = "individual",
    *,
    punishment: Punishment | Literal["suspension"] = "suspension",
    objective: Objective | None = None,
    margin: float = 0.0,
    reveal: bool = False,
) -> dict[str, Any]:
    """The rules by which nobody reports, with everything that they say of each client.

    Posted amounts are those of the agreement that holds for every combination of numbers within
    the consortium's ranges. Of these, the terms have the lowest ratio and discount factor, from
    which anyone can prove the amounts. All other kinds need nothing but the data sizes.

    Numbers that are exact would be revealed, which is refused unless `reveal` says that they are
    shared anyway.

    >>> from fedaccord.game.paper import paper_consortium
    >>> rules = public_terms(paper_consortium().within(0.3))
    >>> rules["agreement"], rules["public"]["client-3"]["contribution"]
    ('posted', 10000)
    """
    counted = zip(consortium.names, _sizes(consortium), strict=True)
    sizes = {name: {"samples": samples} for name, samples in counted}
    if kind in ("everything", "clock", "serial clock"):
        return {"reports": "none", "agreement": kind, "public": sizes}
    if consortium.ranges is None and not reveal:
        raise InvalidInput(
            "the numbers are exact, and posted amounts would reveal them: give ranges",
            field="reports",
        )
    agreement = solve_agreement(
        consortium,
        "uniform" if kind == "uniform" else "individual",
        objective=objective,
        margin=margin,
        whole_samples=True,
        punishment=punishment,
    )
    if not agreement.exists:
        raise InvalidInput(f"there are no amounts to post: {agreement.reason}", field="reports")
    posted = zip(
        consortium.names,
        agreement.profile.tolist(),
        consortium.ratio_range[0].tolist(),
        _lowest_discount_factor(consortium).tolist(),
        strict=True,
    )
    public = {
        name: {
            **sizes[name],
            "contribution": int(amount),
            "lowest_ratio": ratio,
            "lowest_discount_factor": delta,
        }
        for name, amount, ratio, delta in posted
    }
    return {"reports": "none", "agreement": "posted", "public": public}


def _lowest_discount_factor(consortium: Consortium) -> FloatArray:
    ranges = consortium.ranges
    return consortium.discount_factor if ranges is None else ranges.discount_factor[0]


def _sizes(consortium: Consortium) -> list[int]:
    """The clients' data sizes, which must be known: without reports nobody says them."""
    ranges = consortium.ranges
    unknown = ranges is not None and (ranges.samples[0] < ranges.samples[1]).any()
    if unknown or (consortium.samples % 1 > 0).any():
        raise InvalidInput(
            "without reports every client's samples must be one whole number, which somebody has "
            "verified",
            field="samples",
        )
    return [int(size) for size in consortium.samples.tolist()]
