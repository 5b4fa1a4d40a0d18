"""Following a run: what is told of its log, and how it may end. Flower's command is played here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower import running
from fedaccord.flower.events import Event, Note
from fedaccord.flower.running import run_slots_and_watch
from fedaccord.flower.server_events import RunBegins, RunEnds, SlotBegins

BEGINS = RunBegins(consortium="test", clients=["a", "b"], slot=1, last_slot=1)
SLOT = SlotBegins(slot=1, phase="cooperating")


def logged(event: Event) -> str:
    return f"\x1b[92mINFO \x1b[0m:      {event.as_json}\n"


class Played(running._Flower):
    """Flower's command line with a log in parts: the connection breaks after each."""

    parts: list[list[str]]
    statuses: list[str]

    def _answer(self, *words: str) -> Any:
        if words[0] == "run":
            return {"success": True, "run-id": "7"}
        return {"runs": [{"status": status} for status in [self.statuses.pop(0)] if status]}

    def lines(self, run: str) -> Iterator[str]:
        assert run == "7"
        yield from self.parts.pop(0)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "fedaccord_app").mkdir()
    (tmp_path / "fedaccord_app" / "terms.toml").write_text("")
    return tmp_path


def play(
    monkeypatch: pytest.MonkeyPatch, parts: list[list[str]], statuses: list[str] | None = None
) -> None:
    made = type("Made", (Played,), {"parts": parts, "statuses": statuses or ["finished:completed"]})
    monkeypatch.setattr(running, "_Flower", made)


@pytest.mark.parametrize(("void", "good"), [([], True), ([1], False)])
def test_the_events_of_a_run(
    void: list[int],
    good: bool,
    app: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ends = RunEnds(settled=[1], void=void)
    noise = ["INFO :      Starting logstream\n", 'INFO :  {"event": "nonsense"}\n', '{"event": \n']
    play(monkeypatch, [[logged(BEGINS), *noise, logged(SLOT), logged(ends)]])
    heard: list[Event] = []
    assert run_slots_and_watch(app, 1, log_format="json", listeners=[heard.append]) is good
    assert heard == [BEGINS, SLOT, ends]
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in printed] == ["run_begins", "slot_begins", "run_ends"]


def test_a_connection_that_breaks_is_made_again_and_nothing_is_told_twice(
    app: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [logged(BEGINS), logged(SLOT), logged(RunEnds(settled=[1]))]
    play(monkeypatch, [whole[:1], [], whole[:2], whole], ["running"] * 3 + ["finished:completed"])
    assert run_slots_and_watch(app, 1)
    lines = [line[22:] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "test: running slot 1 with a and b",
        "slot 1 begins, cooperating",
        "the run is over: 1 slot settled, none of them void",
    ]


@pytest.mark.parametrize(
    ("last", "status", "why"),
    [
        (
            "\x1b[91mERROR \x1b[0m:     ledger.db: is in use\n",
            "finished:failed",
            "ledger.db: is in",
        ),
        (
            "\x1b[91mERROR \x1b[0m:     ledger.db: is in use\n"
            "\x1b[91mERROR \x1b[0m:     Exit Code: 201\n",
            "finished:failed",
            "ledger.db: is in",
        ),
        ("ERROR :     Exit Code: 201\n", "finished:failed", "`flwr log 7 consortium --show` in "),
        ("INFO :      nothing\n", "finished:failed", "`flwr log 7 consortium --show` in "),
        ("", "finished:stopped", "it was stopped; run the slots again to go on where it was"),
        ("", "", "the SuperLink does not answer any more"),
    ],
)
def test_a_run_that_ends_too_early(
    last: str, status: str, why: str, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(monkeypatch, [[logged(BEGINS), *last.splitlines(keepends=True)]], [status])
    heard: list[Event] = []
    with pytest.raises(FedaccordError, match="the run failed: ") as failed:
        run_slots_and_watch(app, 1, listeners=[heard.append])
    assert why in str(failed.value)
    assert heard[-1].in_words == str(failed.value)


def test_whoever_stops_watching_is_told_that_the_run_goes_on(
    app: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Event) -> None:
        raise KeyboardInterrupt

    play(monkeypatch, [[logged(Note(message="hello"))]])
    with pytest.raises(KeyboardInterrupt):
        run_slots_and_watch(app, 1, listeners=[interrupted])
    assert "but run 7 goes on; `flwr stop 7` stops it" in capsys.readouterr().out


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a directory that `fedaccord flower new` wrote"):
        run_slots_and_watch(tmp_path, 1)


@pytest.mark.parametrize(
    ("files", "named", "found"),
    [
        ((), "", ""),
        (("test.csv",), "", ' test-data="test.csv"'),
        (("test.csv", "test.npz"), "", ' test-data="test.npz"'),
        (("test.npz",), "mine.npz", ""),
    ],
)
def test_test_examples_in_the_servers_directory_are_used(
    files: tuple[str, ...],
    named: str,
    found: str,
    app: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless the configuration of the app names others."""
    asked: list[tuple[str, ...]] = []

    def answer(_: Any, *words: str) -> Any:
        asked.append(words)
        return {"success": True, "run-id": "7"}

    monkeypatch.setattr(running._Flower, "_answer", answer)
    for name in files:
        (app / name).write_text("")
    (app / "pyproject.toml").write_text(f'[tool.flwr.app.config]\ntest-data = "{named}"\n')
    assert running._Flower(app).start(3) == "7"
    assert asked[0][-1] == f'last-slot=3 log-format="json"{found}'
