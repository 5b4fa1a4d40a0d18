"""Messages that were written about a file, for somebody who sees a page."""

import re

from fedaccord.errors import UNKNOWN_KEY

_WORDS = {
    "cost_per_sample": "cost per sample",
    "discount_factor": "discount factor",
    "communication_cost": "communication cost",
    "server_fee": "server fee",
    "the client on row": "the member in row",
    "or rename the client": "or rename the member",
}
_IN_WORDS = re.compile("|".join(map(re.escape, _WORDS)))


def in_words(text: str) -> str:
    """A message about a file, for somebody who sees a table.

    >>> in_words("cost_per_sample: is missing")
    'cost per sample: is missing'
    """
    if f"{UNKNOWN_KEY};" in text:  # a list of keys as the file has them
        return text
    return _IN_WORDS.sub(lambda found: _WORDS[found[0]], text)
