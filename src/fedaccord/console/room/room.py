"""The room of one directory: its database, the server's directory `app` in it, and who is told."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.app_files import Alignment
from fedaccord.console.room.database import Database
from fedaccord.console.room.doors import Doors
from fedaccord.console.room.live import Bell
from fedaccord.console.room.moments import Clock, wall_clock
from fedaccord.console.room.running import Running
from fedaccord.console.room.store import Store
from fedaccord.console.web.rates import Rate
from fedaccord.ledger.access import VARIABLE

DATABASE = "room.db"
_PAGES = (
    ("/", "Overview"),
    ("/terms", "Terms"),
    ("/members", "Members"),
    ("/watch", "Watch"),
    ("/ledger", "Ledger"),
    ("/evidence", "Evidence"),
    ("/agreement", "Agreement"),
)
_COORDINATORS = (("/observers", "Observers"), ("/run", "Run"))


@dataclass
class Rates:
    """How often somebody may do what needs no session, by address."""

    visits: Rate = field(default_factory=lambda: Rate(attempts=600, seconds=60.0))
    """Any page, file or answer; a page comes with five files."""
    secrets: Rate = field(default_factory=lambda: Rate(attempts=30, seconds=60.0))
    """Anything that tries a secret, or asks for a challenge."""


class Room:
    """What pages find as `request.app.state.room`."""

    def __init__(
        self,
        directory: Path,
        *,
        database: str = "",
        address: str = "http://127.0.0.1:8321",
        secure: bool = False,
        clock: Clock = wall_clock,
        rates: Rates | None = None,
    ) -> None:
        """Open the room in `directory`, which is made if it is new.

        Args:
            directory: It has `room.db`, and `app` as soon as the room is created.
            database: A path or a URL instead of `room.db`.
            address: Where the room is reached, without a slash at the end.
            secure: Whether it is reached by TLS only.
            clock: Tells the time.
            rates: Limits for whoever has no session.
        """
        directory = directory.absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory, self.app = directory, directory / "app"
        self.secure, self.rates = secure, rates or Rates()
        self.store = Store(Database(database or directory / DATABASE), clock)
        self.doors = Doors(self.store)
        self.address = address
        self.bell = Bell(self.store.last_event())
        self.store.told, self.doors.ended = self.bell.ring, self.bell.ring_out
        self.files = Alignment(self.app, self.store)
        self.running = Running(self.app, directory / "logs")

    @property
    def address(self) -> str:
        """Where the room is reached; members sign it when they log in."""
        return self._address

    @address.setter
    def address(self, address: str) -> None:
        self._address = address
        self.store.set_address(address)

    @property
    def name(self) -> str | None:
        """What the consortium is called; None: the room is not created yet."""
        return self.store.name()

    @property
    def ledger_place(self) -> str:
        """The path or URL of the ledger; empty if there is none yet."""
        if place := os.environ.get(VARIABLE):
            return place
        path = self.app / "ledger.db"
        return str(path) if path.is_file() else ""

    def pages_for(self, viewer: Viewer) -> list[tuple[str, str]]:
        """The addresses of the pages that somebody may see, with their words."""
        if self.name is None:
            return []
        return [*_PAGES, *(_COORDINATORS if viewer.role == "coordinator" else ())]

    def close(self) -> None:
        """End what the room started."""
        self.running.close()
        self.store.database.close()
