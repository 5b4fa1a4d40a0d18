"""The server's own step after a round: from the average of the clients' models to the next model.

FedAvg takes the average as it is. The other optimisers remember earlier rounds in moments, which
begin anew wherever the data does: with each slot, and with each tier of a serial clock. They are
stored beside the latest model, so that a server which is started again in the middle of a slot goes
on with the same numbers. They are not in the chain: nobody but the server could check them, as
nobody else has the clients' updates.
"""

from typing import NamedTuple

from fedaccord.errors import FedaccordError
from fedaccord.protocol.parameters import Arrays, as_type, from_bytes, to_bytes
from fedaccord.protocol.terms import Terms
from fedaccord.training.optimisers import Moments

_SEPARATOR = ":"
"""Between the kind of a moment and the name of the parameter, in a stored name."""


class Stepped(NamedTuple):
    """The next model, and what the optimiser remembers; FedAvg remembers nothing."""

    model: Arrays
    moments: Moments


def begins_anew(turn: int, terms: Terms) -> bool:
    """Whether no earlier round is remembered: this one is the first of its slot or tier."""
    return (turn - 1) % terms.rounds == 0


def server_step(
    terms: Terms, turn: int, model: Arrays, average: Arrays | None, moments: Moments
) -> Stepped:
    """The model after a round; without an average, since too few clients replied, it stays.

    It is clipped to the range of its own type. So it stays finite, whatever clients send and
    however large the rate is.
    """
    optimiser = terms.training.server
    if begins_anew(turn, terms):
        moments = optimiser.start(model)
    if average is None:
        return Stepped(model, moments)
    after, moments = optimiser.step(model, average, moments)
    return Stepped({name: as_type(after[name], model[name].dtype) for name in model}, moments)


def moments_to_bytes(moments: Moments) -> bytes | None:
    """The moments as they are stored; None if there are none."""
    return to_bytes(_flat(moments)) if moments else None


def stored_moments(content: bytes | None, turn: int, terms: Terms, model: Arrays) -> Moments:
    """What `moments_to_bytes` wrote after a round of this model, to go on with round `turn`."""
    wanted = terms.training.server.start(model)
    if begins_anew(turn, terms) or not wanted:
        return wanted
    if content is None:
        raise FedaccordError("the moments that belong to its model are missing")
    found = from_bytes(content)
    if _form(found) != _form(_flat(wanted)):
        raise FedaccordError("the moments stored with it are not those of its model")
    return {
        kind: {name: found[f"{kind}{_SEPARATOR}{name}"] for name in arrays}
        for kind, arrays in wanted.items()
    }


def _flat(moments: Moments) -> Arrays:
    return {
        f"{kind}{_SEPARATOR}{name}": array
        for kind, arrays in moments.items()
        for name, array in arrays.items()
    }


def _form(arrays: Arrays) -> dict[str, tuple[object, ...]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
