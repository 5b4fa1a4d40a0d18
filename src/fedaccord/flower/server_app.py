"""The server as a Flower app: puts the coordinator's questions to the clients' nodes."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal, get_args

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from fedaccord.checks import normalised
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.events import LEVELS, Event, LogFormat, Say
from fedaccord.flower.exchange import Found, exchange, room_for
from fedaccord.flower.narration import Narrator
from fedaccord.flower.wire import Unreadable, pack, pack_arrays, unpack
from fedaccord.ledger.access import server_place
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator, Evaluate
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import CAN_BE_GAMED, Terms, load_terms
from fedaccord.signing.keys import Key, load_key

LOG = logging.getLogger("flwr")
"""Flower's own logger: its messages are in the stream of `flwr run`."""

Watcher = Callable[[State, Arrays], None]
"""Called with the state and the model after everything that happens in a slot."""

_KINDS = {
    "report": "query.report",
    "rank": "query.rank",
    "clock": "query.clock",
    "offer": "query.offer",
    "train": "train",
    "tier": "query.tier",
    "settle": "query.settle",
    "consent": "query.consent",
}
"""The type of Flower's message for each stage."""
KEY_VARIABLE = "FEDACCORD_SIGNING_KEY"
"""The environment may say where the server's key is."""
_PAUSE = 1.0
"""Seconds between two looks for new nodes."""


def server_app(terms_file: Path, start: Callable[[Terms], Arrays] | None = None) -> ServerApp:
    """The app for terms in a file; `start` creates the first model, by default the task's own.

    The run configuration says in which file the ledger is, unless the environment does, which
    slot is the last, how the lines of the log look, and where test examples are, if there are any.
    """
    app = ServerApp()
    LOG.addFilter(_without_traceback)

    @app.main()  # type: ignore[untyped-decorator,unused-ignore]
    def main(grid: Grid, context: Context) -> None:
        terms = load_terms(terms_file)
        key = None if terms.keys is None else _signing_key(context)
        with open_ledger(server_place(str(context.run_config["ledger"]))) as ledger:
            evaluate = _evaluation(context, terms)
            coordinator = Coordinator(terms, ledger, (start or first_model)(terms), key, evaluate)
            narrator = Narrator(coordinator, _say(context))
            run_slots(grid, coordinator, int(context.run_config["last-slot"]), narrator=narrator)

    return app


def _signing_key(context: Context) -> Key:
    """The key with which the server signs; its path is in the configuration of the run."""
    configured = context.run_config.get("signing-key", "keys/signing.key")
    return load_key(Path(os.environ.get(KEY_VARIABLE) or str(configured)))


def _say(context: Context) -> Say:
    """Writes events to the stream of `flwr run`, in words or as JSON."""
    chosen = str(context.run_config.get("log-format", "text"))
    if chosen not in get_args(LogFormat):
        raise InvalidInput(f"log-format: must be text or json, got {chosen!r}")

    def say(event: Event) -> None:
        LOG.log(LEVELS[event.level], "%s", event.as_json if chosen == "json" else event.in_words)

    return say


def _evaluation(context: Context, terms: Terms) -> Evaluate | None:
    """Scores a model on the server's own test examples, if the configuration names a file."""
    if not (path := str(context.run_config.get("test-data", ""))):
        return None
    from fedaccord.flower.local import evaluation

    return evaluation(Path(path), terms)


def run_slots(
    grid: Grid,
    coordinator: Coordinator,
    last_slot: int,
    watch: Watcher | None = None,
    *,
    narrator: Narrator | None = None,
) -> None:
    """Put questions and take replies until `last_slot` is settled; a slot under way is finished.

    The narrator says what happens.
    """
    terms = coordinator.state.rules
    directory = Directory(grid, terms, narrator)
    if narrator is not None:
        narrator.begin(last_slot)
    elif terms.reports == "ratio":
        LOG.warning("%s", CAN_BE_GAMED)
    directory.wait()
    waiting = directory.refresh()
    while (ask := coordinator.next_ask(last_slot)) is not None:
        proposed = coordinator.state.pending
        if ask.stage == "report":
            waiting = directory.refresh()
        seconds = terms.training_seconds if ask.stage == "train" else terms.answer_seconds
        found: Found = {}
        with narrator.asking(ask, directory, seconds, found) if narrator else nullcontext():
            replies = put(grid, directory.nodes, ask, seconds, found)
        coordinator.take(ask, [*waiting, *replies])
        waiting = []
        if proposed is None and watch is not None:
            watch(coordinator.state, coordinator.model)
    if narrator is not None:
        narrator.end()


def first_model(terms: Terms) -> Arrays:
    """The parameters that the terms' task starts with."""
    from fedaccord.flower.local import empty_model

    start = empty_model(terms).start(terms.training.seed)
    return {name: value.numpy() for name, value in start.items()}


def _without_traceback(record: logging.LogRecord) -> bool:
    """Let Flower log our own errors as one sentence: a traceback would be of no use."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, FedaccordError):
        record.msg, record.args, record.exc_info = "%s", (str(error),), None
    return True


# --- Nodes and their replies ---------------------------------------------------------------


class Directory:
    """Which node is which client. Flower's node ids are random, so each is asked for its name."""

    def __init__(self, grid: Grid, terms: Terms, narrator: Narrator | None = None) -> None:
        """No node is known yet; the narrator says for whom it waits."""
        self.grid = grid
        self.terms = terms
        self._narrator = narrator
        self._said: dict[int, str] = {}
        """What each node says its name is."""
        self.nodes: dict[int, str] = {}
        """Who each node is."""
        self.registered: set[str] = set()
        """The clients for which nodes are registered that are connected."""

    def wait(self) -> None:
        """Wait until there are as many nodes as clients, or until it takes too long."""
        end = time.monotonic() + self.terms.answer_seconds
        with self._waiting("connect", self._unconnected):
            while len(list(self.grid.get_node_ids())) < len(self.terms.clients):
                if time.monotonic() >= end:
                    return
                time.sleep(_PAUSE)

    def _unconnected(self) -> list[str]:
        """The clients for which no connected node is registered."""
        there = {normalised(info.name) for info in self.grid.get_nodes()}
        return [name for name in self.terms.clients if name not in there]

    def _waiting(
        self, stage: Literal["connect", "name"], missing: Callable[[], list[str]]
    ) -> AbstractContextManager[None]:
        return (
            nullcontext() if self._narrator is None else self._narrator.connecting(stage, missing)
        )

    def refresh(self) -> list[Reply]:
        """Ask new nodes who they are, and return what is wrong with any node."""
        there = {info.node_id: normalised(info.name) for info in self.grid.get_nodes()}
        self.registered = {name for name in there.values() if name}
        self._said = {node: name for node, name in self._said.items() if node in there}
        self._ask([node for node in there if node not in self._said])
        # a node with another client's key does not count: it could lock the right one out
        claims = Counter(name for node, name in self._said.items() if there[node] in ("", name))
        problems = {
            node: problem
            for node, name in self._said.items()
            if (problem := self._problem(name, there[node], claims)) is not None
        }
        self.nodes = {node: name for node, name in self._said.items() if node not in problems}
        return [Reply(node, None, problem=problem) for node, problem in sorted(problems.items())]

    def _ask(self, nodes: list[int]) -> None:
        messages = {node: Message(pack({}), node, "query.name") for node in sorted(nodes)}
        with self._waiting("name", lambda: sorted(self.registered - set(self._said.values()))):
            replies = exchange(self.grid, messages, self.terms.answer_seconds, room_for(None))
        for node, reply in replies.items():
            try:
                if isinstance(reply, Unreadable):
                    raise reply
                body, _ = unpack(reply, most=0)
                self._said[node] = normalised(str(body["name"]))
            except (Unreadable, KeyError, TypeError):
                continue  # it is asked again before the next slot

    def _problem(self, name: str, registered: str, claims: Counter[str]) -> str | None:
        """Why a node cannot be the client that it says it is."""
        if name not in self.terms.clients:
            return Reason.NOBODYS_NODE
        if registered not in ("", name):
            return Reason.ANOTHERS_KEY.format(client=name)
        if claims[name] > 1:
            return Reason.SEVERAL_NODES.format(client=name)
        return None


def put(
    grid: Grid,
    nodes: Mapping[int, str],
    ask: Ask,
    seconds: float,
    found: Found | None = None,
) -> list[Reply]:
    """Put a question to every client that has a node, and wait for the replies.

    `found` is filled as they arrive.
    """
    arrays = pack_arrays(ask.parameters)
    messages = {
        node: Message(
            pack(ask.body(name), arrays if ask.sends_model(name) else None),
            node,
            _KINDS[ask.stage],
            group_id=str(ask.turn),
        )
        for node, name in sorted(nodes.items())
        if name in ask.contents
    }
    wanted = ask.parameters if ask.stage == "train" else None
    replies = exchange(grid, messages, seconds, room_for(wanted), found)
    most = len(wanted or {})
    return [_reply(node, nodes[node], replies[node], most) for node in sorted(replies)]


def _reply(node: int, client: str, message: Message | Unreadable, most: int) -> Reply:
    """A reply belongs to the node that the message was sent to, whatever the reply says."""
    try:
        if isinstance(message, Unreadable):
            raise message
        body, arrays = unpack(message, most)
    except Unreadable as problem:
        return Reply(node, client, problem=str(problem))
    return Reply(node, client, body, arrays)
