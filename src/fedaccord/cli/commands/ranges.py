"""`fedaccord ranges`: what it costs not to know numbers exactly, and whose to find out first."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedaccord.cli.console import counting, output, say_where_from
from fedaccord.cli.monitoring_options import MonitoringOptions
from fedaccord.cli.options import (
    AgreementOption,
    AnyPunishmentOptions,
    FileArgument,
    FormatOption,
    MarginOption,
    NobodyWorseOption,
    ObjectiveOption,
    PaperOptions,
    choose_consortium,
    margin_or_usual,
    with_option_groups,
)
from fedaccord.cli.outputs import check_picture, check_writable, write_picture


@with_option_groups
def ranges(
    file: FileArgument = None,
    *,
    agreement: AgreementOption = "individual",
    objective: ObjectiveOption = None,
    margin: MarginOption = None,
    punishment: AnyPunishmentOptions,
    monitoring: MonitoringOptions,
    nobody_worse: NobodyWorseOption = False,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Plot it (png, svg, pdf)."),
    ] = None,
) -> None:
    """Find out what ranges of numbers cost, and whose numbers to find out first.

    For ranges of several widths around every ratio of valuation to cost, the agreement that holds
    for every combination of numbers within them; then, for the ranges in FILE or 30 % if it has
    none, what would be gained if one client's numbers were known exactly.
    """
    check_picture(picture)
    check_writable(picture, inputs=[file])
    consortium = choose_consortium(file, setting)

    import fedaccord as fa

    options: dict[str, Any] = {
        "kind": agreement,
        "objective": objective and objective.replace("-", " "),
        "margin": margin_or_usual(margin, file),
        "punishment": punishment.chosen(file),
        "nobody_worse": nobody_worse,
        "monitoring": monitoring.chosen(consortium.names),
    }
    with counting("Solving", 1) as told:
        costs = fa.range_costs(
            consortium,
            progress=lambda done, of: told(done, f"Solving {done} of {of}"),
            **options,
        )
    if picture is not None:
        from fedaccord.plots import plot_range_costs

        write_picture(picture, plot_range_costs(costs))
    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        typer.echo(to_json(costs.to_dict(), consortium.size))
    else:
        from fedaccord.cli.range_tables import print_range_costs

        print_range_costs(output(), costs)
