"""The text of an agreement file's page, from its JSON alone, so that anyone can make it again.

It is written as browsers write HTML out (`outerHTML`), to the last byte: a page can then check its
own text. What is written here is part of the format. Files that were signed have the text that
their version wrote, so any change needs a new format, and this one must be kept for old files.
"""

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from fedaccord.numbers import count, patience, write

if TYPE_CHECKING:
    from jinja2 import Template

_FIELDS = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
_MILLION, _LARGE = 1e6, 1e15
"""Between these, numbers are written out without decimals."""


def render_main(terms: dict[str, Any], said: dict[str, Any]) -> str:
    """What is between `<main>` and `</main>`.

    Args:
        terms: The terms as JSON has them.
        said: The agreement as JSON has it; the digests of the page are not used.
    """
    profile, certificate, numbers = said["profile"], said["certificate"], said["numbers"]
    shared = numbers["shared"]
    unit = f", {numbers['currency']}" if numbers["currency"] else ""
    return _template().render(
        count=count,
        name=terms["name"],
        members=len(terms["clients"]),
        total=_amount(profile["total"]),
        total_without=_amount(profile["total_without"]),
        punishment=_punishment(terms),
        proof=_proof(certificate, shared=shared),
        shared=shared,
        worse=_worse(profile),
        saved=_saved(profile),
        unit=unit,
        required=patience(certificate["smallest_discount_factor"]),
        most_patient=_most_patient(certificate),
        rows=_rows(said),
        note=_note(numbers),
        assumptions=[said.replace("client", "member") for said in certificate["assumptions"]],
        about_numbers=_about_numbers(said),
        headings=[field.replace("_", " ").capitalize() for field in _FIELDS],
        numbers=_numbers(said),
        rules=_rules(terms),
        posted=_posted(terms) if shared else [],
        keys=_keys(terms),
        terms=said["terms"],
        made_on=said["made_on"],
        made_with=said["made_with"],
    )


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    text = (resources.files("fedaccord.signed") / "page_files" / "main.html.j2").read_text("utf-8")
    filling = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=escaped,
        autoescape=False,  # `finalize` escapes every value
    )
    return filling.from_string(text)


def escaped(value: object) -> str:
    """Text as browsers write it out: without quotes escaped, and with non-breaking spaces.

    >>> escaped("St. Mary's & <sons>")
    "St. Mary's &amp; &lt;sons&gt;"
    """
    pairs = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\N{NO-BREAK SPACE}", "&nbsp;")]
    text = str(value)
    for character, entity in pairs:
        text = text.replace(character, entity)
    return text


def _amount(number: float | None) -> str:
    return write([_or_infinite(number)])[0]


def _saved(profile: dict[str, Any]) -> str:
    return _amount(sum(_or_infinite(row["saving"]) for row in profile["clients"]))


def _worse(profile: dict[str, Any]) -> str:
    """Who pays more than without an agreement, if anybody does."""
    names = [row["name"] for row in profile["clients"] if _or_infinite(row["saving"]) < 0]
    if not names:
        return ""
    pay = "pays" if len(names) == 1 else "pay"
    return f"Not everybody saves by it: {', '.join(names)} {pay} more than without an agreement."


def _most_patient(certificate: dict[str, Any]) -> str:
    """Who needs the most patience."""
    most = max(certificate["clients"], key=lambda row: float(row["threshold"]))
    return str(most["name"])


def _punishment(terms: dict[str, Any]) -> str:
    """What follows if somebody trains on less."""
    slots = terms["punishment_slots"]
    duration = "for ever" if slots is None else f"for {count(slots, 'slot')}"
    if terms["punishment"] == "suspension":
        return f"Whoever trains on less gets no model {duration}, while the others go on."
    return f"If anyone trains on less, all act selfishly {duration}, as they would without it."


def _proof(certificate: dict[str, Any], *, shared: bool) -> str:
    worst = f"{certificate['worst_client']} is the closest to gaining by it."
    if not shared:
        return f"It holds for all numbers that are not lower than those below. {worst}"
    if certificate["over_ranges"]:
        return f"It holds for every combination of numbers within the ranges below. {worst}"
    return f"It holds for the numbers below. {worst}"


def _rows(said: dict[str, Any]) -> list[dict[str, str]]:
    """The table of members, every number written."""
    agreed, proof = said["profile"]["clients"], said["certificate"]["clients"]
    numbers = said["numbers"]["clients"]
    columns = {
        "name": [row["name"] for row in agreed],
        "samples": write([row["samples"] for row in numbers]),
        "without": write([_or_infinite(row["without"]) for row in agreed]),
        "contribution": write([row["contribution"] for row in agreed]),
        "saving": write([_or_infinite(row["saving"]) for row in agreed]),
        "threshold": [patience(row["threshold"]) for row in proof],
        "discount_factor": [patience(row["discount_factor"]) for row in numbers],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _or_infinite(number: float | None) -> float:
    """A number, or one that `write` shows as a dash."""
    return float("inf") if number is None else number


def _note(numbers: dict[str, Any]) -> str:
    said = "Amounts are samples in every slot. "
    if numbers["shared"]:
        unit = numbers["currency"] or "the unit of the valuations"
        said += f"Savings are against what the member pays without an agreement, in {unit}. "
    else:
        said += "What each saves is not known: the members' own numbers are not in this file. "
    return said + (
        "Patience is a discount factor: what a saving in the next slot is worth to the member now."
    )


def _about_numbers(said: dict[str, Any]) -> str:
    if not said["numbers"]["shared"]:
        return (
            "The members keep their own numbers to themselves. These are the lowest that each may "
            "have, as the terms post them; the valuation is the ratio to the cost per sample."
        )
    slot = said["numbers"]["slot"]
    length = f" A slot is {slot}." if slot else ""
    ranges = " Ranges go from the lowest to the highest." if said["ranges"] else ""
    return (
        "Each member's own, as all members share them here; the file has every digit."
        f"{ranges}{length}"
    )


def _numbers(said: dict[str, Any]) -> list[list[str]]:
    """A row for each member: its name and its numbers, as ranges where they are."""
    clients, ranges = said["numbers"]["clients"], said["ranges"] or {}
    columns = [[row["name"] for row in clients]]
    for field in _FIELDS:
        stated = [row[field] for row in clients]
        low, high = ranges.get(field, (stated, stated))
        columns.append([_range(*ends) for ends in zip(low, high, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _posted(terms: dict[str, Any]) -> list[list[str]]:
    """What the terms say in public of each member, if they do."""
    fields = ("samples", "contribution", "lowest_ratio", "lowest_discount_factor")
    public = terms.get("public", {})
    return [
        [name, *(_plain(public[name].get(field)) for field in fields)]
        for name in terms["clients"]
        if name in public
    ]


def _plain(number: float | None) -> str:
    """A number with six digits, or with all that it has before the point."""
    if number is None:
        return "–"
    written_out = _MILLION <= abs(number) < _LARGE
    return f"{number:,.0f}" if written_out else f"{number:,.6g}"


def _keys(terms: dict[str, Any]) -> list[tuple[str, str]]:
    keys = terms["keys"]
    members = [(name, keys["clients"][name]) for name in terms["clients"]]
    return [*members, ("the server", keys["server"])]


def _range(low: float, high: float) -> str:
    return _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"


def _rules(terms: dict[str, Any]) -> list[tuple[str, str]]:
    """Every rule of the terms that is not shown elsewhere, with what it is set to."""
    flat = [(key, terms[key]) for key in terms if key not in ("name", "clients", "keys", "public")]
    rotated = terms["keys"].get("rotations", {})
    rules = [("keys replaced by their owners", ", ".join(rotated))] if rotated else []
    for key, value in flat:
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rules += [(f"{key} {name}".strip(), _setting(name or key, each)) for name, each in inner]
    return [(name.replace("_", " "), value) for name, value in rules]


def _setting(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "punishment_slots" and value is None:
        return "for ever"
    if key == "quorum" and value == 0:
        return "more than half of the members"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
