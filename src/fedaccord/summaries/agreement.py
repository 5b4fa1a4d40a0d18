"""What is said about an agreement, in sentences; `clients` has its tables."""

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.coalition import Coalition
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.solution import (
    all_would_keep_to,
    group_that_would_go,
    slipping_if_one_is_out,
)
from fedaccord.game.consortium import Consortium
from fedaccord.game.social_optimum import SocialOptimum, price_of_anarchy
from fedaccord.numbers import FloatArray, count, patience, write
from fedaccord.summaries.words import (
    NO_HINTS,
    Hints,
    Noun,
    ends_of,
    hinted,
    listed,
    names_of,
    with_noun,
)
from fedaccord.summaries.worth import good_news


def consortium_sentence(consortium: Consortium) -> str:
    """How large the consortium is, and how its samples are counted."""
    samples = write([float(consortium.samples.sum())])[0]
    counted = "" if consortium.equal_quality else "; totals count samples by their quality"
    return (
        f"{count(consortium.size, 'client')} with {samples} samples in total, "
        f"{count(consortium.rounds, 'round')} in a slot{counted}"
    )


def title(certificate: Certificate) -> str:
    """The whole answer in a few words."""
    agreement = certificate.agreement
    if good_news(agreement):
        return "Everyone trains on all it has, without an agreement"
    if not agreement.exists:
        return none_exists(agreement)
    if not certificate.holds:
        return "This profile would not hold"
    if agreement.equilibrium.total == 0:
        return "An agreement that holds, where nobody would train without one"
    return f"An agreement that holds, with {agreement.ratio:,.2f} times the data"


def summary(certificate: Certificate, noun: Noun = "client") -> str:
    """What they do without an agreement, what is agreed, and what they gain by it."""
    agreement = certificate.agreement
    equilibrium, size = agreement.equilibrium, agreement.consortium.size
    before, after = write([equilibrium.total, agreement.total])
    selfish = f"Left to themselves, they would train on {before} samples in a slot"
    if equilibrium.total == 0:
        selfish = "Left to themselves, nobody would train at all"
    elif equilibrium.free_riders:
        riders = so_many(equilibrium.free_riders, size, noun)
        selfish += f", and {riders} would contribute nothing"
    if not agreement.exists:
        return f"{selfish}. {why_none(agreement, noun)}"
    contributing = so_many(size - agreement.free_riders, size, noun)
    times = f", {agreement.ratio:,.2f} times as many" if equilibrium.total > 0 else ""
    agreed = f"Here {contributing} contribute, and together they train on {after} samples{times}."
    if not certificate.holds:
        return f"{selfish}. {agreed} But {_who_does_not_keep(certificate, noun)}."
    better = so_many(int((agreement.saving > 0).sum()), size, noun).capitalize()
    worse = int(agreement.worse_than_equilibrium.sum())
    dearer = f", and {worse:,} would pay more" if worse else ""
    return f"{selfish}. {agreed} {better} would pay less than without the agreement{dearer}."


def verdict(certificate: Certificate, noun: Noun = "client") -> str:
    """What the certificate says."""
    agreement = certificate.agreement
    if good_news(agreement):
        return f"No {noun} gains by training on less, and none could train on more."
    if not agreement.exists and certificate.holds:
        return "Without one everyone acts selfishly: the equilibrium, which holds by itself."
    if certificate.holds:
        worst = certificate.worst
        return (
            f"Proved: no {noun} gains by slipping{_threat(agreement, noun)}. "
            f"The one closest to slipping is {certificate.worst_client}: it needs a discount "
            f"factor of at least {patience(certificate.threshold[worst])} and has "
            f"{patience(certificate.agreement.consortium.discount_factor[worst])}."
        )
    seen = "" if agreement.monitoring.is_plain else f" ({agreement.monitoring})"
    refuted = f"Refuted, with {agreement.punishment}{seen}"
    if certificate.keeps.all() and certificate.punishment_holds.all():
        over = certificate.over_ranges
        if agreement.ranges is not None and over is not None and not over.holds:
            name = agreement.consortium.names[over.worst]
            return (
                f"{refuted}: it holds for the numbers as stated, but not for all within their "
                f"ranges, {name} first of all."
            )
        return f"{refuted}: it holds for the fitted law, but not for all that fit."
    if certificate.keeps.all():
        return (
            f"{refuted}: a {noun} would gain by not carrying out the punishment, "
            "so the punishment deters nobody."
        )
    who = _who_does_not_keep(certificate, noun)
    return f"{refuted}: {who}, {certificate.worst_client} first of all."


def solution_sentences(
    certificate: Certificate,
    optimum: SocialOptimum,
    exists_from: float | None,
    hints: Hints = NO_HINTS,
) -> list[str]:
    """What was found: the verdict, how a uniform agreement is built, and what is best for all.

    `exists_from` is the discount factor above which an agreement exists, if there is one.
    """
    agreement = certificate.agreement
    if agreement.exists:
        said = [" ".join(filter(None, [verdict(certificate), nobody_trains(agreement)]))]
    else:
        said = [why_none(agreement)]
    if agreement.exists and agreement.level is not None:
        level, largest = write([agreement.level, agreement.largest_level or 0.0])
        counted = "" if agreement.consortium.equal_quality else " of quality 1"
        said.append(
            f"{agreement.first_converted} is the first free rider converted. Converted clients "
            f"contribute {level} samples{counted} each, or all they have; "
            f"{agreement.first_converted} saves at any level below {largest}."
        )
    if exists_from is not None and exists_from > agreement.margin:
        article = "an" if agreement.kind == "individual" else "a"
        whole = " (not in whole samples)" if agreement.whole_samples else ""
        said.append(
            f"If all clients had the same discount factor, {article} {agreement.kind} agreement"
            f"{_scope(agreement)}{whole} would exist above {patience(exists_from)}."
        )
    said += consequences(certificate, hints=hints)
    price = price_of_anarchy(agreement.equilibrium, optimum)
    said.append(
        f"The total cost would be lowest with {write([optimum.total])[0]} samples (the social "
        f"optimum); the equilibrium costs {price:,.4f} times as much (the price of anarchy)."
    )
    return said


def consequences(
    certificate: Certificate, noun: Noun = "client", hints: Hints = NO_HINTS
) -> list[str]:
    """What the punishment means: who is worse off than without it, who would go, who else slips."""
    agreement = certificate.agreement
    if not (agreement.exists and certificate.holds):
        return []
    said = [hinted(worse, hints.get("worse off"))] if (worse := worse_off(agreement)) else []
    group = group_that_would_go(certificate)
    if group is not None:
        said.append(_who_would_go(agreement, group))
    slipping = slipping_if_one_is_out(certificate)
    if slipping:
        said.append(
            f"While another {noun} is out, {listed(slipping)} would slip, too: "
            "those who are left must then agree anew, or act selfishly."
        )
    return said


def _who_would_go(agreement: Agreement, group: Coalition) -> str:
    """The group that would do better on its own, or that all would do better with less or more."""
    samples = write([group.total])[0]
    if len(group.members) < agreement.consortium.size:
        return (
            f"A group would do better on its own, for good: {listed(group.members)}, with "
            f"{samples} samples."
        )
    better = f"Everyone would pay less under another profile, with {samples} samples in all"
    slips = "" if all_would_keep_to(group) else ", but somebody would slip from it"
    return f"{better}{slips}."


def worse_off(agreement: Agreement) -> str:
    """Who pays more than at the equilibrium; empty if nobody does."""
    worse = agreement.worse_than_equilibrium
    if not worse.any():
        return ""
    pays = "pays" if worse.sum() == 1 else "pay"
    more = ends_of(-agreement.saving[worse], agreement.consortium.currency)
    why = (
        "" if _reverts(agreement) else ", and would accept only because the alternative is no model"
    )
    return (
        f"{listed(names_of(agreement, worse))} {pays} more than without an agreement "
        f"({more} in a slot){why}."
    )


def assumption_sentences(certificate: Certificate, noun: Noun = "client") -> list[str]:
    """What is assumed and not proved; nothing about what does not hold or does not exist."""
    return [sentence.replace("client", noun) for sentence in certificate.assumptions]


def _reverts(agreement: Agreement) -> bool:
    return isinstance(agreement.punishment, Reversion)


def _threat(agreement: Agreement, noun: Noun) -> str:
    """What follows a slip, after "no client gains by slipping"."""
    if _reverts(agreement):
        return ", or by not carrying out the punishment"
    return f": {what_follows(agreement, noun)}"


def what_follows(agreement: Agreement, noun: Noun = "client") -> str:
    """What follows a slip, in one sentence without a full stop."""
    duration = punishment(agreement)
    if _reverts(agreement):
        found = "" if agreement.monitoring.is_certain else " that an audit finds"
        return f"after a slip{found} everyone is back to the equilibrium {duration}"
    others = f"while the other {noun}s go on"
    terms = agreement.punishment
    harsher = isinstance(terms, Suspension) and terms.or_reversion
    instead = f"; where it costs a {noun} more, everyone goes back to the equilibrium instead"
    does = "does" if agreement.monitoring.is_certain else "is found to"
    return (
        f"whoever {does} gets no model {duration} and trains alone, {others}"
        f"{instead if harsher else ''}"
    )


def why(certificate: Certificate, noun: Noun = "client") -> list[str]:
    """Why the agreement holds or does not: a paragraph on the threat, one on the proof."""
    agreement = certificate.agreement
    size = agreement.consortium.size
    everyone = f"the one {noun}" if size == 1 else f"all {count(size, noun)}"
    answer = "Here that fails, as shown above."
    if certificate.holds:
        carried_out = f", and {_carried_out(noun)}" if _reverts(agreement) else ""
        answer = f"For {everyone} the discount factor is at least the threshold{carried_out}."
    return [
        f"The training is repeated, slot after slot. A {noun} that contributes less than agreed "
        "gains once: it saves the cost of training and still receives the model. "
        f"{_what_it_loses(certificate, noun)} It keeps to the agreement when that loss weighs more "
        f"than the gain, which depends on its patience{_and_odds(agreement)}. The least "
        "patience that suffices is its threshold.",
        f"The certificate computes this for every {noun} from the cost function alone. It searches "
        f"for the best slip of each {noun} and uses no result of the search for the agreement, "
        f"so that an error there cannot stay hidden. {answer}",
    ]


def _and_odds(agreement: Agreement) -> str:
    """What else it depends on, if not every slip is seen."""
    return "" if agreement.monitoring.is_certain else " and on how likely an audit finds the slip"


def _what_it_loses(certificate: Certificate, noun: Noun) -> str:
    """What a slip leads to, in sentences."""
    agreement = certificate.agreement
    if _reverts(agreement):
        return (
            "From the next slot on everyone goes back to acting selfishly, "
            f"{punishment(agreement)}, and the {noun} loses what the agreement saved it."
        )
    worst = (
        f" In any one slot nothing could cost it more: whatever the others do, a {noun} can always "
        "train alone."
    )
    return (
        f"From the next slot on it gets no model, {punishment(agreement)}, and has to train one by "
        f"itself, on its own data. The other {noun}s go on."
        f"{worst if certificate.nothing_harsher.all() else ''}"
    )


def _carried_out(noun: Noun) -> str:
    return (
        f"no {noun} gains by contributing more or less than at the equilibrium while a slip is "
        "punished: the threat is one that they would carry out"
    )


def nobody_trains(agreement: Agreement) -> str:
    """That the equilibrium is empty, and what that rests on; empty if somebody trains."""
    if agreement.equilibrium.total > 0:
        return ""
    return (
        "Without an agreement nobody would train at all. What is saved by one is judged by the law "
        "without any data, where nothing was measured."
    )


def why_none(agreement: Agreement, noun: Noun = "client") -> str:
    """Why there is no agreement; that everyone gives all it has is no failure."""
    if good_news(agreement):
        return "Good news: everyone already trains on all it has, so there is nothing to agree on."
    return f"{none_exists(agreement)}: {reason_of(agreement, noun)}."


def reason_of(agreement: Agreement, noun: Noun = "client") -> str:
    """Why there is no agreement, as the end of a sentence."""
    return with_noun(str(agreement.reason), noun, agreement.consortium.names)


def none_exists(agreement: Agreement) -> str:
    """That there is no agreement, without a full stop: a reason may follow."""
    return f"No {agreement.kind} agreement exists{_scope(agreement)}"


def punishment(agreement: Agreement) -> str:
    """How long a slip is punished."""
    return agreement.punishment.duration


def kind_in_words(agreement: Agreement) -> str:
    """What kind of agreement it is, and how it was chosen among its kind."""
    kinds = {
        "individual": f"individual: an amount for each member; objective: {agreement.objective}",
        "uniform": "uniform: one level for every converted contributor",
        "given": "a given profile",
    }
    first = {"paper": "the paper's client", "feasible": "the first that works"}
    told = kinds[agreement.kind]
    if agreement.first_converted_by:
        told += f"; first converted: {first[agreement.first_converted_by]}"
    return told if agreement.exists else f"{told}; there is none"


def so_many(part: int, size: int, noun: Noun = "client") -> str:
    """How many of the clients.

    >>> so_many(0, 6), so_many(6, 6, "member")
    ('none of 6 clients', 'all 6 members')
    """
    if part == size > 1:
        return f"all {count(size, noun)}"
    return f"{f'{part:,}' if part else 'none'} of {count(size, noun)}"


def written_range(values: FloatArray) -> str:
    """The smallest and the largest of the clients' discount factors."""
    low, high = patience(values.min()), patience(values.max())
    return low if low == high else f"{low} to {high}"


def _scope(agreement: Agreement) -> str:
    """Which agreements were considered: by the paper's rule only those from client l on."""
    by_paper = agreement.first_converted_by == "paper" and agreement.first_converted is not None
    return f" from {agreement.first_converted} on" if by_paper else ""


def _who_does_not_keep(certificate: Certificate, noun: Noun) -> str:
    """How many would slip, and how many would contribute more, which is not a slip."""
    more = int(certificate.gives_more.sum())
    slipping = int((~certificate.keeps).sum()) - more
    size = certificate.agreement.consortium.size
    told = [f"{so_many(slipping, size, noun)} would slip"] if slipping else []
    if more:
        told.append(f"{so_many(more, size, noun)} would contribute more than agreed")
    return " and ".join(told)
