"""A member's page after it joined: numbers, terms, data, node, copy, room."""

import io
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

from fedaccord.console.member import copy as copies
from fedaccord.console.member.room_client import MemberRoom, RoomTrouble
from fedaccord.console.member.terms import offer_in
from fedaccord.console.room import wire
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.founding import FoundingForm, read_form
from fedaccord.console.web.rehearsals import REHEARSALS, rehearsal_for
from fedaccord.data.dataset import datasets_here, load_dataset
from fedaccord.deployment.admission import SIGNATURES
from fedaccord.deployment.cards import TermsSignature, load_sent, load_signatures
from fedaccord.ledger.lines import read
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.training_terms import TrainingTerms
from fedaccord.signed.file import read_agreement_file
from fedaccord.signed.verification import verify_agreement
from tests.console.members import (
    NAMES,
    NUMBERS,
    Everyone,
    OpenRoom,
    enter,
    hidden,
    home_of,
    join,
    open_room,
    posted_terms,
    terms_of,
)
from tests.flower import consortia
from tests.lies import lie
from tests.protocol.postings import unreported


@pytest.fixture
def everyone(tmp_path: Path) -> Iterator[Everyone]:
    with open_room(tmp_path, terms_of()) as room:
        yield Everyone(room, tmp_path)


def propose(room: OpenRoom, **rules: object) -> None:
    """A new version, by the coordinator."""
    store = room.room.store
    now = store.snapshot()
    assert now.current is not None
    terms = now.current.terms.model_copy(update=rules)
    store.propose(terms_text(terms), Viewer("coordinator"), "a change", now.current.number)
    room.room.files.align()


# --- Numbers -------------------------------------------------------------------------------


@pytest.mark.slow
def test_numbers_are_changed_and_comments_stay(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    shown = page.get("/numbers")
    assert 'value="35.71"' in shown.text
    assert "your ratio, valuation / cost per sample = 754.968" in shown.text
    assert "that you have 119 samples" in shown.text
    path = home_of(page).directory / "client.toml"
    before = path.read_text("utf-8")
    answer = page.post("/numbers", data=NUMBERS | {"samples": "77", "tells": "true"})
    assert "Saved." in answer.text
    assert "your discount factor, 0.9137" in answer.text
    after = path.read_text("utf-8")
    assert after == before.replace("samples = 119", "samples = 77").replace(
        "tell_discount_factor = false", "tell_discount_factor = true"
    )
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_numbers_that_were_changed_since_they_were_shown_stay(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    path = home_of(page).directory / "client.toml"
    shown = page.get("/numbers").text
    seen = re.search(r'name="seen" value="(\w+)"', shown)
    assert seen is not None
    path.write_text(path.read_text("utf-8").replace("samples = ", "samples = 1"), "utf-8")
    before = path.read_text("utf-8")

    answer = page.post("/numbers", data=NUMBERS | {"samples": "77", "seen": seen[1]})

    assert answer.status_code == 409
    assert "Nothing was saved: your numbers were changed meanwhile" in answer.text
    assert path.read_text("utf-8") == before
    again = re.search(r'name="seen" value="(\w+)"', answer.text)
    assert again is not None
    page.post("/numbers", data=NUMBERS | {"samples": "77", "seen": again[1]})
    assert "samples = 77\n" in path.read_text("utf-8")


@pytest.mark.slow
def test_wrong_numbers_change_nothing(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    path = home_of(page).directory / "client.toml"
    before = path.read_bytes()
    answer = page.post("/numbers", data=NUMBERS | {"valuation": "1.234"})
    assert answer.status_code == 422
    assert "write 1.2340 or 1234" in answer.text
    assert path.read_bytes() == before


# --- Terms ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_everyone_reads_and_signs(everyone: Everyone) -> None:
    everyone.join_all()
    page = everyone.pages["St Mary"]
    shown = page.get("/terms").text
    assert "Alone, with a model of your own, you would train on 36 samples of your 119" in shown
    assert "It is never more than your 119 samples" in shown
    assert home_of(page).key.public in shown
    assert "<bdi>St Mary</bdi> (you)" in shown
    everyone.sign("St Mary")
    own = load_sent(home_of(page).directory / "signature.json")
    assert isinstance(own, TermsSignature)
    store = everyone.room.room.store
    assert store.snapshot().signed == ["St Mary"]
    assert "You signed the terms. Not yet: Northgate and Lakeside." in page.get("/").text
    everyone.sign("St Mary")  # again, which changes nothing
    assert store.snapshot().signed == ["St Mary"]
    everyone.sign("Northgate")
    everyone.sign("Lakeside")
    assert store.snapshot().complete
    assert "Everyone has signed it" in page.get("/terms").text
    assert "Everyone else has signed, too." in page.get("/").text


@pytest.mark.slow
def test_a_change_is_shown_in_words_and_signed_anew(everyone: Everyone) -> None:
    everyone.join_all()
    everyone.sign("St Mary")
    propose(everyone.room, punishment_slots=3)
    page = everyone.pages["St Mary"]
    assert "The terms were changed: read what is different, and sign." in page.get("/").text
    shown = page.get("/terms").text
    assert "Slots for which a slip is punished" in shown
    assert "What is different from the terms that you signed" in shown
    everyone.sign("St Mary")
    assert home_of(page).terms.punishment_slots == 3


@pytest.mark.slow
def test_what_was_not_shown_is_not_signed(everyone: Everyone) -> None:
    everyone.join_all()
    page = everyone.pages["St Mary"]
    shown = hidden(page.get("/terms").text)
    propose(everyone.room, server_fee=1000.0)
    answer = page.post("/terms/sign", data=shown)
    assert answer.status_code == 409
    assert "nothing was signed" in answer.text
    assert not (home_of(page).directory / "signature.json").exists()
    assert home_of(page).terms.server_fee == 0
    assert everyone.room.room.store.snapshot().signed == []
    assert page.post("/terms/sign").status_code == 409


@lie(
    "the coordinator",
    "lock a member out by another card under its name",
    "its page says that the room has another card, and what to do; the others' pages sign "
    "nothing before they have called",
)
@pytest.mark.slow
def test_somebody_elses_keys_under_a_members_name(everyone: Everyone, tmp_path: Path) -> None:
    """Whoever has a new invitation of a member's cannot sign for it, and the member is told."""
    everyone.join_all()
    everyone.sign("St Mary")
    everyone.sign("Northgate")
    mary, north = everyone.pages["St Mary"], everyone.pages["Northgate"]
    other = enter(tmp_path / "other", "http://127.0.0.1:9100")
    join(other, everyone.room.invite("St Mary"))
    start = mary.get("/").text
    assert "it now has another card under the name St Mary" in start
    assert "Everything is running" not in start
    assert "The room has it" not in start
    card = mary.get("/join").text
    assert "another card under the name St Mary" in card
    assert "has your card" not in card
    shown = hidden(other.get("/terms").text, "/terms/sign")
    assert "waits for Northgate, Lakeside" in other.post("/terms/sign", data=shown).text
    for name in ("Northgate", "Lakeside"):  # whether it has signed St Mary's old key or not
        page = everyone.pages[name]
        text = page.get("/terms").text
        assert home_of(other).card.fingerprint in text
        assert "confirm the new keys of St Mary first" in text
        assert 'action="/terms/sign"' not in text
        told = home_of(page).room.to_sign().text
        assert told is not None
        digest = offer_in(home_of(page), told).digest
        assert page.post("/terms/sign", data={"shown": digest}).status_code == 422
    old = {"client": "St Mary", "shown": home_of(mary).key.public}
    assert "nothing was confirmed" in north.post("/terms/confirm", data=old).text
    new = {"client": "St Mary", "shown": home_of(other).key.public}
    for name in ("Northgate", "Lakeside"):
        text = everyone.pages[name].post("/terms/confirm", data=new).text
        assert "cannot be signed" not in text
        everyone.sign(name)
    everyone.pages["St Mary"] = other
    everyone.sign("St Mary")
    assert everyone.room.room.store.snapshot().complete
    assert "confirmed by <bdi>Northgate</bdi>, <bdi>Lakeside</bdi>" in north.get("/terms").text


@pytest.mark.slow
def test_a_fingerprint_is_the_same_everywhere(everyone: Everyone) -> None:
    everyone.join_all()
    fingerprint = home_of(everyone.pages["St Mary"]).card.fingerprint
    assert fingerprint in everyone.pages["St Mary"].get("/join").text
    assert fingerprint in everyone.pages["Northgate"].get("/terms").text
    doors = everyone.room.room.doors
    token = doors.enter(doors.ticket(Viewer("observer")))
    headers = {"Authorization": f"Bearer {token}"}
    members = httpx.get(f"{everyone.room.address}/members", headers=headers).text
    assert fingerprint in members


@pytest.mark.slow
def test_a_signature_that_was_not_sent_is_sent_again(everyone: Everyone) -> None:
    everyone.join_all()
    page, home = everyone.pages["St Mary"], home_of(everyone.pages["St Mary"])
    told = home.room.to_sign()
    assert told.text is not None
    home.sign(offer_in(home, told.text).invitation)  # and then the page was killed
    shown = page.get("/terms").text
    assert "the room does not have your signature yet" in shown
    everyone.sign("St Mary")
    assert everyone.room.room.store.snapshot().signed == ["St Mary"]


@pytest.mark.slow
def test_a_key_that_was_changed_is_pointed_out(everyone: Everyone, tmp_path: Path) -> None:
    everyone.join_all()
    everyone.sign("St Mary")
    thief = enter(tmp_path / "thief", "http://127.0.0.1:9100")
    join(thief, everyone.room.invite("Northgate"))  # the coordinator was fooled
    shown = everyone.pages["St Mary"].get("/terms").text
    assert "I called <bdi>Northgate</bdi>: it is the same" in shown
    assert "confirm the new keys of Northgate first" in shown


@pytest.mark.slow
def test_comments(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    assert page.post("/terms/comment", data={"version": "1", "text": " "}).status_code == 422
    text = "<b>Why</b> three rounds?\n=1+1"
    answer = page.post("/terms/comment", data={"version": "1", "text": text})
    assert "&lt;b&gt;Why&lt;/b&gt; three rounds?" in answer.text
    assert "St Mary" in answer.text
    (comment,) = everyone.room.room.store.comments()
    assert (comment.client, comment.text) == ("St Mary", text)
    assert page.post("/terms/comment", data={"version": "9", "text": "?"}).status_code >= 400


@pytest.mark.slow
def test_without_the_room_the_terms_that_are_here_are_shown(tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        page = Everyone(room, tmp_path).join("St Mary")
    shown = page.get("/terms")
    assert shown.status_code == 200
    assert "cannot be reached at the moment" in shown.text
    assert "whoever slipped gets no model" in shown.text
    assert "cannot be reached at the moment" in page.get("/").text
    away = page.post("/terms/sign", data={"shown": "0" * 64})
    assert away.status_code == 502
    assert "<h1>The room did not do this</h1>" in away.text


# --- Posted amounts, and the agreement file ------------------------------------------------


@pytest.fixture
def posted(tmp_path: Path) -> Iterator[Everyone]:
    with open_room(tmp_path, posted_terms()) as room:
        yield Everyone(room, tmp_path)


@pytest.mark.slow
def test_posted_amounts_are_calculated_exactly(posted: Everyone) -> None:
    page = posted.join("St Mary")
    shown = page.get("/numbers").text
    assert "None of these numbers leaves this machine." in shown
    assert "you are asked to train on 30 samples, and the model is trained on 90 in all" in shown
    assert "Keeping to it pays with your numbers: your node will accept it." in shown
    page.post("/numbers", data=NUMBERS | {"valuation": "3"})
    shown = page.get("/numbers").text
    assert "your node would refuse it" in shown
    page.post("/numbers", data=NUMBERS | {"samples": "20"})
    assert "it asks for more samples than this client has" in page.get("/numbers").text


@pytest.mark.slow
def test_the_agreement_file_is_verified_and_signed_here(posted: Everyone) -> None:
    posted.join_all()
    page = posted.pages["St Mary"]
    shown = page.get("/terms").text
    assert "its proof holds" in shown
    digests = hidden(shown)
    for wrong in ({"agreement": "0" * 64}, {"shown": "0" * 64}, {"agreement": ""}):
        assert page.post("/terms/sign", data=digests | wrong).status_code == 409
    assert posted.room.room.store.snapshot().signed_terms == []
    assert "You have signed version 1" in page.post("/terms/sign", data=digests).text
    file = page.get("/agreement.html")
    assert file.headers["content-disposition"].startswith("attachment")
    verified = verify_agreement(read_agreement_file(file.content))
    assert not verified.problems
    assert "St Mary" in verified.signed
    store = posted.room.room.store
    assert store.snapshot().signed == ["St Mary"]
    for name in ("Northgate", "Lakeside"):
        assert not store.snapshot().complete
        posted.sign(name)
    assert store.snapshot().complete


@pytest.mark.slow
def test_a_signature_on_the_agreement_file_that_was_not_sent_is_sent_again(
    posted: Everyone, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted.join_all()
    page = posted.pages["St Mary"]

    def away(*_: object) -> None:
        raise RoomTrouble("the room cannot be reached")

    with monkeypatch.context() as broken:
        broken.setattr(MemberRoom, "sign_agreement", away)
        page.post("/terms/sign", data=hidden(page.get("/terms").text))
    store = posted.room.room.store
    assert (store.snapshot().signed_terms, store.snapshot().signed) == (["St Mary"], [])
    assert "the room does not have all of your signatures yet" in page.get("/").text
    assert "does not have both of your signatures yet" in page.get("/terms").text
    posted.sign("St Mary")
    assert store.snapshot().signed == ["St Mary"]


# --- Data ----------------------------------------------------------------------------------


def npz(path: Path, count: int, shape: tuple[int, ...] = (8, 8)) -> Path:
    rng = np.random.default_rng(0)
    np.savez(path, inputs=rng.random((count, *shape)), labels=np.arange(count) % 10)
    return path


def upload(page: TestClient, **files: Path) -> tuple[int, str]:
    sent = {name: (path.name, path.read_bytes()) for name, path in files.items()}
    answer = page.post("/data/upload", files=sent)
    return answer.status_code, answer.text


@pytest.mark.slow
def test_data_is_uploaded_and_checked(everyone: Everyone, tmp_path: Path) -> None:
    page = everyone.join("St Mary")
    shown = page.get("/data").text
    assert "8 × 8 numbers" in shown
    assert "a whole number from 0 to 9" in shown
    own, test = npz(tmp_path / "own.npz", 150), npz(tmp_path / "t.npz", 20)
    status, text = upload(page, own=own, test=test)
    assert status == 200
    assert "150 examples to train on, and 20 to measure with" in text
    folder = home_of(page).directory / "data"
    assert sorted(path.name for path in folder.iterdir()) == ["St Mary.npz", "test.npz"]
    assert "There are examples to train on." in page.get("/").text


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["few", "shape", "kind", "pickle", "letter", "nothing"])
def test_wrong_data_changes_nothing(everyone: Everyone, tmp_path: Path, wrong: str) -> None:
    page = everyone.join("St Mary")
    upload(page, own=npz(tmp_path / "own.npz", 150), test=npz(tmp_path / "t.npz", 20))
    folder = home_of(page).directory / "data"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    if wrong == "few":
        given = npz(tmp_path / "few.npz", 5)
    elif wrong == "shape":
        given = npz(tmp_path / "shape.npz", 150, (3,))
    elif wrong == "kind":
        given = tmp_path / "evil.py"
        given.write_text("import os")
    elif wrong == "pickle":
        given = tmp_path / "evil.npz"
        np.savez(given, inputs=np.array([{"a": 1}] * 150, dtype=object), labels=np.zeros(150, int))
    elif wrong == "letter":
        given = tmp_path / "letter.npz"
        given.write_text("Dear Sir")
    else:
        given = tmp_path / "empty.npz"
        given.touch()
    status, text = upload(page, own=given)
    assert status == 422
    assert "Nothing was changed" in text
    assert "allow_pickle" not in text
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_a_table_instead_of_arrays(tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of(training={"shape": (2,), "classes": 2})) as room:
        page = Everyone(room, tmp_path).join("St Mary")
        table = tmp_path / "own.csv"
        rows = [f"{n / 200},{n % 3},{n % 2}" for n in range(130)]
        table.write_text("\n".join(["a,b,label", *rows]))
        test = tmp_path / "test.csv"
        shutil.copy(table, test)
        status, text = upload(page, own=table, test=test)
        assert status == 200, text
        assert "130 examples" in text


@pytest.mark.slow
def test_built_in_examples_are_dealt_out(everyone: Everyone) -> None:
    everyone.join_all()
    seen = []
    for page in everyone.pages.values():
        answer = page.post("/data/examples")
        assert "119 examples to train on" in answer.text
        home = home_of(page)
        with np.load(home.directory / "data" / f"{home.file.name}.npz") as arrays:
            seen.append({row.tobytes() for row in arrays["inputs"]})
    assert not seen[0] & seen[1]
    assert not seen[1] & seen[2]


@pytest.mark.slow
def test_a_directory_may_be_named_from_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `fedaccord member serve my-hospital` does."""
    monkeypatch.chdir(tmp_path)
    with open_room(Path(), terms_of()) as room:
        page = enter(Path("my-hospital"))
        join(page, room.invite("St Mary"))
        assert "119 examples to train on" in page.post("/data/examples").text
        status, text = upload(page, own=npz(tmp_path / "own.npz", 150))
        assert status == 200, text
        monkeypatch.chdir("/")
        assert "150 examples to train on" in page.get("/data").text
        assert str(tmp_path / "my-hospital") in page.get("/").text
        assert room.room.app == tmp_path / "room" / "app"


@pytest.mark.slow
def test_a_rehearsal_is_dealt_out_of_the_set_that_the_server_measures_on(tmp_path: Path) -> None:
    form = FoundingForm(name="Three", members="\n".join(NAMES), dataset="breast-cancer")
    terms = read_form(form).terms
    with open_room(tmp_path, terms) as room:
        page = Everyone(room, tmp_path).join("St Mary")
        assert "a share of the public data set <em>breast-cancer</em>" in page.get("/data").text
        assert "119 examples to train on" in page.post("/data/examples").text
        folder = home_of(page).directory / "data"
        real = load_dataset("breast-cancer")
        with np.load(folder / "St Mary.npz") as own, np.load(folder / "test.npz") as test:
            assert {row.tobytes() for row in own["inputs"]} <= {
                row.tobytes() for row in real.inputs
            }
            assert np.array_equal(test["inputs"], real.test_inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", REHEARSALS)
def test_every_rehearsal_is_known_by_its_form(name: str) -> None:
    if name not in datasets_here():
        pytest.skip(f"{name} is not on this machine")
    found = load_dataset(name)
    training = TrainingTerms(shape=found.shape, classes=found.classes)
    assert rehearsal_for(training) == name


@pytest.mark.slow
def test_examples_of_another_form_are_made_up(tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of(training={"shape": (2,), "classes": 2})) as room:
        page = Everyone(room, tmp_path).join("St Mary")
        assert "examples that are made up" in page.get("/data").text
        assert "119 examples to train on" in page.post("/data/examples").text
        page.post("/numbers", data=NUMBERS | {"samples": "5000"})
        answer = page.post("/data/examples")
        assert answer.status_code == 422
        assert "enter fewer" in answer.text


# --- The node ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_node_runs_only_under_signed_terms(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    assert "the terms must be signed" in page.get("/node").text
    answer = page.post("/node/start")
    assert answer.status_code == 422
    assert "sign them first" in answer.text


@pytest.mark.slow
def test_checks_say_what_to_do_on_the_page(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    shown = page.post("/node/check").text
    assert "this member has not signed the terms" in shown
    assert "read and sign them on the page Terms" in shown
    assert "fedaccord member sign" not in shown


@pytest.mark.slow
def test_others_signatures_are_kept_and_seen(everyone: Everyone) -> None:
    everyone.join_all()
    everyone.sign("St Mary")
    page, path = everyone.pages["St Mary"], home_of(everyone.pages["St Mary"]).directory
    missing = "of no other member is the signature here; missing: Northgate, Lakeside"
    assert missing in page.post("/node/check").text
    everyone.sign("Northgate")
    assert "of 1 of 2 others is the signature here; missing: Lakeside" in (
        page.post("/node/check").text
    )
    everyone.sign("Lakeside")
    assert "everyone signed the same: Northgate, Lakeside too" in page.post("/node/check").text
    assert [one.client for one in load_signatures(path / SIGNATURES)] == list(NAMES)
    # who signed last has all of them at once
    last = home_of(everyone.pages["Lakeside"])
    assert last.signed.others == {"St Mary", "Northgate"}


@pytest.mark.slow
def test_signatures_stay_and_wrong_ones_are_not_kept(everyone: Everyone) -> None:
    everyone.join_all()
    for name in NAMES:
        everyone.sign(name)
    home = home_of(everyone.pages["St Mary"])
    home.take_signatures()
    kept = (home.directory / SIGNATURES).read_bytes()
    wrong = [
        one.model_copy(update=change)
        for one in home.room.signatures()
        for change in ({"signature": "0" * 128}, {"app": "0" * 64}, {"client": "somebody"})
    ]
    home.keep_signatures(wrong)
    home.keep_signatures([])
    assert (home.directory / SIGNATURES).read_bytes() == kept
    propose(everyone.room, rounds=4)
    everyone.sign("St Mary")
    assert [one.client for one in load_signatures(home.directory / SIGNATURES)] == ["St Mary"]
    assert home.signed.others == frozenset()


@pytest.mark.slow
def test_a_check_without_the_room_says_so(tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        everyone.sign("St Mary")
    shown = everyone.pages["St Mary"].post("/node/check")
    assert shown.status_code == 200
    assert "cannot be reached at the moment" in shown.text


# --- The copy ------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_copy_yet(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    assert "There is no copy yet" in page.get("/copy").text


def play(
    everyone: Everyone, name: str, *, slots: int = 2, terms: Terms | None = None
) -> tuple[Path, Path]:
    """Slots in one process; the ledger goes to the room, and the copy to a member."""
    terms = terms or consortia.terms_of(NAMES, keys=consortia.keys_of(NAMES))
    place = everyone.room.room.app / "ledger.db"
    with consortia.ledger_at(place) as ledger:
        clients = consortia.Clients(terms, consortia.privates_of(NAMES))
        server = consortia.server_key(terms)
        coordinator = Coordinator(terms, ledger, consortia.START_MODEL, key=server)
        consortia.run(coordinator, clients, slots)
    copy = home_of(everyone.pages[name]).directory / "ledger.db"
    with consortia.ledger_at(copy) as ledger:
        ledger.append([entry.fact for entry in clients.copies[name].written])
    return place, copy


@pytest.mark.slow
def test_the_copy_is_verified_and_compared(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    play(everyone, "St Mary")
    shown = page.get("/copy").text
    assert "entries of 2 slots, and nothing in it was changed" in shown
    assert "Slot 2 is settled: verdict kept" in shown
    assert "Slot 2 is settled: verdict kept" in page.get("/").text
    shown = page.post("/copy/compare").text
    assert "tell the same story" in shown


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["posted", "clock"])
def test_a_ledger_without_reports_is_verified_whole(everyone: Everyone, kind: str) -> None:
    page = everyone.join("St Mary")
    place, copy = play(
        everyone, "St Mary", terms=unreported(kind, NAMES, keys=consortia.keys_of(NAMES))
    )
    with read(str(place)) as ledger:
        length = ledger.length()
    shown = page.post("/copy/compare").text
    assert "tell the same story" in shown
    assert f"{length:,} entries and 2 slots of the room&#39;s ledger were verified" in shown
    assert "every conclusion follows" in shown
    assert "left out" not in shown
    # the room's ledger ends before what this member saw: that is found out with all of it, too
    place.unlink()
    kept = copy.read_bytes()
    copy.unlink()
    play(everyone, "St Mary", slots=1, terms=unreported(kind, NAMES, keys=consortia.keys_of(NAMES)))
    copy.write_bytes(kept)
    shown = page.post("/copy/compare").text
    assert "contradicts your copy" in shown
    assert "every conclusion follows" not in shown


@lie(
    "the room",
    "show a ledger that was written anew",
    "the member's page compares it with the member's own copy, and says what differs",
)
@pytest.mark.slow
def test_a_server_that_rewrote_its_past_is_found_out(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    place, copy = play(everyone, "St Mary")
    place.unlink()
    (place.parent / "ledger.db.lock").unlink(missing_ok=True)
    other = Everyone(everyone.room, everyone.folder, everyone.pages)
    kept = copy.read_bytes()
    copy.unlink()
    play(other, "St Mary", slots=1)  # as if the second slot had never been
    copy.write_bytes(kept)
    shown = page.post("/copy/compare").text
    assert "contradicts your copy" in shown
    assert "of the server&#39;s ledger is gone" in shown


@pytest.mark.slow
def test_a_copy_that_was_changed(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    _, copy = play(everyone, "St Mary")
    with sqlite3.connect(copy) as database:
        guards = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in guards.fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE entries SET kind = 'offer' WHERE number = 3")
    shown = page.get("/copy")
    assert "not as your node wrote it" in shown.text


def test_a_ledger_that_repeats_itself_is_not_read_for_ever() -> None:
    class Endless:
        def ledger(self, first: int) -> wire.LedgerLines:
            return wire.LedgerLines(lines=["{}"], next=first, more=True)

    with pytest.raises(RoomTrouble, match="again and again"):
        copies.copy_lines(Endless(), io.StringIO())  # type: ignore[arg-type]


# --- The room ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_room_is_opened_with_a_ticket(everyone: Everyone) -> None:
    page = everyone.join("St Mary")
    shown = page.post("/room/open").text
    assert f'href="{everyone.room.address}/enter#' in shown
    assert "/static/member.js" in shown


def test_before_joining_every_page_leads_to_joining(tmp_path: Path) -> None:
    page = enter(tmp_path / "new")
    for path in ("/numbers", "/terms", "/data", "/node", "/copy", "/room"):
        assert "Join a consortium" in page.get(path).text
