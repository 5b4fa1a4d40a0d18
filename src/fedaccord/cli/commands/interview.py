"""`fedaccord interview`: a client's numbers from what its people know."""

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.checks import escaped
from fedaccord.cli.console import output
from fedaccord.cli.dialogue import ask_all, reply_to
from fedaccord.cli.options import FormatOption, flag_of, with_option_groups
from fedaccord.cli.outputs import check_writable, rewrite_file, to_json
from fedaccord.errors import InvalidInput
from fedaccord.interviews.questions import BY_KEY

if TYPE_CHECKING:
    from fedaccord.files.ranges import Range
    from fedaccord.interviews.estimates import Step
    from fedaccord.interviews.interview import Interview

_METAVARS = {
    **{"amount": "NUMBER", "money": "NUMBER", "share": "SHARE", "whole": "INTEGER", "slot": "TIME"}
}


def _flag(key: str) -> Any:
    """The option that answers a question."""
    question = BY_KEY[key]
    metavar = _METAVARS.get(question.kind, question.kind.upper())
    assumed = f" Default: {question.assumed}." if question.assumed else ""
    asks = question.asks.replace(", then?", "?")
    return typer.Option(flag_of(key), metavar=metavar, show_default=False, help=asks + assumed)


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """An option for each question."""

    name: Annotated[str | None, _flag("name")] = None
    currency: Annotated[str | None, _flag("currency")] = None
    slot: Annotated[str | None, _flag("slot")] = None
    rounds: Annotated[str | None, _flag("rounds")] = None
    cases_per_month: Annotated[str | None, _flag("cases_per_month")] = None
    samples: Annotated[str | None, _flag("samples")] = None
    years_used: Annotated[str | None, _flag("years_used")] = None
    annotation_cost: Annotated[str | None, _flag("annotation_cost")] = None
    annotation_minutes: Annotated[str | None, _flag("annotation_minutes")] = None
    gpu_price: Annotated[str | None, _flag("gpu_price")] = None
    samples_per_second: Annotated[str | None, _flag("samples_per_second")] = None
    seconds_per_sample: Annotated[str | None, _flag("seconds_per_sample")] = None
    staff_hours: Annotated[str | None, _flag("staff_hours")] = None
    hourly_wage: Annotated[str | None, _flag("hourly_wage")] = None
    measure: Annotated[str | None, _flag("measure")] = None
    cases_per_year: Annotated[str | None, _flag("cases_per_year")] = None
    point_worth: Annotated[str | None, _flag("point_worth")] = None
    missed_cost: Annotated[str | None, _flag("missed_cost")] = None
    false_cost: Annotated[str | None, _flag("false_cost")] = None
    prevalence: Annotated[str | None, _flag("prevalence")] = None
    uncaught: Annotated[str | None, _flag("uncaught")] = None
    interest: Annotated[str | None, _flag("interest")] = None
    ending: Annotated[str | None, _flag("ending")] = None
    horizon: Annotated[str | None, _flag("horizon")] = None

    def given(self) -> dict[str, str]:
        """The answers on the command line, by question."""
        return {key: value for key, value in vars(self).items() if value is not None}


@with_option_groups
def interview(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    *,
    options: AnswerOptions,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers", metavar="FILE.json", help="Answers by question; options come first."
        ),
    ] = None,
    ranges: Annotated[
        bool,
        typer.Option(
            "--ranges", help="Write ranges; an agreement then has to hold for all of them."
        ),
    ] = False,
    sure: Annotated[
        list[str] | None,
        typer.Option(
            "--sure",
            metavar="QUESTION",
            help="An unlikely answer is right, such as years_used. Can be repeated.",
        ),
    ] = None,
    output_format: FormatOption = "text",
) -> None:
    """Turn what people know into a client's valuation, cost per sample and discount factor.

    Asks what is not answered by an option, and shows every step of the calculation. FILE gets
    the client, with a range and a source beside each number: a new file if there is none, and
    otherwise the same file with everything else as it was. Clients that others add meanwhile stay.
    Without FILE nothing is written.
    """
    check_writable(file, inputs=[answers])
    before = _content_of(file)
    known = _shared_in(before) | answers_in(answers)
    known |= options.given() | ({"sure": sure} if sure else {})
    asks = answers is None and output_format == "text" and lacks_answers(known)
    result = evaluated(ask_all(known) if asks else known, answers)
    if output_format == "json":
        typer.echo(to_json(result.to_dict(), 1))
    else:
        show(result)
    text = None if file is None else result.written_into(file, ranges=ranges)
    if output_format == "text":
        _show_change(file, text, result.table(ranges=ranges))
    if file is None or text is None:
        return
    if not asks or _confirmed(file):
        written = rewrite_file(file, lambda: _added(result, file, before, ranges=ranges))
        typer.echo(f"Wrote {file}.", err=output_format == "json")
        if written != text.encode():
            typer.echo(f"Note: {file} had changed meanwhile; the other changes stay.", err=True)
    else:
        typer.echo("Nothing was written.")


def _content_of(file: Path | None) -> dict[str, Any] | None:
    """What a consortium file says; None if there is none yet."""
    if file is None or not file.exists():
        return None
    from fedaccord.files.client_text import check_has_tables
    from fedaccord.files.reading import load_toml

    check_has_tables(file)  # before anybody answers a question
    return load_toml(file)


def _shared_in(content: dict[str, Any] | None) -> dict[str, Any]:
    """The answers that a consortium file has already."""
    shared = content or {}
    return {key: shared[key] for key in ("slot", "currency", "rounds") if key in shared}


def _added(
    result: "Interview", file: Path, before: dict[str, Any] | None, *, ranges: bool
) -> bytes:
    """The file as it is now with the client, whom nobody else may have changed meanwhile."""
    from fedaccord.files.client_text import client_in

    now, name = _content_of(file), result.name
    if before is not None and now is None:
        raise InvalidInput("was removed meanwhile, so nothing was written", str(file))
    if client_in(now or {}, name) != client_in(before or {}, name):
        raise InvalidInput(
            f"somebody else wrote numbers for {name} meanwhile, so nothing was written; look at "
            "them and try again",
            str(file),
        )
    return result.written_into(file, ranges=ranges).encode()


def answers_in(path: Path | None) -> dict[str, Any]:
    """The answers in a JSON file, by question."""
    if path is None:
        return {}
    from fedaccord.files.reading import load_json

    try:
        found = load_json(path)
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    if not isinstance(found, dict):
        raise InvalidInput("must be an object with an answer for each question", str(path))
    return found


def lacks_answers(given: dict[str, Any]) -> bool:
    """Whether an answer is missing; one that is wrong is reported first."""
    from fedaccord.interviews.answers import missing_in, wrong_in

    if wrong := list(wrong_in(given)):
        raise InvalidInput(wrong)
    return any(missing_in(given))


def evaluated(given: dict[str, Any], path: Path | None) -> "Interview":
    """The numbers that follow from answers, which may come from a file."""
    from fedaccord.interviews.interview import interview as evaluate

    try:
        return evaluate(given)
    except InvalidInput as error:
        raise InvalidInput(error.problems, None if path is None else str(path)) from None


# --- What people see -----------------------------------------------------------------------


def show(result: "Interview") -> None:
    """Every number with its range and steps, what was assumed, and what to look at again."""
    console, currency = output(), result.currency
    console.print(f"{escaped(result.name)}: in {currency}, for one slot ({escaped(result.slot)})\n")
    for estimate in result.estimates.values():
        console.print(f"{estimate.field} = {_with_range(estimate.value)}", style="bold")
        for step in estimate.steps:
            _show_step(step)
    worth = _with_range(result.point_worth)
    console.print(f"\nA percentage point ({result.measure}) a year, in {currency}: {worth}.")
    assumed = [BY_KEY[key].assumed for key in BY_KEY if key in result.answers.assumed]
    if assumed:
        console.print(f"Assumed, because it was not answered: {'; '.join(assumed)}.")
    for doubt in result.doubts:
        console.print(f"Please check: {escaped(doubt)}", style="yellow")


def _show_step(step: "Step") -> None:
    from fedaccord.interviews.estimates import brief

    value = brief(step.value.likely)
    result = f"= {value}" if value == step.calculation else f"{step.calculation} = {value}"
    output().print(f"  {step.name}: {step.formula}\n    {result}")


def _with_range(value: "Range") -> str:
    from fedaccord.interviews.estimates import brief

    low, likely, high = map(brief, value)
    return likely if value.exact else f"{likely}, from {low} to {high}"


def _show_change(file: Path | None, text: str | None, table: str) -> None:
    """What the file gets, line by line; or the client's table, to be copied."""
    console = output()
    if file is None or text is None:
        console.print("\nFor a consortium file:\n")
        lines = table.splitlines()
    else:
        old = file.read_text("utf-8-sig").splitlines() if file.exists() else []
        console.print(f"\n{file} changes:" if old else f"\nThe new file {file}:")
        lines = [*unified_diff(old, text.splitlines(), lineterm="", n=1)][2:] if old else []
        lines = lines or text.splitlines()
    for line in lines:
        style = {"+": "green", "-": "red"}.get(line[:1])
        console.print(escaped(line), style=style, soft_wrap=True)


def _confirmed(file: Path) -> bool:
    while True:
        reply = reply_to(f"\nWrite this to {file}? (yes or no) ").lower()
        if reply in ("y", "yes", "n", "no"):
            return reply.startswith("y")
