"""The answers for programs, against their own description: all applications, all roles.

Schemathesis makes up requests, right ones and wrong ones, and applies all of its checks but
`positive_data_acceptance`, since no schema knows which codes, challenges, signatures and texts of
consortium files are right; and for uploads `negative_data_rejection`, since a file may have any
content. Of the others, some never have a case here: `ignored_auth` and
`object_level_authorization` need a security scheme in the description (who may do what is the table
in `test_room_authorisation`), `use_after_free` and `ensure_resource_availability` need links, and
`max_response_time` needs a limit.

Half of the requests that fit the description get values that lead further than the first check,
such as a consortium that can be solved.

`FEDACCORD_FUZZ_SECONDS=600` makes new requests for so long in all; how many is printed with `-s`.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from fedaccord.console.room.access import Viewer
from fedaccord.console.workshop import jobs
from fedaccord.console.workshop.app import create_workshop
from fedaccord.files.consortium import example_text
from tests.console.ledgers import play, signed_terms
from tests.console.members import enter
from tests.console.room_story import NAMES, Story, close_rooms, joined

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("FEDACCORD_FUZZ_SECONDS", "0"))
EXAMPLES = 8
"""Of each operation in each mode, and five times as many at once if the time is given."""
LONG = 1_000_000
"""Characters of a consortium file, up to which none is refused for its length."""
NOT_HERE, NOT_FOR_FILES = [positive_data_acceptance], [negative_data_rejection]
ROLES = ("nobody", "observer", "member", "coordinator")
TARGETS = 1 + len(ROLES)
HOST = {"Host": "127.0.0.1:8321"}


@dataclass
class Target:
    """An application as somebody asks it."""

    app: FastAPI
    headers: Callable[[], dict[str, str]] = dict
    after: Callable[[Any], None] = lambda case: None
    known: dict[str, list[Any]] = field(default_factory=dict)
    """Values that mean something, by the names of fields and parameters."""

    @property
    def operations(self) -> list[Any]:
        """All that the description has."""
        schema = schemathesis.openapi.from_dict(self.app.openapi())
        schema.app = self.app
        found: Any = schema.get_all_operations()
        return [each.ok() for each in found]

    def improve(self, case: Any, data: st.DataObject) -> None:
        """Give a case values that mean something."""
        for values in (case.body, case.path_parameters, case.query):
            for name in self.known.keys() & (values if isinstance(values, dict) else {}):
                values[name] = data.draw(st.sampled_from(self.known[name]))


def fuzz(target: Target, mode: GenerationMode, operation: Any) -> int:
    """Make up requests for one operation; how many there were."""
    asked = 0

    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    @settings(
        max_examples=EXAMPLES * (5 if SECONDS else 1),
        deadline=None,
        derandomize=not SECONDS,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: Any, data: st.DataObject) -> None:
        nonlocal asked
        if mode is GenerationMode.POSITIVE and data.draw(st.booleans()):
            target.improve(case, data)
        elif isinstance(case.body, dict) and _is_short(case.body.get("consortium")):
            case.body["consortium"] = example_text()  # whatever is wrong is elsewhere
        answer = case.call(headers=HOST | target.headers())
        asked += 1
        assert answer.status_code < 500, f"{case.method} {case.path}: {case.body} {answer.text}"
        uploads = case.media_type == "multipart/form-data"
        refused = uploads or answer.status_code == 413  # which Schemathesis does not expect
        case.validate_response(answer, excluded_checks=NOT_HERE + NOT_FOR_FILES * refused)
        target.after(case)

    holds()
    return asked


def _is_short(text: Any) -> bool:
    """Whether it is a text that is not refused for its length."""
    return isinstance(text, str) and len(text) <= LONG


def fuzz_all(target: Target, who: str) -> None:
    """Every operation once, and again until the time is over."""
    until = time.monotonic() + SECONDS / TARGETS
    asked = 0
    first = True
    while first or time.monotonic() < until:
        for operation in target.operations:
            for mode in GenerationMode:
                if mode is GenerationMode.POSITIVE or _can_be_wrong(operation):
                    asked += fuzz(target, mode, operation)
            if not first and time.monotonic() >= until:
                break
        first = False
    print(f"\n{who}: {asked:,} requests")


def _can_be_wrong(operation: Any) -> bool:
    """Whether an operation takes anything that could be wrong."""
    return bool(operation.body or operation.query or operation.path_parameters)


# --- The workshop --------------------------------------------------------------------------


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setattr(jobs, "AT_ONCE", 1)
    app = create_workshop()
    app.state.trainings = jobs.Trainings()
    table = "name;samples;valuation;cost per sample\nA;42.000;700 000 €;0,0042\nB;;;"
    known = {
        "consortium": [example_text(), example_text().replace("discount_factor = 0.9", "")],
        "text": [table, table.replace(";", "\t"), example_text()],
        "job": ["no-such-job"],
    }

    def after(case: Any) -> None:
        known["job"] = list(app.state.trainings._known) or known["job"]
        app.state.trainings.close()

    yield Target(app, after=after, known=known)
    app.state.trainings.close()


def test_the_workshop_answers_as_described(workshop: Target) -> None:
    fuzz_all(workshop, "workshop")


# --- The room ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    found = joined(Path(tmp_path_factory.mktemp("room")))
    play(found.room.app / "ledger.db", signed_terms(NAMES), 2, {"South": {1: 0}})
    yield found
    found.app.state.follower.close()
    close_rooms()


def token_for(story: Story, role: str) -> str:
    """A new session."""
    doors = story.room.doors
    if role == "nobody":
        return ""
    if role == "observer":
        return doors.observe(doors.invite_observer("x"))
    client = "North" if role == "member" else None
    viewer = Viewer("member" if client else "coordinator", client)
    return doors.enter(doors.ticket(viewer))


@pytest.mark.parametrize("role", ROLES)
def test_the_room_answers_as_described(story: Story, role: str) -> None:
    held = [token_for(story, role)]

    def headers() -> dict[str, str]:
        return {"Authorization": f"Bearer {held[0]}"} if held[0] else {}

    def after(case: Any) -> None:
        if case.path == "/api/logout":
            held[0] = token_for(story, role)

    north = story.members["North"]
    signature = north.signature(north.to_sign(story.http)["text"])
    known: dict[str, list[Any]] = {
        "client": ["North", "South", "nobody"],
        "code": [story.room.doors.invite("West")],
        "card": [north.card().model_dump()],
        "version": [1, 2],
        "first": [1, 3, 2**31],
        "slot": [1, 2, 3],
        **{name: [value] for name, value in signature.model_dump().items() if name != "client"},
    }
    fuzz_all(Target(story.app, headers, after, known), role)


@pytest.mark.parametrize("which", ["workshop", "room"])
def test_pages_are_not_described(which: str, workshop: Target, story: Story) -> None:
    app = workshop.app if which == "workshop" else story.app
    described = app.openapi()["paths"]
    assert described
    assert [path for path in described if not path.startswith("/api/")] == []


# --- A member's page -----------------------------------------------------------------------


def test_a_members_page_has_nothing_for_programs(tmp_path: Path) -> None:
    page = enter(tmp_path / "member")
    described = page.get("/api/openapi.json").json()
    assert described["paths"] == {}, "make a target of it"
