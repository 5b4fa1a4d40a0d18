"""Why a reply is refused: every reason that a fault in the ledger can give.

The server writes no others, so a verifier recognises a fault that our server did not write. What is
in braces differs from case to case.

>>> Reason.ABOVE.format(field="samples", most=40)
'samples is above 40'
>>> reason_of("samples is above 40")
(<Reason.ABOVE: '{field} is above {most}'>, {'field': 'samples', 'most': '40'})
>>> reason_of("was late for dinner") is None
True
"""

import re
from enum import StrEnum


class Reason(StrEnum):
    """What a fault says."""

    # the message as such
    NO_MESSAGE = "is not a message"
    NOT_UNPACKED = "cannot be unpacked"
    TOO_LARGE = "is larger than what was asked for"
    NOT_WHOLE = "did not arrive completely"
    FLOWER_FAILED = "failed (Flower's error {code})"
    NO_READABLE_CONTENT = "has no readable content"
    OTHER_RECORDS = "has records that were not asked for"
    OTHER_PARAMETERS = "has parameters that were not asked for"
    UNREADABLE_PARAMETERS = "has unreadable parameters"

    # who sent it
    NOBODYS_NODE = "is a node of no client in the terms"
    ANOTHERS_KEY = "claims to be {client}, but its key is registered for another client"
    SEVERAL_NODES = "is one of several nodes that claim to be {client}"
    UNKNOWN_NODE = "comes from an unknown node"
    NOT_ASKED = "comes from a client that was not asked"

    # which question it answers
    NO_CONTENT = "has no content"
    OTHER_PLACE = "is for another {place}"
    REPLAYED = "is replayed: it answers another question"
    DUPLICATE = "is a duplicate"
    NOT_SIGNED = "is not signed by this client, or not as an answer to this question"
    NOT_LATE = "brings earlier answers that are not its own"
    REFUSES = "says that it refuses the question"
    FAILED = "says that it failed"
    WENT_WRONG = "says that something went wrong"

    # what it says
    NOT_A_COUNT = "{field} is not a whole number"
    NEGATIVE = "{field} is negative"
    ABOVE = "{field} is above {most}"
    NO_NUMBER = "{field} is not a number"
    BEYOND_NUMBERS = "{field} is too large for a float"
    NOT_FINITE = "{field} is not finite"
    OUT_OF_RANGE = "{field} is not from {least} to {most}"
    NO_SAMPLES = "samples is 0"
    NO_COMMITMENT = "has no commitment to its records as the terms say"
    OTHER_EQUILIBRIUM = "contribution is not the equilibrium contribution"
    NOT_A_BOOL = "{field} is neither true nor false"

    # the parameters that it brings
    NO_PARAMETERS = "has no parameters"
    NO_ARRAY = "has a parameter that is not an array"
    UNLIKE_PARAMETERS = "has other parameters than were asked for"
    OTHER_FORM = "{name} is {type} {shape}, not {wanted_type} {wanted_shape}"
    NOT_FINITE_PARAMETERS = "{name} has NaN or infinite values"
    ENDLESS_UPDATE = "has an update whose norm is not finite"
    TOO_LONG = "has an update that is too long"


OF_NODES = (
    Reason.NOBODYS_NODE,
    Reason.ANOTHERS_KEY,
    Reason.SEVERAL_NODES,
    Reason.UNKNOWN_NODE,
)
"""Reasons about a node that belongs to no client."""

_NUMBER = r"-?[0-9.e+-]+"
_SHAPE = r"\([0-9, ]*\)"
_FORMS = {
    "code": r"-?[0-9]+",
    "place": r"slot|stage|turn",
    "field": r"ratio|samples|discount_factor|contribution|stays|accepts|agrees",
    "least": _NUMBER,
    "most": _NUMBER,
    "shape": _SHAPE,
    "wanted_shape": _SHAPE,
}
"""What may be in the braces; anything else may be in those that are not listed."""


def _pattern(reason: Reason) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", reason)
    texts, names = parts[::2], parts[1::2]
    found = re.escape(texts[0])
    for name, text in zip(names, texts[1:], strict=True):
        found += f"(?P<{name}>{_FORMS.get(name, '.+')})" + re.escape(text)
    return re.compile(found, re.DOTALL)


_PATTERNS = {reason: _pattern(reason) for reason in Reason}


def reason_of(text: str) -> tuple[Reason, dict[str, str]] | None:
    """The reason that a text gives, and what is in its braces; None: it is not one of ours."""
    for reason, pattern in _PATTERNS.items():
        if (match := pattern.fullmatch(text)) is not None:
            return reason, match.groupdict()
    return None
