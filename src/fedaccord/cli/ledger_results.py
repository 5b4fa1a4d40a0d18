"""What verifying a ledger shows: a progress bar, the result in words and as JSON, and proofs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedaccord.cli.console import counting, json_for_people
from fedaccord.cli.outputs import write_file

if TYPE_CHECKING:
    from fedaccord.ledger.chain import Entry
    from fedaccord.ledger.lines import Reading
    from fedaccord.protocol.evidence import Proof
    from fedaccord.protocol.verification import Verification


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


def record_of(result: "Verification") -> dict[str, Any]:
    """The result as JSON."""
    chain = result.chain
    return {
        "entries": chain.length,
        "head": chain.head.digest if chain.length else None,
        "slots": chain.slots,
        "holds": not result.problems,
        "problems": result.problems,
        "signatures": result.signatures.counts,
        "unproved": result.signatures.unproved,
        "undecided": result.undecided,
        "proofs": [proof.to_dict() for proof in result.proofs],
    }


def about(result: "Verification") -> str:
    """What was verified, and how much of it there is."""
    from fedaccord.numbers import count

    chain = result.chain
    last = f", the last with the digest {chain.head.digest[:16]}..." if chain.length else ""
    return f"{result.what}: {chain.length} entries, {count(chain.slots, 'slot')}{last}."


def what_holds(result: "Verification", *, models: bool) -> list[str]:
    """What was found to be in order, if nothing is wrong; `models` are stored with the ledger."""
    lines = ["Nothing in it was changed: the chain of digests is intact."]
    if result.what == "the server's ledger":
        lines.append(
            "Every offer, rank, verdict and phase follows; agreements from reports are proved."
        )
        if models:
            lines.append("The model stored with it is the one that it names.")
    return lines + result.signatures.in_words()


def what_is_wrong(result: "Verification") -> list[str]:
    """Each problem in a line."""
    return [f"Wrong: {problem}." for problem in result.problems]


def what_is_undecided(result: "Verification") -> list[str]:
    """What nobody can decide."""
    return [f"Undecided: {one}." for one in result.undecided]
