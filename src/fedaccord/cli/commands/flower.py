"""`fedaccord flower`: write a Flower app for a consortium, and its keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.cli.options import (
    MarginOption,
    PunishmentOptions,
    WithinOption,
    from_one,
    margin_or_usual,
    read_shape,
    with_option_groups,
    with_ranges_within,
)

if TYPE_CHECKING:
    from fedaccord.agreement.punishment import Punishment
    from fedaccord.errors import Problem
    from fedaccord.game.consortium import Consortium

flower = typer.Typer(
    help="Run the slots across machines, on Flower.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@flower.command()
@with_option_groups
def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    *,
    reports: Annotated[
        Literal["ratio", "none"] | None,
        typer.Option(
            "--reports",
            help="What clients report: their ratio of valuation to cost (the default), from which "
            "amounts are computed and which can be gamed; or none, so that nobody can.",
        ),
    ] = None,
    agreement: Annotated[
        Literal["individual", "uniform", "everything", "clock", "serial-clock"],
        typer.Option(
            "--agreement",
            show_default=False,
            help="An amount for each client (individual, the default), or one level for many; "
            "without reports also all samples of everyone, or what a clock finds.",
        ),
    ] = "individual",
    within: WithinOption = None,
    clock_steps: Annotated[
        int | None,
        typer.Option(
            "--clock-steps",
            callback=from_one,
            help="Clocks: in how many steps the share of everyone's samples rises; default 20.",
        ),
    ] = None,
    objective: Annotated[
        Literal["most-data", "least-total-cost", "fairest"] | None,
        typer.Option(
            "--objective",
            help="What the agreement optimises; default least-total-cost, or most-data with "
            "reversion.",
        ),
    ] = None,
    nobody_worse: Annotated[
        bool,
        typer.Option("--nobody-worse", help="Let nobody pay more than at the equilibrium."),
    ] = False,
    margin: MarginOption = None,
    punishment: PunishmentOptions,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            show_default=False,
            help="Share of the agreed contribution that may be missing unpunished (default 0).",
        ),
    ] = 0.0,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            callback=from_one,
            help="How many clients a slot needs (default: more than half of them).",
        ),
    ] = None,
    on_refusal: Annotated[
        Literal["without", "equilibrium", "void"],
        typer.Option(
            "--on-refusal",
            show_default=False,
            help="If a client refuses: agree without it (default), play the equilibrium, or train "
            "nothing (void).",
        ),
    ] = "without",
    task: Annotated[
        str,
        typer.Option(
            "--task", show_default=False, help="What is trained: softmax (default), mlp or cnn."
        ),
    ] = "softmax",
    rate: Annotated[
        float,
        typer.Option(
            "--rate", show_default=False, help="Learning rate of the local steps (default 0.5)."
        ),
    ] = 0.5,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            callback=from_one,
            help="Train in epochs with batches of this size, not one gradient step per round.",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape", metavar="A,B,...", help="Shape of one example, unless --dataset is used."
        ),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            "--classes", callback=from_one, help="Number of labels, unless --dataset is used."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Write examples for a rehearsal: digits, breast-cancer or mnist.",
        ),
    ] = None,
) -> None:
    """Write a Flower app for the consortium of FILE into the new directory DIR.

    Unless the options say otherwise, whoever slips is suspended for one slot.
    Each client's private numbers go into a file of its own, which is not part of the app. README.md
    in DIR lists the five commands that come next.
    """
    from fedaccord.checks import check_installed

    check_installed("a Flower app", "torch", "sqlalchemy", "alembic", "flwr")
    from fedaccord.data.dataset import load_dataset
    from fedaccord.errors import InvalidInput
    from fedaccord.files.consortium import load_consortium
    from fedaccord.flower.app_directory import privates_of, shared_terms, write_app
    from fedaccord.flower.local import empty_model, local_steps
    from fedaccord.protocol.terms import read_terms, rules_of

    consortium = with_ranges_within(load_consortium(file), within or [])
    data = load_dataset(dataset) if dataset is not None else None
    if data is not None and (shape or classes):
        raise InvalidInput(
            "--shape and --classes: cannot be combined with --dataset, which determines them"
        )
    if data is None and not (shape and classes):
        raise InvalidInput(
            "the shape of an example is missing: use --shape and --classes, or --dataset"
        )
    training = {
        "task": task,
        "shape": list(data.shape) if data else read_shape(shape or ""),
        "classes": data.classes if data else classes,
        "rate": rate,
        "local": "epochs" if batch else "gradient step",
    } | ({"batch": batch} if batch else {})
    rules: dict[str, Any] = {
        "nobody_worse": nobody_worse,
        "margin": margin_or_usual(margin, file),
        "tolerance": tolerance,
        "quorum": quorum or 0,
        "on_refusal": on_refusal,
    } | rules_of(punishment.chosen(file))
    if objective is not None:
        rules["objective"] = objective.replace("-", " ")
    if clock_steps is not None:
        rules["clock_steps"] = clock_steps
    unreported = agreement not in ("individual", "uniform")
    if (reports or ("none" if unreported else "ratio")) == "none":
        rules |= _without_reports(consortium, agreement, rules, punishment.chosen(file), file)
    elif within:
        raise InvalidInput("--within: needs --reports none, since reported numbers are exact")
    elif unreported:
        raise InvalidInput(f"--agreement {agreement}: takes no reports, so use --reports none")
    else:
        rules["agreement"] = agreement
    try:
        terms = read_terms(shared_terms(consortium) | rules | {"training": training}, str(file))
    except InvalidInput as error:
        places = [*rules, *(f"training.{field}" for field in training)]
        raise InvalidInput([_blame(problem, places, file) for problem in error.problems]) from None
    empty_model(terms)  # does the task fit the examples?
    local_steps(terms)  # and can it be trained so?
    write_app(directory, terms, privates_of(consortium), data)
    typer.echo(
        f"Wrote {directory}: an app for {consortium.size} clients. "
        f"Continue with the five commands in {directory / 'README.md'}."
    )


@flower.command()
def keys(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", help="A name or address at which clients reach the server. Repeatable."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            callback=from_one,
            show_default=False,
            help="How many days the certificate is valid (default 365).",
        ),
    ] = 365,
) -> None:
    """Create the TLS certificates and the node keys for the app in DIR.

    The server's files go into DIR/keys. Each client's directory gets a node key, and the
    certificate that identifies the server. A client that already has a node key keeps it.
    """
    from fedaccord.errors import InvalidInput
    from fedaccord.flower.keys import copy_certificate, make_certificates, make_node_key

    if not (directory / "fedaccord_app" / "terms.toml").is_file():
        raise InvalidInput(f"{directory}: is not a directory that `fedaccord flower new` wrote")
    try:
        make_certificates(directory / "keys", host or [], days)
    except InvalidInput as error:
        places = ["host", "days"]
        raise InvalidInput([_blame(one, places, directory) for one in error.problems]) from None
    authority = directory / "keys" / "ca.pem"
    made = 0
    for client in sorted(path.parent for path in directory.glob("clients/*/client.toml")):
        copy_certificate(authority, client)
        if not ((client / "node.key").exists() or (client / "node.pub").exists()):
            make_node_key(client / "node.key")
            made += 1
    wrote = f"Wrote certificates for {', '.join(host or [])} into {directory / 'keys'}"
    if made:
        typer.echo(f"{wrote}, and a node key for each of {made} clients.")
    else:
        typer.echo(f"{wrote}. Every client needs the new {authority}.")


@flower.command()
def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
) -> None:
    """Create a node key in FILE, at the client; only the public half has to leave it."""
    from fedaccord.flower.keys import make_node_key

    public = make_node_key(file)
    typer.echo(f"Wrote {file}, which stays here, and {public}, which the server registers.")


def _without_reports(
    consortium: "Consortium",
    agreement: str,
    rules: dict[str, Any],
    punishment: "Punishment",
    file: Path,
) -> dict[str, Any]:
    """The rules by which nobody reports: what is posted, or what a clock needs."""
    from fedaccord.agreement.punishment import Suspension
    from fedaccord.errors import InvalidInput
    from fedaccord.flower.public_terms import public_terms

    if not isinstance(punishment, Suspension):
        raise InvalidInput(
            "--reports none: needs --punishment suspension, since without reports nobody could "
            "compute the equilibrium that reversion returns to"
        )
    kind: Any = agreement.replace("-", " ")
    try:
        return public_terms(
            consortium,
            kind,
            punishment=punishment,
            objective=rules.get("objective"),
            margin=rules["margin"],
        )
    except InvalidInput as error:
        if error.problems[0].field != "reports":
            raise InvalidInput([one.inside(str(file)) for one in error.problems]) from None
        how = "" if consortium.ranges is not None else " in the file, or with --within 30%"
        raise InvalidInput(f"--reports none: {error.problems[0].message}{how}") from None


def _blame(problem: "Problem", places: list[str], file: Path) -> "Problem":
    """A problem with the terms, at the option that it comes from, or at the file."""
    from fedaccord.errors import Problem

    if problem.field not in places:
        return problem.inside(str(file))
    flag = problem.field.removeprefix("training.").replace("_", "-")
    return Problem(problem.field, problem.message, f"--{flag}")
