"""Options that several commands share, and the consortium that they speak of."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.cli.console import working
from fedaccord.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium


Format = Literal["text", "json"]

MOST_CLIENTS = 10_000_000
"""What fits into the memory of a usual machine."""
MOST_CLIENT_SLOTS = 5_000_000
"""Clients times slots that are written down, likewise."""
MOST = 2**53
"""Of anything: a float holds each whole number up to it."""
LARGEST_SEED = 2**63 - 1
"""PyTorch takes 64 bits: so there is room for the seeds that follow."""


def from_one(number: int | None) -> int | None:
    """A number of things, of which there must be some."""
    if number is not None and number < 1:
        raise typer.BadParameter(f"must be 1 or more, got {number}")
    if number is not None and number > MOST:
        raise typer.BadParameter(f"must be {MOST:,} or less")
    return number


def from_zero(number: int | None) -> int | None:
    """A seed, if one is given."""
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


# Defaults and limits are said in words: typer would load rich to show them itself.
PaperOption = Annotated[bool, typer.Option("--paper", help="The paper's setting, not a file.")]
ClientsOption = Annotated[
    int | None,
    typer.Option("--clients", callback=_not_too_many, help="Paper: number of clients (100)."),
]
SamplesOption = Annotated[
    int | None,
    typer.Option("--samples", callback=from_one, help="Paper: samples of each client (10000)."),
]
RoundsOption = Annotated[
    int | None, typer.Option("--rounds", callback=from_one, help="Paper: rounds in a slot (50).")
]
CostPerSampleOption = Annotated[
    float | None, typer.Option("--cost-per-sample", help="Paper: cost per sample (0.985e-8).")
]
DiscountFactorOption = Annotated[
    float | None, typer.Option("--discount-factor", help="Paper: discount factor (0.8).")
]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", show_default=False, help="Tables for people (text), or JSON for programs."
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Write an HTML page to send around."),
]
AgreementOption = Annotated[
    Literal["individual", "uniform"],
    typer.Option(
        "--agreement",
        show_default=False,
        help="Each client its own amount (individual), or one level for many.",
    ),
]
MarginOption = Annotated[
    float,
    typer.Option(
        "--margin", show_default=False, help="Design for clients that much less patient (0)."
    ),
]
PunishmentSlotsOption = Annotated[
    int | None,
    typer.Option(
        "--punishment-slots",
        callback=from_one,
        help="How many slots a slip is punished (for ever).",
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="List every client, not only some twenty of them.")
]


def choose_consortium(file: Path | None, paper: bool, **given: float | None) -> "Consortium":
    """The consortium of the file, or the paper's with the options that were given."""
    options = {field: value for field, value in given.items() if value is not None}
    if file is None:
        return _paper_consortium(options)
    if paper or options:
        flags = [f"--{field.replace('_', '-')}" for field in options]
        refused = ", ".join(["--paper", *flags] if paper else flags)
        raise InvalidInput(f"{refused}: not together with a file, which says it all ({file})")
    from fedaccord.files.consortium import load_consortium

    with working("Reading"):
        return load_consortium(file)


def check_slots(slots: int, consortium: "Consortium") -> None:
    """Refuse more slots than can be written down."""
    if slots * consortium.size > MOST_CLIENT_SLOTS:
        raise InvalidInput(
            f"--slots: {slots:,} slots of {consortium.size:,} clients are too many to write down; "
            f"{MOST_CLIENT_SLOTS // consortium.size:,} would do"
        )


def _paper_consortium(options: dict[str, Any]) -> "Consortium":
    from fedaccord.game.paper import paper_consortium

    try:
        paper_consortium(**(options | {"clients": 1}))
    except InvalidInput as error:  # say it once, not for every client
        problems = [Problem(problem.field, problem.message) for problem in error.problems]
        raise InvalidInput(problems, "the paper's setting") from None
    return paper_consortium(**options)
