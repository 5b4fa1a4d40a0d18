"""What commands write for programs: files, whole or not at all, and JSON."""

import io
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fedaccord.atomic import WholeFile, rewrite, write_together
from fedaccord.cli.console import working
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.reading import TOML_LIMIT, csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.certificate import Certificate
    from fedaccord.mechanisms.comparison import MechanismComparison
    from fedaccord.repeated.match import Match
    from fedaccord.summaries.alternatives import Alternatives
    from fedaccord.summaries.demo import Story
    from fedaccord.summaries.match import Account
    from fedaccord.training.comparison import Comparison
    from fedaccord.trials.trial import Trial


_NAMED_FILE = re.compile(r"""^[ \t]*(?:clients|curve)[ \t]*=[ \t]*["']([^"'\n]+)""", re.MULTILINE)


def check_writable(*outputs: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse at once what could not be written later, or would overwrite an input."""
    read = {_real(path) for given in inputs if given for path in (given, *_named_in(given))}
    written: set[Path] = set()
    for path in outputs:
        target = path and _target(path)
        if path is None or target is None:
            continue
        if target in read:
            raise FedaccordError(
                f"{path}: is an input of this command and is not overwritten; choose another file"
            )
        if target in written:
            raise FedaccordError(f"{path}: is named for two outputs; choose another file for one")
        written.add(target)
        try:
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        except OSError as error:
            raise _cannot_write(path, error) from None


class _Output(NamedTuple):
    """A file to write, as it was named."""

    path: Path
    content: bytes | Iterable[bytes]
    private: bool
    seen: str | None
    """The fingerprint of the file when it was read, if it was."""


_waiting: ContextVar[list[_Output] | None] = ContextVar("_waiting", default=None)
"""What is to be written together, inside `all_or_none`."""


@contextmanager
def all_or_none() -> Iterator[None]:
    """Write the files of this block at its end: none gets its name before all are complete."""
    outputs: list[_Output] = []
    token = _waiting.set(outputs)
    try:
        yield
    finally:
        _waiting.reset(token)
    _write(outputs)


def write_file(
    path: Path,
    content: str | bytes | Iterable[bytes],
    *,
    private: bool = False,
    seen: str | None = None,
) -> None:
    """Write a file, completely or not at all; only its owner can read a private one.

    Content that is an iterable of parts need not fit into memory. With `seen`, its fingerprint when
    it was read, a file that is another one by now is refused.
    """
    data = content.encode() if isinstance(content, str) else content
    output, waiting = _Output(path, data, private, seen), _waiting.get()
    if waiting is None:
        _write([output])
    else:
        waiting.append(output)


def rewrite_file(path: Path, change: Callable[[], bytes]) -> bytes:
    """Change a file as it is at the moment of writing; returns what was written.

    `change` reads it, again if somebody else wrote it meanwhile.
    """
    target = _target(path)
    if target is None:  # a device or a pipe
        content = change()
        write_file(path, content)
        return content
    try:
        return rewrite(target, change)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _write(outputs: Iterable[_Output]) -> None:
    """Write files under their names; what goes into devices and pipes comes last."""
    files, seen, named = list[WholeFile](), dict[Path, str](), dict[str, Path]()
    devices = list[_Output]()
    for one in outputs:
        target = _target(one.path)
        if target is None:
            devices.append(one)
            continue
        parts = [one.content] if isinstance(one.content, bytes) else one.content
        files.append(WholeFile(target, parts, one.private))
        named[str(target)] = one.path
        if one.seen is not None:
            seen[target] = one.seen
    try:
        write_together(files, seen)
    except OSError as error:
        path = named.get(str(error.filename), files[0].path)
        raise _cannot_write(path, error) from None
    for path, content, *_ in devices:
        try:
            with path.open("wb") as device:
                device.writelines([content] if isinstance(content, bytes) else content)
        except OSError as error:
            raise _cannot_write(path, error) from None


def _target(path: Path) -> Path | None:
    """The file to write, with links resolved; None for a device or a pipe, to write into."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return _real(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    if stat.S_ISDIR(mode):
        raise FedaccordError(f"{path}: is a directory, not a file")
    if not stat.S_ISREG(mode):
        return None
    if not os.access(path, os.W_OK):  # replacing it would succeed nevertheless
        raise FedaccordError(f"{path}: cannot be written: it is write-protected")
    return _real(path)


def _real(path: Path) -> Path:
    """Where a path leads; unlike `Path.resolve`, this accepts links that lead nowhere."""
    return Path(os.path.realpath(path))


def _named_in(path: Path) -> list[Path]:
    """The client table and the curves that a consortium file names."""
    if path.suffix != ".toml":
        return []
    try:
        # reading a pipe would drain it
        if not path.is_file() or path.stat().st_size > TOML_LIMIT:
            return []
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return []  # reported when it is loaded
    return [path.parent / name for name in _NAMED_FILE.findall(text)]


def _cannot_write(path: Path, error: OSError) -> FedaccordError:
    return FedaccordError(f"{path}: cannot be written: {error.strerror or error}")


def write_report(
    path: Path,
    certificate: "Certificate",
    alternatives: "Alternatives | None" = None,
    comparison: "Trial | None" = None,
    *,
    source: Path | None = None,
) -> None:
    """Write the HTML page about an agreement; `source` is the file of the consortium."""
    from fedaccord.files.provenance import provenance_of
    from fedaccord.report import Origin, render_report

    with working("Writing the report"):
        today = date.today().isoformat()
        origin = Origin(today, None if source is None else provenance_of(source))
        write_file(path, render_report(certificate, alternatives, comparison, origin))


def write_demo(path: Path, story: "Story") -> None:
    """Write the HTML page of the demo."""
    from fedaccord.report import render_demo

    with working("Writing the report"):
        write_file(path, render_demo(story))


def write_account(path: Path, account: "Account") -> None:
    """Write the HTML page about a match."""
    from fedaccord.report import render_account

    with working("Writing the report"):
        write_file(path, render_account(account))


def write_training(path: Path, comparison: "Trial") -> None:
    """Write the HTML page about a training."""
    from fedaccord.report import render_training

    with working("Writing the report"):
        write_file(path, render_training(comparison))


def write_runs(path: Path, comparison: "Comparison") -> None:
    """Write every round of every run as CSV, with those of clients on their own."""
    rows = (
        (run.profile, run.seed, slot.slot, slot.phase, total, k, score.loss, score.accuracy, client)
        for run in comparison.runs
        for slot in run.slots
        for client, total, scores in [
            ("", slot.total, slot.rounds),
            *((record.name, record.total, record.rounds) for record in slot.alone),
        ]
        for k, score in enumerate(scores, start=1)
    )
    columns = ["profile", "seed", "slot", "phase", "total", "round", "loss", "accuracy", "alone"]
    write_csv(path, columns, rows)


def write_slots(path: Path, match: "Match") -> None:
    """Write a match as CSV, slot by slot."""
    out = ["; ".join(names) for names in match.names_out or [[]] * match.slots]
    rows = enumerate(zip(match.phases, match.totals.tolist(), out, strict=True), start=1)
    write_csv(path, ["slot", "phase", "total", "suspended"], ((slot, *row) for slot, row in rows))


def write_profile(path: Path, agreement: "Agreement") -> None:
    """Write the profile as CSV, which `fedaccord certify` reads."""
    names, amounts = agreement.consortium.names, agreement.profile.tolist()
    write_csv(path, ["name", "contribution"], zip(names, amounts, strict=True))


def write_csv(path: Path, columns: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Write a table as CSV."""
    write_file(path, csv_text(columns, rows))


_INDENTED = 1000
"""Largest number of clients (or slots) for which JSON is indented: Python indents slowly."""


def to_json(record: dict[str, Any], length: int) -> str:
    """The record as strict JSON, indented unless it is long."""
    indent = 2 if length <= _INDENTED else None
    return json.dumps(record, indent=indent, allow_nan=False)


def check_picture(picture: Path | None, flag: str = "--picture") -> None:
    """Refuse a picture in a form that cannot be drawn."""
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"{flag}: {picture} must end in .png, .svg or .pdf")


def write_picture(picture: Path, figure: "Figure") -> None:
    """Write a figure in the form that the file's name says."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=picture.suffix[1:], dpi=150)
    write_file(picture, drawn.getvalue())


def certificate_record(certificate: "Certificate") -> dict[str, Any]:
    """What `certify` prints."""
    from fedaccord.agreement.worth import worth

    consortium = certificate.agreement.consortium
    return {
        "consortium": consortium.to_dict(),
        "certificate": certificate.to_dict(),
        "law": consortium.law.to_dict(),
        "worth": worth(certificate).to_dict(),
    }


def match_record(
    account: "Account", certificate: "Certificate", exists_from: float | None
) -> dict[str, Any]:
    """What `play` prints."""
    from fedaccord.agreement.solution import agreement_record

    return {
        "agreement": agreement_record(certificate, exists_from),
        **account.match.to_dict(),
        "shortest_punishment": account.shortest_punishment,
    }


def comparison_record(comparison: "MechanismComparison", trial: "Trial | None") -> dict[str, Any]:
    """What `compare` prints, with what was measured if it trained."""
    nothing: dict[str, Any] = {"accuracy": None, "clients": []}
    scores = {} if trial is None else {score.profile: score.to_dict() for score in trial.scores}
    record = comparison.to_dict() | {
        "measure": None if trial is None else trial.measure,
        "optimiser": None if trial is None else trial.course.optimiser,
        "alone": scores.get("alone", nothing)["clients"],
    }
    for mechanism in record["mechanisms"]:
        score = scores.get(mechanism["name"], nothing)
        mechanism |= {field: score[field] for field in nothing}
    return record
