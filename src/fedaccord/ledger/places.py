"""Where a server's ledger is, without revealing the password of its database.

Every client can read the configuration of a run, and Flower keeps it in a database. So a URL comes
from the server's environment, or from a file that only its owner can read (`*.url`).
"""

import os
import stat
from pathlib import Path

from fedaccord.errors import InvalidInput

VARIABLE = "FEDACCORD_LEDGER"
"""An environment variable: a path or a URL that replaces what is configured."""
SUFFIX = ".url"
"""Of a file that contains only a URL."""


def server_place(configured: str) -> str:
    """Where to keep the ledger, given what the configuration of a run says."""
    if "://" in configured:
        raise InvalidInput(
            "ledger: every client can read the configuration of a run, so it must not contain a "
            f"URL; put it into the server's environment ({VARIABLE}), or into a file of mode "
            f"0600 called *{SUFFIX}, and name that file"
        )
    return os.environ.get(VARIABLE) or configured


def resolved(place: str) -> str:
    """A path or a URL; of a file called *.url, the URL in it."""
    if "://" in place or not place.endswith(SUFFIX):
        return place
    path = Path(place)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"cannot be read: {reason}", place) from None
    if os.name == "posix" and mode & 0o077:
        raise InvalidInput(
            f"others can read it (mode {mode:04o}), and it may contain a password; "
            f"run chmod 600 {place}",
            place,
        )
    if "://" not in text or len(text.splitlines()) != 1:
        raise InvalidInput("must contain one line, the URL of a database", place)
    return text
