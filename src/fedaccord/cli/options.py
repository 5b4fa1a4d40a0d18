"""Options that several commands share, and the consortium that they describe."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from fedaccord.cli.console import working
from fedaccord.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from fedaccord.agreement.punishment import Punishment
    from fedaccord.game.changing import ChangingConsortium
    from fedaccord.game.consortium import Consortium


Format = Literal["text", "json"]

MOST_CLIENTS = 10_000_000
"""As many as fit into the memory of an ordinary machine."""
MOST_CLIENT_SLOTS = 5_000_000
"""The largest number of clients times slots that is recorded; more may not fit into memory."""
MOST = 2**53
"""The largest count of anything: a float holds every whole number up to it."""
LARGEST_SEED = 2**63 - 1
"""PyTorch takes 64 bits, so this leaves room for the seeds of further runs."""


def from_one(number: int | None) -> int | None:
    """Check a number of things: there must be at least one."""
    if number is not None and number < 1:
        raise typer.BadParameter(f"must be 1 or more, got {number}")
    if number is not None and number > MOST:
        raise typer.BadParameter(f"must be {MOST:,} or less")
    return number


def from_zero(number: int | None) -> int | None:
    """Check a seed, if one is given."""
    if number is None:
        return None
    if number < 0:
        raise typer.BadParameter(f"must be 0 or more, got {number}")
    if number > LARGEST_SEED:
        raise typer.BadParameter(f"must be {LARGEST_SEED} or less, got {number}")
    return number


def _not_too_many(clients: int | None) -> int | None:
    if clients is not None and clients > MOST_CLIENTS:
        raise typer.BadParameter(f"must be {MOST_CLIENTS:,} or less, got {clients}")
    return from_one(clients)


# Help texts state defaults and limits in words: typer would import rich to show them itself.
FileArgument = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]


WithinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--within",
        metavar="PERCENT",
        help="Take every ratio of valuation to cost to be off by up to 30%, or x2 for half to "
        "double; or one number, as in discount_factor=10%. Can be repeated.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """The options that describe the paper's setting, as every command has them."""

    paper: Annotated[
        bool, typer.Option("--paper", help="Use the paper's setting instead of a file.")
    ] = False
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients", callback=_not_too_many, help="Paper: number of clients; default 100."
        ),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", callback=from_one, help="Paper: samples per client; default 10000."
        ),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", callback=from_one, help="Paper: rounds in a slot; default 50."),
    ] = None
    cost_per_sample: Annotated[
        float | None,
        typer.Option("--cost-per-sample", help="Paper: cost per sample; default 0.985e-8."),
    ] = None
    discount_factor: Annotated[
        float | None, typer.Option("--discount-factor", help="Paper: discount factor; default 0.8.")
    ] = None

    law: Annotated[
        Path | None,
        typer.Option(
            "--law",
            metavar="FILE",
            help="Another law of the loss: a measured curve (CSV), or TOML with a [law] table.",
        ),
    ] = None
    within: WithinOption = None
    as_stated: Annotated[
        bool,
        typer.Option("--as-stated", help="Take numbers to be exact that have ranges in the file."),
    ] = False

    def given(self) -> dict[str, Any]:
        """The numbers on the command line, by field."""
        return {
            field: value
            for field, value in vars(self).items()
            if field not in ("paper", "law", "within", "as_stated") and value is not None
        }


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command declare a dataclass of options as one parameter.

    The command line has an option for each field, at the parameter's place in the help.
    """
    signature = inspect.signature(command)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group = groups.get(name)
        options += [parameter] if group is None else _options_of(group)

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, __name__
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return run


def _options_of(group: type) -> list[inspect.Parameter]:
    """A dataclass's fields as parameters of a function."""
    annotations = get_type_hints(group, include_extras=True)
    signature = inspect.signature(group)
    return [
        parameter.replace(annotation=annotations[name])
        for name, parameter in signature.parameters.items()
    ]


LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option(
        "--log-format",
        show_default=False,
        help="Sentences (text, default), or one JSON object a line (json).",
    ),
]

FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", show_default=False, help="Tables for people (text), or JSON for programs."
    ),
]


def html_only(report: Path | None) -> Path | None:
    """Refuse to write a page into a file that will be taken for something else."""
    if report is None or report.suffix.lower() in (".html", ".htm"):
        return report
    if report.exists() and not report.is_file():  # a directory is refused later, a pipe is fine
        return report
    raise typer.BadParameter(
        f"the report is a web page: name it .html or .htm, got {report.name!r} (a browser can "
        "print it to PDF)"
    )


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        callback=html_only,
        help="Write an HTML report to share.",
    ),
]
AgreementOption = Annotated[
    Literal["individual", "uniform"],
    typer.Option(
        "--agreement",
        show_default=False,
        help="An amount for each client (individual, the default), or one level for many.",
    ),
]
MarginOption = Annotated[
    float | None,
    typer.Option(
        "--margin",
        show_default=False,
        help="How much less patient than stated the clients may be; default 0.01 for a file, 0 in "
        "the paper's setting.",
    ),
]


def margin_or_usual(margin: float | None, file: Path | None) -> float:
    """The margin that was asked for; by default a small one for a file, the paper's 0 without."""
    from fedaccord.agreement.agreement import USUAL_MARGIN

    usual = 0.0 if file is None else USUAL_MARGIN
    return usual if margin is None else margin


ObjectiveOption = Annotated[
    Literal["most-data", "least-total-cost", "fair-share"] | None,
    typer.Option(
        "--objective",
        help="What the agreement optimises; default: least-total-cost with suspension, "
        "most-data with reversion.",
    ),
]
NobodyWorseOption = Annotated[
    bool,
    typer.Option(
        "--nobody-worse",
        help="Let no client pay more than without an agreement; with reversion none does.",
    ),
]
PunishmentSlotsOption = Annotated[
    int | None,
    typer.Option(
        "--punishment-slots",
        callback=from_one,
        help="Number of slots for which a slip is punished; default: reversion for ever, "
        "suspension for one slot.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class PunishmentOptions:
    """What follows a slip, as every command with agreements has it."""

    punishment: Annotated[
        Literal["reversion", "suspension"] | None,
        typer.Option(
            "--punishment",
            help="After a slip, whoever slipped gets no model (suspension, the default for a "
            "file), or everyone goes back to the equilibrium (reversion, the paper's).",
        ),
    ] = None
    punishment_slots: PunishmentSlotsOption = None
    for_ever: Annotated[
        bool, typer.Option("--for-ever", help="Punish a slip for ever, also by suspension.")
    ] = False
    model_keeps: Annotated[
        float | None,
        typer.Option(
            "--model-keeps",
            metavar="SHARE",
            help="Suspension: the share of the agreed data that an old model is worth; default 0.",
        ),
    ] = None
    fees_saved: Annotated[
        bool,
        typer.Option(
            "--fees-saved",
            help="Suspension: a suspended client saves its communication cost and the fee.",
        ),
    ] = False

    @property
    def given(self) -> bool:
        """Whether the command line says anything about the punishment."""
        return any(value not in (None, False) for value in vars(self).values())

    def chosen(self, file: Path | None) -> "Punishment":
        """The punishment: by default suspension for a consortium's file, the paper's without."""
        from fedaccord.agreement.punishment import Reversion, Suspension

        if self.for_ever and self.punishment_slots is not None:
            raise InvalidInput("--for-ever: cannot be combined with --punishment-slots")
        kind = self.punishment or ("reversion" if file is None else "suspension")
        if kind == "reversion":
            self._check_reversion()
            return Reversion(self.punishment_slots)
        usual = Suspension(model_keeps=self.model_keeps or 0.0, fees_saved=self.fees_saved)
        if self.punishment_slots is None and not self.for_ever:
            return usual
        return replace(usual, slots=self.punishment_slots)

    def _check_reversion(self) -> None:
        """Refuse options that only suspension has."""
        for field in ("model_keeps", "fees_saved", "harsher"):
            if getattr(self, field, None) not in (None, False):
                raise InvalidInput(f"{flag_of(field)}: needs --punishment suspension")


@dataclass(frozen=True, kw_only=True)
class AnyPunishmentOptions(PunishmentOptions):
    """The same where the punishment may differ from client to client, which cannot be played."""

    harsher: Annotated[
        bool,
        typer.Option(
            "--harsher",
            help="Suspension: for each client, reversion instead where that costs it more.",
        ),
    ] = False

    def chosen(self, file: Path | None) -> "Punishment":
        """As above, or the harsher one of both for each client."""
        from fedaccord.agreement.punishment import Suspension

        chosen = super().chosen(file)
        return (
            replace(chosen, or_reversion=self.harsher) if isinstance(chosen, Suspension) else chosen
        )


AllOption = Annotated[
    bool, typer.Option("--all", help="List every client instead of about twenty.")
]


def choose_consortium(file: Path | None, setting: PaperOptions) -> "Consortium":
    """The consortium in the file, or the paper's with the options that were given."""
    return _as_asked(_described(file, setting), setting)


def _as_asked(consortium: "Consortium", setting: PaperOptions) -> "Consortium":
    """The consortium with the law and the ranges of the command line, if there are any."""
    if setting.as_stated:
        consortium = consortium.without_ranges()
    if setting.law is not None:
        from fedaccord.files.law import load_law

        with working("Reading the law"):
            consortium = consortium.with_law(load_law(setting.law, int(consortium.rounds)))
    return with_ranges_within(consortium, setting.within or [])


def with_ranges_within(consortium: "Consortium", given: list[str]) -> "Consortium":
    """The consortium with ranges around its numbers."""
    from fedaccord.checks import unknown
    from fedaccord.files.ranges import read_within
    from fedaccord.game.ranges import RANGED

    if given and consortium.ranges is not None:
        raise InvalidInput("--within: the file has ranges; --as-stated would leave them out")
    pairs = {}
    for text in given:
        field, _, width = text.rpartition("=")
        field = field.strip().replace("-", "_") or "ratio"
        if field not in (*RANGED, "ratio"):
            raise InvalidInput(f"--within {text}: {unknown(field, ['ratio', *RANGED])}")
        try:
            below, above = read_within(width)
        except InvalidInput as error:
            raise InvalidInput(f"--within: {error.problems[0].message}") from None
        number = getattr(consortium, field)
        pairs[field] = number * below, number * above
    if "discount_factor" in pairs:  # only the lowest counts
        pairs["discount_factor"] = pairs["discount_factor"][0], consortium.discount_factor
    return consortium.with_ranges(**pairs) if pairs else consortium


def choose_either(file: Path | None, setting: PaperOptions) -> "Consortium | ChangingConsortium":
    """The same, or a consortium that changes if the file has states."""
    from fedaccord.files.states import load_either
    from fedaccord.game.consortium import Consortium

    if file is None:
        return choose_consortium(file, setting)
    _only_a_file(file, setting)
    with working("Reading"):
        described = load_either(file, exact=setting.as_stated)
    if isinstance(described, Consortium):
        return _as_asked(described, setting)
    refuse_with_states(law=setting.law, within=setting.within or None)
    return described


def refuse_with_states(**given: object) -> None:
    """Refuse options that are not possible for a consortium that changes."""
    for field, value in given.items():
        if value not in (None, False, 0.0):
            raise InvalidInput(f"{flag_of(field)}: is not possible for a file with states")


def _described(file: Path | None, setting: PaperOptions) -> "Consortium":
    """The consortium with its own law."""
    if file is None:
        return _paper_consortium(setting.given())
    _only_a_file(file, setting)
    from fedaccord.files.consortium import load_consortium

    with working("Reading"):
        return load_consortium(file)


def _only_a_file(file: Path, setting: PaperOptions) -> None:
    """Refuse options of the paper's setting beside a file."""
    numbers = setting.given()
    if setting.paper or numbers:
        flags = ["--paper"] * setting.paper + [flag_of(field) for field in numbers]
        raise InvalidInput(
            f"{', '.join(flags)}: cannot be combined with a file, which says it all ({file})"
        )


def flag_of(field: str) -> str:
    """The option that sets a field.

    >>> flag_of("discount_factor")
    '--discount-factor'
    """
    return f"--{field.replace('_', '-')}"


def read_shape(text: str) -> list[int]:
    """The shape of an example, as `--shape` has it.

    >>> read_shape("28,28")
    [28, 28]
    """
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise InvalidInput(f"--shape: must be whole numbers, 1 or more, as in 28,28, got {text!r}")
    return numbers


def check_slots(slots: int, consortium: "Consortium") -> None:
    """Refuse more slots than can be recorded."""
    if slots * consortium.size > MOST_CLIENT_SLOTS:
        raise InvalidInput(
            f"{slots:,} slots of {consortium.size:,} clients are too many to record; "
            f"at most {MOST_CLIENT_SLOTS // consortium.size:,} are possible",
            field="slots",
        )


def _paper_consortium(options: dict[str, Any]) -> "Consortium":
    from fedaccord.game.paper import paper_consortium

    try:
        paper_consortium(**(options | {"clients": 1}))
    except InvalidInput as error:  # once, not for every client
        raise InvalidInput(
            Problem(problem.field, problem.message) for problem in error.problems
        ) from None
    return paper_consortium(**options)


@contextmanager
def options_for_fields(prefix: str = "--") -> Iterator[None]:
    """Name the options in the problems that the library reports about its arguments."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            Problem(problem.field, problem.message, prefix + problem.field.replace("_", "-"))
            if problem.field and not problem.place
            else problem
            for problem in error.problems
        ) from None
