"""Files in: a consortium from `consortium.toml`, a profile from CSV or JSON.

Everything wrong in a file is reported at once, each mistake with its place.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.game.arrays import FloatArray
from fedaccord.game.client_table import CSV_LIMIT, read_csv
from fedaccord.game.consortium import Consortium
from fedaccord.game.consortium_file import build_consortium
from fedaccord.game.mistakes import Mistakes, shown
from fedaccord.game.profile_file import in_order, read_entries
from fedaccord.game.text_file import read_text
from fedaccord.game.toml_file import load_toml, parse_toml


def load_consortium(path: str | Path) -> Consortium:
    """The consortium that a TOML file describes; its clients may be in a CSV file beside it."""
    return build_consortium(load_toml(path), Path(path))


def load_profile(path: str | Path, consortium: Consortium) -> FloatArray:
    """The contributions in a file, in the order of the consortium's clients.

    CSV with the columns name and contribution; or JSON: a list of {"name", "contribution"},
    an object {name: contribution}, or what `fedaccord solve --format json` prints.
    """
    path = Path(path)
    mistakes = Mistakes(str(path))
    try:
        if path.suffix.lower() == ".json":
            given = read_entries(load_json(path), mistakes)
        else:
            given = read_csv(path, mistakes, ["contribution"])
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    return in_order(given, consortium, mistakes)


def example_text() -> str:
    """A consortium file to start from, with comments."""
    return resources.files("fedaccord.game").joinpath("example.toml").read_text("utf-8")


def example_consortium() -> Consortium:
    """The consortium of `example_text`.

    >>> example_consortium().name
    'Breast imaging, six hospitals'
    """
    return build_consortium(parse_toml(example_text(), "example.toml"), Path("example.toml"))


def load_json(path: Path) -> Any:
    """The value in a JSON file, in which no key may be given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"{shown(key)} is there twice")
            found[key] = value
        return found

    try:
        return json.loads(read_text(path, CSV_LIMIT), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not usable JSON: {error}") from None
