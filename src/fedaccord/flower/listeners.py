"""Who is told what happens while slots run: our own log, and whatever else listens.

A listener is anything that can be called with an event. The built-in ones write the log, metrics
for Prometheus, and runs of MLflow; a package brings another one by an entry point:

    [project.entry-points."fedaccord.listeners"]
    pager = "my_package:page_somebody"

`my_package.page_somebody` is called once without arguments, and returns the listener.
"""

from collections.abc import Callable, Mapping
from typing import TextIO

from fedaccord.errors import FedaccordError
from fedaccord.flower.events import Event, LogFormat, Say, line_of
from fedaccord.plugins import find, names_in

_BUILT_IN: Mapping[str, Callable[[], Say]] = {}
"""Those that need no name: they have options of their own."""


def printer(stream: TextIO, log_format: LogFormat) -> Say:
    """Writes a line for every event, at once."""

    def say(event: Event) -> None:
        stream.write(line_of(event, log_format) + "\n")
        stream.flush()

    return say


def find_listener(name: str) -> Say:
    """The listener that a package brings under this name."""
    make = find("listeners", name, _BUILT_IN)
    if make is None:
        known = ", ".join(names_in("listeners", _BUILT_IN)) or "none is installed"
        raise FedaccordError(f"{name}: there is no listener of this name ({known})")
    return make()
