"""Joining a room from a member's own page."""

import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fedaccord.console.member.home import Home
from fedaccord.console.member.links import RoomPlace, load_place, read_link, save_place
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import write_member
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import load_client_file
from fedaccord.protocol.private import Private
from tests.console.members import NUMBERS, OpenRoom, enter, home_of, join, open_room, terms_of


@pytest.fixture
def room(tmp_path: Path) -> Iterator[OpenRoom]:
    with open_room(tmp_path, terms_of()) as opened:
        yield opened


@pytest.mark.slow
def test_from_a_link_to_a_card(room: OpenRoom, tmp_path: Path) -> None:
    home = tmp_path / "mary"
    page = enter(home)
    assert "Paste the link" in page.get("/").text
    shown = page.post("/join", data={"link": room.invite("St Mary")})
    assert "<bdi>Three hospitals</bdi> invites <bdi>St Mary</bdi>" in shown.text
    assert "St Mary, Northgate, Lakeside" in shown.text
    assert "whoever slipped gets no model for 1 slot" in shown.text
    assert not home.exists()
    made = page.post("/join/make", data=NUMBERS)
    card = home_of(page).card
    assert card.fingerprint in made.text
    assert "has your card" in made.text
    assert card == room.room.store.snapshot().cards["St Mary"].card
    place = load_place(home)
    assert place is not None
    assert (place.address, place.code) == (room.address, None)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "room.json").stat().st_mode) == 0o600
    assert load_client_file(home / "client.toml").samples == 119
    assert "Cards are missing: Northgate, Lakeside." in page.get("/").text


def test_the_interview_instead_of_numbers(room: OpenRoom, tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    page.post("/join", data={"link": room.invite("St Mary")})
    answers = {
        "cases_per_month": "100",
        "gpu_price": "2",
        "samples_per_second": "50",
        "cases_per_year": "3000",
        "missed_cost": "5-8",
        "false_cost": "12 give or take 20 %",
        "prevalence": "10 %",
    }
    lacking = page.post("/interview", data=answers | {"prevalence": "1.000", "gpu_price": ""})
    assert lacking.status_code == 422
    assert 'value="5-8"' in lacking.text
    found = page.post("/interview", data=answers)
    assert found.status_code == 200
    assert "How they were calculated" in found.text
    assert 'action="/join/make"' in found.text
    assert 'value="300"' in found.text  # three months of cases


@pytest.mark.slow
def test_numbers_as_people_write_them(room: OpenRoom, tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    page.post("/join", data={"link": room.invite("St Mary")})
    given = {
        "valuation": "1.234,50 €",
        "cost_per_sample": "0,05",
        "samples": "42 000",
        "discount_factor": "97 %",
        "communication_cost": "",
    }
    assert "has your card" in page.post("/join/make", data=given).text
    file = load_client_file(tmp_path / "mary" / "client.toml")
    assert (file.valuation, file.cost_per_sample, file.samples) == (1234.5, 0.05, 42_000)
    assert (file.discount_factor, file.communication_cost) == (0.97, 0.0)


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("samples", "42.000", "can be read in two ways: write 42 or 42000"),
        ("samples", "119.5", "must be a whole number"),
        ("samples", "", "is missing"),
        ("samples", "many", "must be a number"),
        ("discount_factor", "97", "did you mean 0.97?"),
        ("valuation", "-3", "must be"),
        ("valuation", "1e400", "must be"),
        ("cost_per_sample", "1e-300", "valuation / cost_per_sample must be"),
    ],
)
def test_a_wrong_number_makes_nothing(
    room: OpenRoom, tmp_path: Path, field: str, text: str, says: str
) -> None:
    page = enter(tmp_path / "mary")
    page.post("/join", data={"link": room.invite("St Mary")})
    answer = page.post("/join/make", data=NUMBERS | {field: text})
    assert answer.status_code == 422
    assert says in answer.text
    if text:
        assert f'value="{text}"' in answer.text  # it comes back filled in
    assert not (tmp_path / "mary").exists()
    assert room.room.store.snapshot().cards == {}


# --- Links that do not work ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("", "paste the link"),
        ("hello", "this is not a link"),
        ("https://room.example/", "not the link of an invitation"),
        ("https://room.example/join", "not the link of an invitation"),
        ("https://room.example/join#x", "not the link of an invitation"),
        ("https://room.example/observe#abcdefghijkl", "not the link of an invitation"),
        ("http://room.example/join#abcdefghijkl", "without TLS"),
        ("http://127.0.0.1.example/join#abcdefghijkl", "without TLS"),
        ("https://me:secret@room.example/join#abcdefghijkl", "no name and no password"),
        ("http://127.0.0.1:80/a/join#abcdefghijkl", "nothing after it"),
        ("https://room.example/a/join#abcdefghijkl", "nothing after it"),
        ("https://room.example/?/join#abcdefghijkl", "not the link of an invitation"),
        ("https://room.example\\@other.example/join#abcdefghijkl", "this is not a link"),
        ("file:///etc/join#abcdefghijkl", "this is not a link"),
        ("javascript:alert(1)/join#abcdefghijkl", "this is not a link"),
        ("https://[::1/join#abcdefghijkl", "this is not a link"),
        ("https://room.example:99999/join#abcdefghijkl", "this is not a link"),
        ("https://room.\u202eexample/join#abcdefghijkl", "this is not a link"),
    ],
)
def test_a_wrong_link_is_refused_in_a_sentence(tmp_path: Path, link: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_link(link)
    answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert says[1:] in answer.text
    assert not (tmp_path / "mary").exists()


def test_links_on_this_machine_need_no_tls() -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert read_link(f"http://{host}:80/join#abcdefghijkl").address == f"http://{host}:80"


@pytest.mark.slow
def test_a_link_that_was_withdrawn_or_expired(room: OpenRoom, tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    old = room.invite("St Mary")
    room.invite("St Mary")  # which withdraws the one before
    answer = page.post("/join", data={"link": old})
    assert answer.status_code == 422
    assert "The room says:" in answer.text
    assert ".." not in answer.text
    late = room.room.doors.invite("St Mary", timedelta(seconds=-1))
    answer = page.post("/join", data={"link": f"{room.address}/join#{late}"})
    assert answer.status_code == 422
    assert not (tmp_path / "mary").exists()


@pytest.mark.slow
def test_a_link_that_stops_working_while_one_fills_in_the_form(
    room: OpenRoom, tmp_path: Path
) -> None:
    page = enter(tmp_path / "mary")
    page.post("/join", data={"link": room.invite("St Mary")})
    fresh = room.invite("St Mary")
    answer = page.post("/join/make", data=NUMBERS)
    assert answer.status_code == 422
    assert "has not taken your card yet" in answer.text
    before = home_of(page).card
    assert "Send it" in page.get("/").text
    assert "has your card" in page.post("/join", data={"link": fresh}).text
    assert home_of(page).card == before  # the keys stay


@pytest.mark.slow
def test_a_used_link_is_for_nobody_else(room: OpenRoom, tmp_path: Path) -> None:
    link = room.invite("St Mary")
    join(enter(tmp_path / "mary"), link)
    answer = enter(tmp_path / "thief").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert not (tmp_path / "thief").exists()


def test_a_room_that_is_away(tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        link = room.invite("St Mary")
    answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "cannot be reached at the moment" in answer.text


@pytest.mark.slow
def test_the_room_is_away_when_the_card_is_sent(tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    with open_room(tmp_path, terms_of()) as room:
        page.post("/join", data={"link": room.invite("St Mary")})
    answer = page.post("/join/make", data=NUMBERS)
    assert answer.status_code == 422
    assert "cannot be reached at the moment" in answer.text
    assert home_of(page).exists
    again = enter(tmp_path / "mary")  # the page is started again
    assert "Send it" in again.get("/").text
    place = load_place(tmp_path / "mary")
    assert place is not None
    assert place.code is not None


@pytest.mark.slow
def test_a_card_that_arrived_although_its_answer_did_not(room: OpenRoom, tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    link = room.invite("St Mary")
    join(page, link)
    place = RoomPlace(address=room.address, code=read_link(link).code)
    save_place(tmp_path / "mary", place)  # as if the answer had been lost
    assert "has your card" in page.post("/join/send").text
    assert load_place(tmp_path / "mary") == RoomPlace(address=room.address)


@pytest.mark.slow
def test_a_directory_that_exists_joins_a_room(room: OpenRoom, tmp_path: Path) -> None:
    home = tmp_path / "mary"
    private = Private("St Mary", 35.0, 0.05, 120, 0.9)
    write_member(home, load_invitation(room.room.app / "invitation.toml"), private)
    page = enter(home)
    assert "paste the link of your invitation" in page.get("/").text
    wrong = page.post("/join", data={"link": room.invite("Northgate")})
    assert wrong.status_code == 422
    assert "this is the page of St Mary" in wrong.text
    again = page.post("/join", data={"link": room.invite("St Mary")}).text
    assert "has your card" in again
    assert 'action="/join"' in again  # for another invitation


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(FedaccordError, match="exists already, and is not empty"):
        Home(tmp_path)


@pytest.mark.slow
def test_a_link_can_be_put_back(room: OpenRoom, tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    page.post("/join", data={"link": room.invite("St Mary")})
    assert "The link of your invitation" in page.post("/join/other").text
    assert page.post("/join/make", data=NUMBERS).status_code == 422
