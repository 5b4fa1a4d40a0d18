"""The attacks of one bad node on a real SuperLink, with TLS and node keys. Only it is hurt."""

import json
from pathlib import Path
from typing import Any

import pytest

from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import wrong_in
from tests.flower.bad_node import ATTACKS
from tests.flower.deployment import Deployment
from tests.flower.test_deployment import prepared
from tests.lies import lie

pytestmark = pytest.mark.slow

HONEST = ("honest", "other")
NAMES = (*HONEST, *ATTACKS)
"""Each bad client is named after its attack, and all attack in the same slot."""


class Attacked:
    """What was left of a slot with many bad nodes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.entries = load_entries(str(home / "ledger.db"))
        bodies = {(e.kind, e.client): e.body for e in self.entries}
        self.verdicts = {name: bodies["verdict", name]["verdict"] for name in NAMES}
        self.faults = {e.client: e.body["reason"] for e in self.entries if e.kind == "fault"}

    def asked(self, name: str) -> list[dict[str, Any]]:
        """What a bad node was asked, in order."""
        lines = (self.home / "clients" / name / "asked.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    home = prepared(
        tmp_path_factory.mktemp("attacked") / "app",
        {name: 30.0 + 2 * n for n, name in enumerate(NAMES)},
        [60] * len(NAMES),
        quorum=2,
        answer_seconds=60.0,
        training_seconds=60.0,  # a busy machine takes long to start nine nodes' processes
    )
    with Deployment(home) as deployment:
        deployment.start_server()
        ids = {name: deployment.register(f"clients/{name}/node.pub", name) for name in NAMES}
        for name in HONEST:
            deployment.start_node(name, name)
        for name in ATTACKS:
            folder = str(home / "clients" / name)
            words = ("python", "-m", "tests.flower.bad_node", deployment.address, folder)
            deployment.start(name, *words, name, ids["other"])
        deployment.run_slots(last_slot=1, seconds=300)
    return Attacked(home)


@lie(
    "a client",
    "end the server, on a real SuperLink, by objects that are no protobuf, of a wrong type, or "
    "without a part of them",
    "a fault of that client in that round; the slot goes on",
)
@pytest.mark.parametrize("attack", ["no_protobuf", "wrong_type", "missing_child"])
def test_broken_objects_end_nothing(attacked: Attacked, attack: str) -> None:
    assert attacked.verdicts[attack] == "absence"
    assert attacked.faults[attack] in ("cannot be unpacked", "is not a message")


@lie(
    "a client",
    "end the server, on a real SuperLink, by such an object when it is asked for its name",
    "nobody knows whose node it is, so its client is absent",
)
def test_a_broken_name_ends_nothing(attacked: Attacked) -> None:
    assert attacked.verdicts["bad_name"] == "absence"


@lie(
    "a client",
    "make all others absent, on a real SuperLink, by announcing a reply without uploading it",
    "it alone is absent, and the fault names it",
)
def test_who_never_uploads_is_absent_alone(attacked: Attacked) -> None:
    assert attacked.verdicts["never_uploaded"] == "absence"
    assert attacked.faults["never_uploaded"] == "did not arrive completely"
    assert {attacked.verdicts[name] for name in HONEST} == {"kept"}
    assert attacked.faults.keys().isdisjoint({*HONEST, None})


@lie(
    "a client",
    "speak for another, on a real SuperLink, with that one's node id in its reply's own bytes",
    "the reply counts as its own, and is not what it signed: it is absent, and the other has kept "
    "to its part",
)
def test_who_speaks_for_another_has_spoken_for_itself(attacked: Attacked) -> None:
    assert attacked.verdicts["as_another"] == "absence"
    assert attacked.faults["as_another"].startswith("is not signed by this client")
    assert attacked.verdicts["other"] == "kept"


@lie(
    "a client",
    "get the model, on a real SuperLink, without training for it",
    "whoever missed a round or fell short is sent no model at the settlement",
)
@pytest.mark.parametrize("attack", ["stay_away", "never_uploaded", "as_another"])
def test_who_does_not_train_as_agreed_is_sent_no_model(attacked: Attacked, attack: str) -> None:
    *_, to_train, settlement = attacked.asked(attack)
    assert to_train == {"stage": "train", "model": True}  # that of the slot before
    assert settlement == {"stage": "settle", "model": False}
    for name in HONEST:
        assert (attacked.home / "clients" / name / "model.npz").is_file()


def test_the_ledger_and_the_honest_copies_agree(attacked: Attacked) -> None:
    assert wrong_in(attacked.entries) == []
    for name in HONEST:
        copy = load_entries(str(attacked.home / "clients" / name / "ledger.db"))
        assert contradictions(attacked.entries, copy) == []
