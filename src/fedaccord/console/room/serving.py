"""How a room is reached: its address, and who may listen where."""

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fedaccord.atomic import create_private
from fedaccord.console.room.room import DATABASE
from fedaccord.console.web.guards import host_name
from fedaccord.console.web.serving import LOOPBACK
from fedaccord.errors import FedaccordError, InvalidInput

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Reached:
    """Where browsers and members' pages reach the room."""

    address: str
    """Without a slash at the end."""
    hosts: tuple[str, ...]
    """Names without ports that requests may have."""
    secure: bool


def reached_at(hosts: Sequence[str], listen: str, port: int, *, tls: bool, proxy: str) -> Reached:
    """The address of a room that listens there; refused if others could listen in.

    Args:
        hosts: Names at which it is reached, each with a port if it is another one than listened at.
        listen: The address of this machine.
        port: The port.
        tls: Whether the room itself has a certificate.
        proxy: The address of a proxy before it, which has one; empty if there is none.
    """
    if not (tls or proxy or is_loopback(listen)):
        raise InvalidInput(
            f"whoever is between could read everything at {listen}: give a certificate and its "
            "key, or name the proxy that has them"
        )
    if proxy:
        _check_proxy(proxy, hosts)
    for host in hosts:
        if not (_HOST.fullmatch(host) and host_name(host)):
            raise InvalidInput(f"{host!r} is not a name, or a name and a port")
    secure = tls or bool(proxy)
    scheme = "https" if secure else "http"
    first = hosts[0] if hosts else listen
    if not (hosts and (proxy or _has_port(first))):
        bare = ":" in first and not first.startswith("[")
        first = f"[{first}]:{port}" if bare else f"{first}:{port}"
    # browsers leave the usual port out, and write names in small letters
    place = first.lower().removesuffix(f":{_USUAL[scheme]}")
    names = tuple(host_name(host) for host in hosts)
    own = LOOPBACK if is_loopback(listen) else (listen,)
    return Reached(f"{scheme}://{place}", (*names, *own), secure)


_USUAL = {"http": 80, "https": 443}


def _check_proxy(proxy: str, hosts: Sequence[str]) -> None:
    """A proxy's word is taken, so it must be one, and known by its address."""
    try:
        found = ipaddress.ip_network(proxy)
    except ValueError:
        found = None
    if found is None or found.num_addresses > _MOST_PROXIES:
        raise InvalidInput(
            f"{proxy!r} is not the address of a proxy: give the one from which it calls, such as "
            "127.0.0.1"
        )
    if not hosts:
        raise InvalidInput(
            "a room behind a proxy needs the name at which the proxy is reached, since links "
            "have it and members sign it"
        )


_MOST_PROXIES = 65_536
"""Addresses of a network that may be trusted: one of containers, but not the Internet."""


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


@contextmanager
def lock_room(directory: Path) -> Iterator[Callable[[], None]]:
    """Let no other process serve the same room meanwhile; a directory that is new is made.

    If the block fails, everything that was made for it is removed again, unless it had called the
    function that it is given: from then on the room is there to stay.
    """
    if directory.exists() and not directory.is_dir():
        raise InvalidInput("is a file; a room needs a directory", str(directory))
    lock, database = directory / "room.lock", directory / DATABASE
    folders = [each for each in (directory, *directory.parents) if not each.exists()]
    new = [] if lock.exists() else [lock]
    try:
        with _locked(lock) as file:
            if not database.exists():
                new += [database.with_name(database.name + end) for end in ("", "-wal", "-shm")]
            try:
                yield new.clear
            except BaseException:
                if os.name != "posix":
                    file.close()  # or it could not be removed
                for each in new:
                    with suppress(OSError):
                        each.unlink()
                raise
    except BaseException:
        with suppress(OSError):  # the first that is not empty, and so all around it, stay
            for each in folders:
                each.rmdir()
        raise


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(path)
        file = path.open("ab")
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be opened: {error.strerror or error}") from None
    with file:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = os.path.samestat(os.fstat(file.fileno()), path.stat())
            except OSError:
                held = False
            if not held:  # or its last holder, which was refused, has removed it
                raise FedaccordError(f"{path.parent}: another process serves this room")
        yield file
