"""What `solve` and `play` do with a consortium that changes: tables, files and JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fedaccord.cli.console import output, working
from fedaccord.cli.outputs import to_json, write_csv

if TYPE_CHECKING:
    from rich.console import Console

    from fedaccord.agreement.changing import ChangingAgreement
    from fedaccord.game.changing import ChangingConsortium
    from fedaccord.repeated.changing import ChangingMatch
    from fedaccord.repeated.strategies import Strategy
    from fedaccord.summaries.changing import ChangingSolution

_STATES_SHOWN = 6
"""Columns of a table of amounts by state."""


def solve_states(
    changing: "ChangingConsortium", options: dict[str, Any], *, output_format: str, every: bool
) -> None:
    """Solve, prove and print; the options are those of `solve_changing`."""
    from fedaccord.agreement.changing_solver import solve_changing
    from fedaccord.summaries.changing import changing_solution

    with working("Solving"):
        agreement = solve_changing(changing, **options)
    with working("Proving"):
        solution = changing_solution(agreement)
    if output_format == "json":
        typer.echo(to_json(solution_record(solution), changing.everyone.size * changing.size))
    else:
        _print_solution(output(), solution, every)


def play_states(
    changing: "ChangingConsortium",
    options: dict[str, Any],
    strategies: "Mapping[str, Strategy]",
    *,
    slots: int,
    seed: int,
    csv: Path | None,
    output_format: str,
    every: bool,
) -> None:
    """Solve, play and print."""
    from fedaccord.agreement.changing_solver import solve_changing
    from fedaccord.repeated.changing import play_changing

    with working("Solving"):
        agreement = solve_changing(changing, **options)
    with working("Playing"):
        match = play_changing(agreement, strategies, slots, seed=seed)
    if csv is not None:
        _write_slots(csv, match)
    if output_format == "json":
        record = {"agreement": agreement.to_dict(), **match.to_dict()}
        typer.echo(to_json(record, max(changing.everyone.size, slots)))
    else:
        _print_match(output(), match, every)


def solution_record(solution: "ChangingSolution") -> dict[str, Any]:
    """What `solve` prints for a consortium that changes."""
    agreement, lasting = solution.agreement, solution.for_ever
    changing = agreement.changing
    states = [
        {
            "name": name,
            "clients": changing.consortia[o].size,
            "without": [
                client
                for client, here in zip(changing.names, changing.present[o], strict=True)
                if not here
            ],
            "equilibrium_total": float(agreement.equilibrium_totals[o]),
            "for_ever_total": float(lasting.agreement.totals[o]),
            "for_ever_slips": lasting.slipping(o),
            "total": float(agreement.totals[o]),
            "slips": solution.certificate.slipping(o),
            "next": dict(zip(changing.states, changing.transitions[o].tolist(), strict=True)),
        }
        for o, name in enumerate(changing.states)
    ]
    return {
        "consortium": changing.everyone.to_dict(),
        "states": states,
        "agreement": agreement.to_dict(),
        "certificate": solution.certificate.to_dict(),
        "for_ever_holds": lasting.holds,
    }


def _write_slots(path: Path, match: "ChangingMatch") -> None:
    """Write a match as CSV, slot by slot."""
    columns = match.states, match.phases, match.totals.tolist(), map("; ".join, match.names_out)
    rows = ((slot, *row) for slot, row in enumerate(zip(*columns, strict=True), start=1))
    write_csv(path, ["slot", "state", "phase", "total", "suspended"], rows)


def _print_head(console: "Console", changing: "ChangingConsortium") -> None:
    from fedaccord.summaries.changing import chain_sentences, size_sentence, turnover_sentences

    console.print(changing.name, style="bold")
    console.print(size_sentence(changing))
    for sentence in [*turnover_sentences(changing.everyone), *chain_sentences(changing)]:
        console.print(sentence)


def _print_solution(console: "Console", solution: "ChangingSolution", every: bool) -> None:
    """The states side by side, what is proved, and the clients' amounts."""
    from fedaccord.cli.tables import plain_table
    from fedaccord.game.money import amounts
    from fedaccord.numbers import write
    from fedaccord.summaries.changing import holds_in, solution_sentences
    from fedaccord.summaries.words import in_unit

    agreement, lasting = solution.agreement, solution.for_ever
    changing = agreement.changing
    _print_head(console, changing)
    saved = f"Saved by all\nper slot{in_unit(changing.everyone)}"
    headings = ["Clients", "Samples\nwithout", "As if\nfor ever", "Samples\nagreed", saved]
    table = plain_table("State", headings, words="Does as if\nfor ever hold?")
    columns = [
        [str(one.size) for one in changing.consortia],
        write(agreement.equilibrium_totals),
        write(lasting.agreement.totals),
        write(agreement.totals),
        amounts(agreement.saving.sum(axis=1), changing.everyone.currency),
        [holds_in(lasting, o) for o in range(changing.size)],
    ]
    for row in zip(changing.states, *columns, strict=True):
        table.add_row(*row)
    console.print(table)
    for sentence in solution_sentences(solution):
        console.print(sentence)
    _print_clients(console, agreement, every)
    assumed = solution.certificate.assumptions if agreement.exists else ()
    if assumed:
        console.print("Assumed, not proved:")
    for sentence in assumed:
        console.print(f"- {sentence}")


def _print_clients(console: "Console", agreement: "ChangingAgreement", every: bool) -> None:
    """What each client is asked for in each state."""
    from fedaccord.cli.tables import LISTED, plain_table, print_wide
    from fedaccord.numbers import write

    changing = agreement.changing
    states = range(changing.size if every else min(changing.size, _STATES_SHOWN))
    table = plain_table("Samples agreed", [changing.states[o] for o in states])
    columns = [
        [
            text if here else "away"
            for text, here in zip(
                write(agreement.profiles[o]), changing.present[o].tolist(), strict=True
            )
        ]
        for o in states
    ]
    rows = list(zip(changing.names, *columns, strict=True))
    for row in rows if every else rows[:LISTED]:
        table.add_row(*row)
    print_wide(console, table)
    if not every and (len(rows) > LISTED or changing.size > _STATES_SHOWN):
        console.print(
            f"{min(len(rows), LISTED):,} of {len(rows):,} clients, {len(states)} of "
            f"{changing.size:,} states; --all lists every one."
        )


def _print_match(console: "Console", match: "ChangingMatch", every: bool) -> None:
    """The slots with their states, who slipped, and what that cost."""
    from fedaccord.cli.tables import LISTED, plain_table
    from fedaccord.summaries.changing import (
        COST_NOTE,
        match_sentences,
        runs_of_slots,
        slipper_rows,
    )

    _print_head(console, match.agreement.changing)
    for sentence in match_sentences(match):
        console.print(sentence)
    rows = runs_of_slots(match)
    table = plain_table("Slots", ["State", "Phase", "Samples"], words="Out")
    for row in rows if every else rows[:LISTED]:
        table.add_row(*row)
    console.print(table)
    if not every and len(rows) > LISTED:
        console.print(f"... and {len(rows) - LISTED:,} more changes; --all lists every one.")
    slippers = slipper_rows(match)
    if slippers:
        headings = ["Total cost,\nfor ever", "Total cost\nwithout slips", "Lost by\nslipping"]
        costs = plain_table("Client\nthat slipped", headings)
        for row in slippers if every else slippers[:LISTED]:
            costs.add_row(*row)
        console.print(costs)
        console.print(COST_NOTE, style="dim")
