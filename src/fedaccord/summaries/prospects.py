"""What terms mean for one member, said to itself: on its own machine, from its own numbers."""

from fedaccord.numbers import count, write
from fedaccord.protocol.private import Private
from fedaccord.protocol.prospects import Prospect
from fedaccord.protocol.terms import FROM_REPORTS, Terms

LAW_NOTE = (
    "All of this is by the law of the loss in the terms, in the unit of your valuation, for one "
    "slot. It was calculated on this machine, and nobody else sees it."
)
"""What the sentences rest on."""


def prospect_sentences(prospect: Prospect) -> list[str]:
    """What it pays alone, what it may be asked, and what a slip would cost it."""
    alone = write([prospect.alone_cost])[0]
    own, terms = prospect.private, prospect.terms
    said = [
        f"Alone, with a model of your own, you would train on "
        f"{_samples(prospect.alone_samples)} of your {own.samples:,}, and a slot would cost you "
        f"{alone}."
    ]
    if prospect.judgement is not None:
        return said + _posted(prospect)
    if terms.clock_steps is not None:
        return [*said, _clock(terms), _bounded(alone)]
    return [*said, _reported(own), _bounded(alone)]


def _posted(prospect: Prospect) -> list[str]:
    judgement, amount, total = prospect.judgement, prospect.amount or 0, prospect.total or 0
    assert judgement is not None  # or amounts are not posted
    row = judgement.row
    asked = (
        f"In every slot you are asked to train on {_samples(amount)}, and the model is trained on "
        f"{total:,} in all."
    )
    if row is None:
        return [asked, f"Your node would refuse: {judgement.reason}."]
    agreed, punished, slip = write([row.cost_agreement, row.cost_punished, row.cost_deviation])
    said = [asked, f"A slot then costs you {agreed}{_beside(prospect, row.cost_agreement)}."]
    gain = row.cost_agreement - row.cost_deviation
    if row.gives_more or gain <= 0:
        said.append(
            "You would gain nothing by training on less. If you slipped all the same, you would "
            f"get no model {prospect.terms.after_slip.duration}, and pay {punished} in a slot."
        )
    else:
        once, lost = write([gain, row.cost_punished - row.cost_agreement])
        said.append(
            f"Your best slip is to train on {_samples(row.deviation)}: that slot costs you {slip}, "
            f"{once} less. Then you get no model {prospect.terms.after_slip.duration} and pay "
            f"{punished} in a slot, {lost} more."
        )
    verdict = "your node will accept it" if judgement.accepts else "your node would refuse it"
    why = "Keeping to it pays with your numbers" if judgement.accepts else str(judgement.reason)
    return [*said, f"{why[:1].upper()}{why[1:]}: {verdict}."]


def _beside(prospect: Prospect, cost: float) -> str:
    less = prospect.alone_cost - cost
    amount = write([abs(less)])[0]
    return f", {amount} less than alone" if less >= 0 else f", {amount} MORE than alone"


def _reported(own: Private) -> str:
    return (
        "Your amount is not known before a slot begins: it is computed from what all members "
        f"report then. It is never more than your {_samples(own.samples)}."
    )


def _clock(terms: Terms) -> str:
    return (
        "Your amount is not known before a slot begins: a clock raises everyone's share in "
        f"{terms.clock_steps} steps, and your node stops it for you where the next step would no "
        "longer pay with your numbers."
    )


def _bounded(alone: str) -> str:
    return (
        "Your node checks every offer with your own numbers. It refuses whatever you would gain by "
        f"breaking, so no offer that it accepts costs you more than {alone} in a slot."
    )


def _samples(amount: float) -> str:
    whole = f"{amount:,.0f}"
    return f"{whole} sample" if whole == "1" else f"{whole} samples"


def revealed_sentences(own: Private, terms: Terms) -> list[str]:
    """Which of a member's numbers leave its machine while slots run, and which never do."""
    if terms.reports == "none":
        what = "at which share you stop the clock" if terms.clock_steps else "that you are there"
        said = [
            f"None of these numbers leaves this machine. The server learns {what}, and whether "
            "you accept what you are offered."
        ]
    else:
        told = [f"your ratio, valuation / cost per sample = {own.ratio:.6g}"]
        told.append(f"that you have {count(own.samples, 'sample')}")
        if own.tells_discount_factor:
            told.append(f"your discount factor, {own.discount_factor:g}")
        if terms.fees_saved:
            fees = (own.communication_cost + terms.server_fee) / own.cost_per_sample
            told.append(f"that what you save while you are suspended is worth {fees:.4g} samples")
        said = [
            f"When a slot begins, the server learns {_and(told)}. The valuation and the cost "
            "themselves never leave this machine."
        ]
        if terms.agreement in FROM_REPORTS:
            said.append(
                "The amounts that are offered follow from everyone's reports, so they say "
                "something about them. With its offer each member is told the total that all would "
                "train on without an agreement; from it the other members can work out the ratio "
                "of the one member that would then train on a part of its samples, which may be "
                "yours."
            )
    if terms.audits is not None:
        said.append("It also gets a digest that commits you to your records, not the records.")
    return said


def _and(parts: list[str]) -> str:
    return ", and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
