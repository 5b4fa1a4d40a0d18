"""Options that say how a slip is seen, and what audits may cost."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.options import from_one
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedaccord.agreement.monitoring import Monitoring


AuditCostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--audit-cost",
        metavar="[NAME=]COST",
        help="What an audit costs, of every client or of one; default 1. Repeatable.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions:
    """What an audit sees, and when."""

    samples_checked: Annotated[
        int | None,
        typer.Option(
            "--samples-checked",
            callback=from_one,
            help="Samples that an audit checks; default: it sees any shortfall.",
        ),
    ] = None
    false_alarm: Annotated[
        float | None,
        typer.Option(
            "--false-alarm",
            metavar="PROBABILITY",
            help="Probability that an honest client is accused in a slot; default 0.",
        ),
    ] = None
    seen_late: Annotated[
        int | None,
        typer.Option(
            "--seen-late",
            callback=from_one,
            metavar="SLOTS",
            help="How many slots after a slip its punishment begins; default 1, the next slot.",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether the command line says anything about how a slip is seen."""
        return any(value is not None for value in vars(self).values())

    def chosen(self, names: "Sequence[str]") -> "Monitoring":
        """How a slip is seen; by default for certain, before the next slot."""
        from fedaccord.agreement.monitoring import Monitoring

        rates = _by_name(getattr(self, "audit_rate", None), names, "--audit-rate", most=1.0)
        audit = rates[0] if len(set(rates)) == 1 else tuple(rates)
        return Monitoring(
            audit=audit,
            samples_checked=self.samples_checked,
            false_alarm=self.false_alarm or 0.0,
            seen_late=self.seen_late or 1,
        )


@dataclass(frozen=True, kw_only=True)
class MonitoringOptions(EvidenceOptions):
    """The same, and how often clients are audited."""

    audit_rate: Annotated[
        list[str] | None,
        typer.Option(
            "--audit-rate",
            metavar="[NAME=]RATE",
            help="Probability that a client is audited in a slot, of all or of one; default 1: "
            "every slip is seen. Repeatable.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(MonitoringOptions):
    """The same, and what audits may cost together."""

    audits_per_slot: Annotated[
        float | None,
        typer.Option(
            "--audits-per-slot",
            metavar="NUMBER",
            help="Find the most data for so many audits in a slot, shared out as is best.",
        ),
    ] = None
    audit_cost: AuditCostOption = None

    def check(self) -> None:
        """Refuse costs without a budget."""
        if self.audit_cost and self.audits_per_slot is None:
            raise InvalidInput("--audit-cost: needs --audits-per-slot")


def costs_by_name(given: list[str] | None, names: "Sequence[str]") -> list[float]:
    """What an audit of each client costs."""
    return _by_name(given, names, "--audit-cost", most=inf)


def _by_name(
    given: list[str] | None, names: "Sequence[str]", flag: str, *, most: float
) -> list[float]:
    """A number for each client, from numbers for all and for single ones; 1 if none is given."""
    everyone, single = 1.0, {}
    for text in given or []:
        name, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            wrong = f"{flag} {text}: must be a number, or a name and a number as in NAME=0.1"
            raise InvalidInput(wrong) from None
        if not 0.0 <= value <= most or value == inf:
            allowed = "0 or more" if most == inf else f"from 0 to {most:g}"
            raise InvalidInput(f"{flag}: must be {allowed}, got {number.strip()}")
        if name:
            single[name] = value
        else:
            everyone = value
    if single:
        from fedaccord.checks import client_meant

        try:
            single = {client_meant(name, names): each for name, each in single.items()}
        except InvalidInput as error:
            raise InvalidInput(f"{flag}: {error}") from None
    return [single.get(name, everyone) for name in names]
