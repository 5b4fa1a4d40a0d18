"""Ledgers with any content are verified, or rejected with messages that a terminal can show.

The seeds are fixed, so every run tries the same ledgers. Add any that causes a failure here.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.ledger.lines import to_line
from fedaccord.protocol.comparison import compare_copies
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import look_over_copy, wrong_in
from fedaccord.signing.canonical import canonical
from tests.flower.consortia import NOON
from tests.flower.stories import SIGNED, SUSPENDING, TERMS, told
from tests.protocol.postings import unreported
from tests.protocol.test_bad_ledger import command, content, with_text

pytestmark = pytest.mark.slow

FORGERIES, DAMAGES = 300, 100
"""For each kind and punishment; all of them take about a minute."""
SEED = 11

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 7, 10**6, 2**63, 10**30, 10**400, 0.5, -0.5, 1e-300, 1e300),
    *("", "a", "b", "z", "train", "x" * 5_000, "\x1b[2J", "\u202e", "0" * 64, "agreement"),
    *([], {}, [1], ["a", "b"], [[]], {"a": 1}, [None] * 50, [3, "0" * 64], {"": {"": []}}),
]
WORDS = [
    *(b"", b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\n", b"\r", b"\0", b"\xff", b"\x1b"),
    *(b"NaN", b"Infinity", b"-0", b"1e999", b"9" * 4_301, b"[" * 3_000, b'{"a":' * 300, b"null"),
    *(b"\\ud800", b"\xe2\x80\xae", b'"number": 1, ', b"true", b"  ", b"\xed\xa0\x80"),
]

KEPT: list[tuple[int, dict[str, Any]]] = [
    (0, {"terms": {}}),
    (0, {"terms": {"clients": [["a"]]}}),
    (3, {"ratio": 10**400, "samples": 1}),
    (3, {"ratio": 1e300, "samples": 40}),
]
"""Entries of the server's ledger by index, and bodies to replace theirs with."""


IN_TIERS = unreported("serial clock", ("a", "b", "c"), clock_steps=4)


KINDS = [TERMS, SUSPENDING, IN_TIERS, SIGNED]


@pytest.fixture(scope="module", params=KINDS, ids=lambda it: it.agreement)
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slot in which b slips and the next one, with a's and c's copies."""
    folder = tmp_path_factory.mktemp("ledger")
    entries, clients = told(folder / "ledger.db", slots=2, terms=request.param)
    written = {"server": entries, **{name: clients.copies[name].written for name in "ac"}}
    for name, story in written.items():
        (folder / f"{name}.jsonl").write_text("".join(to_line(entry) + "\n" for entry in story))
    return folder


def stories(folder: Path) -> tuple[list[Entry], list[Entry], list[Entry]]:
    from fedaccord.ledger.lines import load_entries

    server, a, c = (load_entries(str(folder / f"{name}.jsonl")) for name in ("server", "a", "c"))
    return server, a, c


# --- Intact chains with false content ------------------------------------------------------


def changed(value: Any, rng: random.Random) -> Any:
    """The value replaced by something else, or with something within it replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        turn = rng.random()
        if turn < 0.1:
            return rest
        if turn < 0.2:
            return value | {rng.choice(["note", "", "turn", "\x1b"]): rng.choice(VALUES)}
        return rest | {key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.5:
        place = rng.randrange(len(value))
        return [*value[:place], changed(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int | float) and rng.random() < 0.3:
        return rng.choice([value + 1, value - 1, -value, value * 2, float(value)])
    return rng.choice(VALUES)


def forged(facts: list[Fact], rng: random.Random) -> list[Fact]:
    """The facts with one of them changed, removed, repeated or moved."""
    facts, place = list(facts), rng.randrange(len(facts))
    fact, turn = facts[place], rng.random()
    if turn < 0.7:
        facts[place] = fact._replace(body=as_body(changed(dict(fact.body), rng)))
    elif turn < 0.8:
        other = {"kind": "fault", "slot": rng.choice([0, 1, 2, 3]), "client": rng.choice("abz")}
        field = rng.choice(list(other))
        facts[place] = fact._replace(**{field: other[field]})  # type: ignore[arg-type]
    elif turn < 0.87:
        del facts[place]
    elif turn < 0.94:
        facts.insert(rng.randrange(len(facts)), fact)
    else:
        facts[place], facts[place - 1] = facts[place - 1], facts[place]
    return facts


def as_body(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def chains(facts: list[Fact]) -> Iterator[list[Entry]]:
    """First the stored cases, then as many random ones as the budget allows."""
    for place, body in KEPT:
        if place < len(facts):
            kept = [*facts]
            kept[place] = kept[place]._replace(body=body)
            yield list(extend(START, kept, NOON))
    rng = random.Random(SEED)
    for _ in range(FORGERIES):
        yield list(extend(START, forged(facts, rng), NOON))


def sentences(problems: list[str]) -> bool:
    return all(problem and "\n" not in problem and len(problem) < 1_000 for problem in problems)


def test_any_server_ledger_is_verified_or_rejected(ledger: Path) -> None:
    """At most one problem is reported for a ledger, and most forgeries are found."""
    server, _, _ = stories(ledger)
    facts, found = [entry.fact for entry in server], 0
    for chain in chains(facts):
        problems = wrong_in(chain)
        assert len(problems) <= 1
        assert sentences(problems), problems
        found += len(problems)
    assert found > 0.9 * FORGERIES  # the rest are numbers that a client might have reported


def test_any_copy_is_verified_or_rejected(ledger: Path) -> None:
    server, a, c = stories(ledger)
    facts, unlike = [entry.fact for entry in a], 0
    for chain in chains(facts):
        assert sentences(look_over_copy(chain).problems)
        assert sentences(contradictions(server, chain))
        if not look_over_copy(chain).problems:
            unlike += bool(compare_copies([chain, c]).contradictions)
    assert unlike > 0


# --- Files ---------------------------------------------------------------------------------


def damaged(original: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, inserted or removed; or a meaningful word put in."""
    place, length = rng.randrange(len(original)), rng.choice([0, 1, 1, 2, 5, 40])
    turn = rng.random()
    if turn < 0.5:
        new = bytes([original[place] ^ (1 << rng.randrange(8))])
        length = 1
    elif turn < 0.8:
        new = rng.choice(WORDS)
    else:
        new = rng.randbytes(rng.randrange(6))
    return original[:place] + new + original[place + length :]


def judged(path: Path, spoil: Callable[[bytes, random.Random], bytes]) -> None:
    """Accepted only if nothing relevant changed; no unexpected error, whatever the file."""
    before, original = content(path), path.read_bytes()
    rng = random.Random(SEED)
    others = [str(path.parent / "a.jsonl"), str(path.parent / "c.jsonl")]
    try:
        for _ in range(DAMAGES):
            path.write_bytes(spoil(original, rng))
            result = command("verify", str(path))
            assert result.exit_code in (0, 1, 2)
            assert result.exit_code != 0 or content(path) == before
            assert result.output.replace("\n", "").isprintable()
            for words in (
                ("show", str(path), "--last", "3"),
                ("verify", others[0], "--against", str(path)),
                ("compare", str(path), others[1]),
            ):
                if rng.random() < 0.1:
                    assert command(*words).exit_code in (0, 1, 2)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("name", ["ledger.db", "server.jsonl", "a.jsonl"])
def test_any_file_is_verified_or_rejected(name: str, ledger: Path) -> None:
    judged(ledger / name, damaged)


def test_any_text_with_a_correct_digest_is_verified_or_rejected(ledger: Path) -> None:
    """Words within an entry's text, in a line of the form that export writes."""
    server, _, _ = stories(ledger)
    rng = random.Random(SEED)
    path = ledger / "text.jsonl"
    for _ in range(DAMAGES):
        place = rng.randrange(len(server))
        text = damaged(server[place].text.encode(), rng).decode("utf-8", "replace")
        entries, head = server[:place], server[place].previous
        forged_entry = with_text(server[place]._replace(previous=head), text)
        rest = [entry.fact for entry in server[place + 1 :]]
        entries = [*entries, forged_entry, *extend(forged_entry.head, rest, NOON)]
        path.write_text("".join(to_line(entry) + "\n" for entry in entries), newline="\n")
        code = command("verify", str(path)).exit_code
        assert code == 1 or canonical(forged_entry.body) == text
