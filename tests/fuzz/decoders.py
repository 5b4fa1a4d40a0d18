"""Everything that reads what somebody else wrote, behind one function of bytes."""

import json
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedaccord.audits.attestation import Attested, verify_notary
from fedaccord.audits.trace import Trace
from fedaccord.cli.audit_files import read_digests, read_submission
from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import START, Fact
from fedaccord.ledger.lines import from_lines
from fedaccord.protocol import facts, guards, notes
from fedaccord.protocol.envelopes import Ask, Reply, read_question
from fedaccord.protocol.messages import AskedReport
from fedaccord.protocol.receiving import read_late, read_signed
from fedaccord.protocol.roster import Roster, Signer
from fedaccord.protocol.terms import read_terms
from fedaccord.protocol.trusted import load_trusted
from fedaccord.signed.file import read_agreement_file
from fedaccord.signing.keys import is_signed, load_key
from tests.flower.consortia import key_of
from tests.flower.stories import SIGNED

_FILE = Path(tempfile.gettempdir(), "fedaccord-fuzz")


class _Nothing(Exception):
    """There is nothing to decode: the bytes are not even JSON or TOML."""


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _Nothing from None
    return value if isinstance(value, dict) else {"value": value}


def _question(data: bytes) -> None:
    read_question(_json(data), SIGNED)


def _fact(data: bytes) -> None:
    body = _json(data)
    facts.read_fact(Fact(str(body.pop("kind", "report")), 1, "a", body))


def _note(data: bytes) -> None:
    body = _json(data)
    notes.read_note(Fact(str(body.pop("kind", "signed")), 1, "a", body))


def _reply(data: bytes) -> None:
    """An answer to the question that every client is asked first, with a signature or without."""
    roster = Roster.of(SIGNED)
    assert roster is not None
    content = AskedReport(phase="cooperating", suspended={}, returned=[])
    ask = Ask("report", 1, 0, START, {"a": content}, signer=Signer(roster, key_of("the server")))
    place = {"stage": "report", "slot": 1, "turn": 0, "token": ask.token("a")}
    body = _json(data) | place

    def read(name: str, reply: Reply) -> None:
        report = guards.read_report(reply.body)
        read_late(ask, name, reply.body)
        read_signed(ask, name, reply.body, report.body)

    guards.take_replies(ask, [Reply(1, "a", body)], read)


def _terms(data: bytes) -> None:
    try:
        given = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        raise _Nothing from None
    read_terms(given, "terms.toml")


def _keys(data: bytes) -> None:
    keys = read_terms(SIGNED.model_dump(mode="json") | {"keys": _json(data)}, "terms.toml").keys
    assert keys is not None
    is_signed(keys.server, "0" * 128, data)


def _lines(data: bytes) -> None:
    _FILE.with_suffix(".jsonl").write_bytes(data)
    for _ in from_lines(_FILE.with_suffix(".jsonl")):
        pass


def _key_file(data: bytes) -> None:
    _FILE.with_suffix(".key").write_bytes(data)
    load_key(_FILE.with_suffix(".key"))


def _agreement(data: bytes) -> None:
    """The three parts of an agreement file, each of them anything."""
    read_agreement_file(data)


def _checkpoint(data: bytes) -> None:
    _FILE.with_suffix(".checkpoint").write_bytes(data)
    load_trusted(_FILE.with_suffix(".checkpoint"))


def _submission(data: bytes) -> None:
    _FILE.with_suffix(".json").write_bytes(data)
    read_submission(_FILE.with_suffix(".json"))


def _digests(data: bytes) -> None:
    _FILE.with_suffix(".json").write_bytes(data)
    read_digests(_FILE.with_suffix(".json"))


def _notary(data: bytes) -> None:
    what = Attested("test", "a", 1, "0" * 64)
    verify_notary(what, data, {"key": key_of("a notary").public})


def _trace(data: bytes) -> None:
    folder = _FILE.with_suffix(".trace")
    folder.mkdir(exist_ok=True)
    (folder / "slot-1.jsonl").write_bytes(data)
    trace = Trace(folder)
    for one in trace.rounds(1):
        trace.find(1, one.turn)


DECODERS: tuple[Callable[[bytes], None], ...] = (
    *(_question, _fact, _note, _reply, _terms, _keys, _lines, _key_file),
    *(_agreement, _checkpoint, _submission, _digests, _notary, _trace),
)


def decode(data: bytes) -> None:
    """Give the bytes after the first to the decoder that the first one names.

    It reads them, or says what is wrong with them in an error of ours.
    """
    if data:
        with suppress(FedaccordError, _Nothing):
            DECODERS[data[0] % len(DECODERS)](data[1:])
