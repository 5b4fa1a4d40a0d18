"""A case study: from real records to an agreement, a year under it, and what it is worth.

The records and the partition are real, and so is everything that is measured on them. What an error
and a record cost each organisation is assumed, and stated in the study's file beside this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from fedaccord.agreement.agreement import USUAL_MARGIN, Agreement
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.range_costs import RangeCosts, range_costs
from fedaccord.agreement.solve import solve_agreement
from fedaccord.agreement.worth import Worth, worth
from fedaccord.checks import unknown
from fedaccord.data.dataset import load_partition
from fedaccord.data.own import OwnPartition
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import load_consortium
from fedaccord.game.consortium import Consortium
from fedaccord.membership.agreeing import GroupAgreement, agree
from fedaccord.membership.joining import SEEDS, Joining, join_groups
from fedaccord.membership.ways import Way
from fedaccord.repeated.match import Match, play
from fedaccord.repeated.strategies import DeviateOnce
from fedaccord.studies.models import TrainedModels, train_models
from fedaccord.training.optimisers import FedAdam
from fedaccord.training.rules import LocalSteps
from fedaccord.training.task import find_task
from fedaccord.trials.setting import Progress

MULTIPLES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Of everyone's valuation: the assumption that is least certain."""
_SLIP_SLOT = 5
"""Of the year: in which the client that is closest to slipping slips."""
_MOST_DRAWS = 1_000
"""Seeds of audits that are tried until the slip is found by one."""
_TERMS: dict[str, Any] = {
    "punishment": "suspension",
    "margin": USUAL_MARGIN,
    "nobody_worse": True,
}
"""Of every agreement: whoever slips gets no model for a slot, and nobody pays more than without."""
_AUDITED = 2.0
"""Times the least probability that keeps everyone to the agreement."""


@dataclass(frozen=True)
class CaseStudy:
    """What a study is about, and how its members may train."""

    name: str
    title: str
    dataset: str
    warning: str | None
    """The same records prepared in a way that does harm, to compare; None if there is none."""
    task: str
    ways: tuple[Way, ...]

    @property
    def file(self) -> Path:
        """The consortium file with what is assumed."""
        return (
            Path(str(resources.files("fedaccord.studies"))) / f"{self.name.replace('-', '_')}.toml"
        )


def _hospital_ways() -> tuple[Way, ...]:
    """FLamby's mini-batches and rounds, at rates with which they learn; the page chooses."""
    slow, quick = LocalSteps(0.01, 4, steps=100), LocalSteps(0.03, 4, steps=100)
    held = LocalSteps(0.03, 4, steps=100, proximal=1.0)
    return (
        Way(slow),
        Way(slow, fine_tuning=3),
        Way(held, fine_tuning=3),
        Way(quick, FedAdam(0.01)),
        Way(quick, FedAdam(0.01), fine_tuning=3),
    )


def _region_ways() -> tuple[Way, ...]:
    """Likewise."""
    quick, slow = LocalSteps(0.3, 8, steps=100), LocalSteps(0.1, 8, steps=100)
    adam = FedAdam(0.03, beta2=0.999, tau=1e-8)
    return (
        Way(quick),
        Way(quick, fine_tuning=3),
        Way(slow, adam),
        Way(slow, adam, fine_tuning=3),
    )


STUDIES = {
    study.name: study
    for study in (
        CaseStudy(
            "four-hospitals",
            "Four hospitals",
            "heart-disease-shared",
            "heart-disease",
            "softmax",
            _hospital_ways(),
        ),
        CaseStudy("six-regions", "Six regions", "tcga-brca", None, "cox", _region_ways()),
    )
}


@dataclass(frozen=True, eq=False)
class Year:
    """A year of slots in which one client slips, and an audit finds it."""

    least_audit: float
    """The largest of the least probabilities with which clients must be audited."""
    match: Match


@dataclass(frozen=True, eq=False)
class StudyResult:
    """All that a case study found."""

    study: CaseStudy
    partition: OwnPartition
    consortium: Consortium
    """Everyone, with what is assumed."""
    joining: Joining
    warning: Joining | None
    """With records prepared in the way that does harm."""
    agreed: GroupAgreement | None = None
    """For the group that should form, if there is one."""
    ranges: RangeCosts | None = None
    year: Year | None = None
    models: TrainedModels | None = None
    worths: tuple[Worth, ...] = ()
    """For every multiple of the valuations."""

    @property
    def certificate(self) -> Certificate | None:
        """Of the group's agreement; None if there is no law to agree by."""
        return None if self.agreed is None else self.agreed.certificate


def find_study(name: str) -> CaseStudy:
    """A case study by name."""
    if name not in STUDIES:
        raise InvalidInput(f"there is no case study called {name!r}: {unknown(name, STUDIES)}")
    return STUDIES[name]


def run_study(
    study: CaseStudy, seeds: int = SEEDS, progress: Progress | None = None
) -> StudyResult:
    """Carry out a case study; `seeds` are the trainings of each group and profile."""
    partition = _partition(study.dataset)
    consortium = load_consortium(study.file)

    def joined(records: OwnPartition) -> Joining:
        return join_groups(
            records,
            find_task(study.task),
            study.ways,
            rounds=int(consortium.rounds),
            seeds=seeds,
            consortium=consortium,
            progress=progress,
        )

    joining = joined(partition)
    warning = joined(_partition(study.warning)) if study.warning else None
    result = StudyResult(study, partition, consortium, joining, warning)
    if joining.recommended is None:
        return result
    agreed = agree(joining, consortium, joining.recommended, _telling(progress))
    if agreed.certificate is None or not agreed.certificate.agreement.exists:
        return replace(result, agreed=agreed)
    agreement = _by_the_fit(agreed.certificate.agreement)
    return replace(
        result,
        agreed=agreed,
        ranges=range_costs(agreement.consortium, whole_samples=True, **_TERMS),
        year=play_year(agreement),
        models=train_models(joining, agreement, seeds, progress),
        worths=tuple(_worth(agreement, times) for times in MULTIPLES),
    )


def _by_the_fit(agreement: Agreement) -> Agreement:
    """The same agreement, its law taken for certain: for what follows if it is true."""
    law = replace(agreement.consortium.law, evidence=None)
    return solve_agreement(agreement.consortium.with_law(law), whole_samples=True, **_TERMS)


def _partition(dataset: str) -> OwnPartition:
    found = load_partition(dataset)
    assert found is not None
    return found


def _telling(progress: Progress | None) -> Callable[[int, int], None]:
    return lambda done, of: None if progress is None else progress(done, of, "Measuring the law")


def play_year(agreement: Agreement) -> Year:
    """A year in which the client closest to slipping slips in slot 5, and is audited then.

    Audits are drawn twice as often as they must be. Whether one hits that slot is chance, so that
    the seed is the first with which it does.
    """
    certificate = certify(agreement)
    least = float(certificate.audit_probability.max())
    audited = certify(
        solve_agreement(
            agreement.consortium,
            monitoring=Monitoring(audit=min(1.0, _AUDITED * least)),
            whole_samples=agreement.whole_samples,
            **_TERMS,
        )
    ).agreement
    slots = round(agreement.consortium.slots_per_year or 12)
    slot = min(_SLIP_SLOT, slots - 1)
    slips = {certificate.worst_client: DeviateOnce(slot)}
    for seed in range(_MOST_DRAWS):
        match = play(audited, slips, slots, seed=seed)
        if match.slots_out or match.deviations == 0:
            break
    return Year(least, match)


def _worth(agreement: Agreement, times: float) -> Worth:
    """What an agreement is worth if everyone's valuation were so many times what is assumed."""
    consortium = agreement.consortium
    changed = consortium._with(valuation=times * consortium.valuation)
    return worth(solve_agreement(changed, whole_samples=True, **_TERMS))
