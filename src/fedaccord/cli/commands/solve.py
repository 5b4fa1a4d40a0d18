"""`fedaccord solve`: equilibrium, agreement, certificate."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fedaccord.cli.changing import solve_states
from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.monitoring_options import BudgetOptions, costs_by_name
from fedaccord.cli.options import (
    AgreementOption,
    AllOption,
    AnyPunishmentOptions,
    FileArgument,
    FormatOption,
    MarginOption,
    NobodyWorseOption,
    ObjectiveOption,
    PaperOptions,
    ReportOption,
    choose_either,
    margin_or_usual,
    refuse_with_states,
    with_option_groups,
)
from fedaccord.cli.outputs import all_or_none, check_writable, write_profile, write_report
from fedaccord.errors import InvalidInput


@with_option_groups
def solve(
    file: FileArgument = None,
    *,
    agreement: AgreementOption = "individual",
    objective: ObjectiveOption = None,
    margin: MarginOption = None,
    whole_samples: Annotated[
        bool, typer.Option("--whole-samples", help="Round to whole samples, and keep the proof.")
    ] = False,
    punishment: AnyPunishmentOptions,
    monitoring: BudgetOptions,
    nobody_worse: NobodyWorseOption = False,
    first_converted: Annotated[
        Literal["paper", "feasible"] | None,
        typer.Option(
            "--first-converted",
            help="Uniform: convert from the paper's client l on (paper, the default), or from the "
            "first that works (feasible).",
        ),
    ] = None,
    fitted_law: Annotated[
        bool,
        typer.Option(
            "--fitted-law",
            help="With a measured law: agree by the fitted one alone, not by all that fit.",
        ),
    ] = False,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    report: ReportOption = None,
    profile_out: Annotated[
        Path | None,
        typer.Option(
            "--profile-out",
            metavar="FILE.csv",
            help="Write the contributions as CSV: name,contribution.",
        ),
    ] = None,
    every: AllOption = False,
) -> None:
    """Find the equilibrium of selfish clients, a better agreement, and its proof.

    FILE describes the consortium, in TOML (`fedaccord init` writes one to start from), or is a
    spreadsheet of its members. They agree on the least total cost, and whoever slips gets no model
    for a slot, unless you say otherwise. Without FILE the paper's setting is used, with the paper's
    punishment. If no agreement exists, the exit code is 0 as well.
    """
    if first_converted is not None and agreement != "uniform":
        raise InvalidInput("--first-converted: needs --agreement uniform")
    monitoring.check()
    if monitoring.audits_per_slot is not None:
        _check_budget(agreement, objective, whole_samples=whole_samples)
    check_writable(report, profile_out, inputs=[file])
    chosen: Any = objective and objective.replace("-", " ")
    consortium = choose_either(file, setting)

    from fedaccord.game.changing import ChangingConsortium

    if isinstance(consortium, ChangingConsortium):
        refuse_with_states(
            agreement=agreement == "uniform",
            whole_samples=whole_samples,
            nobody_worse=nobody_worse,
            fitted_law=fitted_law,
            report=report,
            profile_out=profile_out,
            **vars(monitoring),
        )
        solve_states(
            consortium,
            {
                "objective": chosen,
                "margin": margin_or_usual(margin, file),
                "punishment": punishment.chosen(file),
            },
            output_format=output_format,
            every=every,
        )
        return
    if fitted_law and consortium.law.evidence is None:
        raise InvalidInput("--fitted-law: the law of this consortium was not measured")

    import fedaccord as fa
    from fedaccord.summaries.alternatives import Alternatives, alternatives_to, sentences_of

    seen = monitoring.chosen(consortium.names)
    options: dict[str, Any] = {
        "margin": margin_or_usual(margin, file),
        "punishment": punishment.chosen(file),
        "nobody_worse": nobody_worse,
        "monitoring": seen,
    }
    first = {"first_converted": first_converted or "paper"}
    with working("Solving"):
        equilibrium = fa.solve_equilibrium(consortium)
        exists_from, others = None, Alternatives()
        if monitoring.audits_per_slot is not None:
            solved = fa.solve_with_audits(
                equilibrium,
                monitoring.audits_per_slot,
                costs=costs_by_name(monitoring.audit_cost, consortium.names),
                robust="ranges" if fitted_law else True,
                **options,
            )
        else:
            solved = fa.solve_agreement(
                equilibrium,
                agreement,
                objective=chosen,
                whole_samples=whole_samples,
                robust="ranges" if fitted_law else True,
                **options,
                **first,  # type: ignore[arg-type]
            )
            others = alternatives_to(solved)
            if solved.ranges is None:
                exists_from = fa.smallest_discount_factor(
                    equilibrium,
                    agreement,
                    **options,
                    **first,  # type: ignore[arg-type]
                )
    with working("Proving"):
        certificate = fa.certify(solved)
    with all_or_none():
        if profile_out is not None:
            write_profile(profile_out, solved)
        if report is not None:
            write_report(report, certificate, others, source=file)

    say_where_from(file, setting.paper, output_format)
    optimum = fa.solve_social_optimum(consortium)
    if output_format == "json":
        from fedaccord.agreement.solution import solution_record
        from fedaccord.cli.outputs import to_json

        record = solution_record(
            certificate,
            optimum,
            exists_from,
            alternatives=others.by_name(),
            sentences=sentences_of(certificate, optimum, exists_from, others),
        )
        typer.echo(to_json(record, consortium.size))
    else:
        from fedaccord.cli.tables import print_consortium, print_solution

        print_consortium(output(), consortium)
        print_solution(
            output(), certificate, optimum, exists_from, alternatives=others, every=every
        )


def _check_budget(agreement: str, objective: str | None, *, whole_samples: bool) -> None:
    """Refuse what a budget of audits cannot be combined with."""
    if agreement == "uniform":
        raise InvalidInput("--audits-per-slot: needs --agreement individual")
    if objective not in (None, "most-data"):
        raise InvalidInput("--audits-per-slot: finds the most data, and has no other objective")
    if whole_samples:
        raise InvalidInput("--audits-per-slot: cannot be combined with --whole-samples")
