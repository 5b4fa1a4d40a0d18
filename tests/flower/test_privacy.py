"""No valuation, no cost and no sample leaves a client."""

import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from flwr.common.serde import recorddict_to_proto

from fedaccord.data.dataset import load_dataset
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.local import LocalTraining
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.flower.wire import unpack
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.parameters import Arrays
from fedaccord.signing.keys import load_key
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    ledger_at,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.grids import NAMES, TERMS
from tests.flower.homes import write_app

PLACE = {"stage", "slot", "turn", "token"}


class Listening(InProcessGrid):
    """Keeps the bytes of everything that clients send."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.heard: list[bytes] = []
        self.bodies: list[dict[str, Any]] = []

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        replies = super().pull_messages(message_ids)
        self.heard += [recorddict_to_proto(r.content).SerializeToString() for r in replies]
        self.bodies += [unpack(reply)[0] for reply in replies]
        return replies


def forms_of(number: float) -> list[bytes]:
    """The ways in which a number could be encoded in a message."""
    texts = {repr(number), f"{number:g}", f"{number:.6g}", str(number)}
    return [
        *(text.encode() for text in texts),
        struct.pack("<d", number),
        struct.pack(">d", number),
        struct.pack("<f", number),
        struct.pack(">f", number),
    ]


@pytest.mark.slow
def test_no_message_has_a_valuation_a_cost_or_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A whole consortium with real training: three slots, one slip, one refusal, one failure.

    The failure is of the kind that tells most: it carries all that the client knows.
    """
    terms = terms_of(answer_seconds=0.01, training={"shape": [8, 8], "classes": 10})
    privates = privates_of(communication_cost=0.123456789)
    privates[0] = replace(privates[0], discount_factor=0.0123456789)
    terms = write_app(tmp_path / "app", terms, privates, load_dataset("digits"))
    file = tmp_path / "app" / "clients" / "e" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 3\n")
    train = LocalTraining.__call__

    def fail_in_slot_3(self: LocalTraining, slot: int, *given: Any, first: int = 0) -> Arrays:
        if slot == 3:
            raise ValueError(f"{privates} {self.partition.dataset.inputs[0].tolist()}")
        return train(self, slot, *given, first=first)

    monkeypatch.setattr(LocalTraining, "__call__", fail_in_slot_3)
    app = app_of_files(tmp_path / "app" / "fedaccord_app" / "terms.toml")
    files = [str(tmp_path / "app" / "clients" / name / "client.toml") for name in terms.clients]
    grid = Listening(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(
            grid,
            Coordinator(
                terms,
                ledger,
                first_model(terms),
                load_key(tmp_path / "app" / "keys" / "signing.key"),
            ),
            3,
        )
        assert {"refused", "deviation"} < set(verdicts(ledger, 1).values())
        reasons = {entry.body["reason"] for entry in ledger.entries(slot=3, kind="fault")}
        assert reasons == {"says that it failed"}
    assert repr(privates[1].valuation) in caplog.text  # the failure told it, at home
    problems = [body for body in grid.bodies if "problem" in body]
    assert {body["problem"] for body in problems} == {"failure"}
    assert all(set(body) == PLACE | {"problem"} for body in problems)
    said = b"\0".join(grid.heard)
    assert len(grid.heard) > 20
    for private in privates:
        secrets = (private.valuation, private.cost_per_sample, private.communication_cost)
        for secret in (*secrets, private.discount_factor):
            for form in forms_of(secret):
                if len(form) > 3:  # "17" or "34" may be anything
                    assert form not in said
        data = tmp_path / "app" / "clients" / private.name / "data"
        with np.load(data / f"{private.name}.npz") as held:
            examples = held["inputs"]
        for example in examples:
            assert example.tobytes() not in said
            assert example[example.any(axis=1)][0].tobytes() not in said  # nor a row of one
    ratio = repr(privates[1].ratio).encode()
    assert ratio in said  # the test would see it


def test_clients_send_exactly_these_fields(tmp_path: Path) -> None:
    import json

    privates = privates_of(NAMES)
    privates[0] = replace(privates[0], tells_discount_factor=True)
    clients, sent = Clients(TERMS, privates), dict[str, set[str]]()

    def listen(ask: Any) -> Any:
        replies = clients(ask)
        for reply in replies:
            json.dumps(reply.body)
            sent.setdefault(ask.stage, set()).update(reply.body)
        return replies

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), listen, 2)
    assert sent == {
        "report": PLACE | {"ratio", "samples", "discount_factor"},
        "rank": PLACE | {"contribution"},
        "offer": PLACE | {"accepts"},
        "train": PLACE | {"samples"},
        "settle": PLACE,
    }
