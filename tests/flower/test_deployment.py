"""A real deployment: a SuperLink and three SuperNodes on loopback, with TLS and node keys."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.deployment.certificates import make_certificates
from fedaccord.flower.fab import app_digest
from fedaccord.flower.public_terms import UnreportedKind, public_terms
from fedaccord.game.consortium import Consortium
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.private import Private
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import terms_of
from tests.flower.deployment import Deployment, until
from tests.flower.homes import write_app

VALUATIONS = {"a": 20.0, "b": 30.0, "c": 55.0}
NAMES = tuple(VALUATIONS)


def prepared(
    home: Path,
    valuations: Mapping[str, float] = VALUATIONS,
    samples: Sequence[int] = (120, 150, 200),
    **rules: Any,
) -> Path:
    """The directory that the two commands create, for clients that rehearse with digits."""
    usual = {"rounds": 1, "training": {"shape": [8, 8], "classes": 10}}
    terms = terms_of(tuple(valuations), **(usual | rules))
    privates = [
        Private(name, valuation, 0.05, size, 0.8)
        for (name, valuation), size in zip(valuations.items(), samples, strict=True)
    ]
    write_app(home, terms, privates, load_dataset("digits"))
    return home


ADAPTIVE = {
    **{"shape": [8, 8], "classes": 10, "optimiser": "fedadam"},
    **{"local": "steps", "steps": 5, "batch": 16, "proximal": 0.1},
}


@pytest.mark.slow
def test_two_slots_across_processes(tmp_path: Path) -> None:
    """With steps that adapt at the server; one member has its own test, and fine-tunes."""
    home = prepared(tmp_path / "app", rounds=2, training=ADAPTIVE)
    own, digits = home / "clients" / "c", load_dataset("digits")
    (own / "data" / "test").mkdir()
    np.savez(
        own / "data" / "test" / "c.npz",
        inputs=digits.test_inputs[:50],
        labels=digits.test_labels[:50],
    )
    (own / "client.toml").write_text(f"fine_tune = 2\n{(own / 'client.toml').read_text()}")
    slips = home / "clients" / "b" / "client.toml"
    slips.write_text(slips.read_text() + "\n[slips]\n1 = 0\n")
    make_certificates(tmp_path / "others", ["127.0.0.1"])
    (home / "clients" / "c" / "others.pem").write_bytes((tmp_path / "others/ca.pem").read_bytes())
    with Deployment(home) as deployment:
        deployment.start_server()
        # a key that nobody registered, and a server that another authority vouches for
        unknown, unknown_log = deployment.start_node("a", "unknown")
        wrong, wrong_log = deployment.start_node("c", "wrong", authority="others.pem")
        for name in NAMES[1:]:
            deployment.register(f"clients/{name}/node.pub", name)
        until(lambda: unknown.poll() is not None and wrong.poll() is not None, 60, "refusals")
        assert unknown.returncode != 0
        assert wrong.returncode != 0
        assert "CERTIFICATE_VERIFY_FAILED" in wrong_log.read_text()
        assert "Activated" not in unknown_log.read_text()

        deployment.register("clients/a/node.pub", "a")
        for name in NAMES:
            deployment.sign(name, app_digest(home))
        logs = {name: deployment.start_own_node(name, name)[1] for name in NAMES}
        said = deployment.run_slots(last_slot=2, seconds=600)
        assert "slot 1 is settled" in said
        assert "Next is slot 2, punishing." in said
        refused = deployment.run_beside_another(
            "another process is writing to this ledger; only one may"
        )
        assert "Traceback" not in refused

        # two of three go back to the model of slot 1, as the terms ask for
        for name in "ac":
            file = home / "clients" / name / "client.toml"
            file.write_text(f"consents_to_slot = 1\n{file.read_text()}")
        words = ("ledger", "rollback", "ledger.db", "--to-slot", "1", "--reason", "rehearsal")
        assert "2 of them must agree" in deployment.run("fedaccord", *words)
        said = deployment.run_slots(last_slot=2, seconds=60, awaited="the proposal to")
        assert "the proposal to go back to the model of slot 1 was accepted" in said

        assert "slot 2: fine-tuned the model on " in logs["c"].read_text()
        assert " on its own test (" in logs["c"].read_text()
        assert (own / "personal.npz").is_file()

        # a server that changes the terms finds nobody who goes along, and is told nothing
        terms = home / "fedaccord_app" / "terms.toml"
        terms.write_text(terms.read_text().replace("tolerance = 0.0", "tolerance = 0.9"))
        for name in NAMES:  # even if its members signed the app
            deployment.sign(name, app_digest(home))
        deployment.run_slots(last_slot=3, seconds=600)
        changed = "tolerance: 0.0 was signed, but the server's app has 0.9"
        assert all(changed in log.read_text() for log in logs.values())

    check_ledgers(home)


def check_ledgers(home: Path) -> None:
    """Two slots under the terms that were signed, and one without any client."""
    server = load_entries(str(home / "ledger.db"))
    assert wrong_in(server) == []
    assert [e.body["agrees"] for e in server if e.kind == "consent"] == [True, False, True]
    phases = [e.body["phase"] for e in server if e.kind == "slot"]
    assert phases == ["cooperating", "punishing", "punishing"]
    verdicts = {(e.slot, e.client): e.body["verdict"] for e in server if e.kind == "verdict"}
    assert verdicts == {
        **{(slot, name): "kept" for slot in (1, 2) for name in NAMES},
        (1, "b"): "deviation",
        **{(3, name): "absence" for name in NAMES},
    }
    assert not [e for e in server if e.kind in ("fault", "absence") and e.slot < 3]
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert {entry.slot for entry in copy} == {1, 2}
        assert contradictions(server, copy) == []
        assert (home / "clients" / name / "model.npz").is_file()


def unreported(kind: UnreportedKind) -> dict[str, Any]:
    """Rules by which nobody reports; ratios are publicly known to 30 %."""
    consortium = Consortium(
        valuation=list(VALUATIONS.values()),
        cost_per_sample=0.05,
        samples=[120, 150, 200],
        discount_factor=0.8,
        rounds=1,
        names=list(NAMES),
    )
    steps = {"clock_steps": 6} if kind == "clock" else {}
    return public_terms(consortium.within(0.3), kind) | steps


@pytest.mark.slow
def test_a_suspension_across_processes(tmp_path: Path) -> None:
    """B slips in slot 1, is out in slot 2, and is back in slot 3; nobody reports anything."""
    rules = unreported("clock") | {"punishment": "suspension", "punishment_slots": 1, "margin": 0.0}
    home = prepared(tmp_path / "app", **rules)
    file = home / "clients" / "b" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    with Deployment(home) as deployment:
        deployment.start_server()
        for name in NAMES:
            deployment.register(f"clients/{name}/node.pub", name)
            deployment.sign(name, app_digest(home))
            deployment.start_own_node(name, name)
        said = deployment.run_slots(last_slot=2, seconds=600)
        assert "suspended in it: b until slot 2 (it slipped in slot 1)." in said
        models = {name: home / "clients" / name / "model.npz" for name in NAMES}
        assert [name for name, model in models.items() if model.is_file()] == ["a", "c"]
        deployment.run_slots(last_slot=3, seconds=600)
        assert models["b"].read_bytes() == models["a"].read_bytes()

    server = load_entries(str(home / "ledger.db"))
    assert wrong_in(server) == []
    verdicts = [e.body["verdict"] for e in server if (e.kind, e.client) == ("verdict", "b")]
    assert verdicts == ["deviation", "suspended", "kept"]
    assert not [e for e in server if e.kind in ("fault", "absence")]
    assert "report" not in {e.kind for e in server}
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []
