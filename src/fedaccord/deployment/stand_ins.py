"""Members for a rehearsal: numbers and examples, made up where nobody gives real ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, prod
from pathlib import Path

import numpy as np

from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.data.partition import RandomPartition
from fedaccord.data.scale import scaled_sizes
from fedaccord.deployment.admission import admit, load_app_terms
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import (
    CARD,
    SIGNATURE,
    MemberData,
    sign_member,
    write_member,
)
from fedaccord.deployment.new_directory import folder_names
from fedaccord.errors import InvalidInput
from fedaccord.flower.shared_terms import privates_of
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.training_terms import TrainingTerms

_SAMPLES = (200, 1_000)
"""Between these, evenly on a logarithmic scale, are the samples that are made up."""
_SATIATED = (0.3, 0.4)
"""Between these parts of everyone's samples the members' made-up satiation points are: close to one
another, so that without an agreement a few would train for all, and with one everyone does."""
_COST = 0.001
"""Of a sample; only the ratio of valuation to cost matters."""
_EXAMPLES = 1_000
"""To train on, for all members together, and as many for the test."""
_DAYS = 1_000
"""Of made-up survival times: about half of the events come so early, and as many are seen."""
_NUMBERS = 20_000_000
"""That all of them have at most, so that large examples fit into memory: there are fewer then."""


def stand_ins(terms: Terms, numbers: Consortium | None = None) -> list[Private]:
    """Everyone's private numbers: those of a consortium, or made up from the seed of the terms.

    Where nobody reports, the samples are those of the terms, and the ratios and discount factors
    at least the lowest that the terms count on.
    """
    known = _made_up(terms) if numbers is None else _in_order(terms, numbers)
    return [_as_public(one, terms) for one in known]


def _in_order(terms: Terms, numbers: Consortium) -> list[Private]:
    """The clients of a consortium, which must be those of the terms, in the terms' order."""
    if set(numbers.names) != set(terms.clients):
        raise InvalidInput(
            f"its clients ({', '.join(numbers.names)}) are not those of the app "
            f"({', '.join(terms.clients)})"
        )
    found = {one.name: one for one in privates_of(numbers)}
    return [found[name] for name in terms.clients]


def _made_up(terms: Terms) -> list[Private]:
    rng, count = np.random.default_rng(terms.training.seed), len(terms.clients)
    samples = np.exp(rng.uniform(log(_SAMPLES[0]), log(_SAMPLES[1]), count)).astype(int)
    stops = samples.sum() * rng.permutation(np.linspace(*_SATIATED, count))
    ratios = 1 / terms.law_of_loss.slope(stops)
    return [
        Private(
            name=name,
            valuation=float(ratio) * _COST,
            cost_per_sample=_COST,
            samples=int(has),
            discount_factor=terms.discount_factor,
        )
        for name, ratio, has in zip(terms.clients, ratios, samples, strict=True)
    ]


def _as_public(one: Private, terms: Terms) -> Private:
    if terms.reports != "none":
        return one
    public = (terms.public or {})[one.name]
    ratio = max(one.ratio, public.lowest_ratio or 0.0)
    return replace(
        one,
        valuation=ratio * one.cost_per_sample,
        samples=public.samples,
        discount_factor=max(one.discount_factor, public.lowest_discount_factor or 0.0),
    )


def rehearsal_dataset(terms: Terms, dataset: Dataset | None = None) -> Dataset:
    """Examples of the form in the terms: of a dataset, or made up, so that they can be learnt."""
    training = terms.training
    if dataset is not None:
        if (dataset.shape, dataset.classes) != (training.shape, training.classes):
            raise InvalidInput(
                f"{dataset.name} has {_form(dataset.shape, dataset.classes)}, and the terms have "
                f"{_form(training.shape, training.classes)}: leave it out, and examples are made up"
            )
        return dataset
    rng = np.random.default_rng(training.seed)
    count = min(_EXAMPLES, max(_NUMBERS // prod(training.shape), training.classes, 2))
    make = _made_up_times if training.survival else _made_up_classes
    train, test = make(rng, training, count)
    return Dataset("made-up examples", *train, *test, training.classes)


def _form(shape: Sequence[int], classes: int) -> str:
    labels = f"{classes} labels" if classes else "survival times"
    return f"examples of the shape {tuple(shape)} with {labels}"


def _made_up_classes(
    rng: np.random.Generator, training: TrainingTerms, count: int
) -> list[tuple[Inputs, Labels]]:
    """Examples around the middle of their class, to train on and to test with."""
    middles = rng.normal(size=(training.classes, *training.shape))
    labels = np.arange(count) % training.classes
    noise = rng.normal(size=(2, count, *training.shape))
    return [((middles[labels] + each).astype(np.float32), labels) for each in noise]


def _made_up_times(
    rng: np.random.Generator, training: TrainingTerms, count: int
) -> list[tuple[Inputs, Labels]]:
    """Examples whose hazard depends on their inputs, each followed up to some day of its own."""
    inputs = rng.normal(size=(2, count, *training.shape)).astype(np.float32)
    effect = rng.normal(size=training.shape) / np.sqrt(prod(training.shape))
    risk = np.exp(inputs.reshape(2, count, -1) @ effect.ravel())
    until = np.ceil(rng.exponential(_DAYS / risk)).astype(np.int64)
    seen = np.ceil(rng.exponential(_DAYS, size=(2, count))).astype(np.int64)
    labels = np.where(until <= seen, until, -seen)
    return list(zip(inputs, labels, strict=True))


def examples_of(
    terms: Terms, privates: Sequence[Private], dataset: Dataset
) -> dict[str, MemberData]:
    """Each member's examples: as many as it has samples, at the scale of the terms."""
    sizes = scaled_sizes([one.samples for one in privates], terms.training.scale)
    shares = RandomPartition(dataset, sizes, terms.training.seed).draw(1)
    test = dataset.test_inputs, dataset.test_labels
    return {
        one.name: MemberData((dataset.inputs[share], dataset.labels[share]), test)
        for one, share in zip(privates, shares, strict=True)
    }


def join_everyone(
    app: Path, place: Path, privates: Sequence[Private], data: Mapping[str, MemberData]
) -> dict[str, Path]:
    """Make every member's directory in `place`, and let all of them sign; returns these."""
    folders = folder_names(load_app_terms(app).clients)
    members = {one.name: place / folders[one.name] for one in privates}
    for one in privates:
        write_member(members[one.name], load_invitation(app / INVITATION), one, data.get(one.name))
    admit(app, [member / CARD for member in members.values()])
    for member in members.values():
        sign_member(member, load_invitation(app / TO_SIGN))
    admit(app, [member / SIGNATURE for member in members.values()])
    return members
