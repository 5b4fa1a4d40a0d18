"""The room from the first page to signed terms, with three members' keys."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from fedaccord.console.room import database, doors, schema
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.overview import next_step
from fedaccord.console.room.room import Rates
from fedaccord.console.room.wire import login_content
from fedaccord.console.web.pages import Pages
from fedaccord.console.web.rates import Rate
from fedaccord.deployment.admission import load_signed, members_of
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN
from fedaccord.deployment.cards import load_signatures
from fedaccord.deployment.invitation import load_invitation
from fedaccord.protocol.terms_text import terms_text
from fedaccord.signed.file import read_agreement_file
from fedaccord.signed.signatures import has_signed, sign_agreement
from fedaccord.signed.verification import verify_agreement
from fedaccord.signing.keys import new_key
from tests.console.room_story import (
    FORM,
    HERE,
    NAMES,
    Someone,
    Story,
    browser_of,
    close_rooms,
    code_of,
    coordinator_of,
    created,
    entered,
    joined,
    link_in,
    new_room,
    signed,
)
from tests.lies import lie


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_rooms()


HOSTILE = "<b>Öl</b> \u05d0\u05d1 =1+1 & 'quotes' \"x\""


@pytest.mark.slow
def test_from_names_to_signatures(tmp_path: Path) -> None:
    story = signed(tmp_path)
    now = story.room.store.snapshot()
    assert now.complete
    for viewer in (Viewer("member", "North"), Viewer("observer")):
        assert next_step(story.room, now, viewer)[1:] == ("/watch", "Watch slots")
    assert now.signed == list(NAMES)
    page = story.coordinator.get("/").text
    assert "Everyone has signed. Start the server" in page or "Compare fingerprints" in page
    members = members_of(story.room.app)
    assert members.unsigned == ()
    assert story.room.files.trouble == ""


def test_a_room_needs_names_only(tmp_path: Path) -> None:
    story = created(tmp_path)
    text = "".join(
        path.read_text("utf-8", "replace")
        for path in story.room.directory.rglob("*")
        if path.is_file() and path.suffix in (".toml", ".json")
    )
    for private in ("valuation", "cost_per_sample", "communication_cost"):
        assert private not in text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", " ", "is needed"),
        ("members", "\n", "are needed"),
        ("members", "A\nA", "two have the same name"),
        ("members", "A/B", "cannot be the name of a file"),
        ("members", "A\u202e", "not printable"),
        ("address", "no port here", "must be a name or an address"),
        ("rounds", "-1", "must be a whole number"),
        ("superlink", "99999", "must be a whole number"),
        ("shape", "a lot", "must be whole numbers"),
        ("classes", "1", "2 or more"),
        ("dataset", "nothing", "is not one that this page knows"),
    ],
)
def test_a_form_that_is_refused_comes_back(
    tmp_path: Path, field: str, value: str, said: str
) -> None:
    coordinator = coordinator_of(new_room(tmp_path / "room"))
    answer = coordinator.post("/room", data=FORM | {field: value})
    assert answer.status_code == 422
    assert said in answer.text
    assert "Three clinics" in answer.text or field == "name"
    assert not (tmp_path / "room" / "app").exists()


def test_an_interrupted_creation_is_set_aside(tmp_path: Path) -> None:
    app = new_room(tmp_path / "room")
    (tmp_path / "room" / "app").mkdir()
    (tmp_path / "room" / "app" / "half").touch()
    assert coordinator_of(app).post("/room", data=FORM).status_code == 303
    assert list((tmp_path / "room").glob("app.unused-*/half"))


@lie(
    "whoever has a link",
    "use an invitation again that was used",
    "it works once; after that it is not known",
)
def test_an_invitation_works_once(tmp_path: Path) -> None:
    story = created(tmp_path)
    north = story.members["North"]
    code = code_of(
        link_in(story.coordinator.post("/members/invite", data={"client": "North"}).text)
    )
    shown = story.http.post("/api/invitation", json={"code": code}).json()
    assert shown["client"] == "North"
    assert "Three clinics" in shown["invitation"]
    answer = north.join(story.http, code)
    assert answer.json()["fingerprint"] in story.coordinator.get("/members").text
    assert north.join(story.http, code).status_code == 410
    assert story.http.post("/api/invitation", json={"code": code}).status_code == 410


def test_an_invitation_expires_is_replaced_and_withdrawn(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1)
    story = created(tmp_path, clock=lambda: now)

    def invite() -> str:
        page = story.coordinator.post("/members/invite", data={"client": "North"}).text
        return code_of(link_in(page))

    def works(code: str) -> bool:
        return bool(story.http.post("/api/invitation", json={"code": code}).status_code == 200)

    first, second = invite(), invite()
    assert not works(first)
    assert works(second)
    number = story.room.doors.invitations()["North"].number
    story.coordinator.post("/members/withdraw", data={"number": number})
    assert not works(second)
    third = invite()
    assert works(third)
    now += timedelta(days=7)
    assert not works(third)


@lie(
    "whoever has a link",
    "join in the place of somebody else than was invited, or with a card that was changed",
    "the card is refused, and the invitation stays as it is",
)
def test_a_card_must_be_of_whoever_was_invited(tmp_path: Path) -> None:
    story = created(tmp_path)
    page = story.coordinator.post("/members/invite", data={"client": "North"}).text
    code = code_of(link_in(page))
    south = story.members["South"]
    assert south.join(story.http, code).status_code == 422
    card = (
        story.members["North"]
        .card()
        .model_copy(update={"certificate": "-----BEGIN CERTIFICATE-----\nx"})
    )
    assert (
        story.http.post("/api/cards", json={"code": code, "card": card.model_dump()}).status_code
        == 422
    )
    assert story.members["North"].join(story.http, code).status_code == 200


def test_nobody_has_anothers_key(tmp_path: Path) -> None:
    story = created(tmp_path)
    codes = {
        name: code_of(
            link_in(story.coordinator.post("/members/invite", data={"client": name}).text)
        )
        for name in ("North", "South")
    }
    assert story.members["North"].join(story.http, codes["North"]).status_code == 200
    copy = Someone("South", tmp_path / "copy", key=story.members["North"].key)
    assert "has the key of North" in copy.join(story.http, codes["South"]).text


@lie(
    "the room",
    "log in to another room with the challenge that a member signed for it",
    "what is signed names the room and its address, is used once, and expires",
)
@pytest.mark.slow
def test_logging_in_needs_the_key(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north = story.members["North"]
    stranger = Someone("North", tmp_path / "stranger")
    assert stranger.log_in(story.http).status_code == 401
    challenge = story.http.post("/api/challenge", json={"client": "North"}).json()["challenge"]

    def sent(address: str) -> dict[str, str]:
        content = login_content(
            address=address, room="Three clinics", client="North", challenge=challenge
        )
        return {"client": "North", "challenge": challenge, "signature": north.key.sign(content)}

    other = sent("https://evil.example")
    assert story.http.post("/api/login", json=other).status_code == 401
    again = sent(HERE)  # it was used up by the wrong answer
    assert story.http.post("/api/login", json=again).status_code == 401
    assert north.log_in(story.http).status_code == 200


@pytest.mark.slow
def test_challenges_and_sessions_expire(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1)
    story = joined(tmp_path, clock=lambda: now)
    north = story.members["North"]
    assert story.http.get("/api/terms", headers=north.headers).status_code == 200
    now += timedelta(hours=12)
    assert story.http.get("/api/terms", headers=north.headers).status_code == 401
    assert story.coordinator.get("/members").status_code == 401
    assert north.log_in(story.http).status_code == 200
    assert story.http.post("/api/logout", headers=north.headers).status_code == 204
    assert story.http.get("/api/terms", headers=north.headers).status_code == 401


def test_challenges_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1)
    app = new_room(tmp_path / "room", clock=lambda: now)
    monkeypatch.setattr(doors, "_CHALLENGES", 5)

    def count() -> int:
        with app.state.room.store.database.reading() as connection:
            rows = connection.execute(select(schema.CHALLENGES.c.digest)).all()
        return len(rows)

    for _ in range(8):
        app.state.room.doors.challenge("anyone")
        now += timedelta(seconds=1)
    assert count() == 5
    now += timedelta(minutes=2)
    app.state.room.doors.challenge("anyone")
    assert count() == 1


@pytest.mark.slow
def test_a_ticket_opens_the_browser_once(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north = story.members["North"]
    ticket = story.http.post("/api/tickets", headers=north.headers).json()["ticket"]
    browser = entered(story.app, "/enter", ticket)
    assert "North" in browser.get("/").text
    assert browser_of(story.app).post("/enter", data={"code": ticket}).status_code == 410
    assert browser.post("/leave").status_code == 303
    assert browser.get("/terms").status_code == 401


@lie(
    "an observer",
    "comment, sign or change anything, or read on when its link was withdrawn",
    "refused; its sessions end with the link, and pages that are open with them",
)
@pytest.mark.slow
def test_observers_read_until_they_are_withdrawn(tmp_path: Path) -> None:
    story = joined(tmp_path)
    page = story.coordinator.post("/observers", data={"name": "Auditor", "days": "3"}).text
    code = code_of(link_in(page))
    observer, second = entered(story.app, "/observe", code), entered(story.app, "/observe", code)
    assert observer.get("/terms").status_code == 200
    assert observer.post("/terms/comments", data={"version": 1, "text": "x"}).status_code == 403
    assert observer.post("/members/invite", data={"client": "North"}).status_code == 403
    number = story.room.doors.observers()[0].number
    assert story.coordinator.post("/observers/withdraw", data={"number": number}).status_code == 303
    assert observer.get("/terms").status_code == 401
    assert second.get("/terms").status_code == 401
    assert browser_of(story.app).post("/observe", data={"code": code}).status_code == 410
    north = browser_of(story.app, **story.members["North"].headers)
    assert "withdrew the link of an observer" in north.get("/").text
    assert "Auditor" not in north.get("/").text  # its name is for the coordinator's list
    assert "Auditor" in story.coordinator.get("/observers").text


def test_a_link_of_an_observer_replaces_no_session_unasked(tmp_path: Path) -> None:
    story = created(tmp_path)
    page = story.coordinator.post("/observers", data={"name": "Auditor"}).text
    sent = {"code": code_of(link_in(page))}
    answer = story.coordinator.post("/observe", data=sent)
    assert answer.status_code == 200
    assert "You are in this room already" in answer.text
    assert story.coordinator.get("/observers").status_code == 200
    fields = sent | {"instead": "yes"}
    assert f'name="code" value="{sent["code"]}"' in answer.text
    assert story.coordinator.post("/observe", data=fields).status_code == 303
    assert story.coordinator.get("/observers").status_code == 403


@pytest.mark.slow
def test_an_ended_session_puts_no_page_into_a_page(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north, live = story.members["North"], {"HX-Request": "true"}
    assert "<main" not in story.http.get("/now", headers={**north.headers, **live}).text
    story.http.post("/api/logout", headers=north.headers)
    answer = story.http.get("/now", headers={**north.headers, **live})
    assert (answer.status_code, answer.headers["hx-refresh"], answer.text) == (401, "true", "")
    other = story.coordinator.get("/watch/99", headers=live)
    assert other.status_code == 404
    assert "was not begun" in other.text
    assert "<main" not in other.text
    assert "<main" in story.coordinator.get("/watch/99").text


@pytest.mark.slow
def test_where_the_room_stands_is_written_once_for_everyone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, made = joined(tmp_path), list[str]()
    text = Pages.text

    def counted(pages: Pages, template: str, **values: object) -> str:
        made.append(template)
        return text(pages, template, **values)

    monkeypatch.setattr(Pages, "text", counted)
    shown = [
        story.http.get("/now", headers=member.headers).text for member in story.members.values()
    ]
    assert made.count("overview_part.html.j2") == 1
    assert all("sent its card" in one for one in shown)
    north = story.members["North"]
    story.http.post("/api/comments", json={"version": 1, "text": "x"}, headers=north.headers)
    assert "commented on version 1" in story.coordinator.get("/now").text
    assert made.count("overview_part.html.j2") == 2


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "  ", "is needed"),
        ("name", "", "is needed"),
        ("days", "366", "must be from 1 to 365"),
        ("days", "0", "must be from 1 to 365"),
        ("days", "a week", "must be a number"),
    ],
)
def test_an_observers_form_that_is_refused_comes_back(
    tmp_path: Path, field: str, value: str, said: str
) -> None:
    story = created(tmp_path)
    sent = {"name": "The auditor", "days": "17"} | {field: value}
    answer = story.coordinator.post("/observers", data=sent)
    assert answer.status_code == 422
    assert said in answer.text
    assert all(f'value="{text}"' in answer.text for text in sent.values())
    assert story.room.doors.observers() == []


@lie(
    "a client",
    "sign in a room in another member's name",
    "refused: a signature counts only with that member's key",
)
@pytest.mark.slow
def test_only_a_member_signs_for_itself(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north, south = story.members["North"], story.members["South"]
    text = north.to_sign(story.http)["text"]
    norths = north.signature(text).model_dump()
    forged = Someone("North", tmp_path / "x", key=new_key()).signature(text).model_dump()
    post = story.http.post
    assert post("/api/signatures", json=norths, headers=south.headers).status_code == 403
    assert post("/api/signatures", json=forged, headers=north.headers).status_code == 422
    assert post("/api/signatures", json=norths).status_code == 401
    assert story.coordinator.post("/api/signatures", json=norths).status_code == 403
    assert post("/api/signatures", json=norths, headers=north.headers).status_code == 200
    again = post("/api/signatures", json=norths, headers=north.headers)
    assert again.json() == {"version": 1, "signed": ["North"], "missing": ["South", "West"]}


@pytest.mark.slow
def test_a_new_version_makes_signatures_count_for_nothing(tmp_path: Path) -> None:
    story = signed(tmp_path)
    answer = story.coordinator.post("/terms/propose", data=_form(rounds="7", note="More"))
    assert answer.status_code == 303, answer.text
    now = story.room.store.snapshot()
    assert (now.current and now.current.number) == 2
    assert now.signed == []
    page = story.coordinator.get("/terms").text
    assert "Rounds in each slot" in page
    assert "signed version 1, not 2" in page
    assert "More" in page
    assert members_of(story.room.app).unsigned == NAMES
    told = story.http.get("/api/terms", headers=story.members["North"].headers).json()
    assert told["versions"][1]["changes"] == ["Rounds in each slot: 5 -> 7"]
    for member in story.members.values():
        assert member.sign(story.http).status_code == 200
    assert story.room.store.snapshot().complete
    assert members_of(story.room.app).unsigned == ()


def _form(**changed: str) -> dict[str, str]:
    return {"after": "1", "members": "\n".join(NAMES), "rounds": "5", "margin": "0.01"} | changed


@pytest.mark.slow
def test_a_version_that_was_overtaken_is_refused(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north = story.members["North"]
    old = north.signature(north.to_sign(story.http)["text"]).model_dump()
    story.coordinator.post("/terms/propose", data=_form(rounds="7"))
    assert story.coordinator.post("/terms/propose", data=_form(rounds="8")).status_code == 409
    answer = story.http.post("/api/signatures", json=old, headers=north.headers)
    assert answer.status_code == 409
    assert "version 2" in answer.json()["problems"][0]


def with_new_key(story: Story, name: str) -> Someone:
    """Whoever uses a new invitation of a member's, logged in: the member, or somebody else."""
    page = story.coordinator.post("/members/invite", data={"client": name}).text
    found = Someone(name, story.members[name].folder)
    assert found.join(story.http, code_of(link_in(page))).status_code == 200
    assert found.log_in(story.http).status_code == 200
    return found


@lie(
    "the coordinator",
    "put a key of its own in the place of a member's, by a new invitation",
    "the key counts only when every other member that knew the old one has confirmed it, "
    "after a telephone call; everybody sees who has not",
)
@pytest.mark.slow
def test_nobody_signs_as_a_member_with_a_new_invitation(tmp_path: Path) -> None:
    """Not even the coordinator, who can make one: the other members confirm a new key first."""
    story = signed(tmp_path)
    old, south, west = story.members.values()
    north = with_new_key(story, "North")
    assert story.http.get("/api/terms", headers=old.headers).status_code == 401
    assert old.log_in(story.http).status_code == 401
    now = story.room.store.snapshot()
    assert now.current is not None
    assert (now.current.number, now.current.note) == (2, "North has a new key")
    assert (now.to_sign is not None, now.signed) == (True, [])
    refused = north.sign(story.http)
    assert refused.status_code == 409
    assert "the room waits for South, West" in refused.text
    for page in (story.coordinator, browser_of(story.app, **south.headers)):
        assert "do not count yet" in page.get("/members").text
    assert "North sent new keys" in browser_of(story.app, **south.headers).get("/").text
    own = browser_of(story.app, **north.headers).get("/").text
    assert "waits for South and West to confirm" in own
    assert north.confirm(story.http, north).status_code == 403
    assert south.confirm(story.http, old).status_code == 409
    forged = {"client": "North", "key": north.key.public, "signature": "0" * 128}
    post = story.http.post
    assert post("/api/new-keys", json=forged, headers=south.headers).status_code == 422
    assert [south.confirm(story.http, north).status_code for _ in range(2)] == [200, 200]
    assert north.sign(story.http).status_code == 409
    (told,) = west.confirm(story.http, north).json()["keys"]
    assert (told["counts"], told["missing"], set(told["confirmations"])) == (
        True,
        [],
        {"South", "West"},
    )
    assert north.sign(story.http).status_code == 200
    assert "do not count yet" not in story.coordinator.get("/members").text


@lie(
    "the coordinator",
    "replace the keys of several members, and have the new keys confirm each other",
    "a key that is not confirmed confirms nothing, and those whose keys were replaced are "
    "still asked",
)
@pytest.mark.slow
def test_new_keys_do_not_confirm_each_other(tmp_path: Path) -> None:
    story = signed(tmp_path)
    north, south = with_new_key(story, "North"), with_new_key(story, "South")
    west = story.members["West"]
    assert north.confirm(story.http, south).status_code == 403
    for one in (north, south):
        assert west.confirm(story.http, one).status_code == 200
    assert [one.sign(story.http).status_code for one in (north, south)] == [409, 409]
    now = story.room.store.snapshot()
    assert (now.unconfirmed, now.unable) == (
        {"North": ["South"], "South": ["North"]},
        ["South", "North"],
    )
    assert (
        "its own keys are new, or it is not in the terms" in story.coordinator.get("/members").text
    )


HELPER = "Helper"


def propose(story: Story, *names: str) -> None:
    """Put terms with these members forward."""
    now = story.room.store.snapshot()
    assert now.current is not None
    text = terms_text(now.current.terms.model_copy(update={"clients": names}))
    data = {"after": now.current.number, "text": text}
    assert story.coordinator.post("/terms/text", data=data).status_code == 303


def helper_of(story: Story, folder: Path) -> Someone:
    """Somebody whom the coordinator puts into the terms and lets join: itself, perhaps."""
    page = story.coordinator.post("/members/invite", data={"client": HELPER}).text
    found = Someone(HELPER, folder / "helper", story.members["North"].consortium)
    assert found.join(story.http, code_of(link_in(page))).status_code == 200
    assert found.log_in(story.http).status_code == 200
    return found


def signs_never(story: Story, forged: Someone) -> None:
    """Whoever has the forged key cannot sign; the room waits for those who know the real one."""
    propose(story, *NAMES)
    assert forged.log_in(story.http).status_code == 200
    refused = forged.sign(story.http)
    assert refused.status_code == 409, refused.text
    assert story.room.store.snapshot().unconfirmed[forged.name]
    assert "South, West" in refused.text


@lie(
    "the coordinator",
    "have a helper confirm such a key, in terms that leave out all other members, and then "
    "put these back",
    "who has to confirm is decided when the key comes, by what its owner signed; no terms "
    "release anybody",
)
@pytest.mark.slow
@pytest.mark.parametrize("first", ["the key", "the terms"])
def test_a_helper_in_other_terms_confirms_nothing(tmp_path: Path, first: str) -> None:
    """The coordinator leaves all others out of the terms, and has a sock puppet confirm its key."""
    story = signed(tmp_path)
    if first == "the key":
        forged = with_new_key(story, "North")
        propose(story, "North", HELPER)
        helper = helper_of(story, tmp_path)
    else:
        propose(story, "North", HELPER)
        helper = helper_of(story, tmp_path)  # and North's own key is beside it in a file to sign
        forged = with_new_key(story, "North")
    assert helper.confirm(story.http, forged).status_code == 200
    assert forged.sign(story.http).status_code == 409
    signs_never(story, forged)


@pytest.mark.slow
def test_a_forged_key_that_is_replaced_again(tmp_path: Path) -> None:
    story = signed(tmp_path)
    with_new_key(story, "North")
    propose(story, "North", HELPER)
    helper = helper_of(story, tmp_path)
    forged = with_new_key(story, "North")
    helper.confirm(story.http, forged)
    signs_never(story, forged)


@lie(
    "the coordinator",
    "replace a member's key while the terms leave that member out",
    "its earlier key is remembered, and the others have to confirm the new one when it comes back",
)
@pytest.mark.slow
def test_a_member_that_is_left_out_and_comes_back(tmp_path: Path) -> None:
    """Not even a link from before helps, which is used while the member is not in the terms."""
    story = signed(tmp_path)
    old = code_of(link_in(story.coordinator.post("/members/invite", data={"client": "North"}).text))
    propose(story, "South", HELPER)
    helper = helper_of(story, tmp_path)
    forged = Someone("North", tmp_path / "forged")
    assert forged.join(story.http, old).status_code == 200
    propose(story, "North", HELPER)
    assert forged.log_in(story.http).status_code == 200
    assert helper.confirm(story.http, forged).status_code == 200
    signs_never(story, forged)


@pytest.mark.slow
def test_a_confirmed_key_before_it_was_to_be_signed(tmp_path: Path) -> None:
    """A key that others confirmed is known to them, even if no file to sign has it yet."""
    story = signed(tmp_path)
    _, south, west = story.members.values()
    propose(story, *NAMES, HELPER)  # whose card is missing, so there is no file to sign
    real = with_new_key(story, "North")
    for one in (south, west):
        assert one.confirm(story.http, real).status_code == 200
    forged = with_new_key(story, "North")
    assert story.room.store.snapshot().unconfirmed == {"North": ["South", "West"]}
    signs_never(story, forged)


@pytest.mark.slow
def test_who_left_before_is_not_asked(tmp_path: Path) -> None:
    """The owner signed terms without it, so the owner knows that it is gone."""
    story = signed(tmp_path)
    north, south, _ = story.members.values()
    propose(story, "North", "South")
    for one in (north, south):
        assert one.sign(story.http).status_code == 200
    new = with_new_key(story, "North")
    assert story.room.store.snapshot().unconfirmed == {"North": ["South"]}
    assert south.confirm(story.http, new).status_code == 200
    assert new.sign(story.http).status_code == 200


@lie(
    "the coordinator",
    "let it be forgotten that a key was replaced",
    "*Members* says for good when that was, and who confirmed it",
)
@pytest.mark.slow
def test_a_replaced_key_is_seen_for_good(tmp_path: Path) -> None:
    story = signed(tmp_path)
    _, south, west = story.members.values()
    new = with_new_key(story, "North")
    assert "confirmed by nobody" in story.coordinator.get("/members").text
    for one in (south, west):
        one.confirm(story.http, new)
    newest = with_new_key(story, "North")
    for one in (south, west):
        one.confirm(story.http, newest)
        one.sign(story.http)
    newest.sign(story.http)
    assert story.room.store.snapshot().complete
    page = story.coordinator.get("/members").text
    assert page.count("confirmed by <bdi>South</bdi>, <bdi>West</bdi>") == 2
    told = story.http.get("/api/new-keys", headers=south.headers).json()["keys"]
    assert [(one["key"], one["counts"]) for one in told] == [
        (new.key.public, True),
        (newest.key.public, True),
    ]


@pytest.mark.slow
def test_all_keys_cannot_be_replaced(tmp_path: Path) -> None:
    story = signed(tmp_path)
    everyone = [with_new_key(story, name) for name in NAMES]
    assert {one.sign(story.http).status_code for one in everyone} == {409}
    assert {one.confirm(story.http, everyone[0]).status_code for one in everyone[1:]} == {403}


@pytest.mark.slow
def test_a_key_that_nobody_relied_on_is_simply_replaced(tmp_path: Path) -> None:
    story = created(tmp_path)
    with_new_key(story, "North")
    with_new_key(story, "North")
    assert story.room.store.snapshot().unconfirmed == {}


@pytest.mark.slow
def test_a_new_certificate_with_the_same_key_changes_nothing_to_sign(tmp_path: Path) -> None:
    story = signed(tmp_path)
    page = story.coordinator.post("/members/invite", data={"client": "North"}).text
    north = story.members["North"]
    assert north.join(story.http, code_of(link_in(page))).status_code == 200
    assert story.room.store.snapshot().complete


@pytest.mark.slow
def test_a_key_that_was_replaced_does_not_come_back(tmp_path: Path) -> None:
    story = signed(tmp_path)
    with_new_key(story, "North")
    page = story.coordinator.post("/members/invite", data={"client": "North"}).text
    answer = story.members["North"].join(story.http, code_of(link_in(page)))
    assert answer.status_code == 422
    assert "was replaced before" in answer.text


@lie(
    "the coordinator",
    "use a member's old signature again, for terms that come back word for word",
    "what is signed names the version of the terms, and counts for no other",
)
@pytest.mark.slow
def test_a_signature_fits_one_version_only(tmp_path: Path) -> None:
    """Terms may come back word for word; what was signed of them then does not count again."""
    story = signed(tmp_path)
    north = story.members["North"]
    text = story.room.store.snapshot().versions[0].text
    old = north.signature(north.to_sign(story.http)["text"]).model_dump()
    other = text.replace("rounds = 5", "rounds = 6")
    for after, proposed in ((1, other), (2, text)):
        sent = {"after": after, "text": proposed}
        assert story.coordinator.post("/terms/text", data=sent).status_code == 303
    assert story.room.store.snapshot().signed == []
    for forged in (old, old | {"version": 3}):
        answer = story.http.post("/api/signatures", json=forged, headers=north.headers)
        assert answer.status_code in (409, 422)
    assert north.sign(story.http).status_code == 200


@pytest.mark.slow
def test_a_draft_with_a_mistake_that_was_overtaken_is_not_shown_as_a_change_to_the_new_version(
    tmp_path: Path,
) -> None:
    """Whoever corrects the mistake would otherwise undo a version that it has not seen."""
    story = joined(tmp_path)
    send = story.coordinator.post
    assert send("/terms/propose", data=_form(rounds="7")).status_code == 303
    drafts = {"/terms/propose": _form(rounds="x"), "/terms/text": {"after": "1", "text": "= ["}}
    for place, draft in drafts.items():
        answer = send(place, data=draft)
        assert answer.status_code == 409
        assert "version 2 was put forward meanwhile; look at it first" in answer.text
        assert send(place, data=draft | {"after": "2"}).status_code == 422


@pytest.mark.slow
def test_terms_by_file_and_their_mistakes(tmp_path: Path) -> None:
    story = joined(tmp_path)
    now = story.room.store.snapshot()
    assert now.current is not None
    text = now.current.text
    send = story.coordinator.post
    wrong = send("/terms/text", data={"after": 1, "text": text.replace("rounds = 5", "rounds = 0")})
    assert wrong.status_code == 422
    assert "rounds" in wrong.text
    other = send("/terms/text", data={"after": 1, "text": text.replace("Three", "Four")})
    assert "must stay" in other.text
    assert send("/terms/text", data={"after": 1, "text": "= ["}).status_code == 422
    right = send("/terms/text", data={"after": 1, "text": text.replace("rounds = 5", "rounds = 6")})
    assert right.status_code == 303
    assert (
        story.coordinator.post("/terms/propose", data=_form(after="2", rounds="x")).status_code
        == 422
    )


@pytest.mark.slow
def test_a_member_joins_later(tmp_path: Path) -> None:
    story = signed(tmp_path)
    names = "\n".join((*NAMES, "East"))
    answer = story.coordinator.post("/terms/propose", data=_form(members=names))
    assert answer.status_code == 303, answer.text
    assert story.members["North"].to_sign(story.http)["text"] is None
    east = Someone("East", tmp_path / "east")
    page = story.coordinator.post("/members/invite", data={"client": "East"}).text
    assert east.join(story.http, code_of(link_in(page))).status_code == 200
    east.log_in(story.http)
    for member in (*story.members.values(), east):
        assert member.sign(story.http).status_code == 200
    assert members_of(story.room.app).unsigned == ()


def handed_in(story: Story, content: str) -> Any:
    """The coordinator uploads what a member sent to it."""
    files = {"file": ("signature.json", content.encode(), "application/json")}
    return story.coordinator.post("/terms/signature", files=files)


@lie(
    "the coordinator",
    "hand in a signature on a member's behalf that the member did not make, or made on "
    "something else",
    "it is refused: the room checks whose key it is, and what was signed",
)
@pytest.mark.slow
def test_a_signature_from_the_command_line_is_handed_in(tmp_path: Path) -> None:
    """It counts as if the member had sent it, and is checked in the same way."""
    story = joined(tmp_path)
    page = story.coordinator.get("/terms").text
    assert "/terms/to-sign.toml" in page
    assert "/terms/signature" in page
    text = story.coordinator.get("/terms/to-sign.toml").text
    north, south, west = story.members.values()
    own = north.signature(text)
    assert handed_in(story, own.model_dump_json()).status_code == 303
    assert story.room.store.snapshot().signed == ["North"]
    assert members_of(story.room.app).unsigned == ("South", "West")
    assert "handed in the signature of North on version 1" in story.coordinator.get("/").text
    forged = Someone("South", tmp_path / "x").signature(text)
    older = south.signature(text.replace("version = 1", "version = 2"))
    for wrong, status, said in (
        (forged, 422, "not a signature with the key of South"),
        (older, 409, "signed something else than version 1"),
        (west.card(), 422, "is a card"),
    ):
        answer = handed_in(story, wrong.model_dump_json())
        assert answer.status_code == status
        assert said in answer.text
    assert "neither a card nor a signature" in handed_in(story, "{").text
    assert story.room.store.snapshot().signed == ["North"]
    for one in (south, west):
        handed_in(story, one.signature(text).model_dump_json())
    assert story.room.store.snapshot().complete
    assert "/terms/signature" not in story.coordinator.get("/terms").text


@pytest.mark.slow
def test_a_signature_with_keys_that_do_not_count_is_not_handed_in(tmp_path: Path) -> None:
    story = signed(tmp_path)
    north = with_new_key(story, "North")
    text = story.coordinator.get("/terms/to-sign.toml").text
    answer = handed_in(story, north.signature(text).model_dump_json())
    assert answer.status_code == 409
    assert "waits for South, West" in answer.text


@pytest.mark.slow
def test_who_left_is_out(tmp_path: Path) -> None:
    story = joined(tmp_path)
    story.coordinator.post("/terms/propose", data=_form(members="North\nSouth"))
    west = story.members["West"]
    assert story.http.get("/api/terms", headers=west.headers).status_code == 401
    assert west.log_in(story.http).status_code == 401


@pytest.mark.slow
def test_comments_of_everyone_but_observers(tmp_path: Path) -> None:
    story = joined(tmp_path)
    north = story.members["North"]
    sent = {"version": 1, "text": HOSTILE}
    answer = story.http.post("/api/comments", json=sent, headers=north.headers)
    assert answer.json()["client"] == "North"
    assert story.coordinator.post("/terms/comments", data=sent).status_code == 303
    page = story.coordinator.get("/terms").text
    assert page.count("&lt;b&gt;Öl&lt;/b&gt;") == 2
    assert "<b>Öl" not in page
    blank = sent | {"text": " \n "}
    assert story.http.post("/api/comments", json=blank, headers=north.headers).status_code == 422
    assert "needs a text" in story.coordinator.post("/terms/comments", data=blank).text
    assert len(story.room.store.comments()) == 2
    unknown = story.http.post("/api/comments", json=sent | {"version": 9}, headers=north.headers)
    assert unknown.status_code == 404


@pytest.mark.slow
def test_files_follow_the_database_at_every_start(tmp_path: Path) -> None:
    story = signed(tmp_path)
    app = story.room.app
    kept = {p: p.read_bytes() for p in (app / "members").iterdir()}
    for path in (*kept, app / "signatures.json", app / TO_SIGN):
        path.unlink()
    (app / "fedaccord_app" / "terms.toml").write_text("")
    (app / "keys" / "members.pem").write_text("")
    story.room.close()
    again = new_room(tmp_path / "room")
    assert again.state.room.files.trouble == ""
    assert {p: p.read_bytes() for p in (app / "members").iterdir()} == kept
    assert len(load_signatures(app / "signatures.json")) == 3
    assert members_of(app).unsigned == ()
    assert load_invitation(app / INVITATION).terms.keys is None
    assert again.state.room.store.snapshot().current.number == 1
    assert load_signed(app, load_invitation(app / TO_SIGN).terms).own is None


@pytest.mark.slow
def test_a_changed_app_must_be_signed_again(tmp_path: Path) -> None:
    story = signed(tmp_path)
    path = story.room.app / "fedaccord_app" / "client_app.py"
    path.write_text(path.read_text("utf-8") + "\n# changed\n", encoding="utf-8")
    story.room.files.align()
    now = story.room.store.snapshot()
    assert now.current is not None
    assert now.current.number == 2
    assert "app on the server" in now.current.note
    assert not now.complete
    assert story.coordinator.post("/run/server").status_code == 409


@lie(
    "the coordinator",
    "run slots before everyone has signed",
    "the room refuses",
)
@pytest.mark.slow
def test_nothing_runs_before_everyone_signed(tmp_path: Path) -> None:
    story = joined(tmp_path)
    for path, data in (("/run/server", {}), ("/run/slots", {"last": "1"})):
        answer = story.coordinator.post(path, data=data)
        assert answer.status_code == 409
        assert "Nothing runs before everyone has signed" in answer.text


@pytest.mark.slow
def test_posted_amounts_are_a_file_that_is_signed(tmp_path: Path) -> None:
    story = joined(tmp_path)
    now = story.room.store.snapshot()
    assert now.current is not None
    assert (
        "computed in each slot"
        in story.http.get("/api/agreement", headers=story.members["North"].headers).json()["why"]
    )
    text = now.current.text.replace('reports = "ratio"', 'reports = "none"')
    text = text.replace('agreement = "individual"', 'agreement = "posted"')
    for name in NAMES:
        text += (
            f'\n[public."{name}"]\nsamples = 100\ncontribution = 20\nlowest_ratio = 1000.0\n'
            "lowest_discount_factor = 0.9\n"
        )
    answer = story.coordinator.post("/terms/text", data={"after": 1, "text": text})
    assert answer.status_code == 303, answer.text
    assert story.room.files.trouble == ""

    for member in story.members.values():
        assert member.sign(story.http).json()["signed"] == []  # the terms alone
        assert story.coordinator.post("/run/server").status_code == 409
    assert "signed the terms, not the agreement file" in story.coordinator.get("/").text
    assert "signed the terms, not the agreement file" in story.coordinator.get("/terms").text
    assert "signed the terms, not the agreement file" in story.coordinator.get("/members").text
    for member in story.members.values():
        assert not story.room.store.snapshot().complete
        told = story.http.get("/api/agreement", headers=member.headers).json()
        file = sign_agreement(read_agreement_file(told["file"].encode()), member.key)
        signature = file.signatures.clients[member.name]
        sent = {"agreement": told["digest"], "signature": signature}
        for _ in range(2):
            answer = story.http.post("/api/agreement/signatures", json=sent, headers=member.headers)
            assert answer.status_code == 200, answer.text
        wrong = sent | {"signature": "0" * 128}
        answer = story.http.post("/api/agreement/signatures", json=wrong, headers=member.headers)
        assert answer.status_code == 422
    told = story.http.get("/api/agreement", headers=story.members["North"].headers).json()
    found = verify_agreement(read_agreement_file(told["file"].encode()))
    assert found.complete, found
    assert has_signed(file, file.parties[-1])
    assert story.room.store.snapshot().complete
    said = [one.what for one in story.room.store.events(100)]
    assert said.count("has everyone's signature on version 2") == 1


@pytest.mark.slow
def test_no_secret_in_a_log_or_an_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    story = signed(tmp_path)
    page = story.coordinator.post("/observers", data={"name": "Auditor"}).text
    code = code_of(link_in(page))
    entered(story.app, "/observe", code)
    ticket = story.http.post("/api/tickets", headers=story.members["North"].headers).json()[
        "ticket"
    ]
    browser = entered(story.app, "/enter", ticket)
    secrets = [code, ticket, *(member.token for member in story.members.values())]
    secrets += list(browser.cookies.values()) + list(story.coordinator.cookies.values())
    secrets += [member.key.pem().decode() for member in story.members.values()]
    assert all(len(secret) > 40 for secret in secrets)
    said = caplog.text + "".join(capfd.readouterr())
    stored = b"".join(p.read_bytes() for p in (tmp_path / "room").rglob("*") if p.is_file())
    for secret in secrets:
        assert secret not in said
        assert secret.encode() not in stored


@pytest.mark.parametrize("path", ["/", "/api/room", "/api/openapi.json", "/static/icon.svg"])
def test_strangers_are_limited(tmp_path: Path, path: str) -> None:
    app = new_room(tmp_path / "room", rates=Rates(visits=Rate(5, 600.0)))
    http = browser_of(app)
    assert [http.get(path).status_code for _ in range(7)] == [200] * 5 + [429] * 2


def test_sessions_are_not_limited(tmp_path: Path) -> None:
    """Not even where strangers at the same address have used up what they may ask for."""
    app = new_room(tmp_path / "room", rates=Rates(visits=Rate(5, 600.0)))
    coordinator, stranger = coordinator_of(app), browser_of(app)
    assert coordinator.get("/").status_code == 200
    assert [stranger.get("/").status_code for _ in range(5)] == [200] * 3 + [429] * 2
    assert [coordinator.get("/").status_code for _ in range(7)] == [200] * 7


def test_a_guessed_token_counts_before_the_database_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = new_room(tmp_path / "room", rates=Rates(visits=Rate(5, 600.0)))
    asked: list[str] = []
    monkeypatch.setattr(app.state.room.doors, "session", asked.append)
    http = browser_of(app, Authorization="Bearer guessed")
    assert [http.get("/members").status_code for _ in range(7)] == [401] * 5 + [429] * 2
    assert asked == ["guessed"] * 5


def test_a_session_that_ended_is_limited_again(tmp_path: Path) -> None:
    app = new_room(tmp_path / "room", rates=Rates(visits=Rate(5, 600.0)))
    coordinator = coordinator_of(app)
    cookies = dict(coordinator.cookies)
    assert coordinator.post("/leave").status_code == 303
    coordinator.cookies.update(cookies)
    tried = [coordinator.get("/members").status_code for _ in range(6)]
    assert tried[0] == 401
    assert tried[-1] == 429


@pytest.mark.parametrize("port", ["99999", "x", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    http = browser_of(new_room(tmp_path / "room"))
    assert http.get("/", headers={"host": f"127.0.0.1:{port}"}).status_code == 400


def test_a_database_that_does_not_answer_is_not_the_visitors_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def to_try_once(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    monkeypatch.setattr(database, "_begin", to_try_once)
    http = browser_of(new_room(tmp_path / "room"))
    path = tmp_path / "room" / "room.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = [
            http.post("/api/challenge", json={"client": "North"}),
            http.post("/observe", data={"code": "x"}),
            http.get("/members", headers={"Authorization": "Bearer guessed"}),
        ]
    for answer in answers:
        assert answer.status_code == 503
        assert "cannot be reached right now. Try again in a moment." in answer.text
        assert str(path) not in answer.text
        assert "locked" not in answer.text
        assert answer.headers["content-security-policy"]
    assert f"{path}: database is locked" in caplog.text


@lie(
    "whoever has a link",
    "guess a link",
    "links have 256 random bits, and a stranger tries a few in a minute",
)
@pytest.mark.slow
def test_secrets_are_tried_a_few_times_only(tmp_path: Path) -> None:
    http = browser_of(new_room(tmp_path / "room", rates=Rates()))
    codes = [http.post("/api/invitation", json={"code": "x"}).status_code for _ in range(32)]
    assert set(codes) == {410, 429}


@pytest.mark.slow
def test_strangers_send_little(tmp_path: Path) -> None:
    """A form is read before a route refuses it, so it must not be large."""
    story = joined(tmp_path)
    file = {"copies": ("x.jsonl", b"x" * 100_000)}
    answer = story.http.post("/ledger/compare", files=file)
    assert answer.status_code == 413
    assert "without a session" in answer.text
    headers = {"Authorization": "Bearer guessed"}
    assert story.http.post("/api/ledger/compare", files=file, headers=headers).status_code == 413
    chunks = story.http.post("/api/ledger/compare", content=(b"x" * 50_000 for _ in range(3)))
    assert chunks.status_code in (400, 401)
    north = story.members["North"].headers
    assert story.http.post("/api/ledger/compare", files=file, headers=north).status_code == 200


def test_cookies_are_strict(tmp_path: Path) -> None:
    app = new_room(tmp_path / "room", address="https://room.example", secure=True)

    ticket = app.state.room.doors.ticket(Viewer("coordinator"))
    answer = browser_of(app).post("/enter", data={"code": ticket})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-fedaccord-")
    for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie
    assert "max-age" in answer.headers["strict-transport-security"]
