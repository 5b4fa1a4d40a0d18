"""The server as a Flower app: puts the coordinator's questions to the clients' nodes."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from fedaccord.errors import FedaccordError
from fedaccord.flower.exchange import exchange, room_for
from fedaccord.flower.nodes import Directory
from fedaccord.flower.wire import Unreadable, pack, pack_arrays, unpack
from fedaccord.ledger.places import server_place
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.messages import Ask, Reply
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms, load_terms

LOG = logging.getLogger("flwr")
"""Flower's own: what is said there is in the stream of `flwr run`."""

Watcher = Callable[[State, Arrays], None]
"""Told what is known, and the model, after everything that happens in a slot."""

_KINDS = {
    "report": "query.report",
    "rank": "query.rank",
    "offer": "query.offer",
    "train": "train",
    "settle": "query.settle",
    "consent": "query.consent",
}
"""The type of Flower's messages for each stage."""


def server_app(terms_file: Path, start: Callable[[Terms], Arrays] | None = None) -> ServerApp:
    """The app for terms in a file; `start` makes the first model, the task's own by default.

    Its run configuration says in which file the ledger is, unless the environment does, and after
    which slot to end.
    """
    app = ServerApp()
    LOG.addFilter(_without_traceback)

    @app.main()  # type: ignore[untyped-decorator,unused-ignore]
    def main(grid: Grid, context: Context) -> None:
        terms = load_terms(terms_file)
        with open_ledger(server_place(str(context.run_config["ledger"]))) as ledger:
            coordinator = Coordinator(terms, ledger, (start or first_model)(terms))
            run_slots(grid, coordinator, int(context.run_config["last-slot"]), _log)

    return app


def run_slots(
    grid: Grid, coordinator: Coordinator, last_slot: int, watch: Watcher | None = None
) -> None:
    """Ask and take until the slot `last_slot` is settled; a slot that was begun is finished."""
    terms = coordinator.state.rules
    directory = Directory(grid, terms)
    directory.wait()
    waiting = directory.refresh()
    while (ask := coordinator.next_ask(last_slot)) is not None:
        if ask.stage == "report":
            waiting = directory.refresh()
        seconds = terms.training_seconds if ask.stage == "train" else terms.answer_seconds
        coordinator.take(ask, [*waiting, *put(grid, directory.nodes, ask, seconds)])
        waiting = []
        if ask.stage == "consent":
            outcome = "accepted" if coordinator.state.went_back else "not accepted"
            LOG.info("the proposal to go back to an older model was %s", outcome)
        elif watch is not None:
            watch(coordinator.state, coordinator.model)


def put(grid: Grid, nodes: Mapping[int, str], ask: Ask, seconds: float) -> list[Reply]:
    """Put a question to every client that has a node, and wait for what comes back."""
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
    replies = exchange(grid, messages, seconds, room_for(wanted))
    most = len(wanted or {})
    return [_reply(node, nodes[node], replies[node], most) for node in sorted(replies)]


def _reply(node: int, client: str, message: Message | Unreadable, most: int) -> Reply:
    """The reply to a message is of the node that it was sent to, whatever it says itself."""
    try:
        if isinstance(message, Unreadable):
            raise message
        body, arrays = unpack(message, most)
    except Unreadable as problem:
        return Reply(node, client, problem=str(problem))
    return Reply(node, client, body, arrays)


def first_model(terms: Terms) -> Arrays:
    """The parameters that the terms' task begins with."""
    from fedaccord.flower.local import empty_model

    start = empty_model(terms).start(terms.training.seed)
    return {name: value.numpy() for name, value in start.items()}


def _without_traceback(record: logging.LogRecord) -> bool:
    """Let Flower log what we refuse as one sentence; where in the code it was is of no use."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, FedaccordError):
        record.msg, record.args, record.exc_info = "%s", (str(error),), None
    return True


def _log(state: State, _: Arrays) -> None:
    slot = state.current
    if slot.told:
        LOG.info("slot %d is settled; the next is %s", slot.number, state.phase)
