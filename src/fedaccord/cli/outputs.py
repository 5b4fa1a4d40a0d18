"""Files that commands write: whole or not at all, and refused before any long work."""

import csv
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.cli.console import working
from fedaccord.errors import FedaccordError

if TYPE_CHECKING:
    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.play.account import Account
    from fedaccord.play.match import Match
    from fedaccord.training.comparison import Comparison


def check_writable(*paths: Path | None) -> None:
    """Refuse at once what could not be written later."""
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise FedaccordError(f"{path}: is a directory, not a file to write to")
        if _is_special(path):
            continue
        try:
            with tempfile.TemporaryFile(dir=path.resolve().parent):
                pass
        except OSError as error:
            raise _cannot_write(path, error) from None


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file under another name, then rename it: nobody ever sees half of it."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_special(path):
            path.write_bytes(data)
            return
        target = path.resolve()  # through a link, to the file itself
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            try:
                file.write(data)
                file.close()
                Path(file.name).chmod(_usual_mode())
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise _cannot_write(path, error) from None


def _is_special(path: Path) -> bool:
    """A device or a pipe, which must not be replaced by a file."""
    return path.exists() and not path.is_file()


def _usual_mode() -> int:
    """The permissions of a new file; temporary ones are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _cannot_write(path: Path, error: OSError) -> FedaccordError:
    return FedaccordError(f"{path}: cannot be written: {error.strerror or error}")


def write_report(
    path: Path, certificate: "Certificate", comparison: "Comparison | None" = None
) -> None:
    """Write the HTML page."""
    from fedaccord.report import render_report

    with working("Writing the report"):
        write_file(path, render_report(certificate, comparison))


def write_account(path: Path, account: "Account") -> None:
    """Write the HTML page about a match."""
    from fedaccord.report import render_account

    with working("Writing the report"):
        write_file(path, render_account(account))


def write_training(path: Path, comparison: "Comparison") -> None:
    """Write the HTML page about a training."""
    from fedaccord.report import render_training

    with working("Writing the report"):
        write_file(path, render_training(comparison))


def write_runs(path: Path, comparison: "Comparison") -> None:
    """Write every round of every run as CSV."""
    rows = (
        (run.profile, run.seed, slot.slot, slot.phase, slot.total, k, score.loss, score.accuracy)
        for run in comparison.runs
        for slot in run.slots
        for k, score in enumerate(slot.rounds, start=1)
    )
    columns = ["profile", "seed", "slot", "phase", "total", "round", "loss", "accuracy"]
    write_csv(path, columns, rows)


def write_slots(path: Path, match: "Match") -> None:
    """Write a match as CSV, slot by slot."""
    rows = enumerate(zip(match.phases, match.totals.tolist(), strict=True), start=1)
    write_csv(path, ["slot", "phase", "total"], ((slot, *row) for slot, row in rows))


def write_profile(path: Path, agreement: "Agreement") -> None:
    """Write the profile as CSV, which `fedaccord certify` reads."""
    names, amounts = agreement.consortium.names, agreement.profile.tolist()
    write_csv(path, ["name", "contribution"], zip(names, amounts, strict=True))


def write_csv(path: Path, columns: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Write a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_file(path, text.getvalue())
