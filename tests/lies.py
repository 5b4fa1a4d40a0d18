"""The table of attacks on the page about threats: a test performs the attack of each row.

`python -m tests.lies` writes the table into the page.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

import pytest

Who = Literal[
    "a client",
    "the server",
    "the coordinator",
    "the room",
    "an observer",
    "whoever has a link",
    "another web page",
    "whoever has the file",
    "whoever reaches the machine",
]

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "threats.md"
MODULES = (
    "tests.flower.test_bad_client",
    "tests.protocol.test_bad_server",
    "tests.flower.test_bad_file",
    "tests.flower.test_bad_node_live",
    "tests.flower.test_node",
    "tests.flower.test_node_live",
    "tests.protocol.test_bad_ledger",
    "tests.protocol.test_compare",
    "tests.protocol.test_signed",
    "tests.protocol.test_late",
    "tests.protocol.test_evidence",
    "tests.protocol.test_trusted",
    "tests.protocol.test_rollback",
    "tests.protocol.test_suspension",
    "tests.protocol.test_waivers",
    "tests.protocol.test_unreported",
    "tests.protocol.test_clock",
    "tests.protocol.test_law",
    "tests.ledger.test_places",
    "tests.flower.test_fence",
    "tests.flower.test_open_ports",
    "tests.cli.test_member",
    "tests.console.test_room_story",
    "tests.console.test_room_authorisation",
    "tests.console.test_ledger_pages",
    "tests.console.test_member_pages",
    "tests.console.test_member_security",
    "tests.console.test_web",
)
_BLOCK = re.compile(r"(?<=<!-- lies -->\n).*(?=<!-- end of lies -->)", re.DOTALL)

Test = TypeVar("Test", bound=Callable[..., object])


class Lie(NamedTuple):
    """A row of the table."""

    who: Who
    does: str
    shown: str
    """The outcome, and where it can be seen."""
    module: str
    test: str


_LIES: list[Lie] = []


def lie(who: Who, does: str, shown: str) -> Callable[[Test], Test]:
    """Mark a test that performs a lie or an attack."""

    def mark(test: Test) -> Test:
        _LIES.append(Lie(who, does, shown, test.__module__, test.__name__))
        marked: Test = pytest.mark.lie(test)
        return marked

    return mark


def table() -> str:
    """The rows, ordered by attacker and then by module."""
    for module in MODULES:
        import_module(module)
    found = list(dict.fromkeys(_LIES))
    order = get_args(Who)
    rows = sorted(found, key=lambda row: (order.index(row.who), MODULES.index(row.module)))
    lines = ["| who | tries to | what comes of it |", "|---|---|---|"]
    lines += [f"| {row.who} | {row.does} | {row.shown} |" for row in rows]
    return "\n".join(["", *lines, "", ""])


def page_with(rows: str) -> str:
    """The page with this table."""
    return _BLOCK.sub(lambda _: rows, PAGE.read_text("utf-8"))


if __name__ == "__main__":
    from tests import lies  # the module that the tests import: this one is __main__

    PAGE.write_text(page_with(lies.table()), "utf-8")
