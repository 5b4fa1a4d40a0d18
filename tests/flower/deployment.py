"""A real Flower deployment on loopback: a SuperLink and SuperNodes, with TLS and node keys."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from fedaccord.errors import FedaccordError
from fedaccord.ledger.store import open_ledger, read_ledger

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parent.parent.parent
"""Of the checkout, for nodes that are part of the tests."""
OWN_NODE = """
import sys
from pathlib import Path
from fedaccord.flower.node import run_node
run_node(Path(sys.argv[1]))
"""
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "NO_COLOR": "1",
}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.25)


class Deployment:
    """Everything that is started here is ended here."""

    def __init__(self, app: Path) -> None:
        self.app = app
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environment = os.environ | QUIET | {"FLWR_HOME": str(app / "flower-home")}
        self.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self.environment["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.stack = ExitStack()
        config = app / "flower-home" / "config.toml"
        config.write_text(config.read_text().replace("127.0.0.1:8000", self.address))

    def __enter__(self) -> "Deployment":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stack.close()

    def start(self, log: str, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A process in a group of its own, whose whole group is ended with the deployment."""
        path = self.app / f"{log}.log"
        with path.open("wb") as file:
            process = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                cwd=self.app,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.stack.callback(end, process)
        return process, path

    def run(self, *words: str, seconds: float = 60.0) -> str:
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=self.app,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start_server(self) -> subprocess.Popen[bytes]:
        process, log = self.start(
            "superlink",
            "flower-superlink",
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--database", "flower-home/superlink.db"),
            *("--ssl-ca-certfile", "keys/ca.pem", "--ssl-certfile", "keys/server.pem"),
            *("--ssl-keyfile", "keys/server.key", "--enable-supernode-auth"),
            "--disable-runtime-dependency-installation",
        )
        until(lambda: _listens(self.port), 60, f"the SuperLink ({log})")
        return process

    def register(self, public_key: str, name: str) -> str:
        """Register a client's node, and return the node's id."""
        words = ("supernode", "register", public_key, "consortium", "--name", name)
        answer = json.loads(self.run("flwr", *words, "--format", "json"))
        assert answer["success"], answer
        return str(answer["node-id"])

    def start_node(
        self, folder: str, log: str, *, authority: str = "ca.pem"
    ) -> tuple[subprocess.Popen[bytes], Path]:
        client = self.app / "clients" / folder
        return self.start(
            log,
            "flower-supernode",
            *("--superlink", self.address, "--port", str(free_port())),
            *("--root-certificates", str(client / authority)),
            *("--auth-supernode-private-key", str(client / "node.key")),
            *("--node-config", f'client-file="{client / "client.toml"}"'),
            *("--max-retries", "3"),
        )

    def sign(self, name: str, digest: str) -> Path:
        """Write into a client's file where the server is, and which app the client signed."""
        path = self.app / "clients" / name / "client.toml"
        lines = path.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("server = ", "app = "))]
        path.write_text("\n".join([f'server = "{self.address}"', f'app = "{digest}"', *kept]))
        return path

    def start_own_node(self, folder: str, log: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A node of ours, which starts only the app that its client's file names."""
        path = self.app / "clients" / folder / "client.toml"
        return self.start(log, "python", "-P", "-c", OWN_NODE, str(path))

    def run_slots(self, last_slot: int, seconds: float, awaited: str = "") -> str:
        """Run until a slot is settled and everyone was told, as the ledger says; the run's log."""
        run = self._start_run(last_slot)
        until(lambda: self._told(last_slot), seconds, f"slot {last_slot}")
        return self._log(run, awaited or f"slot {last_slot} is ")  # settled, or VOID

    def run_beside_another(self, awaited: str) -> str:
        """The log of a run while somebody else writes the ledger."""
        with open_ledger(self.app / "ledger.db"):
            return self._log(self._start_run(last_slot=9), awaited)

    def _start_run(self, last_slot: int) -> str:
        words = ("run", ".", "consortium", "--format", "json")
        answer = json.loads(self.run("flwr", *words, "--run-config", f"last-slot={last_slot}"))
        assert answer["success"], answer
        return str(answer["run-id"])

    def _log(self, run: str, awaited: str) -> str:
        """What the stream of a run says, when it says what is awaited."""
        said = ""

        def there() -> bool:
            nonlocal said
            said = self.run("flwr", "log", run, "consortium", "--show")
            return awaited in said

        until(there, 60, f"{awaited!r} in the log")
        return said

    def _told(self, slot: int) -> bool:
        path = self.app / "ledger.db"
        if not path.exists():
            return False
        try:
            with read_ledger(path) as ledger:
                return any(True for _ in ledger.entries(slot=slot, kind="told"))
        except FedaccordError:  # it is being made
            return False


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started, by its id."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
