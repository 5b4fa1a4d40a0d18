"""Why a reply is refused: every reason that a fault in the ledger can give.

The server writes no others, so an auditor knows a fault that nobody of ours wrote. What stands in
braces differs from case to case.

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
    NO_MESSAGE = "is no message"
    NOT_UNPACKED = "cannot be unpacked"
    TOO_LARGE = "is larger than what was asked for"
    NOT_WHOLE = "did not arrive whole"
    FLOWER_FAILED = "failed (Flower's error {code})"
    NO_READABLE_CONTENT = "has no readable content"
    OTHER_RECORDS = "has records that were not asked for"
    OTHER_PARAMETERS = "has parameters that were not asked for"
    UNREADABLE_PARAMETERS = "has unreadable parameters"

    # who sent it
    NOBODYS_NODE = "is a node of nobody in the terms"
    ANOTHERS_KEY = "says it is {client}, but its key is registered as another"
    SEVERAL_NODES = "is one of several nodes that say they are {client}"
    UNKNOWN_NODE = "comes from an unknown node"
    NOT_ASKED = "comes from a client that was not asked"

    # which question it answers
    NO_CONTENT = "has no content"
    OTHER_PLACE = "is of another {place}"
    REPLAYED = "is replayed: it answers another question"
    DUPLICATE = "is a duplicate"
    REFUSES = "says that it does not go along with the question"
    FAILED = "says that it failed"
    WENT_WRONG = "says that something went wrong"

    # what it says
    NOT_A_COUNT = "{field} is no whole number"
    NEGATIVE = "{field} is negative"
    ABOVE = "{field} is above {most}"
    NO_NUMBER = "{field} is no number"
    BEYOND_NUMBERS = "{field} is beyond what a number can hold"
    NOT_FINITE = "{field} is not finite"
    OUT_OF_RANGE = "{field} is not from {least} to {most}"
    NO_SAMPLES = "samples is 0"
    OTHER_EQUILIBRIUM = "contribution is not the equilibrium's"
    NOT_A_BOOL = "{field} is neither true nor false"

    # the parameters that it brings
    NO_PARAMETERS = "has no parameters"
    NO_ARRAY = "has a parameter that is no array"
    UNLIKE_PARAMETERS = "has other parameters than were asked for"
    OTHER_FORM = "{name} is {type} {shape}, not {wanted_type} {wanted_shape}"
    NOT_FINITE_PARAMETERS = "{name} has numbers that are not finite"
    ENDLESS_UPDATE = "has an update beyond what a number can hold"
    TOO_LONG = "has an update that is too long"


OF_NODES = (
    Reason.NOBODYS_NODE,
    Reason.ANOTHERS_KEY,
    Reason.SEVERAL_NODES,
    Reason.UNKNOWN_NODE,
)
"""What can be said of a node that is nobody's."""

_NUMBER = r"-?[0-9.e+-]+"
_SHAPE = r"\([0-9, ]*\)"
_FORMS = {
    "code": r"-?[0-9]+",
    "place": r"slot|stage|turn",
    "field": r"ratio|samples|discount_factor|contribution|accepts|agrees",
    "least": _NUMBER,
    "most": _NUMBER,
    "shape": _SHAPE,
    "wanted_shape": _SHAPE,
}
"""What may stand in the braces; where nothing is said here, anything."""


def _pattern(reason: Reason) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", reason)
    texts, names = parts[::2], parts[1::2]
    found = re.escape(texts[0])
    for name, text in zip(names, texts[1:], strict=True):
        found += f"(?P<{name}>{_FORMS.get(name, '.+')})" + re.escape(text)
    return re.compile(found, re.DOTALL)


_PATTERNS = {reason: _pattern(reason) for reason in Reason}


def reason_of(text: str) -> tuple[Reason, dict[str, str]] | None:
    """The reason that a text gives, and what stands in its braces; None: no reason of ours."""
    for reason, pattern in _PATTERNS.items():
        if (match := pattern.fullmatch(text)) is not None:
            return reason, match.groupdict()
    return None
