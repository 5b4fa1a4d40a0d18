"""What verifying a ledger shows beside its result: a progress bar, and a file of proofs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.cli.console import counting, json_for_people
from fedaccord.cli.outputs import write_file

if TYPE_CHECKING:
    from fedaccord.ledger.chain import Entry
    from fedaccord.ledger.lines import Reading
    from fedaccord.protocol.evidence import Proof


@contextmanager
def watched_reading(ledger: "Reading", passes: int) -> "Iterator[Reading]":
    """The same ledger, with a progress bar while it is read that many times."""
    done = 0

    def counted(found: "Iterator[Entry]") -> "Iterator[Entry]":
        nonlocal done
        for entry in found:
            yield entry
            done += 1
            if done % _SHOWN_EVERY == 0:
                progress(done, "Verifying")

    steps = passes * ledger.length() if sys.stderr.isatty() else 0
    with counting("Verifying", steps) as progress:
        yield replace(
            ledger,
            entries=lambda: counted(ledger.entries()),
            entries_from=lambda n: counted(ledger.entries_from(n)),
        )


_SHOWN_EVERY = 1_000
"""Entries between two looks at the progress bar."""


def write_proofs(path: Path | None, proofs: "Sequence[Proof]") -> None:
    """Write pairs of statements that convict somebody, if a file is named."""
    if path is not None:
        text = json_for_people({"proofs": [proof.to_dict() for proof in proofs]})
        write_file(path, f"{text}\n")
