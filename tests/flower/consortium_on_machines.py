"""A server and its members on machines of their own, with the commands that people use."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedaccord.data.dataset import load_dataset
from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import read_ledger
from fedaccord.protocol.private import Private
from tests.flower.consortia import terms_of
from tests.flower.deployment import BIN, QUIET, ROOT, until
from tests.flower.homes import write_app
from tests.flower.machines import Network, Process

SERVER = "server"
AGAIN = "is there again"
"""What a node says when it reaches the server after a while."""


class Machines:
    """What runs on which machine, and what the server's ledger says meanwhile."""

    def __init__(self, home: Path, network: Network) -> None:
        """Nothing runs yet."""
        self.home, self.network = home, network
        self.nodes: dict[str, Process] = {}
        self.environment = os.environ | QUIET
        self.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self.environment["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"

    def fedaccord(
        self, machine: str, log: str, *words: str, before: tuple[str, ...] = ()
    ) -> Process:
        """A command on a machine; `before` is one that starts it, such as faketime."""
        said = [*before, sys.executable, "-m", "fedaccord", *words]
        return self.network.start(machine, said, self.home, log, self.environment)

    def start_server(self) -> None:
        """The SuperLink, which listens on its own machine only, and nginx."""
        before = self.said_by(SERVER).count("the server runs")
        self.fedaccord(SERVER, SERVER, "server", "start", str(self.home))
        until(lambda: self.said_by(SERVER).count("the server runs") > before, 120, "the server")

    def member(self, name: str) -> Path:
        return self.home / "clients" / name

    def start_node(self, name: str, *before: str) -> None:
        """A member's node, which may never reach the server."""
        words = ("member", "start", str(self.member(name)))
        self.nodes[name] = self.fedaccord(name, name, *words, before=before)

    def start_nodes(self, *names: str) -> None:
        """Nodes that are to be there: wait until they are."""
        before = {name: self.activations(name) for name in names}
        for name in names:
            self.start_node(name)
        until(
            lambda: all(self.activations(name) > count for name, count in before.items()),
            120,
            f"the nodes of {names}",
        )

    def end_node(self, name: str) -> None:
        """Everything on a member's machine ends at once (kill -9)."""
        self.network.kill(name)
        self.nodes.pop(name).wait()

    def activations(self, name: str) -> int:
        """How often a member's node has logged in, as the log of nginx says."""
        call = "POST /v1/fleet/activate-node "
        return sum(
            (line["member"], line["status"]) == (f"CN={name}", "200")
            and line["request"].startswith(call)
            for line in self.requests()
        )

    def requests(self) -> list[dict[str, str]]:
        """The requests in the log of nginx."""
        log = self.home / "run" / "access.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def said_by(self, machine: str) -> str:
        """What a machine's main process has said so far."""
        log = self.home / f"{machine}.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def start_run(self, last_slot: int) -> None:
        """Run slots, and do not wait."""
        words = ("server", "run", str(self.home), "--last-slot", str(last_slot))
        self.fedaccord(SERVER, "run", *words)

    def run_slots(self, last_slot: int) -> None:
        self.start_run(last_slot)
        self.wait(last_slot, "told")

    def wait(self, slot: int, kind: str, turn: int | None = None) -> None:
        """Until the ledger has such an entry."""
        until(
            lambda: any(
                turn in (None, entry.body.get("turn")) for entry in self.entries(slot, kind)
            ),
            300,
            f"{kind} {turn or ''} in slot {slot}",
        )

    def entries(self, slot: int, kind: str) -> list[Entry]:
        path = self.home / "ledger.db"
        if not path.exists():
            return []
        try:
            with read_ledger(path) as ledger:
                return list(ledger.entries(slot=slot, kind=kind))
        except FedaccordError:  # it is being made
            return []


@contextmanager
def machines(home: Path, valuations: Mapping[str, float], **rules: Any) -> Iterator[Machines]:
    """A server and members that rehearse with digits; everything runs."""
    usual = {"training": {"shape": [8, 8], "classes": 10}}
    terms = terms_of(tuple(valuations), **(usual | rules))
    privates = [
        Private(name, valuation, 0.05, 120 + 30 * n, 0.8)
        for n, (name, valuation) in enumerate(valuations.items())
    ]
    with Network([SERVER, *valuations]) as network:
        write_app(home, terms, privates, load_dataset("digits"), hosts=[network.addresses[SERVER]])
        running = Machines(home, network)
        running.start_server()
        running.start_nodes(*valuations)
        yield running
