"""JSON in the one form that is hashed and signed: sorted keys, no spaces, UTF-8, no NaN."""

import hashlib
import json
import json.encoder
from collections.abc import Callable, Iterable
from typing import Any

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical(value: Any) -> str:
    """JSON in the one form that is hashed; NaN and infinity are not allowed.

    >>> canonical({"b": 1.0, "a": [None, "é"]})
    '{"a":[null,"é"],"b":1.0}'
    """
    return "".join(_QUICK(value, 0))


def _quick() -> Callable[[Any, int], Iterable[str]]:
    """The encoder's own loop, made once: `encode` makes a new one for each value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another interpreter than CPython
        return lambda value, _: [_CANONICAL.encode(value)]
    quoted = json.encoder.encode_basestring
    made: Callable[[Any, int], Iterable[str]] = make(
        None, _CANONICAL.default, quoted, None, ":", ",", True, False, False
    )
    return made


_QUICK = _quick()


def digest_of(value: Any) -> str:
    """The SHA-256 digest of a value's canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
