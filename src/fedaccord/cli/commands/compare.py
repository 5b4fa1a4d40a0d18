"""`fedaccord compare`: what else could be done, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.options import (
    FileArgument,
    FormatOption,
    PaperOptions,
    ReportOption,
    choose_consortium,
    from_one,
    from_zero,
    options_for_fields,
    with_option_groups,
)
from fedaccord.cli.outputs import all_or_none, check_writable, write_csv, write_file
from fedaccord.cli.training_options import (
    FineTuneOption,
    RuleOptions,
    flags_in_messages,
    progress_bar,
)
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from fedaccord.game.consortium import Consortium
    from fedaccord.mechanisms.comparison import MechanismComparison
    from fedaccord.mechanisms.mechanism import Mechanism
    from fedaccord.trials.trial import Trial


@with_option_groups
def compare(
    file: FileArgument = None,
    *,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="Only this one: equilibrium, uniform, individual, suspension, posted, everything, "
            "clock, serial-clock, fair-exchange, transfers, social-optimum, contract, detection, "
            "or one from an installed package. Repeatable (default: all).",
        ),
    ] = None,
    contract_classes: Annotated[
        int | None,
        typer.Option("--contract-classes", help="Contract: number of delay classes (default: 5)."),
    ] = None,
    contract_types: Annotated[
        Path | None,
        typer.Option(
            "--contract-types",
            metavar="FILE.csv",
            help="Contract: CSV file with the columns name, and delay or cost_per_sample or both "
            "(default: delays from the classes, costs as in the consortium).",
        ),
    ] = None,
    contract_valuation: Annotated[
        float | None,
        typer.Option(
            "--contract-valuation",
            help="Contract: what a unit of accuracy loss costs the server (default: the clients' "
            "largest valuation).",
        ),
    ] = None,
    contract_delay_price: Annotated[
        float | None,
        typer.Option(
            "--contract-delay-price",
            help="Contract: what waiting for the next delay class costs the server (default: a "
            "hundredth of its valuation).",
        ),
    ] = None,
    contract_information: Annotated[
        Literal["complete", "weak", "strong"] | None,
        typer.Option(
            "--contract-information",
            help="Contract: the server knows each client's type (complete, the default), the "
            "number of clients of each type (weak), or the probability of each type (strong).",
        ),
    ] = None,
    contract_menu: Annotated[
        Literal["all-or-nothing", "graded"] | None,
        typer.Option(
            "--contract-menu",
            help="Contract: buy all samples of a client or none (all-or-nothing, the default), or "
            "any amount (graded).",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--train",
            metavar="DATASET",
            help="Train a model under each mechanism and measure its accuracy: digits, or another "
            "dataset that `train --dataset` knows.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", callback=from_one, help="Train: runs per mechanism (default: 3)."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", callback=from_zero, help="Train: seed of the first run (default: 0)."
        ),
    ] = None,
    rules: RuleOptions,
    fine_tune: FineTuneOption = None,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    report: ReportOption = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", metavar="FILE.csv", help="Write a CSV file with one row per mechanism."
        ),
    ] = None,
) -> None:
    """Compare what can be done about free riders.

    FILE describes the consortium, in TOML; without it the paper's setting is used. The mechanisms
    are what selfish clients do (equilibrium), the agreements (uniform, individual, suspension),
    amounts from public ranges (posted), all data (everything), clients that say when to stop
    (clock, serial-clock, fair-exchange), the least total cost with payments among clients
    (transfers, social-optimum), a server that buys training (contract), and one that drops free
    riders (detection).

    With --train a model is trained under each of them, by --local and the options after it.
    """
    with flags_in_messages():
        _check_training(dataset, rules, seeds=seeds, seed=seed, fine_tune=fine_tune)
    check_writable(report, csv, inputs=[file, contract_types])
    consortium = choose_consortium(file, setting)
    types = _read_types(contract_types, contract_classes, consortium)
    chosen = _choose(
        mechanism,
        **types,
        classes=contract_classes,
        valuation=contract_valuation,
        delay_price=contract_delay_price,
        information=contract_information,
        menu=contract_menu,
    )

    from fedaccord.mechanisms.comparison import compare as compare_mechanisms

    with working("Comparing"):
        comparison = compare_mechanisms(consortium, chosen)
    trial = None
    if dataset:
        trial = _train(
            comparison, dataset, rules, fine_tune=fine_tune, seeds=seeds or 3, seed=seed or 0
        )
    from fedaccord.cli.outputs import comparison_record, to_json

    record = comparison_record(comparison, trial)
    with all_or_none():
        if csv is not None:
            _write_rows(csv, record)
        if report is not None:
            from fedaccord.report import render_comparison

            with working("Writing the report"):
                write_file(report, render_comparison(comparison, trial))

    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        typer.echo(to_json(record, len(comparison.entries)))
    else:
        from fedaccord.cli.tables import print_consortium

        print_consortium(output(), consortium)
        _print(output(), comparison, trial)


def _read_types(
    path: Path | None, classes: int | None, consortium: "Consortium"
) -> "dict[str, tuple[float, ...]]":
    """The columns of the file of types, if there is one."""
    if path is None:
        return {}
    from fedaccord.mechanisms.contract.model import load_types

    types = load_types(path, consortium)
    if classes is not None and "delay" in types:
        raise InvalidInput(f"--contract-classes: {path} gives the delays already")
    return types


def _choose(names: list[str] | None, **contract: Any) -> "list[Mechanism]":
    """The mechanisms with these names, or all; the contract has the options that were given."""
    from fedaccord.mechanisms.contract.contract import Contract
    from fedaccord.mechanisms.simple import find_mechanism, mechanism_names

    given = {field: value for field, value in contract.items() if value is not None}
    known = mechanism_names()
    with options_for_fields("--contract-"):
        with_options = Contract(**given)
    wanted = known if names is None else [name.replace("-", " ") for name in names]
    for name in wanted:
        if name not in known:
            listed = ", ".join(each.replace(" ", "-") for each in known)
            raise InvalidInput(f"--mechanism: must be one of {listed}, got {name!r}")
    if given and "contract" not in wanted:
        field = next(iter(given))
        flag = "types" if field in ("delay", "cost_per_sample") else field.replace("_", "-")
        raise InvalidInput(f"--contract-{flag}: goes with --mechanism contract only")
    return [
        with_options if name == with_options.name else find_mechanism(name)
        for name in dict.fromkeys(wanted)
    ]


def _check_training(dataset: str | None, rules: RuleOptions, **others: int | None) -> None:
    """Refuse options that would do nothing without a training, and rules that cannot be."""
    if dataset is not None:
        rules.rule(), rules.server()
        return
    given = [name for name, value in others.items() if value is not None] + rules.given
    if given:
        raise InvalidInput("goes with --train only", field=given[0])


def _train(
    comparison: "MechanismComparison",
    dataset: str,
    rules: RuleOptions,
    *,
    fine_tune: int | None,
    seeds: int,
    seed: int,
) -> "Trial":
    """One slot under each mechanism; before them everyone alone, if there are own tests."""
    from fedaccord.data.own import OwnPartition
    from fedaccord.trials.setting import find_source
    from fedaccord.trials.trial import train

    profiles: dict[str, Any] = {
        entry.name: entry.outcome.contributions[None] for entry in comparison.entries
    }
    with flags_in_messages(), progress_bar() as progress:
        source = find_source(dataset, comparison.consortium.names, progress)
        own_tests = isinstance(source, OwnPartition) and len(source.tests) > 0
        return train(
            comparison.consortium,
            {"alone": "alone"} | profiles if own_tests else profiles,
            data=source,
            local=rules.rule(),
            server=rules.server(),
            fine_tuning=fine_tune,
            seeds=seeds,
            seed=seed,
            progress=progress,
        )


def _write_rows(path: Path, record: dict[str, Any]) -> None:
    """One row per mechanism, with the fields of the JSON that are a single value."""
    from fedaccord.agreement.punishment import read_punishment

    rows = [dict(row) for row in record["mechanisms"]]
    for row in rows:
        del row["notes"], row["clients"]
        punishment = row["punishment"]
        row["punishment"] = None if punishment is None else str(read_punishment(punishment))
        interval = row.pop("accuracy") or {"mean": None, "half_width": None}
        row |= {"accuracy": interval["mean"], "accuracy_half_width": interval["half_width"]}
    write_csv(path, list(rows[0]), (tuple(row.values()) for row in rows))


def _print(console: "Console", comparison: "MechanismComparison", trial: "Trial | None") -> None:
    """Two tables, what they show, what training brought, and a few lines about each mechanism."""
    from fedaccord.summaries import mechanisms as said

    rows = said.mechanism_rows(comparison, trial)
    headings = list(said.amount_headings(comparison))
    _print_columns(console, headings, {row.name: said.amounts_of(row) for row in rows})
    console.print(said.amounts_note(), style="dim")
    _print_columns(
        console, list(said.MERIT_HEADINGS), {row.name: said.merits_of(row) for row in rows}
    )
    console.print(said.merits_note(), style="dim")
    if trial is not None:
        _print_trial(console, trial, {row.name: row.accuracy for row in rows})
    console.print()
    console.print(said.comparison_summary(comparison))
    for row in rows:
        console.print(f"  {row.name}: {row.explanation}", soft_wrap=True)
        for note in row.notes:
            console.print(f"    {note}", soft_wrap=True)


def _print_trial(console: "Console", trial: "Trial", accuracies: "Mapping[str, str]") -> None:
    """How good the model under each mechanism is, for everyone and for each client."""
    from fedaccord.cli.tables import plain_table, print_own_tests
    from fedaccord.summaries.mechanisms import ACCURACY_NOTE
    from fedaccord.summaries.training import data_notes, setting_sentence

    measured = plain_table("Mechanism", [f"Test {trial.measure}"])
    for name, accuracy in accuracies.items():
        measured.add_row(name, accuracy)
    console.print(measured)
    console.print(ACCURACY_NOTE, style="dim")
    console.print(setting_sentence(trial), style="dim")
    for note in data_notes(trial):
        console.print(f"Note: {note}.")
    print_own_tests(console, trial)


def _print_columns(
    console: "Console", headings: list[str], rows: "Mapping[str, tuple[str, ...]]"
) -> None:
    """A row for each mechanism; in a narrow terminal, half of the columns below the others."""
    from fedaccord.cli.tables import fits, plain_table, print_wide

    half = len(headings) // 2
    tables = []
    for part in (slice(None), slice(half), slice(half, None)):
        tables.append(plain_table("Mechanism", headings[part]))
        for name, cells in rows.items():
            tables[-1].add_row(name, *cells[part])
    whole, *halves = tables
    print_wide(console, *([whole] if fits(console, whole) else halves))
