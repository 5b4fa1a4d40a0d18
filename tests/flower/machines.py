"""Several machines on one: network namespaces with addresses of their own, joined by a switch.

Each machine has a loopback of its own, so the server's SuperLink is out of everyone else's reach.
A machine's cable can be cut, or be slow and lossy; all of its processes can be killed at once.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from tests.flower.deployment import ROOT, end

Process = subprocess.Popen[bytes]
_PATH = f"/usr/local/sbin:/usr/sbin:/sbin:{os.environ.get('PATH', os.defpath)}"
IP = shutil.which("ip", path=_PATH)


def no_machines() -> str | None:
    """Why namespaces cannot be made here; None if they can."""
    if IP is None:
        return "ip is not installed (on Debian: apt-get install iproute2)"
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "only root can make network namespaces"
    name = f"fedaccord-{os.getpid()}-try"
    made = subprocess.run([IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"no network namespace can be made: {made.stderr.strip()}"
    subprocess.run([IP, "netns", "delete", name], check=True)
    return None


def ip(*words: str) -> str:
    assert IP is not None
    done = subprocess.run([IP, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


class Network:
    """A switch, and machines with the addresses 10.83.0.1, 10.83.0.2, ..."""

    def __init__(self, machines: Sequence[str]) -> None:
        """The namespaces are made on entering, and removed on leaving."""
        self._prefix = f"fedaccord-{os.getpid()}"
        self.switch = f"{self._prefix}-switch"
        self.addresses = {name: f"10.83.0.{n}" for n, name in enumerate(machines, start=1)}
        self._started: list[Process] = []

    def __enter__(self) -> "Network":
        ip("netns", "add", self.switch)
        try:
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _join(self) -> None:
        on_switch = "-n", self.switch
        ip(*on_switch, "link", "add", "bridge", "type", "bridge")
        ip(*on_switch, "link", "set", "bridge", "up")
        for n, (name, address) in enumerate(self.addresses.items()):
            machine, port = self.space(name), f"port{n}"
            ip("netns", "add", machine)
            there = ("peer", "name", "eth0", "netns", machine)
            ip(*on_switch, "link", "add", port, "type", "veth", *there)
            ip(*on_switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", machine, "link", "set", "lo", "up")
            ip("-n", machine, "link", "set", "eth0", "up")
            ip("-n", machine, "address", "add", f"{address}/24", "dev", "eth0")

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            end(process)
        for space in [*map(self.space, self.addresses), self.switch]:
            with suppress(AssertionError):
                self._kill_in(space)
                ip("netns", "delete", space)

    def space(self, machine: str) -> str:
        """The name of a machine's namespace."""
        return f"{self._prefix}-{machine}"

    def start(
        self, machine: str, words: Sequence[str], home: Path, log: str, environment: dict[str, str]
    ) -> Process:
        """A process on a machine, in `home`; what it says is added to a file there."""
        assert IP is not None
        with (home / f"{log}.log").open("ab") as file:
            process = subprocess.Popen(
                [IP, "netns", "exec", self.space(machine), *words],
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def kill(self, machine: str) -> None:
        """Every process of a machine ends at once (kill -9), as by a power cut."""
        self._kill_in(self.space(machine))
        for process in self._started:
            process.poll()

    def _kill_in(self, space: str) -> None:
        while pids := ip("netns", "pids", space).split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            for process in self._started:
                process.poll()  # or it would stay in the list

    @contextmanager
    def cut(self, machine: str) -> Iterator[None]:
        """The machine's cable is out."""
        port = f"port{list(self.addresses).index(machine)}"
        ip("-n", self.switch, "link", "set", port, "down")
        try:
            yield
        finally:
            ip("-n", self.switch, "link", "set", port, "up")

    @contextmanager
    def slow(
        self, machine: str, seconds: float, loss: float
    ) -> Iterator[Literal["netem", "a wire of our own"]]:
        """Every packet of a machine takes so long, each way, and some are lost; says by what."""
        space = self.space(machine)
        netem = ["netem", "delay", f"{1000 * seconds:.0f}ms", "loss", f"{100 * loss:g}%"]
        tried = subprocess.run(
            ["tc", "-n", space, "qdisc", "add", "dev", "eth0", "root", *netem],
            env=os.environ | {"PATH": _PATH},
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            try:
                yield "netem"
            finally:
                tc = ["tc", "-n", space, "qdisc", "delete", "dev", "eth0", "root"]
                subprocess.run(tc, env=os.environ | {"PATH": _PATH}, check=True)
            return
        with self._wire(machine, seconds, loss):
            yield "a wire of our own"

    @contextmanager
    def _wire(self, machine: str, seconds: float, loss: float) -> Iterator[None]:
        """Takes the place of the machine's cable: same addresses, but packets pass a program."""
        assert IP is not None
        space, address = self.space(machine), f"{self.addresses[machine]}/24"
        near, far = (f"{end}-{machine}" for end in ("near", "far"))
        hardware = ip("-n", space, "-brief", "link", "show", "eth0").split()[2]
        words = ["tests.flower.slow_wire", near, far, str(seconds), str(loss)]
        wire = subprocess.Popen(
            [IP, "netns", "exec", self.switch, sys.executable, "-m", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        try:
            assert wire.stdout is not None
            assert wire.stdout.readline() == b"ready\n"
            ip("-n", self.switch, "link", "set", far, "netns", space)
            ip("-n", self.switch, "link", "set", near, "master", "bridge", "up")
            ip("-n", space, "address", "delete", address, "dev", "eth0")
            ip("-n", space, "link", "set", far, "address", hardware, "up")
            ip("-n", space, "address", "add", address, "dev", far)
            yield
        finally:
            wire.kill()
            wire.wait()
            if wire.stdout is not None:
                wire.stdout.close()
            with suppress(AssertionError):
                ip("-n", space, "address", "add", address, "dev", "eth0")
