"""Which node is which client. Flower's node ids are random, so each is asked for its name."""

import time
from collections import Counter

from flwr.app import Message
from flwr.serverapp import Grid

from fedaccord.checks import normalised
from fedaccord.flower.exchange import exchange, room_for
from fedaccord.flower.wire import Unreadable, pack, unpack
from fedaccord.protocol.messages import Reply
from fedaccord.protocol.reasons import Reason
from fedaccord.protocol.terms import Terms

_PAUSE = 1.0


class Directory:
    """The nodes of a grid by the names of their clients."""

    def __init__(self, grid: Grid, terms: Terms) -> None:
        """Nobody is known yet."""
        self.grid = grid
        self.terms = terms
        self._said: dict[int, str] = {}
        """What each node says its name is."""
        self.nodes: dict[int, str] = {}
        """Who each node is."""

    def wait(self) -> None:
        """Until as many nodes are there as there are clients, or it takes too long."""
        end = time.monotonic() + self.terms.answer_seconds
        while len(list(self.grid.get_node_ids())) < len(self.terms.clients):
            if time.monotonic() >= end:
                return
            time.sleep(_PAUSE)

    def refresh(self) -> list[Reply]:
        """Ask new nodes who they are; what is wrong with any node is returned."""
        there = {info.node_id: normalised(info.name) for info in self.grid.get_nodes()}
        self._said = {node: name for node, name in self._said.items() if node in there}
        self._ask([node for node in there if node not in self._said])
        # a node with another's key is not counted: it could lock the right one out
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
