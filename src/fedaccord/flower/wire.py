"""Bodies and parameters as records of Flower's messages, and back."""

import json
from collections.abc import Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedaccord.flower.ledger.chain import canonical
from fedaccord.flower.protocol.parameters import Arrays

_BODY, _ARRAYS = "fedaccord", "arrays"


class Unreadable(Exception):
    """A message that has not the form of ours."""


def pack(body: Mapping[str, Any], arrays: ArrayRecord | None = None) -> RecordDict:
    """A message's content: the body as JSON, and the parameters if there are any."""
    content = RecordDict({_BODY: ConfigRecord({"json": canonical(body)})})
    if arrays is not None:
        content[_ARRAYS] = arrays
    return content


def pack_arrays(arrays: Arrays | None) -> ArrayRecord | None:
    """Parameters for a message; one record may go into many."""
    if arrays is None:
        return None
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def unpack(message: Message) -> tuple[Any, Arrays | None]:
    """The body and the parameters of a message, whatever they are worth."""
    if message.has_error():
        raise Unreadable(f"failed (Flower's error {message.error.code})")
    try:
        body = json.loads(str(message.content[_BODY]["json"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise Unreadable("has no readable content") from None
    record: Any = message.content.get(_ARRAYS)
    if record is None:
        return body, None
    try:
        return body, {name: array.numpy() for name, array in record.items()}
    except Exception:  # whatever NumPy says to bytes that someone else chose
        raise Unreadable("has unreadable parameters") from None
