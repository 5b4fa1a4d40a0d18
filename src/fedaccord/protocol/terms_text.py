"""The terms as a TOML file that people can read."""

import json
from typing import Any

from fedaccord.protocol.terms import FOR_EVER, Terms


def terms_text(terms: Terms) -> str:
    """The terms as a TOML file."""
    given = terms.model_dump(mode="json")
    training, law, public = given.pop("training"), given.pop("law", None), given.pop("public", {})
    given.pop("reports", None)
    keys, audits = given.pop("keys", None), given.pop("audits", None)
    lines = ["# What everyone in the consortium has signed. Nothing in here is secret.", ""]
    for key, value in given.items():
        if key == "agreement":
            lines += [*_ABOUT_REPORTS[terms.reports], _line("reports", terms.reports)]
        lines.append(_line(key, value))
    lines += ["", "[training]", *(_line(key, value) for key, value in training.items())]
    if law is not None:
        lines += ["", *_law_lines(law)]
    for name, numbers in public.items():
        lines += ["", f"[public.{toml_value(name)}]"]
        lines += [_line(key, value) for key, value in numbers.items()]
    if keys is not None:
        lines += _key_lines(keys)
    if audits is not None:
        lines += ["", "# How training is audited, and by whom.", *_table_lines("audits", audits)]
    return "\n".join(lines) + "\n"


_ABOUT_REPORTS = {
    "ratio": [
        "",
        "# The amounts are computed from the ratios that clients report. A client that reports a",
        "# lower ratio is asked for less, so this can be gamed (fedaccord misreport says by how",
        '# much). With reports = "none" nobody reports anything, and nobody can.',
    ],
    "none": [
        "",
        "# Nobody reports a private number: what is offered follows from what is public, below,",
        "# and from what clients say to a clock if there is one.",
    ],
}


def _key_lines(keys: dict[str, Any]) -> list[str]:
    """Everybody's public key, and how keys were replaced."""
    lines = ["", "# With these, anyone can check who said what.", "[keys]"]
    lines.append(_line("server", keys.pop("server")))
    for table, values in keys.items():
        lines += ["", f"[keys.{table}]"]
        lines += [f"{toml_value(name)} = {toml_value(value)}" for name, value in values.items()]
    return lines


def _table_lines(name: str, table: dict[str, Any]) -> list[str]:
    """A table and those inside it; what is None is left out."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict) and value}
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, dict)}
    lines = [
        f"[{name}]",
        *(f"{toml_value(key)} = {toml_value(value)}" for key, value in plain.items()),
    ]
    for key, value in inner.items():
        lines += ["", *_table_lines(f"{name}.{toml_value(key)}", value)]
    return lines


def _law_lines(law: dict[str, Any]) -> list[str]:
    """The law as a table, with a line for each of its terms."""
    parts = law.pop("terms")
    inline = [", ".join(_line(key, value) for key, value in part.items()) for part in parts]
    lines = ["[law]", *(_line(key, value) for key, value in law.items())]
    return [*lines, "terms = [", *(f"    {{{part}}}," for part in inline), "]"]


def _line(key: str, value: Any) -> str:
    return f"{key} = {toml_value(FOR_EVER if value is None else value)}"


def toml_value(value: Any) -> str:
    """JSON strings, numbers and lists are valid TOML."""
    return json.dumps(value, ensure_ascii=False)
