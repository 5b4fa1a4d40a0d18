"""A server and its members on machines of their own: SuperLink, nginx and nodes as in real life."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedaccord.errors import FedaccordError
from fedaccord.flower.fab import app_digest
from fedaccord.flower.fence import nginx_text, nginx_words, superlink_words
from fedaccord.flower.keys import make_certificates, make_client_certificate
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import read_ledger
from tests.flower.deployment import BIN, QUIET, ROOT, until
from tests.flower.fence import NGINX
from tests.flower.machines import IP, Network, Process
from tests.flower.test_deployment import prepared

SERVER = "server"
NODE = "import sys, pathlib; from fedaccord.flower.node import run_node; "
NODE += "run_node(pathlib.Path(sys.argv[1]))"


def prepared_members(home: Path, network: Network, **rules: Any) -> None:
    """The server's directory, and in `clients/` each member's, as both would make them."""
    prepared(home, **rules)
    address = network.addresses[SERVER]
    make_certificates(home / "keys", [address])
    text = nginx_text(
        listen=f"{address}:8443", superlink="127.0.0.1:8000", keys=Path("keys"), run=Path("run")
    )
    (home / "nginx.conf").write_text(text)
    (home / "run").mkdir()
    for client in members(home):
        (client / "ca.pem").write_bytes((home / "keys" / "ca.pem").read_bytes())
        make_client_certificate(client, client.name)
        admit(home, client / "tls.pem")
        file = client / "client.toml"
        more = f'server = "{address}:8443"\ncertificate = "tls.pem"\napp = "{app_digest(home)}"\n'
        file.write_text(more + file.read_text())


def members(home: Path) -> list[Path]:
    return sorted((home / "clients").iterdir())


def admit(home: Path, certificate: Path) -> None:
    """Add a member's certificate to the list."""
    with (home / "keys" / "members.pem").open("ab") as file:
        file.write(certificate.read_bytes())


class Consortium:
    """What runs on which machine, and what the server's ledger says meanwhile."""

    def __init__(self, home: Path, network: Network) -> None:
        """Nothing runs yet."""
        self.home, self.network = home, network
        self.nodes: dict[str, Process] = {}
        self.environment = os.environ | QUIET | {"FLWR_HOME": str(home / "flower-home")}
        self.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self.environment["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"

    def start_server(self) -> None:
        """The SuperLink, which listens on its own machine, and nginx."""
        superlink, nginx = superlink_words(), [str(NGINX), *nginx_words()[1:]]
        for log, words in (
            ("superlink", [str(BIN / superlink[0]), *superlink[1:]]),
            ("nginx", nginx),
        ):
            self.network.start(SERVER, words, self.home, log, self.environment)
        until(lambda: '"success": true' in self.flwr("supernode", "list"), 90, "the SuperLink")

    def start_node(self, name: str, *before: str) -> Process:
        """A member's node; `before` is a command that starts commands, such as faketime."""
        file = str(self.home / "clients" / name / "client.toml")
        words = [*before, sys.executable, "-c", NODE, file]
        self.nodes[name] = self.network.start(name, words, self.home, name, self.environment)
        return self.nodes[name]

    def start_nodes(self, *names: str) -> None:
        """Nodes that are to be there: wait until they are."""
        before = {name: self.activations(name) for name in names}
        for name in names:
            self.start_node(name)
        for name in names:
            until(lambda: self.activations(name) > before[name], 60, f"the node of {name}")  # noqa: B023

    def end_node(self, name: str) -> None:
        self.network.kill(name)
        self.nodes.pop(name).wait()

    def flwr(self, *words: str) -> str:
        """What a command of Flower's says on the server's machine, in JSON."""
        exe = [str(IP), "netns", "exec", self.network.space(SERVER), str(BIN / "flwr"), *words]
        done = subprocess.run(
            [*exe, *([] if "consortium" in words else ["consortium"]), "--format", "json"],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout

    def register(self) -> None:
        for client in members(self.home):
            key = f"clients/{client.name}/node.pub"
            said = self.flwr("supernode", "register", key, "consortium", "--name", client.name)
            assert json.loads(said)["success"], said

    def activations(self, name: str) -> int:
        """How often a member's node has logged in, as the log of nginx says."""
        log = self.home / "run" / "access.log"
        lines = map(json.loads, log.read_text().splitlines() if log.exists() else [])
        return sum(
            (line["member"], line["status"]) == (f"CN={name}", "200")
            and line["request"].startswith("POST /v1/fleet/activate-node ")
            for line in lines
        )

    def start_run(self, last_slot: int) -> None:
        words = ("run", ".", "consortium", "--run-config", f"last-slot={last_slot}")
        answer = json.loads(self.flwr(*words))
        assert answer["success"], answer

    def run_slot(self, slot: int, seconds: float = 300) -> None:
        self.start_run(slot)
        self.wait(slot, "told", seconds=seconds)

    def wait(self, slot: int, kind: str, turn: int = 0, seconds: float = 300) -> None:
        """Until the ledger has such an entry."""
        until(
            lambda: any(
                turn in (0, entry.body.get("round", entry.body.get("turn", 0)))
                for entry in self.entries(slot, kind)
            ),
            seconds,
            f"{kind} {turn or ''} in slot {slot}",
        )

    def entries(self, slot: int | None = None, kind: str | None = None) -> list[Entry]:
        path = self.home / "ledger.db"
        if not path.exists():
            return []
        try:
            with read_ledger(path) as ledger:
                return list(ledger.entries(slot=slot, kind=kind))
        except FedaccordError:  # it is being made
            return []

    def said_by(self, name: str) -> str:
        """What a member's node has said so far."""
        return (self.home / f"{name}.log").read_text(errors="replace")

    def verdicts(self, slot: int) -> dict[str, str]:
        found = self.entries(slot, "verdict")
        return {str(entry.client): entry.body["verdict"] for entry in found}


@contextmanager
def consortium(home: Path, names: Sequence[str], **rules: Any) -> Iterator[Consortium]:
    """Everything runs, and every member is seen."""
    with Network([SERVER, *names]) as network:
        prepared_members(home, network, **rules)
        running = Consortium(home, network)
        running.start_server()
        running.register()
        running.start_nodes(*names)
        yield running
