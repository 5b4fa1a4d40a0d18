"""JSON in the one form that is hashed and signed: sorted keys, no spaces, UTF-8, no NaN."""

import hashlib
import json
from typing import Any

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical(value: Any) -> str:
    """JSON in the one form that is hashed; NaN and infinity are not allowed.

    >>> canonical({"b": 1.0, "a": [None, "é"]})
    '{"a":[null,"é"],"b":1.0}'
    """
    return _CANONICAL.encode(value)


def digest_of(value: Any) -> str:
    """The SHA-256 digest of a value's canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
