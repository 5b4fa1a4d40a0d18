"""A PostgreSQL server for the tests alone: on a socket in a directory of its own, no port."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import create_engine, text

from tests.flower.deployment import until

Databases = Callable[[], str]
"""Makes an empty database, and tells its URL."""


def programs() -> Path | None:
    """Where PostgreSQL's programs are; Debian keeps those of a server out of the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def account() -> str | None:
    """As whom to run it: it refuses to run as root, and asks for the account it came with."""
    me = pwd.getpwuid(os.getuid()).pw_name
    if me != "root":
        return me
    return "postgres" if any(user.pw_name == "postgres" for user in pwd.getpwall()) else None


@contextmanager
def server(bin_directory: Path, user: str) -> Iterator[Databases]:
    """A server that runs until the end of the block."""
    home = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path may have 107 characters at most
    if user != pwd.getpwuid(os.getuid()).pw_name:
        shutil.chown(home, user)
    data = str(home / "data")
    make = [f"{bin_directory}/initdb", "-D", data, "-A", "trust", "-U", "me", "--no-sync"]
    run = [f"{bin_directory}/postgres", "-D", data, "-k", str(home), "-F", "-h", ""]
    ready = [f"{bin_directory}/pg_isready", "-q", "-h", str(home)]
    try:
        subprocess.run(make, check=True, capture_output=True, user=user, cwd=home)
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(run, stdout=log, stderr=log, user=user, cwd=home)
        try:
            until(lambda: subprocess.run(ready, check=False).returncode == 0, 30, "PostgreSQL")
            yield _databases(f"postgresql+psycopg://me@/{{}}?host={home}")
        finally:
            process.send_signal(signal.SIGINT)  # at once: it waits for nobody to hang up
            process.wait(30)
    finally:
        shutil.rmtree(home)


def _databases(url: str) -> Databases:
    numbers = count(1)

    def new() -> str:
        name = f"ledger{next(numbers)}"
        engine = create_engine(url.format("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return url.format(name)

    return new
