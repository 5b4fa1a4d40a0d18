"""Nine slots on four machines (network namespaces), with a fault in most of them.

The faults come one after another in one deployment: a server with SuperLink and nginx, and three
members with nodes of their own. After all of them nothing is lost, the ledger verifies, no copy
contradicts it, and nobody is blamed for what the network, a crash, a clock or a date did.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fedaccord.deployment.admission import admit
from fedaccord.deployment.fence import CALLS
from fedaccord.deployment.renewal import renew_member
from fedaccord.deployment.server import reload_proxy
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import wrong_in
from tests.flower.certificates import write_certificate
from tests.flower.consortium_on_machines import AGAIN, SERVER, Machines, machines
from tests.flower.deployment import until
from tests.flower.fence import NGINX, NO_NGINX
from tests.flower.machines import no_machines

VALUATIONS = {"a": 20.0, "b": 30.0, "c": 55.0}
NAMES = tuple(VALUATIONS)
SECONDS = 90.0
"""How long the server waits for an answer, and for a round. A node that was fetching a message when
the server lost its power tries to go on with it for about 40 s (35 s on a quiet machine), and
answers only then."""
ALL_KEPT = dict.fromkeys(NAMES, "kept")
NO_CLOCK = "faketime is not installed (on Debian: apt-get install faketime)"
pytestmark = pytest.mark.slow


def first_four_slots(all_of_them: Machines) -> None:
    """Two without a fault; then b is cut off for a round, and later for a whole slot."""
    all_of_them.start_run(last_slot=4)
    all_of_them.wait(3, "round", turn=1)
    with all_of_them.network.cut("b"):
        all_of_them.wait(3, "round", turn=2)
    all_of_them.wait(3, "told")
    before = all_of_them.said_by("b").count(AGAIN)
    with all_of_them.network.cut("b"):
        all_of_them.wait(4, "told")
    until(lambda: all_of_them.said_by("b").count(AGAIN) > before, 120, "b to be back")


def a_slow_slot_and_a_power_cut(all_of_them: Machines) -> str:
    """Slot 5 over slow and lossy cables; in slot 6 the server's machine loses its power."""
    network = all_of_them.network
    with network.slow("a", 0.03, 0.02) as how, network.slow("c", 0.05, 0.05):
        all_of_them.run_slots(5)
    before = {name: all_of_them.said_by(name).count(AGAIN) for name in NAMES}
    all_of_them.start_run(last_slot=6)
    all_of_them.wait(6, "round", turn=1)
    network.kill(SERVER)
    all_of_them.start_server()
    for name, count in before.items():
        until(lambda: all_of_them.said_by(name).count(AGAIN) > count, 120, name)  # noqa: B023
    return how


def a_member_loses_its_power(all_of_them: Machines) -> None:
    """Slot 6 goes on where it was; in slot 7 c's machine loses its power until the slot is over.

    A machine that is back at once may answer in time or not, as the server waits long enough.
    """
    all_of_them.start_run(last_slot=7)
    all_of_them.wait(7, "round", turn=1)
    all_of_them.end_node("c")
    all_of_them.wait(7, "told")
    all_of_them.start_nodes("c")


def a_wrong_clock_and_a_wrong_date(all_of_them: Machines) -> None:
    """In slot 8 the clock of b is an hour ahead, and the certificate of c has run out."""
    home, member = all_of_them.home, all_of_them.member("c")
    for name in ("b", "c"):
        all_of_them.end_node(name)
    late = write_certificate(home / "late", "c", from_days=-30, to_days=-0.001)
    with (home / "keys" / "members.pem").open("ab") as known:
        known.write((late / "tls.pem").read_bytes())
    assert reload_proxy(home)
    for file in ("tls.pem", "tls.key"):
        shutil.copy(late / file, member / file)
    all_of_them.start_node("b", "faketime", "-f", "+1h")
    all_of_them.start_node("c")
    all_of_them.run_slots(8)


def all_is_well_again(all_of_them: Machines) -> None:
    """In slot 9 b's clock is right, and c has a new certificate."""
    for name in ("b", "c"):
        all_of_them.end_node(name)
    renew_member(all_of_them.member("c"))
    admit(all_of_them.home, [all_of_them.member("c") / "card.json"])
    assert reload_proxy(all_of_them.home)
    all_of_them.start_nodes("b", "c")
    all_of_them.run_slots(9)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, machines_ran: Callable[[str], None]) -> Path:
    """The server's directory after nine slots; the members' are in it."""
    missing = no_machines() or (NO_NGINX if NGINX is None else None)
    missing = missing or (NO_CLOCK if shutil.which("faketime") is None else None)
    if missing:
        pytest.skip(missing)
    home = tmp_path_factory.mktemp("machines") / "app"
    rules = {"punishment": "suspension", "punishment_slots": 1, "quorum": 1, "rounds": 2}
    rules |= {"answer_seconds": SECONDS, "training_seconds": SECONDS}
    with machines(home, VALUATIONS, **rules) as all_of_them:
        first_four_slots(all_of_them)
        how = a_slow_slot_and_a_power_cut(all_of_them)
        a_member_loses_its_power(all_of_them)
        a_wrong_clock_and_a_wrong_date(all_of_them)
        all_is_well_again(all_of_them)
    machines_ran(f"a slow network by {how}")
    return home


EXPECTED: dict[int, dict[str, str]] = {
    3: {"b": "absence"},  # cut off for a round
    4: {"b": "absence"},  # cut off for the slot
    7: {"c": "absence"},  # lost its power in the second round
    8: {"b": "absence", "c": "absence"},  # a wrong clock; a certificate that ran out
}
"""What is not "kept": slow cables (5) and a server without power (6) are nobody's absence."""


@pytest.mark.parametrize("slot", range(1, 10))
def test_nobody_is_blamed_for_a_fault(slot: int, home: Path) -> None:
    server = load_entries(str(home / "ledger.db"))
    found = {
        str(e.client): e.body["verdict"] for e in server if (e.kind, e.slot) == ("verdict", slot)
    }
    assert found == ALL_KEPT | EXPECTED.get(slot, {})
    assert not any(e.body["suspended"] for e in server if e.kind == "settlement")


def test_nothing_is_lost(home: Path) -> None:
    """Each slot is settled once, every ledger verifies, and everyone has the last model."""
    server = load_entries(str(home / "ledger.db"))
    assert wrong_in(server) == []
    settled = [entry.slot for entry in server if entry.kind == "settlement"]
    assert settled == list(range(1, 10))
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []
        assert {1, 2, 5, 6, 9} <= {entry.slot for entry in copy if entry.kind == "settlement"}
    models = [(home / "clients" / name / "model.npz").read_bytes() for name in NAMES]
    assert len(set(models)) == 1


def test_who_is_refused_learns_why(home: Path) -> None:
    assert "clocks of both machines must be right" in (home / "b.log").read_text()
    refused = (home / "run" / "access.log").read_text()
    assert "certificate has expired" in refused


def test_the_fence_held(home: Path) -> None:
    """Whatever was answered was one of the ten calls, from a member with a valid certificate."""
    lines = [json.loads(line) for line in (home / "run" / "access.log").read_text().splitlines()]
    answered = [line for line in lines if line["status"] == "200"]
    assert {line["member"] for line in answered} == {f"CN={name}" for name in NAMES}
    assert {line["certificate"] for line in answered} == {"SUCCESS"}
    calls = {f"POST /v1/fleet/{call} HTTP/1.1" for call in CALLS}
    assert {line["request"] for line in answered} <= calls
