"""`fedaccord play`: the repeated game, slot by slot."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.changing import play_states
from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.monitoring_options import MonitoringOptions
from fedaccord.cli.options import (
    AgreementOption,
    AllOption,
    FileArgument,
    FormatOption,
    MarginOption,
    NobodyWorseOption,
    ObjectiveOption,
    PaperOptions,
    PunishmentOptions,
    ReportOption,
    check_slots,
    choose_either,
    from_one,
    margin_or_usual,
    refuse_with_states,
    with_option_groups,
)
from fedaccord.cli.outputs import all_or_none, check_writable, write_account, write_slots
from fedaccord.cli.strategy_options import read_strategies

if TYPE_CHECKING:
    from fedaccord.agreement.agreement import Agreement
    from fedaccord.repeated.tolerance import Tolerance


@with_option_groups
def play(
    file: FileArgument = None,
    *,
    slots: Annotated[
        int,
        typer.Option(
            "--slots", callback=from_one, show_default=False, help="Number of slots; default 50."
        ),
    ] = 50,
    agreement: AgreementOption = "individual",
    objective: ObjectiveOption = None,
    margin: MarginOption = None,
    punishment: PunishmentOptions,
    monitoring: MonitoringOptions,
    nobody_worse: NobodyWorseOption = False,
    deviate: Annotated[
        list[str] | None,
        typer.Option(
            "--deviate",
            metavar="NAME@SLOT[:AMOUNT]",
            help="Let a client slip in a slot, to an amount or its best response. Repeatable.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            metavar="NAME=STRATEGY",
            help="What a client (or all) does instead of keeping to the agreement: keep, "
            "selfish, myopic, free-ride, loyal; with reversion also grim-trigger, forgiving:N. "
            "Repeatable.",
        ),
    ] = None,
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            show_default=False,
            help="Relative standard deviation of the observed contributions; default 0.",
        ),
    ] = 0.0,
    dropout: Annotated[
        float,
        typer.Option(
            "--dropout",
            show_default=False,
            help="Probability that a client is absent from a slot; default 0.",
        ),
    ] = 0.0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Share of the agreed contribution that may be missing without punishment; "
            "default 0, with noise the value that costs least.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", show_default=False, help="Seed of noise, dropout and audits; default 0."
        ),
    ] = 0,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    report: ReportOption = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", metavar="FILE.csv", help="Write the slots as CSV: phase, total, who is out."
        ),
    ] = None,
    every: AllOption = False,
) -> None:
    """Play the repeated game, slot by slot: who slips, who punishes, and what it costs.

    FILE describes the consortium, in TOML; without it the paper's setting is used. Everyone keeps
    to the agreement unless you say otherwise. To see one slip and its punishment:

    fedaccord play --paper --deviate client-7@5 --punishment-slots 5

    fedaccord play --paper --deviate client-7@5 --punishment suspension

    If no agreement exists, the equilibrium is played.
    """
    check_writable(report, csv, inputs=[file])
    aim: Any = objective and objective.replace("-", " ")
    consortium = choose_either(file, setting)

    from fedaccord.game.changing import ChangingConsortium

    changing = consortium if isinstance(consortium, ChangingConsortium) else None
    everyone = consortium.everyone if isinstance(consortium, ChangingConsortium) else consortium
    check_slots(slots, everyone)
    strategies = read_strategies(everyone, slots, deviate or [], strategy or [])
    if changing is not None:
        refuse_with_states(
            agreement=agreement == "uniform",
            nobody_worse=nobody_worse,
            noise=noise,
            dropout=dropout,
            tolerance=tolerance,
            report=report,
            **vars(monitoring),
        )
        play_states(
            changing,
            {
                "objective": aim,
                "margin": margin_or_usual(margin, file),
                "punishment": punishment.chosen(file),
            },
            strategies,
            slots=slots,
            seed=seed,
            csv=csv,
            output_format=output_format,
            every=every,
        )
        return

    import fedaccord as fa
    from fedaccord.repeated.match import play as play_match
    from fedaccord.summaries.match import account_of

    with working("Solving"):
        equilibrium = fa.solve_equilibrium(everyone)
        solved = fa.solve_agreement(
            equilibrium,
            agreement,
            objective=aim,
            margin=margin_or_usual(margin, file),
            punishment=punishment.chosen(file),
            nobody_worse=nobody_worse,
            monitoring=monitoring.chosen(everyone.names),
        )
        best = None
        if tolerance is None or report is not None:
            best = _best_tolerance(solved, noise, dropout)
    if tolerance is None:
        tolerance = 0.0 if best is None else best.tolerance
    with working("Playing"):
        match = play_match(
            solved,
            strategies,
            slots,
            noise=noise,
            dropout=dropout,
            tolerance=tolerance,
            seed=seed,
        )
        account = account_of(match, best)
    with all_or_none():
        if csv is not None:
            write_slots(csv, match)
        if report is not None:
            write_account(report, account)

    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import match_record, to_json

        exists_from = fa.smallest_discount_factor(
            equilibrium,
            agreement,
            margin=solved.margin,
            punishment=solved.punishment,
            monitoring=solved.monitoring,
        )
        record = match_record(account, fa.certify(solved), exists_from)
        typer.echo(to_json(record, max(everyone.size, slots)))
    else:
        from fedaccord.cli.tables import print_account, print_consortium

        print_consortium(output(), everyone)
        print_account(output(), account, every)


def _best_tolerance(agreement: "Agreement", noise: float, dropout: float) -> "Tolerance | None":
    """The tolerance that costs least, if there is anything to choose."""
    if not (0 < noise < inf and agreement.exists):
        return None
    from fedaccord.repeated.tolerance import find_tolerance

    return find_tolerance(agreement, noise, dropout)
