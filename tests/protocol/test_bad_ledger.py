"""A ledger that somebody wrote by hand: whatever no server of ours writes is refused."""

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from typer.main import get_command

from benchmarks.measure import peak_memory
from fedaccord.checks import escaped
from fedaccord.cli import app
from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import START, Entry, Fact, broken_links, extend
from fedaccord.ledger.lines import load_entries, read, to_line
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import digest, from_bytes, to_bytes
from fedaccord.protocol.reasons import Reason, reason_of
from fedaccord.protocol.verification import look_over_copy, wrong_in
from fedaccord.signing.canonical import canonical
from tests.flower.consortia import NOON, START_MODEL, Clients, ledger_at, privates_of, run
from tests.flower.stories import NAMES, TERMS, inserted, instead, rewritten, told
from tests.lies import lie


def command(*words: str) -> Result:
    """What becomes of `fedaccord ledger ...`; an error that nobody foresaw is raised."""
    result = CliRunner().invoke(get_command(app), ["ledger", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def with_text(entry: Entry, text: str) -> Entry:
    """The same entry with another text, and the digest that belongs to it."""
    content = entry._replace(text=text)[:-1]
    return Entry(*content, digest=hashlib.sha256(canonical(list(content)).encode()).hexdigest())


# --- One way to write an entry down --------------------------------------------------------


@lie(
    "whoever has the file",
    "write an entry that readers understand differently (duplicate keys, NaN, other spellings)",
    "there is one canonical form, and verify rejects all others",
)
@pytest.mark.parametrize(
    "text",
    [
        '{"phase":"punishing","phase":"cooperating"}',
        '{"phase": "cooperating"}',
        '{"phase":"cooperating"} ',
        '{"phase":"c\\u006foperating"}',
        '{"phase":NaN}',
        '{"phase":-Infinity}',
        '{"phase":1e400}',
        '{"phase":1.0e0}',
        '{"phase":1E0}',
        '{"phase":-0}',
        '{"phase":"\\ud800"}',
        '{"slots":1,"phase":"cooperating"}',
    ],
)
def test_a_text_that_is_not_in_canonical_form_is_refused(text: str, tmp_path: Path) -> None:
    (entry,) = extend(START, [Fact("slot", 1, None, {"phase": "cooperating"})], NOON)
    forged = with_text(entry, text)
    assert broken_links([forged]) == ["entry 1 is not an entry: its text is not in canonical form"]
    lines = tmp_path / "ledger.jsonl"
    lines.write_text(to_line(forged) + "\n")
    assert command("verify", str(lines)).exit_code == 1
    assert command("show", str(lines)).exit_code == 2


def test_a_text_with_very_many_levels_is_refused() -> None:
    (entry,) = extend(START, [Fact("slot", 1, None, {})], NOON)
    for depth in (12, 300, 700):
        text = '{"a":' * depth + "1" + "}" * depth
        (problem,) = broken_links([with_text(entry, text)])
        assert problem.startswith("entry 1 is not an entry: its text is ")


@lie(
    "whoever has the file",
    "put a second value for a key into a line of an exported ledger, or more keys",
    "a line must be as export writes it",
)
def test_a_line_that_export_would_not_write_is_refused(
    story: tuple[list[Entry], Clients], tmp_path: Path
) -> None:
    lines = [to_line(entry) for entry in story[0]]
    lines[20] = lines[20].replace('{"number"', '{"kind": "report", "number"')
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    result = command("verify", str(path))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "line 21 is not as export writes it" in result.stderr


# --- What an entry holds -------------------------------------------------------------------


def more(kind: str, client: str | None = None) -> Callable[[Fact], Fact]:
    return instead(kind, 1, client, note="see page 2")


@lie(
    "the server",
    "write additional keys into an entry",
    "verify knows the keys of every kind of entry",
)
@pytest.mark.parametrize(
    "forge",
    [
        instead("terms", 0, note=1),
        instead("model", 0, note=1),
        *map(more, ("slot", "agreement", "basis", "round", "settlement", "told")),
        *(more(k, "a") for k in ("report", "rank", "offer", "answer", "contribution", "verdict")),
    ],
)
def test_an_unknown_key_is_refused(
    forge: Callable[[Fact], Fact], story: tuple[list[Entry], Clients]
) -> None:
    forged = rewritten(story[0], forge)
    assert broken_links(forged) == []
    assert len(wrong_in(forged)) == 1


@lie(
    "the server",
    "write a value of the wrong type or out of range, which is later read as something else",
    "verify knows the form of every value",
)
@pytest.mark.parametrize(
    "forge",
    [
        instead("round", 1, averaged=1),
        instead("round", 1, model="x"),
        instead("round", 1, model="A" * 64),
        instead("contribution", 1, "a", update="not a digest"),
        instead("contribution", 1, "a", norm="1"),
        instead("model", 0, model=None),
        instead("terms", 0, format=1),
        instead("terms", 0, format=2.0),
        instead("report", 1, "a", discount_factor=None),
        instead("report", 1, "a", ratio=10**4),
        instead("report", 1, "a", client="a"),
        instead("contribution", 1, "a", norm=1),
        instead("agreement", 1, exists=1),
        instead("agreement", 1, reason="because"),
        instead("told", 1, clients=["a", "a", "b", "c"]),
        instead("told", 1, clients=["c", "b", "a"]),
        lambda fact: fact._replace(client="a") if fact.kind == "round" else fact,
        lambda fact: fact._replace(client="a") if fact.kind == "told" else fact,
        lambda fact: fact._replace(client="a") if fact.kind == "terms" else fact,
        lambda fact: fact._replace(client=None) if fact.kind == "report" else fact,
    ],
)
def test_a_value_of_another_form_is_refused(
    forge: Callable[[Fact], Fact], story: tuple[list[Entry], Clients]
) -> None:
    forged = rewritten(story[0], forge)
    assert broken_links(forged) == []
    assert len(wrong_in(forged)) == 1


@lie(
    "whoever has the file",
    "backdate entries, or give them invalid times",
    "times have one form and never go back, even if the server's clock is set back",
)
@pytest.mark.parametrize(
    ("at", "problem"),
    [
        ("2024-12-31T23:59:59+00:00", "entry 3 has an earlier time than the entry before it"),
        ("yesterday", "entry 3 has no time in UTC"),
        ("2025-13-01T12:00:00+00:00", "entry 3 has no time in UTC"),
        ("2025-01-01T12:00:01+02:00", "entry 3 has no time in UTC"),
        ("2025-01-01 12:00:01+00:00", "entry 3 has no time in UTC"),
    ],
)
def test_a_time_that_goes_back_is_refused(
    at: str, problem: str, story: tuple[list[Entry], Clients]
) -> None:
    facts = [entry.fact for entry in story[0]]
    first = list(extend(START, facts[:2], NOON))
    forged = [*first, *extend(first[-1].head, facts[2:], at)]
    (found,) = wrong_in(forged)
    assert found.startswith(problem)


@pytest.mark.slow
def test_a_clock_that_is_set_back_does_not_break_the_ledger(tmp_path: Path) -> None:
    times = iter(["2025-01-01T12:00:00+00:00", "2024-06-01T12:00:00+00:00", NOON])
    clients = Clients(TERMS, privates_of(NAMES))
    with open_ledger(tmp_path / "ledger.db", clock=lambda: next(times, NOON)) as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 1)
    with open_ledger(tmp_path / "ledger.db", clock=lambda: "2020-01-01T00:00:00+00:00") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 2)
        assert wrong_in(ledger.entries()) == []


# --- Faults --------------------------------------------------------------------------------


def fault(client: str | None, **content: Any) -> Fact:
    body = {"stage": "train", "turn": 1, "reason": str(Reason.NO_CONTENT)}
    return Fact("fault", 1, client, body | content)


def in_training(*facts: Fact) -> Callable[[Fact], list[Fact]]:
    """Put before what c contributes in the first round."""
    return inserted(*facts, after="contribution", slot=1, client="b")


@lie(
    "the server",
    "make up a fault, to discredit a client",
    "verify knows every reason, and which client and question it can concern",
)
@pytest.mark.parametrize(
    "wrong",
    [
        fault("c", reason="is a fraud"),
        fault("c", reason="samples is above all measure"),
        fault("c", reason=""),
        fault("z"),
        fault("c", stage="report", turn=0),
        fault("c", turn=2),
        fault("c", node=7),
        fault("c", samples=1),
        fault("c", norm=1.0, samples=1),
        fault("c", reason=str(Reason.TOO_LONG)),
        fault("c", reason=str(Reason.NOT_ASKED)),
        fault("c", reason=str(Reason.NOBODYS_NODE)),
        fault("a"),  # who has answered
        fault(None),
        fault(None, node=7),
        fault(None, node=7, reason=Reason.SEVERAL_NODES.format(client="z")),
        fault(None, node=-1, reason=str(Reason.UNKNOWN_NODE)),
        fault(None, reason=str(Reason.UNKNOWN_NODE)),
        fault("c", note="more"),
        fault("c")._replace(slot=2),
    ],
)
def test_a_made_up_fault_is_refused(wrong: Fact, story: tuple[list[Entry], Clients]) -> None:
    forged = rewritten(story[0], in_training(wrong))
    assert len(forged) == len(story[0]) + 1
    (problem,) = wrong_in(forged)
    assert "(fault of slot " in problem


@pytest.mark.parametrize(
    "right",
    [
        fault("c"),
        fault("c", reason=str(Reason.DUPLICATE)),
        fault("c", reason=Reason.ABOVE.format(field="samples", most=60)),
        fault(None, node=7, reason=str(Reason.UNKNOWN_NODE)),
        fault(None, node=7, reason=Reason.SEVERAL_NODES.format(client="a")),
    ],
)
def test_a_fault_that_may_have_been_is_not_refused(
    right: Fact, story: tuple[list[Entry], Clients]
) -> None:
    assert wrong_in(rewritten(story[0], in_training(right))) == []


def test_a_fault_that_does_not_fit_the_answer_is_refused(tmp_path: Path) -> None:
    """A duplicate of one who was absent; an update that was taken though it was too long."""
    clients = Clients(TERMS, privates_of(NAMES))
    clients.away = {"c"}
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 1)
        away = list(ledger.entries())
    twice = Fact("fault", 1, "c", {"stage": "report", "turn": 0, "reason": str(Reason.DUPLICATE)})
    (problem,) = wrong_in(rewritten(away, inserted(twice, after="report", slot=1, client="b")))
    assert problem.endswith("does not fit what was refused of this client")
    entries, _ = told(tmp_path / "other.db")
    long = fault("c", reason=str(Reason.TOO_LONG), samples=1, norm=1e9)
    (problem,) = wrong_in(rewritten(entries, in_training(long)))
    assert problem.endswith("does not fit what was refused of this client")


def test_every_reason_is_recognised_and_unique() -> None:
    values: dict[str, Any] = {
        "code": 3,
        "client": "a",
        "place": "turn",
        "field": "samples",
        "least": "1e-100",
        "most": 40,
        "name": "weight.0",
        "type": "float32",
        "shape": (2, 3),
        "wanted_type": "<f4",
        "wanted_shape": (),
    }
    for reason in Reason:
        assert reason_of(reason.format(**values)) is not None
        assert reason_of(reason.format(**values))[0] is reason  # type: ignore[index]


# --- A client's copy -----------------------------------------------------------------------


@lie(
    "whoever has the file",
    "change a client's copy: additional keys, another client, older heads of the server's ledger",
    "verify knows what a client writes",
)
@pytest.mark.parametrize(
    "forge",
    [
        instead("rank", 1, note=1),
        instead("settlement", 1, verdict="guilty"),
        instead("contribution", 1, model="x"),
        instead("answer", 1, ledger=[1, "0" * 64]),
        instead("answer", 1, ledger=[10, "0" * 64]),
        instead("report", 2, ledger="garbage"),
        lambda fact: fact._replace(client="b") if fact.kind == "rank" else fact,
        lambda fact: fact._replace(slot=3) if fact.slot == 1 else fact,
        lambda fact: fact._replace(kind="verdict") if fact.kind == "rank" else fact,
    ],
)
def test_notes_that_no_client_writes_are_rejected(
    forge: Callable[[Fact], Fact], story: tuple[list[Entry], Clients]
) -> None:
    copy = story[1].copies["a"].written
    assert look_over_copy(copy).problems == []
    forged = rewritten(copy, forge)
    assert broken_links(forged) == []
    assert len(look_over_copy(forged).problems) == 1


# --- What is shown -------------------------------------------------------------------------

EVIL = "\x1b[2J\x1b]0;pwned\x07\u202egnp.exe\u200b\x9b31m\r\n\u2028"


@lie(
    "whoever has the file",
    "put control characters into a ledger, to rewrite a reader's terminal",
    "show, verify and all errors escape what cannot be printed",
)
@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_control_characters_are_escaped(options: list[str], tmp_path: Path) -> None:
    facts = [
        Fact("terms", 0, None, {"terms": EVIL}),
        Fact(f"kind{EVIL}", 1, f"name{EVIL}", {f"key{EVIL}": [EVIL, {EVIL: EVIL}]}),
    ]
    lines = tmp_path / "ledger.jsonl"
    lines.write_text("".join(to_line(entry) + "\n" for entry in extend(START, facts, NOON)))
    outputs = [
        command("show", str(lines), *options),
        command("verify", str(lines), *options),
        command("show", str(lines), "--client", "nobody", *options),
    ]
    assert [result.exit_code for result in outputs] == [0, 1, 2]
    for result in outputs:
        assert result.output.replace("\n", "").isprintable()
    shown = outputs[0].output
    if options:
        assert json.loads(shown)[1]["client"] == f"name{EVIL}"
    else:
        assert "\\x1b[2J" in shown.replace("\n", "").replace(" ", "")
    assert EVIL not in escaped(EVIL)


# --- Models --------------------------------------------------------------------------------


def compressed(megabytes: int) -> bytes:
    file = BytesIO()
    np.savez_compressed(file, w=np.zeros(megabytes << 18, np.float32))
    return file.getvalue()


@pytest.mark.slow
@lie(
    "whoever has the file",
    "store a small compressed model with a ledger, to fill a reader's memory",
    "models are stored uncompressed, and one that would grow is rejected before it is unpacked",
)
def test_a_compressed_model_is_refused_before_it_is_inflated(
    story: tuple[list[Entry], Clients],
) -> None:
    bomb = compressed(1_000)
    assert len(bomb) < 2_000_000
    before = peak_memory()
    with pytest.raises(FedaccordError, match="it is compressed"):
        from_bytes(bomb)
    assert peak_memory() - before < 500e6


def test_a_model_whose_directory_lies_is_refused() -> None:
    """One stretch of bytes that stands in the directory as many parameters."""
    model = to_bytes({"w": np.ones(1_000)})
    start = model.index(b"PK\x01\x02")
    end = model.index(b"PK\x05\x06")
    record = model[start:end]
    many = b"".join(record.replace(b"w.npy", b"%c.npy" % letter) for letter in range(65, 91))
    tail = bytearray(model[end:])
    tail[8:12] = (26).to_bytes(2, "little") * 2
    tail[12:16] = len(many).to_bytes(4, "little")
    with pytest.raises(FedaccordError, match="its size is not the one"):
        from_bytes(model[:start] + many + bytes(tail))
    assert from_bytes(model)["w"].sum() == 1_000


# --- Flipped bytes -------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    clients = Clients(TERMS, [replace(p) for p in privates_of(NAMES)])
    with ledger_at(path) as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 1)
    return path


def content(path: Path) -> Any:
    """All that matters in a ledger, as any reader gets it; None if it cannot be read."""
    try:
        with read(str(path)) as ledger:
            models = [(m.number, digest(from_bytes(m.parameters))) for m in ledger.models or ()]
            return list(ledger.entries()), models
    except FedaccordError:
        return None


@pytest.mark.slow
@lie(
    "whoever has the file",
    "flip a byte anywhere in a database (including its indexes) or an exported file",
    "the chain, the models or SQLite's own check of its pages and indexes reveals it",
)
@pytest.mark.parametrize("form", ["db", "jsonl"])
def test_a_flipped_byte_is_found_or_does_not_matter(form: str, small: Path, tmp_path: Path) -> None:
    path = small
    if form == "jsonl":
        path = tmp_path / "ledger.jsonl"
        path.write_text("".join(to_line(entry) + "\n" for entry in load_entries(str(small))))
    before, original = content(path), path.read_bytes()
    assert command("verify", str(path)).exit_code == 0
    rng = random.Random(7)
    for _ in range(50):
        place, bit = rng.randrange(len(original)), 1 << rng.randrange(8)
        path.write_bytes(original[:place] + bytes([original[place] ^ bit]) + original[place + 1 :])
        code = command("verify", str(path)).exit_code  # and never an error of ours
        assert code in (0, 1, 2)
        assert code != 0 or content(path) == before, place


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (b"CREATE TRIGGER", b"CREATE TR\xb6GGER"),
        (b"CREATE INDEX", b"CREATE IN\xffEX"),
        (b"ledger_version", b"ledger_v\xe9rsion"),
        (b"PRIMARY KEY", b"PRIM\xb6RY KEY"),
    ],
)
def test_a_damaged_schema_is_a_sentence(text: bytes, other: bytes, small: Path) -> None:
    data = small.read_bytes()
    assert text in data
    for count in (1, -1):
        small.write_bytes(data.replace(text, other, count))
        result = command("verify", str(small))
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


@lie(
    "whoever has the file",
    "change only an index, so that a search finds other entries",
    "SQLite's own check of its indexes is part of verify",
)
def test_a_changed_index_is_found(small: Path) -> None:
    with closing(sqlite3.connect(small)) as raw:
        (root,) = raw.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_entries_kind'"
        ).fetchone()
        (size,) = raw.execute("PRAGMA page_size").fetchone()
    data = bytearray(small.read_bytes())
    place = data.index(b"verdict", (root - 1) * size, root * size)
    data[place : place + 7] = b"Verdict"
    small.write_bytes(bytes(data))
    result = command("verify", str(small))
    assert result.exit_code == 1
    assert "Wrong: the file is damaged: " in result.stdout


def test_replies_that_are_refused_are_verified(tmp_path: Path) -> None:
    """Whatever the guards write down, the verifier knows."""
    clients = Clients(TERMS, privates_of(NAMES))

    def spoilt(ask: Ask) -> list[Reply]:
        good = clients(ask)
        twice = [replace(reply) for reply in good[:1]]
        odd = [replace(reply, body=None) for reply in good[1:2]]
        return [*odd, *good, *twice, Reply(9, None, {}), Reply(8, None, problem=NODE)]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), spoilt, 2)
        assert wrong_in(ledger.entries()) == []
        assert {e.body["reason"] for e in ledger.entries(kind="fault")} == {
            "has no content",
            "is a duplicate",
            "comes from an unknown node",
            NODE,
        }


def test_an_update_that_is_too_long_and_comes_twice_is_verified(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def spoilt(ask: Ask) -> list[Reply]:
        *good, last = clients(ask)
        if ask.stage == "train" and last.parameters is not None:
            huge = {name: array + 1e9 for name, array in START_MODEL.items()}
            last = replace(last, parameters=huge)
        return [*good, last, last]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), spoilt, 1)
        assert wrong_in(ledger.entries()) == []
        reasons = [e.body["reason"] for e in ledger.entries(kind="fault") if e.client == "c"]
        assert {str(Reason.TOO_LONG), str(Reason.DUPLICATE)} <= set(reasons)


NODE = Reason.SEVERAL_NODES.format(client="a")
