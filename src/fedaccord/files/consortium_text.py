"""A consortium as the text of a file that `load_consortium` reads back, number for number.

Its samples must be whole, as in any file.
"""

import json
from collections.abc import Sequence

from fedaccord.game.consortium import Client, Consortium


def consortium_text(consortium: Consortium, comments: Sequence[str] = ()) -> str:
    """TOML, with the comments on top.

    >>> from fedaccord.files.consortium import example_consortium
    >>> consortium_text(example_consortium(), ["Six hospitals."]).splitlines()[:3]
    ['# Six hospitals.', '', 'name = "Breast imaging, six hospitals"']
    """
    lines = [f"# {comment}" for comment in comments]
    lines += ["", f"name = {_text(consortium.name)}", f"rounds = {int(consortium.rounds)}"]
    lines += [f"server_fee = {_number(consortium.server_fee)}"]
    for client in consortium:
        lines += ["", "[[clients]]", *_fields(client)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _fields(client: Client) -> list[str]:
    fields = [
        f"name = {_text(client.name)}",
        f"valuation = {_number(client.valuation)}",
        f"cost_per_sample = {_number(client.cost_per_sample)}",
        f"samples = {_number(client.samples)}",
    ]
    if client.communication_cost:
        fields.append(f"communication_cost = {_number(client.communication_cost)}")
    if client.discount_factor is not None:
        fields.append(f"discount_factor = {_number(client.discount_factor)}")
    return fields


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return (
        str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    )


def _text(text: str) -> str:
    """A TOML string: names are printable, and for such text JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)
