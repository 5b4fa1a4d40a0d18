"""Checks that are made in many places, each written once, and how values appear in messages.

The `wrong_*` functions return what is wrong, or None; the `check_*` functions raise it.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

from fedaccord.errors import FedaccordError, InvalidInput

LARGEST_COUNT = 2**53
"""Of rounds or slots: a float holds every whole number up to this one."""

# --- Numbers -------------------------------------------------------------------------------


def wrong_whole(value: object, least: int = 1, most: int | None = None) -> str | None:
    """What is wrong with a value that should be a whole number from `least` to `most`.

    >>> wrong_whole(3), wrong_whole(2.5)
    (None, 'must be a whole number, 1 or more, got 2.5')
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        return f"must be a whole number, {least} or more, got {shown(value)}"
    if most is not None and int(value) > most:  # type: ignore[call-overload]
        return f"must be {most:,} or less"
    return None


def check_whole(field: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse a value that is not a whole number from `least` to `most`."""
    if wrong := wrong_whole(value, least, most):
        raise InvalidInput(wrong, field=field)


def wrong_number(
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
) -> str | None:
    """What is wrong with a value that should be a finite number within these bounds.

    >>> wrong_number(0.0, above=0), wrong_number(1, least=0, below=1)
    ('must be more than 0, got 0.0', 'must be from 0 to less than 1, got 1')
    >>> wrong_number(float("inf"), least=0)
    'must be 0 or more and finite, got inf'
    """
    if is_number(value):
        number = float(value)  # type: ignore[arg-type]
        large = number > above if above is not None else least is None or number >= least
        if large and number < (inf if below is None else below) and isfinite(number):
            return None
    finite = " and finite" if below is None and _infinite(value) else ""
    return f"must be {_bounds(above, least, below)}{finite}, got {shown(value)}"


def check_number(
    field: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse a value that is not a finite number within these bounds."""
    if wrong := wrong_number(value, above=above, least=least, below=below):
        raise InvalidInput(wrong, field=field)


def is_number(value: object) -> bool:
    """Whether it is one real number that a float can hold; a truth value is not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _infinite(value: object) -> bool:
    return is_number(value) and not isfinite(float(value))  # type: ignore[arg-type]


def _bounds(above: float | None, least: float | None, below: float | None) -> str:
    """The bounds in words."""
    if above is not None:
        return f"more than {above:g}" if below is None else f"between {above:g} and {below:g}"
    if least is not None:
        return f"{least:g} or more" if below is None else f"from {least:g} to less than {below:g}"
    return "a number" if below is None else f"less than {below:g}"


# --- Words ---------------------------------------------------------------------------------

_MOST_COMPARED = 1000
"""Among more words than this, looking for a similar one would take too long."""


def closest(word: str, known: Iterable[str], similar: float = 0.6) -> str | None:
    """The known word that was meant, perhaps: the closest, if at least so similar (1: equal)."""
    known = list(known)
    if len(word) > _LONGEST_SHOWN or len(known) > _MOST_COMPARED:
        return None
    return next(iter(get_close_matches(word, known, n=1, cutoff=similar)), None)


def unknown(word: str, known: Iterable[str]) -> str:
    """What to say about a word that should be one of `known`.

    >>> unknown("unifrom", ["individual", "uniform"]), unknown("x", ["individual", "uniform"])
    ("did you mean 'uniform'?", 'choose one of individual, uniform')
    """
    known = list(known)
    close = closest(word, known)
    return f"did you mean {close!r}?" if close is not None else f"choose one of {', '.join(known)}"


def check_choice(field: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices, and say which one was meant, perhaps."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        close = closest(value, choices) if isinstance(value, str) else None
        hint = f"; did you mean {close!r}?" if close is not None else ""
        raise InvalidInput(f"must be one of {listed}, got {shown(value)}{hint}", field=field)


def check_type(field: str, value: object, *types: type) -> None:
    """Refuse a value of any other type than these: a file's name for a consortium, say."""
    if not isinstance(value, types):
        listed = " or ".join(each.__name__ for each in types)
        raise InvalidInput(
            f"must be of type {listed}, got {type(value).__name__}: {shown(value)}", field=field
        )


def refuse_subclass(field: str, cls: type, *supported: type, instead: str) -> None:
    """Refuse to make an instance of a subclass where only these classes are supported.

    Solvers and certificates compute with the fields of such an instance, so a method that a
    subclass overrides would be used by some of them and not by others.
    """
    if cls not in supported:
        raise InvalidInput(f"the subclass {cls.__name__} is not supported: {instead}", field=field)


# --- Clients' names ------------------------------------------------------------------------


def composed(name: str) -> str:
    """A name in Unicode's composed form (NFC), in which names are signed.

    >>> composed("Ame\u0301lie") == "Am\u00e9lie"
    True
    """
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else name


def normalised(name: str) -> str:
    """The same without the blanks around it, as names are taken from people and files."""
    return composed(name).strip() if isinstance(name, str) else name


_LIKE_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮԚԜаеоѕіјрсухԁԛԝһΑΒΕΖΗΙΚΜΝΟΡΤΥΧαονρϳι",
    "ABESIJKMHOPCTYXYQWaeosijpcyxdqwhABEZHIKMNOPTYXaovpji",
)
"""Cyrillic and Greek letters that look like Latin ones, and these."""


def compared(name: str) -> str:
    """A name as it is compared with others: without regard to case, width and blanks.

    >>> compared(" ＳT  Mary") == compared("St mary")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _looks(name: str) -> str:
    """The same for names that are told apart by eye."""
    return compared(unicodedata.normalize("NFKC", name).translate(_LIKE_LATIN))


def _odd_letter(name: str, other: str) -> str:
    """Which letter of a name is none of the other, though it looks like one."""
    composed_name, known = unicodedata.normalize("NFKC", name), compared(other)
    odd = [c for c in composed_name if c.casefold() not in known and not c.isspace()]
    return unicodedata.name(odd[0], f"U+{ord(odd[0]):04X}") if odd else ""


def unusable_names(names: Sequence[str], where: Callable[[int], str]) -> Iterator[tuple[int, str]]:
    """Positions of names that are empty, taken, or look like another, and why.

    `where` points at the first bearer. Two names that differ in case, width or blanks are one, and
    so are two that look alike because one has letters of another script.

    >>> for n, wrong in unusable_names(["St Mary", "St M\u0430ry"], lambda n: f"clients[{n}]"):
    ...     print(n, wrong)
    1 'St Mаry' looks like 'St Mary', the name of clients[0]: it has a CYRILLIC SMALL LETTER A
    """
    if _are_distinct(names):
        return  # the common case, quickly
    seen: dict[str, int] = {}
    spelled: dict[str, int] = {}
    looks: dict[str, int] = {}
    for n, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            yield n, "must not be empty"
            continue
        first = seen.setdefault(name, n)
        same = spelled.setdefault(compared(name), n)
        alike = looks.setdefault(_looks(name), n)
        if first != n:
            yield n, f"{name!r} is the name of {where(first)} already"
        elif same != n:
            yield n, f"{name!r} is the name of {where(same)} already, written {names[same]!r}"
        elif alike != n:
            odd = _odd_letter(name, names[alike])
            whose = f"{name!r} looks like {names[alike]!r}, the name of {where(alike)}"
            other = _odd_letter(names[alike], name)
            is_odd = odd and not odd.startswith("LATIN")
            yield n, f"{whose}: {'it' if is_odd else 'that one'} has a {odd if is_odd else other}"


def _are_distinct(names: Sequence[str]) -> bool:
    """Whether names are known at a glance to be usable."""
    try:
        text = "\n".join(names)
    except TypeError:
        return False
    forms = [text.casefold()]
    if not text.isascii():
        wide = unicodedata.normalize("NFKC", text)
        forms = [wide.casefold(), wide.translate(_LIKE_LATIN).casefold()]
    for form in forms:
        lines = form.split("\n")
        if "  " in form or "\t" in form or len(set(lines)) < len(names):
            return False
        if len(lines) > len(names) or not all(line and line == line.strip() for line in lines):
            return False
    return True


def client_meant(name: str, names: Sequence[str]) -> str:
    """The client that a name means, as it is written among the `names`; refused if there is none.

    >>> client_meant("st mary ", ["Riverside", "St Mary"])
    'St Mary'
    """
    wanted = normalised(name)
    if wanted in names:
        return wanted
    same = [each for each in names if compared(each) == compared(wanted)]
    if len(same) == 1:
        return same[0]
    raise InvalidInput(no_such_client(name, names))


def no_such_client(name: str, names: Sequence[str]) -> str:
    """What to say about a name that is none of the clients'.

    >>> print(no_such_client("Saint Mary", ["Riverside", "St Mary"]))
    there is no client called 'Saint Mary'; did you mean 'St Mary'?
    """
    close = closest(name, names)
    hint = f"did you mean {close!r}?" if close is not None else f"the first is {shown(names[0])}"
    if close is not None and _looks(close) == _looks(name) and (odd := _odd_letter(name, close)):
        hint = f"it has a {odd} and looks like {close!r}"
    return f"there is no client called {shown(name)}; {hint}"


# --- Extras --------------------------------------------------------------------------------

_EXTRAS = {
    "torch": ("PyTorch", "train"),
    "sklearn": ("scikit-learn", "train"),
    "flwr": ("Flower", "flower"),
    "sqlalchemy": ("SQLAlchemy", "flower"),
    "alembic": ("Alembic", "flower"),
    "pyod": ("PyOD", "detection"),
    "openpyxl": ("openpyxl", "spreadsheets"),
    "python_calamine": ("python-calamine", "spreadsheets"),
    "mlflow": ("MLflow", "mlflow"),
    "fastapi": ("FastAPI", "console"),
    "uvicorn": ("Uvicorn", "console"),
    "httpx": ("HTTPX", "console"),
    "python_multipart": ("python-multipart", "console"),
}
"""Modules that need not be installed: what each is called, and the extra that installs it."""


def is_installed(*modules: str) -> bool:
    """Whether all these optional modules are installed; none of them is imported."""
    return all(find_spec(module) is not None for module in modules)


def check_installed(what: str, *modules: str) -> None:
    """Refuse `what` if a module that it needs is missing, and say how to install it."""
    missing = [_EXTRAS[module] for module in modules if not is_installed(module)]
    if missing:
        names = " and ".join(name for name, _ in missing)
        extras = ",".join(dict.fromkeys(extra for _, extra in missing))
        raise FedaccordError(f"{what} needs {names}: pip install 'fedaccord[{extras}]'")


# --- Values in messages --------------------------------------------------------------------

_LONGEST_SHOWN = 40
"""Characters of a value in a message."""
_LONGEST_PLACE = 120
"""Characters of a name, or of the keys that lead to a value."""


def escaped(text: str) -> str:
    r"""Text from outside, safe to print on a terminal.

    Characters that are not printable (control characters, changes of the writing direction,
    line breaks) are escaped.

    >>> print(escaped("St Mary\x1b[2J\u202e"))
    St Mary\x1b[2J\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: Any) -> str:
    """A value for a message: as it was written, on one line, not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, float):
        return float.__repr__(value)  # NumPy's own would name its type
    try:
        text = str(int(value)) if isinstance(value, Integral) else repr(value)
    except ValueError:  # an integer of more digits than Python is willing to print
        return "a number of too many digits"
    return in_brief(text, _LONGEST_SHOWN)


def in_brief(text: str, most: int = _LONGEST_PLACE) -> str:
    """A text for a message, cut off if it is long."""
    return text if len(text) <= most else text[: most - 3] + "..."
