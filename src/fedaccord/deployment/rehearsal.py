"""A rehearsal: server, proxy and all members on one machine, for a slot or more, then all is ended.

Everything happens on a copy of the app with keys of its own, so the app itself, its terms and its
keys stay as they are. The members are stand-ins, each with a directory as a member would make it.
"""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from fedaccord.data.dataset import Dataset
from fedaccord.data.scale import fitting_scale
from fedaccord.deployment.admission import load_app_terms
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN, write_app
from fedaccord.deployment.data_format import save_examples
from fedaccord.deployment.processes import Processes, free_ports
from fedaccord.deployment.server import (
    environment,
    find_nginx,
    register_members,
    start_nginx,
    start_superlink,
)
from fedaccord.deployment.stand_ins import examples_of, join_everyone, rehearsal_dataset, stand_ins
from fedaccord.game.consortium import Consortium
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import wrong_in

Tell = Callable[[str], None]
"""Called with a sentence about what is being done."""

_OWN = (
    *("keys", "members", "flower-home", "run", "systemd", "terms.toml", "nginx.conf"),
    *(INVITATION, TO_SIGN, "signatures.json", "*.db", "*.db.lock", "*.log", "__pycache__"),
)
"""What the copy of an app has of its own, or does not need."""
_TEST = "test.npz"


@dataclass(frozen=True)
class Rehearsal:
    """Directories to rehearse in."""

    server: Path
    members: dict[str, Path]
    terms: Terms
    """Of the copy: without audits, perhaps at another scale."""
    port: int
    """At which nginx listens for members."""
    superlink: int
    """At which the SuperLink listens."""

    @property
    def ledger(self) -> Path:
        """What happened."""
        return self.server / "ledger.db"


def prepare_rehearsal(
    app: Path,
    place: Path,
    tell: Tell,
    *,
    numbers: Consortium | None = None,
    dataset: Dataset | None = None,
) -> Rehearsal:
    """Make a copy of an app in `place`, and its members' directories, with new keys for all."""
    agreed = load_app_terms(app)
    privates, data = stand_ins(agreed, numbers), rehearsal_dataset(agreed, dataset)
    tell(_about_numbers(agreed, made_up=numbers is None))
    terms = _terms_for(agreed, fitting_scale(data, [one.samples for one in privates]), tell)
    port, superlink = free_ports(2)
    server = place / "server"
    reached = superlink if find_nginx() is None else port
    write_app(server, terms, ["localhost"], port=reached, superlink=superlink)
    shutil.copytree(app, server, ignore=shutil.ignore_patterns(*_OWN), dirs_exist_ok=True)
    _let_measure(server, data, terms)
    examples = examples_of(terms, privates, data)
    members = join_everyone(server, place / "members", privates, examples)
    return Rehearsal(server, members, load_app_terms(server), port, superlink)


def _let_measure(server: Path, data: Dataset, terms: Terms) -> None:
    """Let the server measure the model after each round."""
    save_examples(server / _TEST, data.test_inputs, data.test_labels, terms)
    project = tomlkit.parse((server / "pyproject.toml").read_text("utf-8"))
    project["tool"]["flwr"]["app"]["config"]["test-data"] = _TEST
    (server / "pyproject.toml").write_text(tomlkit.dumps(project), encoding="utf-8")


def _about_numbers(terms: Terms, *, made_up: bool) -> str:
    if not made_up:
        return f"{len(terms.clients)} members, with the numbers of the file."
    return f"{len(terms.clients)} members, with made-up numbers (seed {terms.training.seed})."


def _terms_for(agreed: Terms, scale: float, tell: Tell) -> Terms:
    """The terms to rehearse under; the members' keys come later."""
    if scale != 1:
        tell(f"One example stands for {1 / scale:,.4g} samples.")
    if agreed.audits is not None:
        tell("Training is not audited in a rehearsal.")
    training = agreed.training.model_copy(update={"scale": scale})
    return agreed.model_copy(update={"training": training, "keys": None, "audits": None})


def start_server(rehearsal: Rehearsal, processes: Processes, tell: Tell) -> None:
    """Start the SuperLink, and nginx if there is one, and register everyone's node."""
    tell("Starting the SuperLink.")
    start_superlink(rehearsal.server, processes, _environment(rehearsal))
    if (nginx := find_nginx()) is None:
        tell("nginx is not installed, so members connect to the SuperLink without a proxy.")
    else:
        tell("Starting nginx.")
        start_nginx(rehearsal.server, processes, nginx)
    register_members(rehearsal.server)


def start_nodes(rehearsal: Rehearsal, processes: Processes, tell: Tell) -> None:
    """Start every member's node."""
    tell(f"Starting {len(rehearsal.members)} nodes.")
    for member in rehearsal.members.values():
        processes.start(
            f"node-{member.name}",
            [sys.executable, "-m", "fedaccord", "member", "start", str(member)],
            folder=member,
            environment=_environment(rehearsal),
        )


def _environment(rehearsal: Rehearsal) -> Mapping[str, str]:
    """The ledger and the key are the copy's, wherever the app's own are."""
    key = rehearsal.server.resolve() / "keys" / "signing.key"
    return environment(rehearsal.server) | {
        "FEDACCORD_LEDGER": str(rehearsal.ledger.resolve()),
        "FEDACCORD_SIGNING_KEY": str(key),
        "OMP_NUM_THREADS": "1",  # all members are on one machine
    }


# --- From beginning to end -----------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How a rehearsal went."""

    verdicts: dict[int, dict[str, str]]
    """On each member in each slot."""
    problems: tuple[str, ...]
    """What is wrong: a void slot, members that did not keep to the agreement, or the ledger."""
    entries: int
    """How many the ledger has."""


def rehearse(
    app: Path,
    place: Path,
    tell: Tell,
    *,
    numbers: Consortium | None = None,
    dataset: Dataset | None = None,
    last_slot: int = 1,
) -> Outcome:
    """Rehearse an app in the directory `place`; nothing runs any more when this returns.

    What happens in the slots is printed as `fedaccord server run` prints it.
    """
    from fedaccord.flower.running import run_slots_and_watch

    place = place.resolve()
    rehearsal = prepare_rehearsal(app, place, tell, numbers=numbers, dataset=dataset)
    with Processes(place / "logs") as server, Processes(place / "logs") as nodes:
        start_server(rehearsal, server, tell)
        start_nodes(rehearsal, nodes, tell)

        def check(_: object) -> None:
            """Whenever there is something to say: does everything still run?"""
            server.check()
            nodes.check()

        try:
            trained = run_slots_and_watch(rehearsal.server, last_slot, listeners=[check])
        finally:
            tell("Stopping everything, the run as well.")
    return _outcome(rehearsal, trained=trained)


def _outcome(rehearsal: Rehearsal, *, trained: bool) -> Outcome:
    """Verify the ledger, and compare it with everyone's copy."""
    entries = load_entries(str(rehearsal.ledger))
    verdicts: dict[int, dict[str, str]] = {}
    for entry in entries:
        if entry.kind == "verdict":
            verdicts.setdefault(entry.slot, {})[str(entry.client)] = entry.body["verdict"]
    problems = [] if trained else ["a slot is void: nothing was trained in it"]
    problems += [
        f"slot {slot}: {name}: {verdict}"
        for slot, found in verdicts.items()
        for name, verdict in found.items()
        if verdict != "kept"
    ]
    problems += [f"the ledger: {wrong}" for wrong in wrong_in(entries)]
    for name, member in rehearsal.members.items():
        copy = load_entries(str(member / "ledger.db"))
        problems += [f"the copy of {name}: {wrong}" for wrong in contradictions(entries, copy)]
    return Outcome(verdicts, tuple(problems), len(entries))
