"""Names that are written from right to left, in sentences that are written from left to right.

Without care, the number after such a name is shown before it, and two of them in a list change
places. HTML has the element `bdi` for that. The templates put it around names that stand alone;
names inside sentences are found here, once the page is filled.
"""

import re

_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_BETWEEN = r"(?:&#?\w+;|[ \u00a0\d'’()\[\]/+–-]|\.(?!\s))"
_NAME = re.compile(rf"{_LETTER}(?:{_BETWEEN}{{0,12}}{_LETTER})*[)\]]?")
"""From the first letter to the last, so that commas and words in English end it."""
_TAG = re.compile(r"(</?[a-zA-Z][^<>]*>)")
_ELEMENT = re.compile(r"<(/?)([a-zA-Z]+)")
_AS_THEY_ARE = {"bdi", "title", "textarea", "option", "script", "style", "svg"}
"""Elements that isolate what is in them already, or may not contain others."""


def isolate(page: str) -> str:
    """The page with `bdi` around whatever is written from right to left in its sentences.

    >>> print(isolate("<p>שלום: 0.5 to 2</p>"))
    <p><bdi>שלום</bdi>: 0.5 to 2</p>
    """
    if re.search(_LETTER, page) is None:
        return page
    parts = _TAG.split(page)
    inside = ""
    for n, part in enumerate(parts):
        if n % 2 == 0:
            parts[n] = part if inside else _NAME.sub(r"<bdi>\g<0></bdi>", part)
        elif found := _ELEMENT.match(part):
            closes, element = bool(found[1]), found[2].lower()
            if not inside and not closes and element in _AS_THEY_ARE:
                inside = element
            elif closes and element == inside:
                inside = ""
    return "".join(parts)
