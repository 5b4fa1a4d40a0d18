"""The record of how slips are seen: what it accepts, and what it says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.monitoring import read_monitoring
from tests.agreement.settings import HOSPITALS


def test_rates_for_all_by_name_or_in_order() -> None:
    names = ("A", "B")
    for audit in (0.25, {"B": 0.25, "A": 0.25}, [0.25, 0.25], np.array([0.25, 0.25])):
        assert fa.Monitoring(audit=audit).audits(names).tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"audit": 1.5}, "audit: must be from 0 to 1, got 1.5"),
        ({"audit": "often"}, "audit: must be from 0 to 1, got 'often'"),
        ({"audit": {"A": -0.1}}, r"audit\['A'\]: must be from 0 to 1, got -0.1"),
        ({"audit": [[0.5]]}, "audit: must be one number, or one for each client"),
        ({"samples_checked": 0}, "samples_checked: must be a whole number, 1 or more"),
        ({"seen_late": 0}, "seen_late: must be a whole number, 1 or more"),
        ({"audit": 0.1, "false_alarm": 0.2}, "false_alarm: must be at most the probability of an"),
        ({"seen_late": 2, "false_alarm": 0.1}, "seen_late: slips that are seen late cannot be"),
    ],
)
def test_what_is_refused(fields: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        fa.Monitoring(**fields)


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ({"St Mary": 0.5}, "audit: must name every client; 'University Hospital' is missing"),
        ({"St Marie": 0.5}, "audit: .*St Mary"),
        ([0.5, 0.5], "audit: must have one number for each of 6 clients, got 2"),
    ],
)
def test_rates_of_other_clients_are_refused(audit: Any, message: str) -> None:
    monitoring = fa.Monitoring(audit=audit)
    with pytest.raises(fa.InvalidInput, match=message):
        fa.solve_agreement(HOSPITALS, monitoring=monitoring)
    with pytest.raises(fa.InvalidInput, match=message):
        fa.agreement_on(HOSPITALS, HOSPITALS.samples, monitoring=monitoring)


@pytest.mark.parametrize(
    "monitoring",
    [
        fa.Monitoring(),
        fa.Monitoring(audit=0.5, samples_checked=2, false_alarm=0.01),
        fa.Monitoring(audit=[0.5, 1.0], seen_late=3),
        fa.Monitoring(audit={"A": 0.5, "B": 1.0}),
    ],
)
def test_json_and_back(monitoring: fa.Monitoring) -> None:
    assert read_monitoring(json.loads(json.dumps(monitoring.to_dict()))) == monitoring


def test_words() -> None:
    assert str(fa.Monitoring()) == "every slip is seen"
    assert repr(fa.Monitoring(audit=0.5)) == "Monitoring(audit=0.5)"
    everything = fa.Monitoring(audit=[0.5, 1.0], samples_checked=2, false_alarm=0.01)
    assert str(everything) == (
        "audited with probability 0.5 to 1 in a slot, 2 samples checked, falsely accused with "
        "probability 0.01"
    )
    assert "3 slots after the slip" in str(fa.Monitoring(seen_late=3))


def test_an_agreement_keeps_its_monitoring_in_a_file(tmp_path: Path) -> None:
    rates = fa.Monitoring(audit=0.6, samples_checked=1)
    agreement = fa.solve_agreement(HOSPITALS, monitoring=rates, punishment="suspension")
    path = tmp_path / "agreed.json"
    path.write_text(json.dumps({"agreement": agreement.to_dict()}), encoding="utf-8")
    loaded = fa.load_agreement(path, HOSPITALS)
    assert loaded.monitoring == rates
    assert fa.certify(loaded).holds
    with pytest.raises(fa.InvalidInput, match="says how slips are seen"):
        fa.load_agreement(path, HOSPITALS, monitoring=fa.Monitoring())
    broken = agreement.to_dict() | {"monitoring": {"audit": 2.0}}
    path.write_text(json.dumps({"agreement": broken}), encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match=r"agreement\.monitoring\.audit: must be from 0 to 1"):
        fa.load_agreement(path, HOSPITALS)


def test_assumptions_say_what_an_audit_is_taken_to_see() -> None:
    monitoring = fa.Monitoring(audit=0.9, samples_checked=1)
    agreement = fa.agreement_on(HOSPITALS, HOSPITALS.samples, "suspension", monitoring)
    said = " ".join(fa.certify(agreement).assumptions)
    assert "A check decides for certain whether that sample was trained on" in said
    assert "nothing of its quality" in said
    assert "A slip that no audit finds changes nothing later." in said
    late = fa.agreement_on(HOSPITALS, HOSPITALS.samples, "suspension", fa.Monitoring(seen_late=2))
    assert "2 slots later" in " ".join(fa.certify(late).assumptions)


def test_departures_need_one_rate_for_all() -> None:
    audited = fa.departures(HOSPITALS, punishment="suspension", monitoring=fa.Monitoring(audit=0.5))
    assert audited.agreement.monitoring == fa.Monitoring(audit=0.5)
    rates = fa.Monitoring(audit=[0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(fa.InvalidInput, match="must be the same for all clients"):
        fa.departures(HOSPITALS, monitoring=rates)


def test_the_shortest_punishment_takes_audits_into_account() -> None:
    agreement = fa.agreement_on(HOSPITALS, HOSPITALS.samples, fa.Suspension(5))
    audited = fa.agreement_on(
        HOSPITALS, HOSPITALS.samples, fa.Suspension(5), fa.Monitoring(audit=0.2)
    )
    assert fa.shortest_punishment(agreement) == 1
    assert fa.shortest_punishment(audited) == 3
