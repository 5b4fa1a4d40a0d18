"""From what `fedaccord flower new` is told to the terms: names, shared rules, and training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedaccord.cli.options import with_ranges_within
from fedaccord.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from fedaccord.agreement.punishment import Punishment
    from fedaccord.data.dataset import Dataset
    from fedaccord.game.consortium import Consortium
    from fedaccord.protocol.terms import Terms

_WITHOUT_FILE = {"name": "Consortium", "rounds": 50, "discount_factor": 0.9}


@dataclass(frozen=True)
class Described:
    """Who takes part, and what they share."""

    shared: dict[str, Any]
    """The part of the terms that is not a rule."""
    source: str
    """Where it comes from, for error messages."""
    consortium: "Consortium | None" = None
    """With numbers, from which posted amounts are computed; nothing else uses them."""


def terms_in(file: Path | None) -> "Terms | None":
    """The terms in FILE, if that is what it has; then no option may say anything else."""
    if file is None:
        return None
    from fedaccord.files.reading import load_toml
    from fedaccord.protocol.terms import read_terms

    if file.suffix.lower() != ".toml" or "training" not in (given := load_toml(file)):
        return None
    context = click.get_current_context()
    others = [
        max(option.opts, key=len)
        for option in context.command.params
        if option.name not in ("directory", "file", "host", "port", "superlink_port")
        and context.get_parameter_source(str(option.name)) == click.core.ParameterSource.COMMANDLINE
    ]
    if others:
        raise InvalidInput(f"{others[0]}: {file} has terms, which say this already")
    given.pop("server", None)  # of an invitation
    if given.pop("keys", None) is not None:
        raise InvalidInput("keys: leave them out, since members will make new ones", str(file))
    return read_terms(given, str(file))


def described(file: Path | None, clients: list[str], within: list[str], **named: Any) -> Described:
    """Who takes part: by a consortium file, or by names alone."""
    said = {key: value for key, value in named.items() if value is not None}
    if file is not None:
        if clients or said:
            flag = "--client" if clients else "--" + next(iter(said)).replace("_", "-")
            raise InvalidInput(f"{flag}: cannot be combined with FILE, which says it")
        from fedaccord.files.consortium import load_consortium
        from fedaccord.flower.shared_terms import shared_terms

        consortium = with_ranges_within(load_consortium(file), within)
        return Described(shared_terms(consortium), str(file), consortium)
    if not clients:
        raise InvalidInput("name the members with --client, or a consortium FILE")
    if within:
        raise InvalidInput("--within: needs a consortium FILE")
    return Described(_WITHOUT_FILE | said | {"clients": clients}, "--client")


def agreed(
    known: Described,
    agreement: str,
    reports: str | None,
    punishment: "Punishment",
    rules: dict[str, Any],
) -> dict[str, Any]:
    """How amounts are found: from reports, or without any."""
    unreported = agreement not in ("individual", "uniform")
    if (reports or ("none" if unreported else "ratio")) == "none":
        return _without_reports(known, agreement, punishment, rules)
    if known.consortium is not None and known.consortium.ranges is not None:
        context = click.get_current_context()
        if context.params.get("within"):
            raise InvalidInput("--within: needs --reports none, since reported numbers are exact")
    if unreported:
        raise InvalidInput(f"--agreement {agreement}: takes no reports, so use --reports none")
    return {"agreement": agreement}


def _without_reports(
    known: Described, agreement: str, punishment: "Punishment", rules: dict[str, Any]
) -> dict[str, Any]:
    """The rules by which nobody reports: what is posted, or what a clock needs."""
    from fedaccord.agreement.punishment import Suspension
    from fedaccord.flower.public_terms import public_terms

    consortium = known.consortium
    if consortium is None:
        raise InvalidInput(
            "--reports none: needs a FILE with everyone's data size, and with ranges of ratios if "
            "amounts are posted"
        )
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
            raise InvalidInput([one.inside(known.source) for one in error.problems]) from None
        how = "" if consortium.ranges is not None else " in the file, or with --within 30%"
        raise InvalidInput(f"--reports none: {error.problems[0].message}{how}") from None


def scale_for(known: Described, data: "Dataset | None") -> dict[str, float]:
    """The scale at which a dataset is enough for everyone's samples, if they are known."""
    if data is None or known.consortium is None:
        return {}
    from fedaccord.data.scale import fitting_scale

    return {"scale": fitting_scale(data, known.consortium.samples)}


def terms_for_app(
    known: Described, rules: dict[str, Any], training: dict[str, Any], code_in: Sequence[Path]
) -> "Terms":
    """The terms; a mistake is reported at the option that it comes from.

    `code_in` is where the code of a task of one's own is.
    """
    from fedaccord.flower.local import empty_model, local_steps
    from fedaccord.protocol.terms import read_terms

    try:
        terms = read_terms(known.shared | rules | {"training": training}, known.source)
    except InvalidInput as error:
        places = [*rules, *(f"training.{field}" for field in training)]
        if known.consortium is None:
            places += list(known.shared)
        wrong = [_blame(problem, places, known.source) for problem in error.problems]
        raise InvalidInput(wrong) from None
    empty_model(terms, code_in)  # does the task fit the examples?
    local_steps(terms)  # and can it be trained so?
    return terms


def _blame(problem: Problem, places: list[str], source: str) -> Problem:
    """A problem with the terms, at the option that it comes from, or at the file."""
    if problem.field not in places:
        return problem.inside(source)
    flag = problem.field.removeprefix("training.").replace("_", "-")
    return Problem(problem.field, problem.message, f"--{flag.replace('clients', 'client')}")
