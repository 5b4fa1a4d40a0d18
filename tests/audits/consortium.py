"""A consortium of three whose training is audited: their directories, played without a network."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord.flower.client_file import FileClient
from fedaccord.flower.local import empty_model
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.signing.keys import Key, key_from_seed, write_key
from tests.audits.cheats import records_of

NAMES = ("North", "South", "West")
AUDITORS = ("Notary", "Institute", "Inspector")
SAMPLES, ASKED = 60, 40
Cheat = Callable[[FileClient], None]


def key_of(name: str) -> Key:
    """A key that is the same in every run."""
    return key_from_seed(name.encode().ljust(32, b"."))


class Consortium:
    """The files of everyone, as they would be on several machines."""

    def __init__(
        self,
        folder: Path,
        cheats: Mapping[str, Cheat] | None = None,
        *,
        notary: bool = False,
        **audits: Any,
    ) -> None:
        self.folder, self.cheats = folder, cheats or {}
        self.ledger = folder / "server" / "ledger.db"
        terms = folder / "server" / "terms.toml"
        if not terms.exists():
            self._write(terms, {"per_slot": 3, "samples": 4} | audits, notary)
        self.terms: Terms = load_terms(terms)
        self.clients = {name: self._client(name, terms) for name in NAMES}

    def _write(self, terms: Path, audits: Mapping[str, Any], notary: bool) -> None:
        (self.folder / "server" / "keys").mkdir(parents=True)
        write_key(self.folder / "server" / "keys" / "signing.key", key_of("server"))
        for name in AUDITORS:
            write_key(self.auditor_key(name), key_of(name))
        attested = f'[audits.attestations.notary]\nkey = "{key_of("Inspector").public}"\n'
        terms.write_text(_terms(audits) + attested * notary, encoding="utf-8")
        for n, name in enumerate(NAMES):
            self._member(name, n, terms.read_text(encoding="utf-8"))

    def _client(self, name: str, terms: Path) -> FileClient:
        client = FileClient(self.file(name), terms)
        if name in self.cheats:
            self.cheats[name](client)
        return client

    def file(self, name: str) -> Path:
        """A member's own file."""
        return self.folder / name / "client.toml"

    def auditor_key(self, name: str) -> Path:
        """The private key of an auditor."""
        return self.folder / f"{name}.key"

    def _member(self, name: str, number: int, terms: str) -> None:
        home = self.folder / name
        (home / "data").mkdir(parents=True)
        records, test = records_of(number, SAMPLES), records_of(99, 10)
        np.savez(home / "data" / f"{name}.npz", inputs=records.inputs, labels=records.labels)
        np.savez(home / "data" / "test.npz", inputs=test.inputs, labels=test.labels)
        (home / "terms.toml").write_text(terms, encoding="utf-8")
        write_key(home / "signing.key", key_of(name))
        numbers = f"valuation = 5000.0\ncost_per_sample = 0.01\nsamples = {SAMPLES}\n"
        rest = 'discount_factor = 0.8\nkey = "signing.key"\n'
        self.file(name).write_text(f'name = "{name}"\n{numbers}{rest}', encoding="utf-8")

    def play(self, last_slot: int) -> Coordinator:
        """Play all slots up to this one."""
        model = empty_model(self.terms).start(self.terms.training.seed)
        start = {name: value.numpy() for name, value in model.items()}
        with open_ledger(self.ledger) as ledger:
            server = Coordinator(self.terms, ledger, start, key=key_of("server"))
            while (ask := server.next_ask(last_slot)) is not None:
                server.take(ask, [self._reply(name, ask) for name in ask.contents])
        return server

    def _reply(self, name: str, ask: Ask) -> Reply:
        model = ask.parameters if ask.sends_model(name) else None
        body, arrays = self.clients[name].answer(ask.body(name), model)
        return Reply(1, name, body, arrays)


def _terms(audits: Mapping[str, Any]) -> str:
    public = "".join(
        f"[public.{name}]\nsamples = {SAMPLES}\ncontribution = {ASKED}\nlowest_ratio = 5e5\n"
        "lowest_discount_factor = 0.5\n"
        for name in NAMES
    )
    clients = "".join(f'{name} = "{key_of(name).public}"\n' for name in NAMES)
    auditors = "".join(f'{name} = "{key_of(name).public}"\n' for name in AUDITORS)
    rules = "".join(f"{key} = {json.dumps(value)}\n" for key, value in audits.items())
    return (
        f'name = "Three"\nclients = {json.dumps(NAMES)}\nrounds = 3\ndiscount_factor = 0.8\n'
        'reports = "none"\n'
        '[training]\nshape = [6]\nclasses = 2\nlocal = "epochs"\nrate = 0.2\nbatch = 16\n'
        f'[keys]\nserver = "{key_of("server").public}"\n[keys.clients]\n{clients}{public}'
        f"[audits]\n{rules}[audits.auditors]\n{auditors}"
    )
