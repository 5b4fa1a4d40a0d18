"""The terms of an agreement file: those of a file, or made from a consortium and options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.options import (
    AgreementOption,
    MarginOption,
    NobodyWorseOption,
    ObjectiveOption,
    PunishmentOptions,
    flag_of,
    from_one,
    margin_or_usual,
    read_shape,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.game.consortium import Consortium
    from fedaccord.protocol.terms import Terms


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """What terms say that are made from a consortium file."""

    agreement: AgreementOption = "individual"
    objective: ObjectiveOption = None
    margin: MarginOption = None
    nobody_worse: NobodyWorseOption = False
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="A,B,...", help="Shape of one example to train on."),
    ] = None
    classes: Annotated[
        int | None, typer.Option("--classes", callback=from_one, help="Number of labels.")
    ] = None


def roster_of(given: list[str], server: str | None) -> dict[str, Any] | None:
    """The public keys of the command line, as the terms have them."""
    from fedaccord.checks import normalised

    if not given and server is None:
        return None
    clients: dict[str, str] = {}
    for text in given:
        name, _, public = (part.strip() for part in text.rpartition("="))
        if normalised(name) in clients:
            raise InvalidInput(f"--key: {name!r} has two keys")
        clients[normalised(name)] = public
    if server is None:
        raise InvalidInput("--server-key: is missing; the server signs, too")
    return {"server": server, "clients": clients}


def refuse_rules(rules: RuleOptions, punishment: PunishmentOptions) -> None:
    """Refuse options about what terms say."""
    usual = vars(RuleOptions())
    given = [field for field, value in vars(rules).items() if value != usual[field]]
    if punishment.given:
        given.append("punishment")
    if given:
        raise InvalidInput(f"{flag_of(given[0])}: cannot be combined with --terms, which say it")


def terms_in(path: Path, roster: dict[str, Any] | None) -> "Terms":
    """The terms in a file, with the keys of the command line if it has none."""
    from fedaccord.files.reading import load_toml
    from fedaccord.protocol.terms import read_terms

    given = load_toml(path)
    if "keys" not in given:
        return with_keys(given, roster, path)
    if roster is not None:
        raise InvalidInput(f"--key: {path} has the keys of all parties already")
    return read_terms(given, str(path))


def with_keys(given: dict[str, Any], roster: dict[str, Any] | None, source: Path) -> "Terms":
    """The terms with everybody's key."""
    from fedaccord.protocol.terms import read_terms

    if roster is None:
        raise InvalidInput("--key: the public keys of the members are missing")
    return read_terms(given | {"keys": roster}, str(source))


def terms_for(
    consortium: "Consortium",
    rules: RuleOptions,
    punishment: PunishmentOptions,
    file: Path,
    *,
    without_numbers: bool,
) -> dict[str, Any]:
    """Terms for the consortium of a file, without keys; amounts are posted where possible."""
    from fedaccord.flower.shared_terms import shared_terms
    from fedaccord.protocol.terms import rules_of

    if not rules.shape or not rules.classes:
        raise InvalidInput("--shape and --classes: are missing; the terms say what is trained")
    chosen = punishment.chosen(file)
    margin = margin_or_usual(rules.margin, file)
    written: dict[str, Any] = shared_terms(consortium) | rules_of(chosen) | {"margin": margin}
    written["training"] = {"shape": read_shape(rules.shape), "classes": rules.classes}
    objective: Any = rules.objective and rules.objective.replace("-", " ")
    if objective:
        written["objective"] = objective
    posted = chosen.kind == "suspension" and not (chosen.fees_saved or rules.nobody_worse)
    if without_numbers:
        _check_ranges(consortium, posted=posted)
    if not posted:
        return written | {"agreement": rules.agreement, "nobody_worse": rules.nobody_worse}
    from fedaccord.flower.public_terms import public_terms

    how: dict[str, Any] = {"punishment": chosen, "objective": objective, "margin": margin}
    try:
        return written | public_terms(consortium, rules.agreement, **how, reveal=True)
    except InvalidInput as error:
        raise InvalidInput([one.message for one in error.problems], str(file)) from None


def _check_ranges(consortium: "Consortium", *, posted: bool) -> None:
    """Refuse to leave numbers out where they would be needed, or be revealed all the same."""
    if not posted:
        raise InvalidInput(
            "--without-numbers: needs posted amounts, so suspension without --fees-saved and "
            "--nobody-worse"
        )
    if consortium.ranges is None:
        raise InvalidInput(
            "--without-numbers: the numbers are exact, and posted amounts would reveal them: give "
            "ranges in the file, or with --within 30%"
        )
