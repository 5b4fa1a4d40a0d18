"""Rooms with a ledger that was played in this process, and browsers that are logged in to them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.app import create_room
from fedaccord.protocol.coordinator import Coordinator, Evaluate
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.terms_text import terms_text
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)

HERE = "http://127.0.0.1:8321"
NAMES = ("a", "b", "c")
HOSTILE = '<b onclick="x">=cmd()</b> & \N{HEBREW LETTER ALEF}' + "n" * 150
Slips = dict[str, dict[int, int]]
Away = dict[int, set[str]]


def signed_terms(names: tuple[str, ...] = NAMES, **rules: Any) -> Terms:
    """Terms with keys, under which slips suspend."""
    usual: dict[str, Any] = {"punishment": "suspension", "keys": keys_of(names)}
    return terms_of(names, **(usual | rules))


def play(
    path: Path,
    terms: Terms,
    slots: int,
    slips: Slips | None = None,
    *,
    away: Away | None = None,
    clients: Clients | None = None,
    between: Callable[[Ask], None] = lambda _: None,
    evaluate: Evaluate | None = None,
) -> Clients:
    """Play slots into a ledger; `between` is called before each question.

    `evaluate` measures the model after each round.
    """
    privates = [
        replace(one, slips=(slips or {}).get(one.name, {})) for one in privates_of(terms.clients)
    ]
    everyone = clients or Clients(terms, privates)

    def replies(ask: Ask) -> list[Reply]:
        between(ask)
        everyone.away = (away or {}).get(ask.slot, set())
        return everyone(ask)

    with ledger_at(path) as ledger:
        server = Coordinator(terms, ledger, START_MODEL, server_key(terms), evaluate)
        run(server, replies, slots)
    return everyone


def room_at(folder: Path, names: tuple[str, ...] = NAMES) -> tuple[FastAPI, Path]:
    """A room of these members that is created, and where its ledger is to be."""
    app = create_room(folder / "room")
    app.state.room.store.create("Three hospitals", terms_text(terms_of(names)), lambda: None)
    ledger = app.state.room.app / "ledger.db"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    return app, ledger


def logged_in(app: FastAPI, role: str = "coordinator", client: str | None = None) -> TestClient:
    """A browser of somebody."""
    browser = TestClient(app, base_url=HERE, raise_server_exceptions=True)
    doors = app.state.room.doors
    token = doors.enter(doors.ticket(Viewer(role, client)))  # type: ignore[arg-type]
    browser.cookies.set("fedaccord-8321", token)
    return browser
