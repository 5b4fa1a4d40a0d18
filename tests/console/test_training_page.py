"""Training in the workshop: started, watched, cancelled, and never left behind."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page

from fedaccord.console.workshop import jobs
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.jobs import Training, Trainings
from fedaccord.console.workshop.settings import Settings
from fedaccord.console.workshop.training_files import check_names, check_size, kept
from fedaccord.console.workshop.training_form import TrainingForm
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.consortium import example_text
from fedaccord.plots.growing_curves import growing_curves
from tests.console.browser import check_page, served, visitor

pytest.importorskip("torch")

HERE = "http://127.0.0.1:8321"
SHORT: dict[str, Any] = {
    "dataset": "digits",
    "profile": ["equilibrium", "agreement"],
    "seeds": "2",
    "rounds": "5",
}
LONG = SHORT | {"seeds": "10", "rounds": "200", "profile": ["alone", "agreement", "pooled"]}
HOSTILE = "=SUM(A1) <script>alert(1)</script> مستشفى " + "x" * 150
SMALL = """
discount_factor = 0.95
rounds = 50

[[clients]]
name = "North"
valuation = 100
cost_per_sample = 0.05
samples = 60

[[clients]]
name = "South"
valuation = 80
cost_per_sample = 0.05
samples = 50
"""


def place(text: str | None = None) -> str:
    return f"/w/{Draft(example_text() if text is None else text).packed}/train"


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(create_workshop(), base_url=HERE, follow_redirects=False) as opened:
        yield opened


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended may still be listed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def known(client: TestClient) -> Trainings:
    found: Trainings = client.app.state.trainings  # type: ignore[attr-defined]
    return found


def started(client: TestClient, where: str, **form: object) -> Training:
    answer = client.post(where, **form)  # type: ignore[arg-type]
    assert answer.status_code == 303, answer.text
    return known(client).find(answer.headers["location"].rpartition("/")[2].partition("?")[0])


def test_the_form_says_what_it_is_about(client: TestClient) -> None:
    page = client.get(place()).text
    assert "1,797 handwritten digits" in page
    assert "samples in a slot" in page
    assert "about 10 seconds" in page
    longer = client.get(place() + "?seeds=10&rounds=200&profile=alone&dataset=digits").text
    assert "about 1 minute" in longer


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seeds": "0"}, "A whole number from 1 to 10."),
        ({"optimiser": "magic"}, "Choose one of these."),
        ({"fine_tuning": "51"}, "A whole number from 0 to 50."),
        ({"seeds": "1e9"}, "A whole number from 1 to 10."),
        ({"rounds": "٣"}, "A whole number from 1 to 200."),
        ({"rounds": "201"}, "A whole number from 1 to 200."),
        ({"profile": []}, "Choose at least one."),
        ({"dataset": "../../etc/passwd"}, "Choose one of these."),
        ({"dataset": "uploaded"}, "Choose a file."),
    ],
)
def test_a_mistake_is_beside_its_field(
    client: TestClient, changed: dict[str, str | list[str]], said: str
) -> None:
    answer = client.post(place(), data=SHORT | changed)
    assert answer.status_code == 422
    assert said in answer.text


def test_without_torch_the_page_says_how_to_install_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(what: str, *_: str) -> None:
        raise FedaccordError(f"{what} needs PyTorch: pip install 'fedaccord[train]'")

    monkeypatch.setattr("fedaccord.console.workshop.training.check_installed", missing)
    assert "pip install &#39;fedaccord[train]&#39;" in client.get(place()).text
    assert client.post(place(), data=SHORT).status_code == 422


def test_a_draft_with_mistakes_leads_to_its_members(client: TestClient) -> None:
    answer = client.get(place('[[clients]]\nname = "A"\n'))
    assert answer.status_code == 303
    assert answer.headers["location"].endswith("/members")


@pytest.mark.slow
def test_a_training_from_start_to_end(client: TestClient) -> None:
    where = place(example_text().replace('name = "', f'name = "{HOSTILE}', 2))
    training = started(client, where + "?margin=0.02", data=SHORT | {"optimiser": "fedadam"})
    assert training.order.settings.margin == 0.02
    here = f"{where}/{training.id}"
    assert "Look again" in client.get(here).text
    wait_for(lambda: not training.running)
    assert training.problems == []
    assert {name: len(curve) for name, curve in training.curves.items()} == {
        "equilibrium": 5,
        "agreement": 5,
    }
    page = client.get(here).text
    assert "agreement against equilibrium" in page
    assert "<script>alert" not in page
    assert "style=" not in page
    record = client.get(f"{here}/training.json").json()
    assert [each["profile"] for each in record["profiles"]] == ["equilibrium", "agreement"]
    assert record["notes"] is not None
    assert "FedAdam" in page
    assert page.count("At the end of the") == 1
    assert "<html" not in client.get(here, headers={"hx-request": "true"}).text
    events = client.get(f"{here}/events").text
    assert "event: ended" in events


@pytest.mark.slow
def test_a_training_that_is_cancelled_ends(client: TestClient) -> None:
    training = started(client, place(), data=LONG)
    wait_for(lambda: training.version > 0)
    assert client.get(f"{place()}/{training.id}/training.json").status_code == 404
    answer = client.post(f"{place()}/{training.id}/cancel")
    assert answer.status_code == 303
    assert training.state == "cancelled"
    assert not alive(training.pid)
    assert "Cancelled." in client.get(f"{place()}/{training.id}").text


@pytest.mark.slow
def test_only_two_run_at_once(client: TestClient) -> None:
    trainings = [started(client, place(), data=LONG) for _ in range(2)]
    answer = client.post(place(), data=LONG)
    assert answer.status_code == 409
    assert "2 trainings run already" in answer.text
    for training in trainings:
        training.cancel()


def test_old_ones_are_forgotten(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "KEPT", 1)
    first = started(client, place(), data=LONG)
    first.cancel()
    for _ in range(2):
        started(client, place(), data=LONG).cancel()
    assert client.get(f"{place()}/{first.id}").status_code == 404


def test_trainings_end_with_the_server() -> None:
    with TestClient(create_workshop(), base_url=HERE, follow_redirects=False) as client:
        training = started(client, place(), data=LONG)
        assert alive(training.pid)
    wait_for(lambda: not alive(training.pid))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux lists them")
def test_trainings_end_even_if_the_server_is_killed(tmp_path: Path) -> None:
    program = (
        "import json, sys, time\n"
        "from fedaccord.console.workshop.jobs import Trainings\n"
        "from fedaccord.console.workshop.orders import Order\n"
        "order = Order(consortium=sys.argv[1], seeds=10, rounds=200, profiles=['alone'])\n"
        "print(Trainings().start(order, folder=sys.argv[2]).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    folder = tmp_path / "files"
    folder.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-c", program, example_text(), str(folder)], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    wait_for(lambda: "trainer" in Path(f"/proc/{pid}/cmdline").read_text())
    time.sleep(1.0)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    wait_for(lambda: not alive(pid), 30)
    wait_for(lambda: not folder.exists(), 10)


# --- Data of one's own ---------------------------------------------------------------------


def table(rows: int, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(rows, 3))
    lines = [",".join(f"{value:.4f}" for value in row) + f",{int(row.sum() > 0)}" for row in inputs]
    return ("a,b,c,label\n" + "\n".join(lines)).encode()


@pytest.mark.slow
def test_one_file_is_dealt_out(client: TestClient) -> None:
    files = [("files", ("../../patients.csv", table(200, 0), "text/csv"))]
    training = started(client, place(SMALL), data=SHORT | {"dataset": "uploaded"}, files=files)
    wait_for(lambda: not training.running)
    assert training.problems == []
    assert training.outcome is not None
    assert "on patients.csv" in training.outcome.setting


@pytest.mark.slow
def test_a_file_for_each_member(client: TestClient) -> None:
    names = {"North.csv": 60, "South.csv": 30, "test.csv": 40}
    files = [("files", (name, table(rows, rows), "text/csv")) for name, rows in names.items()]
    training = started(client, place(SMALL), data=SHORT | {"dataset": "uploaded"}, files=files)
    wait_for(lambda: not training.running)
    assert training.problems == []
    assert training.outcome is not None
    assert "one example stands for 1.667 samples" in training.outcome.setting


OWN_TESTS = {"North.csv": 60, "South.csv": 50, "North.test.csv": 40, "South.test.csv": 30}


@pytest.mark.slow
@pytest.mark.parametrize("common", [{}, {"test.csv": 20}])
def test_each_member_has_a_test_of_its_own(client: TestClient, common: dict[str, int]) -> None:
    files = [
        ("files", (name, table(rows, rows), "text/csv"))
        for name, rows in (OWN_TESTS | common).items()
    ]
    form = SHORT | {"dataset": "uploaded", "optimiser": "fedprox", "fine_tuning": "3"}
    training = started(client, place(SMALL), data=form, files=files)
    wait_for(lambda: not training.running)
    assert training.problems == []
    assert training.outcome is not None
    page = client.get(f"{place(SMALL)}/{training.id}").text
    assert page.count("<h2>On each member's own test</h2>") == 1
    assert "<bdi>North (40)</bdi>" in page
    assert "<bdi>South (30)</bdi>" in page
    assert "FedProx, mu 0.01" in training.outcome.setting
    assert "fine-tuned by each client for 3 epochs" in training.outcome.setting


@pytest.mark.slow
def test_fine_tuning_without_own_tests_is_refused(client: TestClient) -> None:
    training = started(client, place(), data=SHORT | {"fine_tuning": "2"})
    wait_for(lambda: not training.running)
    assert training.problems == ["fine_tuning: needs a test of each client's own to judge by"]


@pytest.mark.slow
def test_a_pickle_is_not_read(client: TestClient) -> None:
    content = io.BytesIO()
    np.savez(content, inputs=np.array([[object()]] * 9, dtype=object), labels=np.arange(9))
    files = [("files", ("data.npz", content.getvalue(), "application/zip"))]
    training = started(client, place(SMALL), data=SHORT | {"dataset": "uploaded"}, files=files)
    wait_for(lambda: not training.running)
    assert training.state == "failed"
    assert "data.npz: cannot be read as examples" in training.problems[0]
    assert "data.npz" in client.get(f"{place(SMALL)}/{training.id}").text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["model.pkl"], "model.pkl is neither .csv nor .npz"),
        (["North.csv"], "There is no file for South, test."),
        (["North.csv", "South.csv", "test.csv", "West.csv"], "Nobody is called West."),
        (["North.csv", "North.npz", "South.csv", "test.csv"], "There are two files for North."),
        (["North.csv", "South.csv", "North.test.csv"], "There is no file for South.test."),
        (["North.csv", "South.csv", "West.test.csv"], "Nobody is called West.test."),
        (
            ["North.csv", "South.csv", "test/North.csv", "North.test.csv", "test/South.csv"],
            "There are two files for North.test.",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(files: list[str], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_names(files, ["North", "South"])
    assert said in caught.value.problems[0].message


@pytest.mark.parametrize("start", ["", "data/", "C:\\data\\"])
def test_own_tests_may_be_in_a_folder(start: str) -> None:
    given = ["North.csv", "test.csv", "test/North.csv"]
    files = [start + name for name in given]
    if "\\" in start:
        files = [name.replace("/", "\\") for name in files]
    assert check_names(files, ["North"]) == ["North", "test", "test/North"]


def test_a_member_may_be_called_as_a_test_is() -> None:
    files = ["North.csv", "North.test.csv", "test.csv"]
    assert check_names(files, ["North", "North.test"]) == ["North", "North.test", "test"]


@pytest.mark.parametrize("name", ["../../x.csv", "C:\\x\\y.csv", "\0.csv", "é" * 300 + ".csv"])
def test_a_file_is_kept_inside_its_folder(tmp_path: Path, name: str) -> None:
    path = kept(io.BytesIO(b"1"), name, tmp_path / "0")
    assert path.resolve().parent == (tmp_path / "0").resolve()
    assert path.read_bytes() == b"1"


@pytest.mark.slow
def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("inputs.npy", "w", force_zip64=True) as content,
    ):
        for _ in range(520):
            content.write(bytes(1024 * 1024))
    with pytest.raises(InvalidInput, match=r"bomb.npz: has 520 megabytes in it"):
        check_size(path)


# --- For programs, and in pictures ---------------------------------------------------------


@pytest.mark.slow
def test_a_program_trains(client: TestClient) -> None:
    order = {"consortium": SMALL, "seeds": 1, "rounds": 3, "settings": {"margin": 0.02}}
    answer = client.post("/api/trainings", json=order)
    assert answer.status_code == 202
    job = f"/api/trainings/{answer.json()['job']}"
    wait_for(lambda: client.get(job).json()["state"] != "running")
    state = client.get(job).json()
    assert state["state"] == "finished"
    assert len(state["result"]["runs"]) == 2
    assert client.delete(job).json()["state"] == "finished"
    assert client.get("/api/trainings/none").status_code == 404


@pytest.mark.parametrize(
    "order",
    [
        {"consortium": "x"},
        {"consortium": SMALL, "dataset": "none"},
        {"consortium": SMALL, "rounds": 0},
        {"consortium": SMALL, "fine_tuning": -1},
        {"consortium": SMALL, "profiles": []},
        {"consortium": SMALL, "settings": {"without": 9}},
        {"consortium": SMALL, "settings": {"margin": 9}},
        {"consortium": SMALL, "more": 1},
        {},
    ],
)
def test_a_program_is_told_what_is_wrong(client: TestClient, order: dict[str, object]) -> None:
    answer = client.post("/api/trainings", content=json.dumps(order))
    assert answer.status_code == 422
    assert answer.json()["problems"]


def test_rounds_are_those_of_the_consortium_unless_they_are_too_many() -> None:
    draft = Draft(SMALL.replace("50\n", "5_000\n", 1))
    form = TrainingForm(profile=["agreement"])
    assert form.order(draft, Settings(), draft.consortium).rounds == 200


def test_a_curve_that_has_hardly_begun() -> None:
    assert growing_curves({}, 50).count("<polyline") == 0
    assert growing_curves({"<b>": [0.5]}, 1).count("<circle") == 1
    picture = growing_curves({"alone": [0.1, 0.9, 0.9], "pooled": [0.2] * 3}, 50, "concordance")
    assert picture.count("<polyline") == 2
    assert "<b>" not in growing_curves({"<b>": [0.5, 0.6]}, 9)
    ended = growing_curves({"equilibrium": [0.1] * 5, "agreement": [0.9612] * 5}, 5, "concordance")
    names = re.findall(r'<text x="([\d.]+)" [^>]*font-weight="600">([^<]+)<', ended)
    assert [text for _, text in names] == ["equilibrium 0.100", "agreement 0.961"]
    assert all(float(x) + 8 * len(text) <= 560 for x, text in names)


# --- In a browser --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_a_training_is_watched_to_its_end(browser: Browser, phone: bool) -> None:
    with served(create_workshop()) as address, visitor(browser, phone=phone) as page:
        page.goto(address + place())
        check_page(page)
        page.fill("#seeds", "10")
        page.press("#seeds", "Tab")
        page.wait_for_selector("#training-time:has-text('20 seconds')")
        page.fill("#seeds", "2")
        page.fill("#rounds", "150")
        page.get_by_role("button", name="Train").click()
        page.wait_for_selector("#training-now svg polyline", timeout=120_000)
        check_page(page)
        page.wait_for_selector("#training-scores", timeout=120_000)
        assert "agreement against equilibrium" in page.inner_text("#training-title")
        check_page(page)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download everything").click()
        assert download.value.suggested_filename == "training.json"


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False])
def test_a_training_is_cancelled_in_a_browser(browser: Browser, scripts: bool) -> None:
    with served(create_workshop()) as address, visitor(browser, scripts=scripts) as page:
        page.goto(address + place())
        page.check("#profile-alone")
        page.fill("#rounds", "200")
        page.get_by_role("button", name="Train").click()
        if not scripts:
            page.get_by_role("link", name="Look again").click()
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_selector("text=Cancelled.")
        check_page(page)


@pytest.mark.slow
def test_a_training_without_scripts(browser: Browser) -> None:
    with served(create_workshop()) as address, visitor(browser, scripts=False) as page:
        page.goto(address + place())
        page.fill("#rounds", "5")
        page.get_by_role("button", name="Train").click()
        for _ in range(300):
            if page.locator("#training-scores").count():
                break
            page.wait_for_timeout(300)
            page.get_by_role("link", name="Look again").or_(
                page.get_by_role("link", name="Train again")
            ).first.focus()
            page.reload()
        assert "agreement against equilibrium" in page.inner_text("main")


@pytest.mark.slow
def test_a_training_by_keyboard_alone(browser: Browser) -> None:
    with served(create_workshop()) as address, visitor(browser) as page:
        page.goto(address + place())
        _tab_to(page, "rounds")
        page.keyboard.press("Control+A")
        page.keyboard.type("200")
        page.keyboard.press("Enter")
        page.wait_for_selector("#training-now")
        _tab_to(page, "Cancel")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Cancelled.")


def _tab_to(page: Page, what: str) -> None:
    """Press Tab until the element with this id or text has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate("[document.activeElement.id, document.activeElement.textContent]")
        if what in here:
            return
    raise AssertionError(f"Tab does not lead to {what}")
