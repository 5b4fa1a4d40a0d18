"""A client as a Flower app. Errors are logged at the client; the server learns none of them."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedaccord.errors import FedaccordError
from fedaccord.flower.wire import Unreadable, pack, pack_arrays, unpack
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.private import Private

LOG = logging.getLogger("fedaccord")


class Client(Protocol):
    """Whoever answers for a client: a `Participant`, or a `FileClient`."""

    @property
    def private(self) -> Private:
        """The client's numbers; only its name is used here."""
        ...

    def answer(
        self, asked: Mapping[str, Any], parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """The reply to a question of the server's."""
        ...


ClientOf = Callable[[Context], Client]
"""The client that a node stands for, given Flower's context of the node."""
Keeper = Callable[[Context, Arrays], None]
"""Stores a slot's model where a client wants it."""


def client_app(client_of: ClientOf, keep_model: Keeper | None = None) -> ClientApp:
    """An app that answers every question of the protocol; `keep_model` is given each slot's."""
    app = ClientApp()

    @app.query("name")  # type: ignore[untyped-decorator,unused-ignore]
    def name(message: Message, context: Context) -> Message:
        try:
            said = {"name": client_of(context).private.name}
        except FedaccordError as error:
            LOG.error("%s", error)
            said = {}
        except Exception:
            LOG.exception("this node does not know its client")
            said = {}
        return Message(pack(said), reply_to=message)

    def answer(message: Message, context: Context) -> Message:
        try:
            asked, arrays = unpack(message)
            if not isinstance(asked, dict):
                raise Unreadable("is not a question")
        except Unreadable as problem:
            LOG.error("a message of the server's %s", problem)
            return Message(pack({"problem": "refusal"}), reply_to=message)
        body, trained = _answer(client_of, context, asked, arrays)
        if (
            asked.get("stage") in ("tier", "settle")
            and "problem" not in body
            and arrays is not None
        ):
            _keep(keep_model, context, arrays)
        return Message(pack(body, pack_arrays(trained)), reply_to=message)

    for action in ("report", "rank", "clock", "offer", "tier", "settle", "consent"):
        app.query(action)(answer)
    app.train()(answer)
    return app


def _answer(
    client_of: ClientOf, context: Context, asked: dict[str, Any], arrays: Arrays | None
) -> tuple[dict[str, Any], Arrays | None]:
    """The client's answer, or one word: the text of an error could reveal something private."""
    place = {key: asked.get(key) for key in ("stage", "slot", "turn", "token")}
    try:
        return client_of(context).answer(asked, arrays)
    except Refusal as error:
        LOG.error("%s", error)
        return place | {"problem": "refusal"}, None
    except FedaccordError as error:
        LOG.error("%s", error)
    except Exception:
        LOG.exception("the answer to %s failed", place["stage"])
    return place | {"problem": "failure"}, None


def _keep(keep_model: Keeper | None, context: Context, arrays: Arrays) -> None:
    """A slot is settled even if the model cannot be stored, on a full disk for example."""
    try:
        if keep_model is not None:
            keep_model(context, arrays)
    except Exception:
        LOG.exception("the model of this slot could not be kept")


def app_of_files(terms_file: Path) -> ClientApp:
    """The app for a node whose configuration names the client's own file (`client-file`)."""
    from fedaccord.flower.client_file import FileClient
    from fedaccord.flower.member_log import write_log

    write_log()
    clients: dict[str, FileClient] = {}  # for as long as this process lasts

    def client_of(context: Context) -> FileClient:
        path = str(context.node_config["client-file"])
        return clients.setdefault(path, FileClient(path, terms_file))

    def keep(context: Context, arrays: Arrays) -> None:
        client_of(context).keep_model(arrays)

    return client_app(client_of, keep)
