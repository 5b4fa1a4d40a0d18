"""Grids in this process, and slots on them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from flwr.app import Context
from flwr.clientapp import ClientApp

from fedaccord.flower.client_app import client_app
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import run_slots
from fedaccord.flower.simulation import copy_of_node
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms
from tests.flower.consortia import (
    START_MODEL,
    ledger_at,
    nudge,
    privates_of,
    terms_of,
    verdicts,
)

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES, answer_seconds=0.01)


def client_of(privates: list[Private], terms: Terms = TERMS) -> Callable[[Context], Participant]:
    by_name = {private.name: private for private in privates}

    def find(context: Context) -> Participant:
        return Participant(
            by_name[str(context.node_config["name"])], terms, copy_of_node(context), nudge
        )

    return find


def grid_of(names: Iterable[str] = NAMES, app: ClientApp | None = None) -> InProcessGrid:
    privates = [*privates_of(NAMES), *privates_of(("stranger",))]
    return InProcessGrid(app or client_app(client_of(privates)), [{"name": name} for name in names])


def faults(path: Path) -> set[tuple[str | None, str]]:
    return {(e.client, e.body["reason"]) for e in load_entries(str(path)) if e.kind == "fault"}


def slots_on(grid: InProcessGrid, path: Path, slots: int = 1) -> dict[str, str]:
    with ledger_at(path) as ledger:
        run_slots(grid, Coordinator(TERMS, ledger, START_MODEL), slots)
        return verdicts(ledger, slots)
