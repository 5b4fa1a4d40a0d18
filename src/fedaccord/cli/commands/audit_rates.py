"""`fedaccord audit-rates`: how often each client must be audited, and what a budget buys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.monitoring_options import AuditCostOption, EvidenceOptions, costs_by_name
from fedaccord.cli.options import (
    AllOption,
    AnyPunishmentOptions,
    FileArgument,
    FormatOption,
    MarginOption,
    NobodyWorseOption,
    PaperOptions,
    choose_consortium,
    margin_or_usual,
    with_option_groups,
)
from fedaccord.cli.outputs import check_picture, check_writable, write_picture

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.agreement.audits import AuditBudgets, LeastAudits


@with_option_groups
def audit_rates(
    file: FileArgument = None,
    *,
    margin: MarginOption = None,
    punishment: AnyPunishmentOptions,
    evidence: EvidenceOptions,
    audit_cost: AuditCostOption = None,
    nobody_worse: NobodyWorseOption = False,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE.png", help="Plot it (png, svg, pdf)."),
    ] = None,
    every: AllOption = False,
) -> None:
    """Find out how often each client must be audited, and what a budget of audits buys.

    FILE describes the consortium, in TOML; without it the paper's setting is used. For the largest
    agreement that holds if every slip is seen, it says with which probability each client must be
    audited in a slot, and how many samples an audit must check; then how much data can be agreed
    on with fewer audits. A check decides whether a sample was trained on, nothing of its quality.
    """
    check_picture(picture)
    check_writable(picture, inputs=[file])
    consortium = choose_consortium(file, setting)

    import fedaccord as fa

    options: dict[str, Any] = {
        "margin": margin_or_usual(margin, file),
        "punishment": punishment.chosen(file),
        "nobody_worse": nobody_worse,
        "monitoring": evidence.chosen(consortium.names),
    }
    costs = costs_by_name(audit_cost, consortium.names)
    with working("Solving"):
        agreement = fa.solve_agreement(
            consortium, objective="most data", robust="ranges", **options
        )
    with working("Proving"):
        least = fa.least_audits(agreement, costs)
    with working("Solving for budgets of audits"):
        budgets = fa.audit_budgets(agreement, costs=costs)
    if picture is not None:
        from fedaccord.plots import plot_audits

        write_picture(picture, plot_audits(least, budgets))
    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import to_json

        found = {"exists": agreement.exists, "total": agreement.total, "reason": agreement.reason}
        record = {"consortium": consortium.to_dict(), "agreement": found, **least.to_dict()}
        typer.echo(to_json(record | budgets.to_dict(), consortium.size))
    else:
        _print(output(), least, budgets, every)


def _print(console: "Console", least: "LeastAudits", budgets: "AuditBudgets", every: bool) -> None:
    """What each client needs, what budgets buy, and what that means."""
    from fedaccord.cli.tables import LISTED, plain_table, print_consortium, print_wide
    from fedaccord.game.money import amounts
    from fedaccord.numbers import write
    from fedaccord.summaries.agreement import why_none
    from fedaccord.summaries.audits import audit_sentences, budget_sentences
    from fedaccord.summaries.words import in_unit

    agreement = least.agreement
    print_consortium(console, agreement.consortium)
    if not agreement.exists:
        console.print(why_none(agreement))
        return
    console.print(
        f"The largest agreement, on {write([agreement.total])[0]} samples; punishment: "
        f"{agreement.punishment}."
    )
    if agreement.consortium.law.evidence is not None:
        console.print("By the fitted law alone, not by all that fit the measurements.")
    headings = [
        "Samples\nagreed",
        "Least audit\nprobability",
        "Samples to check\nif always audited",
    ]
    table = plain_table("Client", headings)
    checked = ["none suffices" if k == float("inf") else f"{k:g}" for k in least.samples_to_check]
    rates = ["none suffices" if q == float("inf") else f"{q:.4f}" for q in least.probability]
    names = agreement.consortium.names
    rows = list(zip(names, write(agreement.profile), rates, checked, strict=True))
    for row in rows if every else rows[:LISTED]:
        table.add_row(*row)
    print_wide(console, table)
    if not every and len(rows) > LISTED:
        console.print(f"{LISTED} of {len(rows):,} clients; --all lists every one.")
    for sentence in audit_sentences(least.certificate):
        console.print(sentence)
    saved = f"Saved by all{in_unit(agreement.consortium)}"
    bought = plain_table("Audits in a slot", ["Samples agreed", saved])
    savings = amounts(
        [float(one.saving.sum()) for one in budgets.agreements], agreement.consortium.currency
    )
    for budget, total, saving in zip(budgets.budgets, write(budgets.totals), savings, strict=True):
        bought.add_row(f"{budget:g}", total, saving)
    console.print(bought)
    for sentence in budget_sentences(budgets, least):
        console.print(sentence)
