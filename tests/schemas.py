"""JSON Schemas of the files that fedaccord reads and of what it prints.

    python -m tests.schemas

writes them to docs/reference/schemas; a test fails when they are out of date. Files are described
by the models that read them. What is printed is described here, field by field, as on the page
docs/reference/json.md; a test validates real output, in which no other field is allowed.
"""

import ast
import inspect
import json
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from fedaccord.agreement.agreement import FirstConverted, Kind, Objective
from fedaccord.checks import LARGEST_COUNT
from fedaccord.files.consortium import _Client, _Shared
from fedaccord.files.law import KINDS, MOST_RESAMPLES
from fedaccord.files.ranged import FIELDS
from fedaccord.files.states import StateTable
from fedaccord.flower.events import LEVELS
from fedaccord.flower.member_events import AnyMemberEvent
from fedaccord.flower.server_events import ServerEvent
from fedaccord.game.curve import MEASURES
from fedaccord.game.roles import Role
from fedaccord.game.rules import RULES
from fedaccord.protocol.terms import Terms
from fedaccord.signed.document import Document

FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "schemas"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
"""For files: the newest draft that the TOML plug-ins of all common editors support."""
NEWEST = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


@cache
def schemas() -> dict[str, Schema]:
    """Every schema, by the name of its file."""
    return {
        "consortium": consortium_file(),
        "terms": terms_file(),
        "profile": profile_file(),
        "solve": output("What `fedaccord solve --format json` prints", Solution),
        "solve-states": output(
            "What `fedaccord solve --format json` prints for a file with states", ChangingSolution
        ),
        "audit-rates": output("What `fedaccord audit-rates --format json` prints", AuditRates),
        "departures": output("What `fedaccord departures --format json` prints", Departures),
        "certify": output("What `fedaccord certify --format json` prints", Certified),
        "misreport": output("What `fedaccord misreport --format json` prints", Misreports),
        "value": output("What `fedaccord value --format json` prints", DataValues),
        "join": output("What `fedaccord join --format json` prints", Joining),
        "interview": output("What `fedaccord interview --format json` prints", Interview),
        "agreement-file": output("The agreement in an agreement file", Document),
        "ledger": ledger(),
        "server-events": events("A line of `fedaccord server run --log-format json`", ServerEvent),
        "member-events": events("A line of a member's log as JSON", AnyMemberEvent),
    }


def main() -> None:
    """Write all schemas."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(text_of(schema), encoding="utf-8")


def text_of(schema: Schema) -> str:
    """The text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


# --- Files ---------------------------------------------------------------------------------


class _ConsortiumFile(_Shared):
    clients: Annotated[str, Field(min_length=1)] | Annotated[list[_Client], Field(min_length=1)]
    """The clients: a list of tables, or the name of a CSV file."""
    states: Annotated[list[StateTable], Field(min_length=1)] | None = None
    """What may be the case in a slot: who is away, and which numbers are not as usual."""
    transitions: dict[str, dict[str, Annotated[float, Field(ge=0, le=1)]]] | None = None
    """For each state, the probabilities of those that may follow it; it lasts if it has none."""


def consortium_file() -> Schema:
    """The consortium file: the shape from its models, the ranges from the consortium's rules."""
    schema = schema_of(_ConsortiumFile)
    tables = [schema, *schema["$defs"].values()]
    for field, found in [pair for table in tables for pair in table["properties"].items()]:
        found.update(_range(field))
    schema["properties"]["rounds"].update({"minimum": 1, "maximum": LARGEST_COUNT})
    schema["properties"]["server_fee"]["minimum"] = 0
    schema["properties"]["growth"]["exclusiveMinimum"] = -1
    for table in (schema, schema["$defs"]["Client"]):
        table["properties"]["leaves"].update({"minimum": 0, "exclusiveMaximum": 1})
    law = schema["$defs"]["LawTable"]["properties"]
    law["kind"]["enum"] = list(KINDS)
    law["measure"]["enum"] = list(MEASURES)
    law["resamples"].update({"minimum": 1, "maximum": MOST_RESAMPLES})
    law["seed"]["minimum"] = law["shift"]["minimum"] = law["floor"]["minimum"] = 0
    law["scale"]["exclusiveMinimum"] = law["exponent"]["exclusiveMinimum"] = 0
    client = schema["$defs"]["Client"]
    client["properties"]["samples"]["multipleOf"] = 1
    _add_ranges(schema, client)
    each_its_own = {"items": {"required": ["discount_factor"]}}  # does not apply to a CSV file
    schema["anyOf"] = [
        {"required": ["discount_factor"]},
        {"properties": {"clients": each_its_own}},
    ]
    return headed(DRAFT_4, "A fedaccord consortium file (TOML)", draft_4(without_null(schema)))


def _add_ranges(schema: Schema, client: Schema) -> None:
    """Let numbers be ranges, in a client's table and in the classes that clients name."""
    number: Schema = {"type": "number"}
    within = {"anyOf": [{"type": "string"}, number]}
    forms: list[Schema] = [
        {"type": "array", "items": number, "minItems": 2, "maxItems": 3},
        {"type": "string", "description": 'Such as "600000 ± 30 %", or "unknown".'},
        _table({"about": number, "within": within}, ["about", "within"]),
        _table({"low": number, "likely": number, "high": number}, ["low", "high"]),
    ]
    ranged = client["properties"]
    ranged["ratio"] = {"type": "number", "description": "valuation / cost_per_sample, instead."}
    for field in FIELDS:
        found = ranged[field]
        words = {key: found.pop(key) for key in ("title", "description") if key in found}
        ranged[field] = words | {"anyOf": [found, *forms]}
    patience = schema["properties"]["discount_factor"]
    words = {key: patience.pop(key) for key in ("title", "description") if key in patience}
    schema["properties"]["discount_factor"] = words | {"anyOf": [patience, *forms]}
    ranged["class"] = {"type": "string", "description": "The class that gives what is left out."}
    client["required"] = ["name"]
    known = {"required": ["class"]}
    client["allOf"] = [
        {"anyOf": [{"required": ["valuation"]}, {"required": ["ratio"]}, known]},
        {"anyOf": [{"required": ["samples"]}, known]},
        {"anyOf": [{"required": ["cost_per_sample"]}, {"required": ["cpu"]}, known]},
        {"not": {"required": ["cost_per_sample", "cpu"]}},
        {"not": {"required": ["valuation", "ratio"]}},
    ]
    table = _table({field: {"anyOf": [number, *forms]} for field in FIELDS}, [])
    words = {"description": schema["properties"]["classes"]["description"]}
    schema["properties"]["classes"] = words | {"type": "object", "additionalProperties": table}


def _table(properties: Schema, required: list[str]) -> Schema:
    needed: Schema = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False} | needed


def _range(field: str) -> Schema:
    """The numbers that a field of a client may have; empty for other fields."""
    keywords: dict[np.ufunc, str] = {
        np.greater: "exclusiveMinimum",
        np.greater_equal: "minimum",
        np.less: "exclusiveMaximum",
    }
    field = "cost_per_sample" if field in ("chip", "cycles_per_sample", "hertz") else field
    return {keywords[rule.holds]: rule.bound for rule in RULES.get(field, ())}


def terms_file() -> Schema:
    """The terms of a consortium that runs on Flower."""
    schema = draft_4(without_null(schema_of(Terms)))
    return headed(DRAFT_4, "The terms of a fedaccord consortium (TOML)", schema)


class _Contribution(BaseModel):
    """What one client contributes."""

    name: str = Field(min_length=1)
    contribution: float = Field(ge=0)
    """Samples that it trains on in a slot."""


class _Contributions(BaseModel):
    """An object with the clients, for example the agreement that `solve` prints."""

    clients: list[_Contribution]


class _Solved(BaseModel):
    """The whole output of `solve`."""

    agreement: _Contributions


def profile_file() -> Schema:
    """A profile in any of its JSON forms."""
    amounts = dict[str, Annotated[float, Field(ge=0)]]
    schema = schema_of(list[_Contribution] | amounts | _Contributions | _Solved)
    return headed(NEWEST, "A fedaccord profile (JSON): who contributes how many samples", schema)


# --- Output --------------------------------------------------------------------------------


class _Output(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Turnover(_Output):
    """What the discount factors take into account, for each client."""

    leaves: list[float]
    """The probability that it leaves after a slot and is replaced."""
    growth: float
    stated: list[float]
    """Its discount factor as stated."""


class Consortium(_Output):
    """Whose result it is."""

    name: str
    clients: int
    """How many clients there are."""
    rounds: int
    """Rounds of federated averaging in a slot."""
    samples: float
    """Samples that all clients have together."""
    turnover: Turnover | None = None
    """Only if members leave and are replaced, or grow."""


class EquilibriumClient(_Output):
    """A client at the equilibrium."""

    name: str
    contribution: float
    role: Role
    cost: float | None


class Equilibrium(_Output):
    """What selfish clients do in one slot."""

    case: Literal["I", "II", "all"] | None
    """The case of Theorem 1; null if data sizes differ."""
    unique: bool
    """False if tied clients could share their part in other ways as well."""
    total: float
    critical_client: str | None
    """The client at the margin, the first one in a tie."""
    free_riders: int
    total_cost: float | None
    """Cost of a slot, all clients together."""
    clients: list[EquilibriumClient]


class AgreementClient(EquilibriumClient):
    """A client under the agreement."""

    saving: float | None
    """What it saves per slot relative to the equilibrium."""
    worse_than_equilibrium: bool
    """Whether it pays more than at the equilibrium."""
    alone_cost: float | None
    """What a slot would cost it on its own."""
    threshold: float | None
    """The smallest discount factor at which it keeps to the agreement; null: none is enough."""
    audit_probability: float | None
    """The least probability of an audit in a slot that keeps it to the agreement; null: none."""
    samples: float
    """How many it has."""
    discount_factor: float
    """How patient it is."""


class Reversion(_Output):
    """Everyone goes back to the equilibrium."""

    kind: Literal["reversion"]
    slots: int | None
    """How many slots it lasts; null: for ever."""


class Suspension(_Output):
    """Whoever slipped gets no model and trains alone; the others go on."""

    kind: Literal["suspension"]
    slots: int | None
    """How many slots it lasts; null: for ever."""
    model_keeps: float
    """The share of the agreed data that an old model is worth in a slot of suspension."""
    fees_saved: bool
    """Whether a suspended client saves its communication cost and the server's fee."""
    or_reversion: bool
    """Whether everyone reverts instead after a slip of a client that this would cost more."""


Punishment = Reversion | Suspension

Rate = float | list[float] | dict[str, float]


class Monitoring(_Output):
    """How a slip is seen."""

    audit: Rate
    """The probability that a client is audited in a slot: of all, in their order, or by name."""
    samples_checked: int | None
    """How many of the claimed samples an audit checks; null: it sees any shortfall."""
    false_alarm: Rate
    """The probability that an honest client is accused in a slot, like audit."""
    seen_late: int
    """How many slots after a slip its punishment begins."""


class Agreement(_Output):
    """A profile that each client is to keep to."""

    kind: Kind
    exists: bool
    """If false, the profile is the equilibrium's."""
    total: float
    ratio: float | None
    """The total divided by the equilibrium's total; null if nobody trains at the equilibrium."""
    free_riders: int
    free_riders_removed: int
    first_converted: str | None
    first_converted_by: FirstConverted | None
    level: float | None
    """Uniform: what each converted client contributes."""
    largest_level: float | None
    """Uniform: the level up to which the first converted client gains."""
    smallest_discount_factor: float | None
    """The largest threshold; null: no discount factor is enough."""
    exists_from: float | None
    """Above this common discount factor an agreement exists; null: none is enough."""
    reason: str | None
    """Why no agreement exists."""
    objective: Objective | None
    margin: float
    whole_samples: bool
    punishment: Punishment
    """What follows a slip."""
    monitoring: Monitoring
    """How a slip is seen."""
    nobody_worse: bool
    """Whether it was asked for that nobody pays more than at the equilibrium."""
    robust: bool
    """Whether it was made to hold for every law that resampling the measurements gives, or for
    every combination of numbers within the ranges."""
    total_cost: float | None
    clients: list[AgreementClient]


class Corner(_Output):
    """The numbers at which a client is closest to slipping."""

    ratio: float
    discount_factor: float
    others: Literal["highest", "any"]
    """The others' ratios: at their highest, or it makes no difference."""


class ClientOverRanges(_Output):
    """A client at the numbers within its ranges that tempt it most."""

    name: str
    lowest_ratio: float
    highest_ratio: float
    lowest_discount_factor: float
    fewest_samples: float
    """A client that is asked for more keeps to nothing."""
    slack: float
    keeps: bool
    widened: float | None
    """By what factor its range of ratios could be widened, up and down; null: no limit, or not
    known because there are very many clients."""


class HeldOver(_Output):
    """Whether an agreement holds for every combination of numbers within the ranges."""

    holds: bool
    worst_client: str
    corner: Corner
    slack: float
    searched: int
    """How many combinations were drawn at random and examined."""
    broken: int
    """In how many of them somebody would slip."""
    widened_all: float | None
    """By what factor all ranges of ratios could be widened together; null likewise."""
    clients: list[ClientOverRanges]


class HeldUnder(_Output):
    """For how many laws of the loss an agreement holds."""

    laws: int
    held: int
    worst_law: int
    """The position of the law with the least slack; of an agreement that was made for many laws,
    0 is the fitted one."""
    worst_client: str
    slack: float
    would_give_more: int
    """How many clients would contribute more than agreed under one of them."""


class Verdict(_Output):
    """Whether the agreement is proved."""

    holds: bool
    worst_client: str
    """The client with the least slack."""
    slack: float | None
    """That client's discount factor minus its threshold."""
    assumptions: list[str]
    """What is assumed and not proved, with the margin that each has; empty if it is refuted."""
    under_laws: HeldUnder | None
    """The laws that it was made for, or that resampling gives; null if the law was not measured."""
    under_fresh_laws: HeldUnder | None
    """Laws from other random numbers, which it was not made for."""
    over_ranges: HeldOver | None
    """Over all numbers within the ranges; null if the numbers are exact."""


class SolvedVerdict(Verdict):
    """Whether the agreement that was found is proved, and who depends on all taking part."""

    would_slip_if_one_is_out: list[str]
    """Who would slip, too, while another client is suspended."""


class SocialOptimum(_Output):
    """The profile with the lowest total cost."""

    total: float
    total_cost: float | None
    price_of_anarchy: float | None


class LawTerm(_Output):
    """value (unit / (X + shift))^exponent."""

    value: float
    unit: float
    shift: float
    exponent: float


class Evidence(_Output):
    """What a measured law was fitted to."""

    sizes: int
    seeds: int
    examples: int
    """Test examples that were resampled; 0 if none were kept."""
    range: list[float]
    """The smallest and the largest size that was measured."""
    chi2: float | None
    """Per degree of freedom; null with a single seed."""
    resamples: int
    objections: list[str]
    """Why the law should not be relied on."""


class Law(_Output):
    """How the loss falls with data: floor plus the terms."""

    kind: Literal["paper", "power", "mixture", "measured", "personal"]
    measure: str
    """What is lost: error (1 - accuracy), loss, 1 - AUC, 1 - concordance."""
    floor: float = Field(default=0.0)
    """What no amount of data removes. Left out, like the terms, if each client has its own law."""
    terms: list[LawTerm] = Field(default=[])
    evidence: Evidence | None = None
    """For a measured law."""


_WORDS = Literal["worth signing", "hardly worth signing", "not worth it"]


class WorthClient(_Output):
    """What the agreement is worth to one client."""

    name: str
    alone: float | None
    """The measure of its model if it trains alone."""
    equilibrium: float | None
    agreed: float | None
    gain: float | None
    """How much lower than at the equilibrium."""
    saving_per_slot: float | None
    saving_low: float | None
    """The ends of the 90 % band; null if the law was not measured."""
    saving_high: float | None
    saving_per_year: float | None
    """Null if the length of a slot is not known."""
    stake: float | None
    """The part of what it pays at the equilibrium that data can change."""
    saving_share: float | None
    """The saving divided by the stake."""
    sure_to_gain: bool
    """Whether it saves by all laws of the band."""
    better_outside: bool
    """Whether it would pay less on its own, without fees."""
    verdict: _WORDS | None


class Worth(_Output):
    """What the agreement is worth to all clients; measures are means over them."""

    measure: str
    measured: bool
    """Whether the law was measured, so that there are bands."""
    alone: float | None
    alone_band: list[float] | None
    equilibrium: float | None
    equilibrium_band: list[float] | None
    agreed: float | None
    agreed_band: list[float] | None
    gain: float | None
    gain_band: list[float] | None
    saving_per_slot: float | None
    saving_band: list[float] | None
    saving_per_year: float | None
    stake: float | None
    saving_share: float | None
    currency: str
    slot: str
    slots_per_year: float | None
    range_used: list[float | None]
    """The smallest and the largest total that the law is needed for."""
    verdict: _WORDS | None
    """Null if there is no agreement, or none that holds."""
    clients: list[WorthClient]


class GroupClient(_Output):
    """A client in a group, or outside it."""

    name: str
    contribution: float
    """In the group; 0 outside it."""
    saving: float | None
    """Per slot, against the agreement."""


class LeavingGroup(_Output):
    """A group that would do better on its own for good."""

    members: list[str]
    total: float
    clients: list[GroupClient]
    everyone: bool
    """Whether it is all of them: another profile would then cost everyone less."""
    holds: bool | None
    """Whether everyone would keep to that one; null for a smaller group."""


class Alternative(_Output):
    """Another agreement of the same consortium."""

    name: Literal[
        "reversion", "nobody worse", "no margin", "least total cost", "fitted law", "as stated"
    ]
    """What is different."""
    exists: bool
    reason: str | None
    """Why there is none."""
    punishment: Punishment
    objective: str | None
    margin: float
    total: float
    total_cost: float | None
    saving_per_slot: float | None
    """What all clients save together, against the equilibrium."""


class Sentences(_Output):
    """What is printed for people besides the tables, part by part."""

    consortium: list[str]
    close_call: list[str]
    agreement: list[str]
    alternatives: list[str]
    audits: list[str]
    ranges: list[str]
    law: list[str]
    questions: list[str]


class Solution(_Output):
    """Equilibrium, agreement and certificate of a consortium."""

    consortium: Consortium
    equilibrium: Equilibrium
    agreement: Agreement
    certificate: SolvedVerdict
    coalition: LeavingGroup | None
    """Null if no group would do better on its own, or if everyone reverts after a slip."""
    law: Law
    worth: Worth
    social_optimum: SocialOptimum
    alternatives: list[Alternative] = Field(default=[])
    """Left out, like the sentences, where groups of a consortium are compared."""
    sentences: Sentences | None = None


class ChangingState(_Output):
    """One state of a consortium that changes."""

    name: str
    clients: int
    """How many take part."""
    without: list[str]
    """Who does not."""
    equilibrium_total: float
    for_ever_total: float
    """What would be agreed if the state lasted for ever."""
    for_ever_slips: list[str]
    """Who would not keep to that."""
    total: float
    slips: list[str]
    """Who would not keep to what is agreed; empty if it holds."""
    next: dict[str, float]
    """The probability of each state in the next slot."""


class ChangingAgreementClient(_Output):
    """A client in a state."""

    state: str
    name: str
    samples: float
    equilibrium: float
    """What it contributes at the equilibrium of the state."""
    contribution: float
    saving: float | None
    """Per slot, against that equilibrium."""


class ChangingAgreement(_Output):
    """An amount for each client in each state."""

    exists: bool
    states: list[str]
    totals: list[float]
    equilibrium_totals: list[float]
    objective: Objective | None
    margin: float
    punishment: Punishment
    largest: bool
    """Whether no agreement has more data; if false, that is not known."""
    clients: list[ChangingAgreementClient]


class ChangingCertificateClient(_Output):
    """A client's part of the proof, in a state."""

    state: str
    name: str
    contribution: float
    deviation: float
    gain: float | None
    """What its best deviation saves it, once."""
    saving: float | None
    """What the agreement saves it in a slot, against the punishment."""
    later: float | None
    """What the punishment is expected to cost it, discounted."""
    slack: float | None
    """later - gain."""
    keeps: bool


class ChangingCertificate(_Output):
    """Whether the agreement is proved in every state."""

    holds: bool
    closest_client: str
    closest_state: str
    slack: float | None
    """That client's, in that state."""
    punishment_holds: bool
    law_holds: bool
    assumptions: list[str]
    clients: list[ChangingCertificateClient]


class ChangingSolution(_Output):
    """The agreement of a consortium that changes, and its proof."""

    consortium: Consortium
    """Everyone, with the usual numbers."""
    states: list[ChangingState]
    agreement: ChangingAgreement
    certificate: ChangingCertificate
    for_ever_holds: bool
    """Whether what each state would agree on if it lasted for ever would hold."""


class DepartureClient(_Output):
    """One of those who stay; savings are per slot, against being alone."""

    name: str
    saving: float | None
    """Before the departure."""
    saving_kept: float | None
    """If all others keep their amounts."""
    saving_new: float | None
    """If they agree again."""
    contribution_new: float


class AuditRatesAgreement(_Output):
    """The largest agreement that holds if every slip is seen."""

    exists: bool
    total: float
    reason: str | None
    """Why no agreement exists."""


class AuditRatesClient(_Output):
    """How a client must be audited."""

    name: str
    contribution: float
    audit_probability: float | None
    """The least probability of an audit in a slot; null: none is enough."""
    checks: float | None
    """The least expected number of samples to check in a slot, whatever the scheme."""
    samples_to_check: float | None
    """How many samples to check if it is audited in every slot; null: none is enough."""
    cost: float | None
    """What its audits cost in a slot on average."""


class AuditBudget(_Output):
    """What a budget of audits buys."""

    audits: float
    exists: bool
    total: float
    saving: float
    """What all clients save together in a slot."""


class AuditRates(_Output):
    """How often each client must be audited, and what budgets buy."""

    consortium: Consortium
    agreement: AuditRatesAgreement
    enough: bool
    """Whether there are audits that keep everyone to the agreement."""
    per_slot: float | None
    cost: float | None
    checks_per_slot: float | None
    """Samples to check in a slot, all clients together."""
    punishment: Punishment
    monitoring: Monitoring
    clients: list[AuditRatesClient]
    equilibrium_total: float
    budgets: list[AuditBudget]


class Departure(_Output):
    """What happens if a client leaves."""

    name: str
    contribution: float
    """What it trains on now."""
    own_loss: float | None
    """What leaving costs it per slot: what it saves now against being alone."""
    total_kept: float
    holds_kept: bool
    """Whether the others' amounts still hold."""
    exists: bool
    """Whether the others find an agreement of their own."""
    total_new: float
    cost_to_others: float | None
    """Per slot, all of them together, if they agree again."""
    slips: list[str]
    """Who would not keep its amount."""
    clients: list[DepartureClient]


class Departures(_Output):
    """What happens if any one client leaves."""

    consortium: Consortium
    total: float
    exists: bool
    objective: Objective | None
    margin: float
    punishment: Punishment
    most_missed: str
    least_missed: str
    indispensable: list[str]
    """Those without whom the others find no agreement."""
    departures: list[Departure]


class CertifiedClient(_Output):
    """A client's part of the proof."""

    name: str
    contribution: float
    cost_equilibrium: float | None
    cost_alone: float | None
    """What a slot costs it on its own."""
    cost_punished: float | None
    """What a slot of the punishment costs it."""
    cost_agreement: float | None
    cost_deviation: float | None
    deviation: float
    """What it would contribute if it deviated as well as it can."""
    threshold: float | None
    slack: float | None
    keeps: bool
    """Whether it keeps to the agreement."""
    audit_probability: float | None
    """The least probability of an audit in a slot that keeps it to the agreement; null: none."""


class Certificate(Verdict):
    """The proof of a profile, or who would break it."""

    smallest_discount_factor: float | None
    punishment: Punishment
    """The punishment with which this was proved."""
    monitoring: Monitoring
    """How a slip is seen, for which this was proved."""
    punishment_holds: bool
    """Whether nobody gains by not carrying out the punishment."""
    law_holds: bool
    """Whether the law is convex and falls, as the search for slips requires."""
    nothing_harsher: bool
    """Whether no punishment could cost any client more."""
    keeps_if_one_is_out: bool | None
    """Suspension: whether all keep their amounts while any one other client is out."""
    keeps_if_all_are_out: bool | None
    """Suspension: whether each keeps its amount while all others are out."""
    clients: list[CertifiedClient]


class Certified(_Output):
    """A profile and its certificate."""

    consortium: Consortium
    certificate: Certificate
    law: Law
    worth: Worth


_REPORTED = Literal["ratio", "samples", "discount_factor"]


class MisreportClient(_Output):
    """The most profitable report of one client while all others tell the truth."""

    name: str
    field: Literal[_REPORTED, "refusal"] | None
    """What it lies about; null if the truth is best."""
    report: float | None
    """What it says; null if it tells the truth, or refuses."""
    factor: float | None
    """The report divided by the truth."""
    gain: float
    """What it saves per slot."""
    gain_of_computation: float | None
    """That divided by what training costs it; null if training costs it nothing."""
    gain_of_saving: float | None
    """The gain divided by what it saves anyway; null if it saves nothing."""
    total: float
    """The samples that are trained on then."""
    keeps: bool
    """Whether it then keeps to what it is asked for."""


class ReportingRun(_Output):
    """Where it ends when clients change their reports one after another."""

    order: Literal["as given", "reverse", "ascending ratio", "descending ratio", "random"]
    seed: int | None
    """Of the random order."""
    settled: bool
    rounds: int
    total: float
    misreporting: int
    """How many clients do not tell the truth in the end."""


class MisreportedMechanism(_Output):
    """Who gains by lying under one mechanism."""

    name: str
    asks: list[_REPORTED]
    """What could be misreported."""
    objective: Objective | None
    punishment: Punishment | None
    truthful_total: float
    """The samples that are trained on if everyone tells the truth."""
    equilibrium_total: float
    reports: int
    """Reports that were tried for each client."""
    gaining: int
    """How many clients gain by a lie."""
    largest_gain: float
    """The largest gain, divided by what training costs the liar."""
    best_liar: str | None
    clients: list[MisreportClient]
    everyone: list[ReportingRun]
    """What is left when everyone lies; empty if it was not computed."""


class Misreports(_Output):
    """Who gains by lying."""

    consortium: Consortium
    mechanisms: list[MisreportedMechanism]


class Measured(_Output):
    """A measured number, as a fraction: 0.01 is a percentage point."""

    mean: float
    error: float
    """The standard error."""
    half_width: float
    """Of the 95 % interval."""


class HelpedClient(_Output):
    """What a client's data does on another client's own test, or on its own."""

    client: str
    """Whose test it is."""
    shapley: Measured
    leave_one_out: Measured


class ClientQuality(_Output):
    """How many samples of the average member one of a client's is worth."""

    name: str
    samples: float
    bases: list[float]
    """The samples of others that it was measured beside: all of theirs, and half."""
    at_bases: list[float | None]
    """The weight at each; null if it is more than the law can tell."""
    value: float | None
    """The mean of the two."""
    low: float | None
    high: float | None
    """The ends of its 95 % interval."""
    verdict: Literal["usable", "leave it out", "depends on the rest", "too uncertain"]


class ValuedClient(_Output):
    """What a client's data is worth to everyone, and what everyone's is worth to it."""

    name: str
    samples: float
    """That it has."""
    test_examples: int | None
    """Of its own test; null if it has none, and is judged by the common one."""
    alone: Measured
    """The measure of the model that it trains alone, on its own test."""
    together: Measured
    """That of everyone's model, on the same test."""
    gain: Measured
    """The difference."""
    shapley: Measured
    """What its data adds on the common test."""
    leave_one_out: Measured
    """What is lost on the common test if it leaves."""
    helps: list[HelpedClient]
    """The same on each own test; empty without own tests."""
    quality: ClientQuality | None
    """Null unless `--quality` was given, and there is a law."""


class DataValues(_Output):
    """What everyone's data is worth to whom."""

    dataset: str
    task: str
    rounds: int
    measure: str
    """What is gained: accuracy or concordance."""
    seeds: int
    """Runs of each group."""
    test_examples: int
    """Of the common test."""
    scale: float
    """Examples per sample."""
    groups: int
    """That were trained."""
    trainings: int
    """Groups times seeds."""
    exact: bool
    """Whether all groups were trained."""
    permutations: int
    """That were sampled; 0 if values are exact."""
    truncated: int
    """Of these, how many were not followed to their end."""
    no_quality: str | None
    """Why there are no quality weights, if they were asked for."""
    untrained: Measured
    """The measure on the common test before training."""
    together: Measured
    """And after everyone's training."""
    clients: list[ValuedClient]


class Interval(_Output):
    """A measured number, as a fraction: 0.01 is a percentage point."""

    mean: float
    half_width: float
    """Of the 95 % interval."""


class JoiningClient(_Output):
    """What a client gains by training with others."""

    name: str
    records: int
    """That it trains with."""
    tested: int
    """Examples of the test that it is judged by: its own, or else the common one."""
    alone: Interval
    """The measure of the model that it trains alone, on that test."""
    together: Interval
    """That of the model that everyone trains."""
    gain: Interval
    """The difference."""
    verdict: Literal["gains", "loses", "unclear"]
    """Whether it gains or loses with everyone, beyond noise."""
    best_group: list[str]
    """The group that is likely to be best for it, itself included; of several, the largest."""
    best_gain: Interval
    """What it gains in that group, against training alone."""
    loss_gain: Interval
    """How much lower the loss on its test is with everyone than alone; not a fraction."""
    saving: Interval | None
    """What it saves with everyone in a slot, fees paid, in the unit; null without FILE."""


class TriedWay(_Output):
    """A way to train, and its loss on training examples that were held out."""

    way: str
    together: float | None
    """The mean over clients, of everyone's model; null if only one way was tried."""
    alone: float | None
    """The mean over clients, of their own models; null likewise."""
    each_together: list[float]
    """The loss of everyone's model for each client; empty if only one way was tried."""
    each_alone: list[float]
    """That of their own models."""


class ChosenWays(_Output):
    """The ways that were used, with their rates."""

    together: str
    alone: str


class PlainJoining(_Output):
    """What plain FedAvg would have led to."""

    way: str
    gain: list[Interval]
    """What each client would gain with everyone, in the order of the clients."""
    recommended: list[str] | None
    """The members of the group to form; null if there is none."""
    surely_recommended: bool


class TrainedGroup(_Output):
    """A group, and whether some of its members would rather leave it."""

    members: list[str]
    gain: list[float]
    """What each of them gains against training alone, in the unit, in their order."""
    stable: bool
    """Whether no part of the group is better for all of its members, by the means."""
    surely_stable: bool
    """The same beyond noise."""
    surely_unstable: bool
    """Whether some part of the group is better for all of its members, beyond noise."""
    blocked_by: list[list[str]]
    """The parts of the group that are better for all of their members, by the means."""


class CoalitionClient(_Output):
    """What a client does and saves in a coalition."""

    name: str
    contribution: float
    """0 outside the coalition."""
    saving: float
    """Per slot, against the agreement; 0 outside the coalition."""


class Coalition(_Output):
    """Clients that would do better on their own, for good."""

    members: list[str]
    total: float
    """Samples that they would train on per slot."""
    clients: list[CoalitionClient]


class GroupAgreement(_Output):
    """What the recommended group can agree on."""

    members: list[str]
    reason: str | None
    """Why no law fits the measurements; null if one does."""
    exists: bool
    """Whether there is an agreement; false if no law fits."""
    total: float | None
    """Samples per slot, the equilibrium's if there is no agreement; null if no law fits."""
    holds: bool
    """Whether it is proved; false if no law fits."""
    for_the_fit: bool
    """Whether no agreement holds for every law that fits, so that this one is for the best fit."""
    contributions: dict[str, float] | None
    """The total by member; null if no law fits."""
    coalition: Coalition | None
    """Those that would do better on their own, for good; null if there are none."""
    solution: Solution | None
    """All that `solve` would print about it; null if no law fits."""


class Joining(_Output):
    """Who gains by training together, and which group should form."""

    dataset: str
    task: str
    measure: str
    """What is gained: accuracy or concordance."""
    rounds: int
    seeds: int
    """Runs of each group."""
    own_tests: bool
    """Whether each client is judged by a test of its own, and not by the common one."""
    unit: str
    """What groups are compared by: the measure, or with FILE its currency ("cost" without one)."""
    recommended: list[str] | None
    """The members of the group to form; null if there is none."""
    surely_recommended: bool
    """Whether every one of them gains beyond noise."""
    clients: list[JoiningClient]
    ways: list[TriedWay]
    way: ChosenWays
    plain: PlainJoining | None
    """The comparison with plain FedAvg; null if that was used, or if only one way was tried."""
    groups: list[TrainedGroup]
    """All groups, those of a single client included."""
    notes: list[str]
    """What to know about the records before the numbers are believed."""
    agreement: GroupAgreement | None
    """Null without FILE, or if no group is recommended."""


class InterviewRange(_Output):
    """What is known of a number."""

    low: float
    likely: float
    high: float


class InterviewStep(InterviewRange):
    """One step of a calculation, and its value."""

    name: str
    formula: str
    """In words."""
    calculation: str
    """The same with the likely numbers."""


class InterviewResult(InterviewRange):
    """One of the client's numbers, per slot."""

    field: Literal["valuation", "cost_per_sample", "samples", "discount_factor"]
    source: str
    """Where it came from, in a few words."""
    steps: list[InterviewStep]
    """Every step; the last is the result."""


class InterviewAnswer(_Output):
    """The answer to one question."""

    question: str
    asks: str
    """The question in words."""
    value: str | int | InterviewRange
    assumed: bool
    """Whether it is the default."""


class InterviewClient(_Output):
    """The numbers as a file gets them."""

    name: str
    valuation: float
    cost_per_sample: float
    samples: float
    discount_factor: float
    quality: float
    """What one of its samples is worth, in samples of quality 1."""


class Interview(_Output):
    """What an organisation answered, and the numbers that follow from it."""

    name: str
    currency: str
    slot: str
    """The length of a slot, in words."""
    slots_per_year: float
    rounds: int
    """Rounds of federated averaging in a slot."""
    measure: str
    """What is lost when the model is worse."""
    point_worth_per_year: InterviewRange
    """What 0.01 of the measure is worth in a year."""
    client: InterviewClient
    results: list[InterviewResult]
    answers: list[InterviewAnswer]
    doubts: list[str]
    """Questions about results that are unlikely."""


def output(title: str, model: type[BaseModel]) -> Schema:
    """The schema of what a command prints."""
    return headed(NEWEST, title, schema_of(model))


# --- The ledger ----------------------------------------------------------------------------


def events(title: str, form: Any) -> Schema:
    """A line of a log: any of the events, each with its level."""
    schema = schema_of(form)
    for definition in schema["$defs"].values():
        if "event" in definition["properties"]:
            definition["properties"]["level"] = {"enum": list(LEVELS)}
            definition["properties"]["event"].pop("default")
            definition["required"] = ["event", "time", "level", *definition.get("required", [])]
    return headed(NEWEST, title, schema)


def ledger() -> Schema:
    """The entries of a ledger, as `ledger show --format json` prints them."""
    bodies = _bodies()
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    definitions: Schema = {}
    rules = []
    for kind, forms in bodies.items():
        for form in forms:
            definitions |= form.pop("$defs", {})
        body = forms[0] if len(forms) == 1 else {"anyOf": forms}
        when = {"properties": {"kind": {"const": kind}}}
        rules.append({"if": when, "then": {"properties": {"body": body}}})
    entry = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "minimum": 1, "description": "Counted from 1."},
            "at": {"type": "string", "description": "The time, in UTC."},
            "kind": {"enum": list(bodies)},
            "slot": {"type": "integer", "minimum": 0},
            "client": {"type": ["string", "null"], "description": "Null: it concerns everyone."},
            "body": {"type": "object", "description": "The content, which depends on the kind."},
            "seconds": {
                "type": "integer",
                "description": "At the end of a round: how long it took, to the second.",
            },
            "previous": digest,
            "digest": digest,
        },
        "required": ["number", "at", "kind", "slot", "client", "body", "previous", "digest"],
        "additionalProperties": False,
        "allOf": rules,
    }
    title = "What `fedaccord ledger show --format json` prints, of a server's ledger or a copy"
    schema: Schema = {"type": "array", "items": entry}
    return headed(NEWEST, title, schema | ({"$defs": definitions} if definitions else {}))


def _bodies() -> dict[str, list[Schema]]:
    """What an entry of each kind holds, in a server's ledger and in a client's copy."""
    from fedaccord.protocol import facts, notes

    bodies: dict[str, list[Schema]] = {}
    for forms in (facts.FORMS, notes.FORMS):
        for kind, form in forms.items():
            body = schema_of(form)
            for place in ("slot", "client"):  # they stand beside the body
                body["properties"].pop(place, None)
            body["required"] = [field for field in body["required"] if field in body["properties"]]
            bodies.setdefault(kind, []).append(body)
    return bodies


# --- From models to schemas ----------------------------------------------------------------


class _Described(GenerateJsonSchema):
    """pydantic's schemas, with the docstrings of attributes as descriptions, and no titles."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        del made["title"]
        texts = docstrings(schema["cls"])
        for field, found in made.get("properties", {}).items():
            if field in texts:
                found["description"] = texts[field]
        return made


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below a model's attributes, inherited ones included."""
    found = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            body = _classes_in(cls.__module__)[cls.__name__].body
            for line, after in pairwise(body):
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    match after:
                        case ast.Expr(ast.Constant(str(text))):
                            found[line.target.id] = " ".join(text.split())
    return found


@cache
def _classes_in(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module; `inspect` would parse it again for each of them."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}


def schema_of(form: Any) -> Schema:
    """The schema of a model, whose private helpers lose their underscore."""
    schema = TypeAdapter(form).json_schema(schema_generator=_Described)
    text = json.dumps(schema)
    for name in schema.get("$defs", {}):
        text = text.replace(f'"{name}"', f'"{name.lstrip("_")}"')
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{name.lstrip("_")}"')
    plain: Schema = json.loads(text)
    return plain


def headed(draft: str, title: str, schema: Schema) -> Schema:
    """The schema with its draft and title first."""
    return {"$schema": draft, "title": title, **schema}


def without_null(schema: Any) -> Any:
    """The schema of a TOML file, which leaves out what JSON would call null."""
    if isinstance(schema, list):
        return [without_null(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: without_null(value) for key, value in schema.items()}
    if found.get("default", ...) is None:
        del found["default"]
    choices = [choice for choice in found.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        del found["anyOf"]
        found |= choices[0]
    elif choices:
        found["anyOf"] = choices
    return found


def draft_4(schema: Any) -> Any:
    """The schema in the words of draft 4."""
    if isinstance(schema, list):
        return [draft_4(inner) for inner in schema]
    if isinstance(schema, str):
        return schema.replace("#/$defs/", "#/definitions/")
    if not isinstance(schema, dict):
        return schema
    found: Schema = {}
    for key, value in schema.items():
        if key in ("exclusiveMinimum", "exclusiveMaximum"):
            found |= {key.removeprefix("exclusive").lower(): value, key: True}
        elif key == "const":
            found["enum"] = [value]
        else:
            found["definitions" if key == "$defs" else key] = draft_4(value)
    return found


if __name__ == "__main__":
    main()
