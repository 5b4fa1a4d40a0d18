"""Metrics for Prometheus, read by its own parser; and listeners that other packages bring."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from fedaccord.errors import FedaccordError
from fedaccord.flower.events import Event, Note
from fedaccord.flower.listeners import find_listener
from fedaccord.flower.metrics import MetricsFile
from fedaccord.flower.server_events import RunFailed
from fedaccord.protocol.facts import Scored
from tests.flower.test_narration import played

parser = pytest.importorskip("prometheus_client.parser")


def read(path: Path) -> dict[tuple[str, str], float]:
    """The value of each metric, by its name and the client's."""
    families = parser.text_string_to_metric_families(path.read_text())
    return {
        (sample.name, sample.labels.get("client", "")): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.slow
def test_the_metrics_of_a_slot(tmp_path: Path) -> None:
    listener = MetricsFile(tmp_path / "metrics.prom")
    for event in played(tmp_path, "ac", evaluate=lambda _: Scored(0.5, 0.75)):
        listener(event)
    found = read(listener.path)
    expected = {
        ("fedaccord_slot", ""): 1,
        ("fedaccord_last_slot", ""): 1,
        ("fedaccord_slots_settled_total", ""): 1,
        ("fedaccord_slots_void_total", ""): 0,
        ("fedaccord_rounds_total", ""): 2,
        ("fedaccord_round_samples", ""): 60,
        ("fedaccord_loss", ""): 0.5,
        ("fedaccord_accuracy", ""): 0.75,
        ("fedaccord_clients_suspended", ""): 0,
        ("fedaccord_client_present", "a"): 1,
        ("fedaccord_client_present", "b"): 0,
        ("fedaccord_client_present", "c"): 1,
        ("fedaccord_run_failed", ""): 0,
    }
    assert {key: found[key] for key in expected} == expected
    assert found["fedaccord_event_timestamp_seconds", ""] > 1.7e9
    assert list(tmp_path.glob(".*")) == []  # nothing half-written is left
    listener(RunFailed(message="the SuperLink does not answer"))
    assert read(listener.path)["fedaccord_run_failed", ""] == 1


def test_a_name_may_have_any_characters(tmp_path: Path) -> None:
    listener, name = MetricsFile(tmp_path / "metrics.prom"), 'St "Mary" \\ Österreich'
    listener._present[name] = True
    listener(Note(message="hello"))
    assert read(listener.path)["fedaccord_client_present", name] == 1


HEARD: list[Event] = []


def make_listener() -> object:
    return HEARD.append


def test_a_listener_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("pager", f"{__name__}:make_listener", "fedaccord.listeners")
    monkeypatch.setattr("fedaccord.plugins.entry_points", lambda **_: EntryPoints([entry]))
    find_listener("pager")(Note(message="hello"))
    assert [event.in_words for event in HEARD] == ["hello"]


def test_an_unknown_listener() -> None:
    with pytest.raises(FedaccordError, match="nobody: there is no listener of this name"):
        find_listener("nobody")
