"""Converts bodies and parameters to the records of Flower's messages, and back."""

import json
from collections.abc import Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedaccord.errors import FedaccordError
from fedaccord.protocol.parameters import Arrays, array_from_bytes, check_names
from fedaccord.protocol.reasons import Reason
from fedaccord.signing.canonical import canonical

_BODY, _ARRAYS = "fedaccord", "arrays"


class Unreadable(Exception):
    """A message that does not have the form of our messages."""


def pack(body: Mapping[str, Any], arrays: ArrayRecord | None = None) -> RecordDict:
    """A message's content: the body as JSON, and the parameters if there are any."""
    content = RecordDict({_BODY: ConfigRecord({"json": canonical(body)})})
    if arrays is not None:
        content[_ARRAYS] = arrays
    return content


def pack_arrays(arrays: Arrays | None) -> ArrayRecord | None:
    """Parameters for a message; one record can be part of many messages."""
    if arrays is None:
        return None
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def unpack(message: Message, most: int | None = None) -> tuple[Any, Arrays | None]:
    """The body and the parameters of a message, as they came: they are not checked yet.

    There may be at most `most` arrays of parameters; None: any number.
    """
    if message.has_error():
        raise Unreadable(Reason.FLOWER_FAILED.format(code=message.error.code))
    try:
        body = json.loads(str(message.content[_BODY]["json"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise Unreadable(Reason.NO_READABLE_CONTENT) from None
    if not message.content.keys() <= {_BODY, _ARRAYS}:
        raise Unreadable(Reason.OTHER_RECORDS)
    record: Any = message.content.get(_ARRAYS)
    if record is None:
        return body, None
    try:
        if most is not None and len(record) > most:
            raise Unreadable(Reason.OTHER_PARAMETERS)
        check_names(record)
        return body, {name: array_from_bytes(array.data) for name, array in record.items()}
    except (FedaccordError, AttributeError, TypeError):
        raise Unreadable(Reason.UNREADABLE_PARAMETERS) from None
