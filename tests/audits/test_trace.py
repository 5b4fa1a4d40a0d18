"""The trace: what is kept comes back, whatever happens to the files."""

from pathlib import Path

import numpy as np
import pytest

from fedaccord.audits.software import Software
from fedaccord.audits.trace import Trace, TracedRound
from fedaccord.errors import InvalidInput
from fedaccord.training.arrays import Arrays, digest

SOFTWARE = Software(task="softmax", source="a" * 64, versions={"torch": "2"}, machine="one")


def arrays(seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(2, 3)).astype(np.float32), "b": rng.normal(size=1)}


def traced(slot: int, turn: int, came: Arrays, sent: Arrays) -> TracedRound:
    place = {"client": "a", "position": 0, "slot": slot, "turn": turn, "head": "b" * 64}
    digests = {"model": digest(came), "update": digest(sent), "steps": ["c" * 64]}
    return TracedRound.model_validate({**place, **digests, "amount": 5, "software": SOFTWARE})


def keep(trace: Trace, slot: int, turn: int, seed: int = 0) -> TracedRound:
    came, sent = arrays(seed), arrays(seed + 1)
    one = traced(slot, turn, came, sent)
    trace.keep(one, came, sent)
    return one


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    kept = [keep(trace, 1, turn, seed=turn) for turn in (1, 2)]
    assert trace.rounds(1) == kept
    found, came, sent = trace.find(1, 2)
    assert (found, digest(came), digest(sent)) == (kept[1], kept[1].model, kept[1].update)


def test_of_a_round_that_was_trained_twice_the_last_counts(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    keep(trace, 1, 1, seed=0)
    again = keep(trace, 1, 1, seed=5)
    assert trace.find(1, 1)[0] == again


def test_half_a_line_is_as_if_it_had_not_been_written(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    keep(trace, 1, 1)
    path = tmp_path / "slot-1.jsonl"
    path.write_text(path.read_text() + '{"round": {"cli')
    assert len(trace.rounds(1)) == 1
    keep(trace, 1, 2)
    assert len(trace.rounds(1)) == 2


def test_old_slots_are_removed(tmp_path: Path) -> None:
    trace = Trace(tmp_path, slots=2)
    for slot in (1, 2, 3):
        keep(trace, slot, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("slot-2.jsonl", "slot-2.models"),
        *("slot-3.jsonl", "slot-3.models"),
    ]


def test_damage_is_named(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    keep(trace, 1, 1)
    models = tmp_path / "slot-1.models"
    content = models.read_bytes()
    models.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(InvalidInput, match="another digest"):
        trace.find(1, 1)
    models.write_bytes(content[:-1])
    with pytest.raises(InvalidInput, match="not complete"):
        trace.find(1, 1)
    models.unlink()
    with pytest.raises(InvalidInput, match="not complete"):
        trace.find(1, 1)
    with pytest.raises(InvalidInput, match="has no round 2 of slot 1"):
        trace.find(1, 2)
    (tmp_path / "slot-1.jsonl").write_text("nonsense\n")
    with pytest.raises(InvalidInput, match="has no round 1 of slot 1"):
        trace.find(1, 1)
