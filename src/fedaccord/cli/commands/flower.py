"""`fedaccord flower`: a Flower app for a consortium, and its keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedaccord.cli.options import AgreementOption, MarginOption, PunishmentSlotsOption, from_one

if TYPE_CHECKING:
    from fedaccord.errors import Problem

flower = typer.Typer(
    help="Run the slots across machines, on Flower.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@flower.command()
def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    *,
    agreement: AgreementOption = "individual",
    margin: MarginOption = 0.0,
    punishment_slots: PunishmentSlotsOption = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            show_default=False,
            help="Part of what was agreed that may be missing unpunished (0).",
        ),
    ] = 0.0,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            callback=from_one,
            help="How many clients a slot needs (more than half of them).",
        ),
    ] = None,
    on_refusal: Annotated[
        Literal["without", "equilibrium"],
        typer.Option(
            "--on-refusal",
            show_default=False,
            help="When a client refuses: agree without it, or play the equilibrium.",
        ),
    ] = "without",
    task: Annotated[
        str,
        typer.Option("--task", show_default=False, help="What is trained: softmax, mlp, cnn."),
    ] = "softmax",
    rate: Annotated[
        float, typer.Option("--rate", show_default=False, help="Of the local steps (0.5).")
    ] = 0.5,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            callback=from_one,
            help="Train in epochs of batches of this size, not by one gradient step a round.",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="A,B,...", help="Of one example, unless --dataset says."),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            "--classes", callback=from_one, help="How many labels, unless --dataset says."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Give each client examples to rehearse with: digits, breast-cancer, mnist.",
        ),
    ] = None,
) -> None:
    """Write a Flower app for the consortium of FILE into the new directory DIR.

    Each client's private numbers go into a file of its own, which is no part of the app. README.md
    in DIR has the five commands that take it from there.
    """
    from fedaccord.checks import check_installed

    check_installed("a Flower app", "torch", "sqlalchemy", "alembic", "flwr")
    from fedaccord.data.dataset import load_dataset
    from fedaccord.errors import InvalidInput
    from fedaccord.files.consortium import load_consortium
    from fedaccord.flower.app_directory import write_app
    from fedaccord.flower.local import empty_model, local_steps
    from fedaccord.flower.rules import privates_of, shared_terms
    from fedaccord.protocol.terms import read_terms

    consortium = load_consortium(file)
    data = load_dataset(dataset) if dataset is not None else None
    if data is not None and (shape or classes):
        raise InvalidInput("--shape and --classes: not together with --dataset, which has its own")
    if data is None and not (shape and classes):
        raise InvalidInput("what is an example like? Say --shape and --classes, or --dataset")
    training = {
        "task": task,
        "shape": list(data.shape) if data else _numbers(shape or ""),
        "classes": data.classes if data else classes,
        "rate": rate,
        "local": "epochs" if batch else "gradient step",
    } | ({"batch": batch} if batch else {})
    rules = {
        "agreement": agreement,
        "margin": margin,
        "punishment_slots": punishment_slots,
        "tolerance": tolerance,
        "quorum": quorum or 0,
        "on_refusal": on_refusal,
    }
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
        f"Go on with the five commands in {directory / 'README.md'}."
    )


@flower.command()
def keys(
    directory: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", help="A name or address that clients reach the server by. Repeatable."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            callback=from_one,
            show_default=False,
            help="How long the certificate is good (365).",
        ),
    ] = 365,
) -> None:
    """Make the TLS certificates and the node keys for the app in DIR.

    Into DIR/keys goes what the server needs, into each client's directory its node key and the
    certificate to know the server by. A client that has a node key keeps it.
    """
    from fedaccord.checks import check_installed
    from fedaccord.errors import InvalidInput

    check_installed("making keys", "cryptography")
    from fedaccord.flower.keys import copy_certificate, make_certificates, make_node_key

    if not (directory / "fedaccord_app" / "terms.toml").is_file():
        raise InvalidInput(f"{directory}: is no directory that `fedaccord flower new` wrote")
    make_certificates(directory / "keys", host or [], days)
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
    """Make one node key in FILE, at the client itself; only FILE.pub need leave it."""
    from fedaccord.checks import check_installed

    check_installed("making keys", "cryptography")
    from fedaccord.flower.keys import make_node_key

    public = make_node_key(file)
    typer.echo(f"Wrote {file}, which stays here, and {public}, which the server registers.")


def _blame(problem: "Problem", places: list[str], file: Path) -> "Problem":
    """A problem with the terms, at the option that it comes from, or at the file."""
    from fedaccord.errors import Problem

    if problem.field not in places:
        return problem.inside(str(file))
    flag = problem.field.removeprefix("training.").replace("_", "-")
    return Problem(problem.field, problem.message, f"--{flag}")


def _numbers(text: str) -> list[int]:
    from fedaccord.errors import InvalidInput

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise InvalidInput(f"--shape: must be whole numbers, 1 or more, as in 28,28, got {text!r}")
    return numbers
