"""The terms: what everyone in the consortium knows and has signed. They contain no secrets."""

import hashlib
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fedaccord.agreement.agreement import Objective
from fedaccord.agreement.punishment import (
    PUNISHMENTS,
    Punishment,
    PunishmentName,
    Reversion,
    Suspension,
)
from fedaccord.audits.settings import AuditTerms
from fedaccord.checks import unusable_names
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import load_toml
from fedaccord.game.law import Law
from fedaccord.protocol.keys import ClientName, Keys
from fedaccord.protocol.law import LawTerms
from fedaccord.protocol.limits import MOST, MOST_CLIENTS, MOST_STEPS, Count
from fedaccord.protocol.mistakes import mistakes_in
from fedaccord.protocol.posted import PublicNumbers, who_would_slip
from fedaccord.protocol.training_terms import TrainingTerms
from fedaccord.signing.canonical import canonical

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

OnRefusal = Literal["without", "equilibrium", "void"]
AgreementKind = Literal["individual", "uniform", "posted", "everything", "clock", "serial clock"]
FROM_REPORTS: tuple[AgreementKind, ...] = ("individual", "uniform")
"""Kinds that are computed from what clients report."""
CLOCKS: tuple[AgreementKind, ...] = ("clock", "serial clock")
USUAL_STEPS = 20
CAN_BE_GAMED = (
    "offers are computed from the ratios that clients report, and a client that reports a lower "
    'one is asked for less; with reports = "none" in the terms nobody reports, and nobody can gain '
    "by it"
)
"""What people should know who are offered something that was computed from reports."""
FOR_EVER = "for ever"
"""How files spell a punishment without an end, which is None elsewhere."""


# --- Every tolerance of the protocol (docs/decisions/0005) ---------------------------------

SAME_CONTRIBUTION = 1e-9
"""A contribution this close (relative) to the agreed one keeps the agreement: agreed amounts are
whole samples, but (1 - tolerance) times one is not, and must not be missed by rounding."""

SAME_EQUILIBRIUM = 1e-6
"""A client's own equilibrium contribution may differ from the server's by this part of its samples.
Client and server compute it from different sums, on different machines; a sample is far larger."""

SAME_NUMBER = 1e-9
"""Two numbers in ledgers or copies are the same if they differ by no more than this (relative, or
absolute near 0): machines may round the same formula differently, and nobody could act on so
little."""

TIED_RATIOS = 1e-12
"""Ratios this close (relative) to each other count as tied, as `game.filling.TIE` has it: a uniform
agreement may convert either client first."""


# --- The terms -----------------------------------------------------------------------------


def _none_for_ever(value: Any) -> Any:
    return None if value == FOR_EVER else value


Duration = Annotated[
    Count | None,
    BeforeValidator(_none_for_ever, json_schema_input_type=Count | Literal["for ever"] | None),
]
"""A number of slots; None: for ever."""


class Terms(BaseModel):
    """The rules of a consortium."""

    model_config = _STRICT
    name: str = Field(min_length=1)
    clients: tuple[ClientName, ...] = Field(min_length=1, max_length=MOST_CLIENTS, strict=False)
    rounds: Count
    """G, in each slot."""
    discount_factor: float = Field(ge=0, lt=1)
    """Of clients that do not reveal their own."""
    reports: Literal["ratio", "none"] = "ratio"
    """What clients report of their private numbers. From their ratios the server computes an
    agreement, which a client can game by reporting a lower one. Where nobody reports, the amounts
    are posted below, or a clock finds them, and nobody can."""
    agreement: AgreementKind = "individual"
    """Of reports: each client its own amount, or the paper's uniform level. Without reports: what
    is posted below, all samples of everyone, or what a clock finds. If it is left out: individual,
    or posted without reports."""
    clock_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    """For a clock: in how many equal steps the share of everyone's samples rises to all of them;
    20 if it is left out."""
    margin: float = Field(default=0.0, ge=0, lt=1)
    objective: Objective = "most data"
    """What the agreement aims at. If it is left out: most data under reversion, least total cost
    under suspension. The server knows ratios and no prices, so it counts each client's cost in
    that client's own samples."""
    nobody_worse: bool = False
    """Whether no client may pay more under the agreement than at the equilibrium."""
    punishment: PunishmentName = "reversion"
    """What follows a slip: everyone plays the equilibrium, or whoever slipped is suspended."""
    punishment_slots: Duration = None
    """How many slots a slip is punished. If it is left out: for ever under reversion, one slot
    under suspension."""
    model_keeps: float = Field(default=0.0, ge=0, le=1)
    """The share of the agreed data that an old model is worth in a slot of suspension."""
    fees_saved: bool = False
    """Whether a suspended client saves its communication cost and the server's fee. Then it
    reports how many of its own samples they are worth."""
    server_fee: float = Field(default=0.0, ge=0)
    """What each client pays the server per slot."""
    tolerance: float = Field(default=0.0, ge=0, lt=1)
    """The part of an agreed contribution that may be missing without punishment."""
    quorum: int = Field(default=0, ge=0, le=MOST)
    """How many clients a slot needs; 0: more than half of them."""
    on_refusal: OnRefusal = "without"
    """When a client refuses: agree without it, play the equilibrium, or nothing (the slot is
    void: an agreement needs everyone)."""
    answer_seconds: float = Field(default=120.0, gt=0)
    """How long to wait for answers, and for a round of training."""
    training_seconds: float = Field(default=3600.0, gt=0)
    update_bound: Literal["robust", "off"] | Annotated[float, Field(gt=0)] = "robust"
    """How far one update may move the model: 30 times as far as the others' in the same round
    (robust), up to this norm, or without a bound (off)."""
    models_kept: int = Field(default=3, ge=1, le=1_000)
    """For how many slots the server keeps the model, so that one can go back to it."""
    rollback_consent: Literal["nobody", "majority", "everyone"] = "majority"
    """Who must agree before the consortium goes back to an older model."""
    training: TrainingTerms
    law: LawTerms | None = None
    """How the loss falls with the total. If it is left out: the paper's law."""
    public: dict[ClientName, PublicNumbers] | None = None
    """Without reports: what everyone knows of each client."""
    keys: Keys | None = None
    """Everybody's public key. If they are left out, nobody signs anything."""
    audits: AuditTerms | None = None
    """How training is audited. If it is left out, it is not."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        """Add what follows from the kinds of agreement and punishment, where it is left out."""
        if not isinstance(given, dict):
            return given
        filled = dict(given)
        if filled.get("agreement") in ("posted", "everything", *CLOCKS):
            filled.setdefault("reports", "none")
        if filled.get("reports") == "none":
            filled = {"agreement": "posted", "punishment": "suspension"} | filled
        if filled.get("agreement") in CLOCKS:
            filled.setdefault("clock_steps", USUAL_STEPS)
        suspends = filled.get("punishment") == "suspension"
        usual = PUNISHMENTS["suspension" if suspends else "reversion"]
        objective = "least total cost" if suspends else "most data"
        return {"punishment_slots": usual.slots, "objective": objective} | filled

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if any(not name.strip() or not name.isprintable() for name in self.clients):
            raise _refused("clients", "a name must be printable and not empty")
        for field in (
            "law",
            "public",
            "clock_steps",
            "keys",
            "audits",
        ):  # there is one way to leave them out
            if getattr(self, field) is None and field in self.model_fields_set:
                what = "a whole number" if field == "clock_steps" else "a table"
                raise _refused(field, f"must be {what}, got None")
        if len(set(self.clients)) < len(self.clients):
            raise _refused("clients", "two have the same name")
        if self.quorum > len(self.clients):
            too_many = f"{self.quorum} of {len(self.clients)} clients is too many"
            raise _refused("quorum", too_many)
        if self.keys is not None and self.keys.clients.keys() != set(self.clients):
            raise _refused("keys.clients", "must have a key for each client, and for nobody else")
        if self.audits is not None and not self.audits.named <= set(self.clients):
            raise _refused("audits.probabilities", "names somebody who is not a client")
        if self.audits is not None and self.training.scale != 1:
            raise _refused(
                "training.scale", "must be 1 with audits, which count records as samples"
            )
        for field in ("model_keeps", "fees_saved"):
            if getattr(self, field) and self.punishment == "reversion":
                raise _refused(field, "is for suspension, but the punishment is reversion")
        return self

    @model_validator(mode="after")
    def _consistent_reports(self) -> Self:
        if (self.agreement in FROM_REPORTS) != (self.reports == "ratio"):
            how = "is computed from reports" if self.reports == "none" else "takes no reports"
            raise _refused("agreement", f"{self.agreement} {how}, but reports is {self.reports!r}")
        if (self.clock_steps is not None) != (self.agreement in CLOCKS):
            raise _refused("clock_steps", "is for a clock")
        if self.reports == "none":
            self._check_without_reports()
        elif self.public is not None:
            raise _refused("public", 'is for reports = "none"')
        return self

    def _check_without_reports(self) -> None:
        """Without reports nobody can compute the equilibrium, nor what a client's fees are."""
        if self.punishment != "suspension":
            raise _refused(
                "punishment",
                "must be suspension without reports: nobody could compute "
                "the equilibrium that reversion returns to",
            )
        if self.on_refusal == "equilibrium":
            raise _refused(
                "on_refusal",
                "must be without or void if there are no reports: nobody "
                "could compute the equilibrium",
            )
        for field in ("nobody_worse", "fees_saved"):
            if getattr(self, field):
                raise _refused(field, "needs reports")
        self._check_public(self.public or {})

    def _check_public(self, public: dict[str, PublicNumbers]) -> None:
        """Refuse amounts that are posted without proof, or numbers that are not needed."""
        if public.keys() != set(self.clients):
            raise _refused("public", "must have a table for each client, and for nobody else")
        posted = self.agreement == "posted"
        for name, one in public.items():
            if not (one.complete if posted else one.sizes_only):
                needed = (
                    "contribution, lowest_ratio and lowest_discount_factor are needed"
                    if posted
                    else f"samples alone are for {self.agreement}"
                )
                raise _refused(f"public.{name}", needed)
            if (one.contribution or 0) > one.samples:
                raise _refused(f"public.{name}.contribution", "is more than its samples")
        if posted:
            slips = who_would_slip(
                public, self.law_of_loss, self.rounds, self.after_slip, self.margin
            )
            if slips is not None:
                raise _refused(
                    f"public.{slips}.contribution",
                    "does not hold: with its lowest numbers the client would gain by breaking it",
                )

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the paper's law and what is for terms without reports out, as older terms do."""
        rules: dict[str, Any] = dump(self)
        for field, usual in _LEFT_OUT.items():
            if getattr(self, field) == usual:
                rules.pop(field, None)
        if self.public is not None:
            rules["public"] = {
                name: {key: value for key, value in numbers.items() if value is not None}
                for name, numbers in rules["public"].items()
            }
        if self.keys is not None and not self.keys.rotations:
            del rules["keys"]["rotations"]
        return rules

    @property
    def law_of_loss(self) -> Law:
        """A(X), with which everyone calculates."""
        return _paper_law(self.rounds) if self.law is None else self.law.law

    @property
    def after_slip(self) -> Punishment:
        """What follows a slip, as agreements have it."""
        if self.punishment == "reversion":
            return Reversion(self.punishment_slots)
        return Suspension(
            self.punishment_slots, model_keeps=self.model_keeps, fees_saved=self.fees_saved
        )

    def still(self, punishment: PunishmentName, slots: int | None) -> int | None:
        """How many of these slots of a punishment that began under other terms remain.

        None is for ever. Terms end a punishment of another kind, and shorten one that is longer
        than theirs.
        """
        if self.punishment != punishment:
            return 0
        known = [each for each in (slots, self.punishment_slots) if each is not None]
        return min(known, default=None)

    def samples_of(self, client: str) -> int:
        """Without reports: how many samples a client has."""
        return (self.public or {})[client].samples

    def posted_for(self, client: str) -> int:
        """Without reports and without a clock: what a client is asked for."""
        public = (self.public or {})[client]
        return public.samples if public.contribution is None else public.contribution

    def amount_at(self, client: str, step: int) -> int:
        """With a clock: what a client trains on at a share, phi D_n in whole samples."""
        return self.samples_of(client) * step // (self.clock_steps or 1)

    def needed(self, clients: int) -> int:
        """How many clients a slot needs, of those who are not suspended."""
        return min(self.quorum or ceil((clients + 1) / 2), max(clients, 1))

    def consents(self, clients: int) -> int:
        """How many of the clients that are asked must agree to a rollback."""
        return {"nobody": 0, "majority": clients // 2 + 1, "everyone": clients}[
            self.rollback_consent
        ]

    @property
    def digest(self) -> str:
        """SHA-256 of all rules; a client notes it with each report."""
        rules = canonical(self.model_dump(mode="json"))
        return hashlib.sha256(rules.encode()).hexdigest()


_TABLES = ("clock_steps", "law", "public", "keys", "audits")
"""Fields that are None if they are left out."""
_LEFT_OUT = {
    "reports": "ratio",
    **dict.fromkeys(_TABLES),
}
"""Fields that are not written if they have this value."""


@lru_cache(maxsize=16)
def _paper_law(rounds: int) -> Law:
    return Law.paper(rounds)


def _refused(field: str, message: str) -> PydanticCustomError:
    """An error of the terms as a whole that is about one field."""
    return PydanticCustomError("terms", "{message}", {"field": field, "message": message})


def rules_of(punishment: Punishment) -> dict[str, Any]:
    """The rules in the terms that lead to this punishment.

    >>> rules_of(Reversion(3))
    {'punishment': 'reversion', 'punishment_slots': 3}
    """
    rules: dict[str, Any] = {"punishment": punishment.kind, "punishment_slots": punishment.slots}
    if isinstance(punishment, Suspension):
        if punishment.or_reversion:
            raise InvalidInput("cannot be a rule of the protocol", field="or_reversion")
        rules |= {"model_keeps": punishment.model_keeps, "fees_saved": punishment.fees_saved}
    return rules


def load_terms(path: str | Path) -> Terms:
    """The terms in a TOML file."""
    return read_terms(load_toml(path), str(path))


def read_terms(data: dict[str, Any], source: str) -> Terms:
    """The terms in parsed TOML, or every mistake in it."""
    try:
        terms = Terms.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error), source) from None
    alike = unusable_names(terms.clients, lambda n: f"clients[{n}]")
    if wrong := [Problem("clients", message) for _, message in alike]:  # old ledgers may have them
        raise InvalidInput(wrong, source)
    return terms
