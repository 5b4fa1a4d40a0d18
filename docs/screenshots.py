"""Makes the pictures of the console that the pages show: `make screenshots`.

It goes the whole way that `tests/console/test_whole_way.py` goes, in a real browser, with nginx and
Flower, so the pictures show what the tests test.
"""

import os
import tempfile
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.app import create_room
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft
from fedaccord.files.consortium import example_text
from tests.console import test_whole_way as way
from tests.console.browser import chromium, served, visitor
from tests.console.members import many

FOLDER = Path(__file__).parent / "images" / "console"
COLOURS = 64
"""Of a picture: enough for pages, and a quarter of the size."""
SECONDS = 300_000
INTERVIEW = {
    "name": "St Anna",
    "cases_per_month": "500 to 700",
    "years_used": "2",
    "annotation_cost": "4",
    "gpu_price": "2.5",
    "samples_per_second": "10",
    "cases_per_year": "8,000",
    "missed_cost": "900 to 2000",
    "false_cost": "150",
    "prevalence": "1 %",
}
"""Answers of a hospital that is not in the example."""


def take(page: Page, name: str, height: int = 900) -> None:
    """A picture of the upper part of a page."""
    page.set_viewport_size({"width": 1280, "height": height})
    page.wait_for_load_state("load")
    page.wait_for_timeout(500)
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture.save(FOLDER / f"{name}.png", optimize=True)
    print(name, (FOLDER / f"{name}.png").stat().st_size)


def workshop(browser: Browser) -> None:
    """The example of six hospitals."""
    packed = Draft(example_text()).packed
    with served(create_workshop()) as address, visitor(browser) as page:
        page.goto(address)
        take(page, "workshop-start", 800)
        for name, height in (("members", 950), ("design", 1150), ("member/4", 950)):
            page.goto(f"{address}/w/{packed}/{name}")
            take(page, f"workshop-{name.split('/', maxsplit=1)[0]}", height)
        page.goto(f"{address}/w/{packed}/interview?{urlencode(INTERVIEW)}")
        take(page, "workshop-interview", 1000)
        page.goto(f"{address}/w/{packed}/compare")
        take(page, "workshop-compare", 1870)
        page.goto(f"{address}/w/{packed}/train")
        page.get_by_role("button", name="Train", exact=True).click()
        expect(page.locator("#training-scores")).to_be_visible(timeout=SECONDS)
        take(page, "workshop-train", 1000)


def room(browser: Browser, folder: Path) -> None:
    """Three hospitals, from a new room to a settled slot."""
    os.environ["OMP_NUM_THREADS"] = "1"
    app = create_room(folder / "room", rates=many())
    with ExitStack() as stack:
        address = stack.enter_context(served(app))
        app.state.room.address = address
        desk = stack.enter_context(visitor(browser))
        desk.on("dialog", lambda dialog: dialog.accept())
        desk.goto(f"{address}/enter#{app.state.room.doors.ticket(Viewer('coordinator'))}")
        desk.wait_for_url(f"{address}/")
        way.create(desk, address)
        members = [
            stack.enter_context(way.member_at(browser, name, folder / f"member-{n}"))
            for n, name in enumerate(way.MEMBERS)
        ]
        for member in members:
            fingerprint = way.join(member, way.invite(desk, address, member.name))
            if member is members[0]:
                take(member.page, "member-joined", 620)
            desk.goto(f"{address}/members")
            take(desk, "room-members", 560)
            way.compare(desk, address, member.name, fingerprint)
        way.discuss(members[1], desk, address)
        take(members[0].goes_to("/terms"), "member-terms", 1100)
        for member in members[:-1]:
            way.prepare(member)
        desk.goto(f"{address}/terms")
        take(desk, "room-terms")
        way.prepare(members[-1])
        desk.goto(f"{address}/run")
        desk.get_by_role("button", name="Start the server").click()
        run = desk.get_by_role("button", name="Run", exact=True)
        expect(run).to_be_enabled(timeout=SECONDS)
        expect(desk.locator("#output")).to_contain_text("the server runs", timeout=SECONDS)
        run.click()
        desk.goto(f"{address}/watch")
        table = desk.get_by_role("table", name="Trained on")
        expect(table).to_contain_text("kept to it", timeout=SECONDS)
        take(desk, "room-watch", 1000)


if __name__ == "__main__":
    with chromium() as started, tempfile.TemporaryDirectory() as place:
        workshop(started)
        room(started, Path(place))
