"""The agreement of a draft under settings, with its proof: solved once, then remembered."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.departures import Departures, departures
from fedaccord.agreement.patience import smallest_discount_factor
from fedaccord.agreement.solution import solution_record
from fedaccord.agreement.solve import solve_agreement
from fedaccord.agreement.worth import Worth, worth
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.settings import Settings
from fedaccord.console.workshop.what_if import Situation, situation
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import solve_equilibrium
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.summaries.alternatives import Alternatives, alternatives_to, sentences_of

_REMEMBERED = 64


@dataclass(frozen=True, eq=False)
class Answer:
    """What `solve` would find."""

    settings: Settings
    situation: Situation
    certificate: Certificate

    @property
    def agreement(self) -> Agreement:
        """What is agreed on, or that nothing can be."""
        return self.certificate.agreement

    @property
    def consortium(self) -> Consortium:
        """Whose agreement it is, after all that was set."""
        return self.situation.consortium

    @property
    def proved(self) -> bool:
        """Whether there is an agreement, and it holds."""
        return self.agreement.exists and self.certificate.holds

    @cached_property
    def worth(self) -> Worth:
        """What it is worth."""
        return worth(self.certificate)

    @cached_property
    def exists_from(self) -> float | None:
        """The discount factor above which an agreement exists, as `solve` says it."""
        if self.agreement.ranges is not None:
            return None
        return smallest_discount_factor(
            self.agreement.equilibrium, self.settings.kind, **_options(self.settings)
        )

    @cached_property
    def alternatives(self) -> Alternatives:
        """What else could be agreed on."""
        return alternatives_to(self.agreement)

    @cached_property
    def departures(self) -> Departures | None:
        """What happens if one leaves; None if nobody can, or amounts are not each member's own."""
        settings = self.settings
        if self.consortium.size == 1 or settings.kind == "uniform" or settings.whole_samples:
            return None
        return departures(
            self.consortium, objective=settings.chosen_objective, **_options(settings)
        )

    @property
    def record(self) -> dict[str, Any]:
        """The same as `solve` prints for programs."""
        optimum = solve_social_optimum(self.consortium)
        others, exists_from = self.alternatives, self.exists_from
        said = sentences_of(self.certificate, optimum, exists_from, others)
        return solution_record(
            self.certificate,
            optimum,
            exists_from,
            alternatives=others.by_name(),
            sentences=said,
        )


@lru_cache(maxsize=_REMEMBERED)
def answer_for(draft: Draft, settings: Settings) -> Answer:
    """The answer; `InvalidInput` if the draft or the settings cannot be."""
    found = situation(draft, settings)
    return Answer(settings, found, certify(_solved(found.consortium, settings)))


@lru_cache(maxsize=_REMEMBERED)
def ways_out(draft: Draft, settings: Settings) -> tuple[tuple[str, Settings, Agreement], ...]:
    """If there is no agreement: small changes after which there would be one, and how it looks."""
    found = []
    for label, changes in _tried(settings):
        other = settings.changed(**changes)
        try:
            agreement = _solved(situation(draft, other).consortium, other)
        except InvalidInput:
            continue
        if agreement.exists:
            found.append((label, other, agreement))
    return tuple(found)


def _tried(settings: Settings) -> list[tuple[str, dict[str, Any]]]:
    """Changes that may help, the smallest first."""
    ever = settings.punishment_slots == "for-ever"
    tried: dict[str, tuple[dict[str, Any], bool]] = {
        "no margin": ({"margin": 0.0}, settings.margin > 0),
        "every slip seen": ({"audit_rate": 1.0}, settings.audit_rate < 1),
        "an amount for each member": ({"kind": "individual"}, settings.kind == "uniform"),
        "members that may pay more": ({"nobody_worse": False}, settings.nobody_worse),
        "another objective": ({"objective": None}, settings.objective is not None),
        "numbers that are exact": (
            {"within": 0.0, "as_stated": True},
            not settings.as_stated or settings.within > 0,
        ),
        "suspension for ever": (
            {"punishment": "suspension", "punishment_slots": "for-ever"},
            not (settings.punishment == "suspension" and ever),
        ),
        "reversion for ever": (
            {"punishment": "reversion", "punishment_slots": None},
            settings.punishment == "suspension" or settings.punishment_slots is not None,
        ),
    }
    return [(label, changes) for label, (changes, differs) in tried.items() if differs]


def _solved(consortium: Consortium, settings: Settings) -> Agreement:
    return solve_agreement(
        solve_equilibrium(consortium),
        settings.kind,
        objective=settings.chosen_objective,
        whole_samples=settings.whole_samples,
        **_options(settings),
    )


def _options(settings: Settings) -> dict[str, Any]:
    """What all functions about agreements take."""
    return {
        "margin": settings.margin,
        "punishment": settings.chosen_punishment,
        "nobody_worse": settings.nobody_worse,
        "monitoring": settings.monitoring,
    }
