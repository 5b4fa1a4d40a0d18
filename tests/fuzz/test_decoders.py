"""No bytes make a decoder fail: Hypothesis varies what is right, atheris follows the code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedaccord.ledger.lines import to_line
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.trusted import trusted_text
from fedaccord.protocol.verification import look_over, trusted_end
from tests.flower.stories import SIGNED, told
from tests.fuzz.decoders import DECODERS, decode

pytestmark = pytest.mark.slow

SECONDS = 20
"""For atheris; it finds most of what it finds in the first seconds."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """What honest parties write, one for each decoder at least."""
    entries, clients = told(tmp_path_factory.mktemp("told") / "ledger.db", terms=SIGNED)
    facts = [json.dumps({"kind": e.kind} | e.body).encode() for e in entries]
    notes = [json.dumps({"kind": e.kind} | e.body).encode() for e in clients.copies["b"].written]
    lines = "".join(to_line(entry) + "\n" for entry in entries[:9]).encode()
    terms = terms_text(SIGNED).encode()
    keys = json.dumps(SIGNED.model_dump(mode="json")["keys"]).encode()
    end = trusted_end(look_over(entries))
    assert end is not None
    checkpoint = tmp_path_factory.mktemp("checkpoint") / "checkpoint"
    checkpoint.write_bytes(trusted_text(end))
    return [*facts, *notes, lines, terms, keys, checkpoint.read_bytes()]


@settings(max_examples=1_500, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_bytes_are_decoded_or_rejected(samples: list[bytes], data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(DECODERS) - 1))
    if data.draw(st.booleans()):
        content = bytearray(json.dumps(data.draw(JSON)).encode())
    else:
        content = bytearray(data.draw(st.sampled_from(samples)))
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(content)))
            content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    decode(bytes([which]) + bytes(content))


def test_atheris_finds_nothing(samples: list[bytes], tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for which in range(len(DECODERS)):
        for number, content in enumerate(samples):
            (corpus / f"{which}-{number}").write_bytes(bytes([which]) + content)
    module, budget = "tests.fuzz.guided", f"-max_total_time={SECONDS}"
    command = [sys.executable, "-m", module, str(corpus), budget]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "Done " in done.stderr
