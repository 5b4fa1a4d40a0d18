"""The `[law]` table of a consortium file, and the law of the loss that it describes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from fedaccord.checks import shown, unknown, wrong_number, wrong_whole
from fedaccord.errors import MISSING, InvalidInput, Problem
from fedaccord.files.curve import load_curve
from fedaccord.files.reading import Mistakes, load_toml
from fedaccord.game.curve import MEASURES
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law

_RESAMPLES = 1000
MOST_RESAMPLES = 100_000
KINDS = ("paper", "power", "measured")
"""Of laws in a file."""


class LawTable(BaseModel):
    """How the loss falls with the samples that all clients train on together."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    kind: str
    """`paper`: 1/sqrt(X G) + 1/G; `power`: scale (X + shift)^-exponent + floor, for what-if;
    `measured`: fitted to a curve."""
    measure: str | None = None
    """What is lost, and the unit of valuations: `error` (1 - accuracy), `loss`, `1 - AUC`,
    `1 - concordance`."""
    curve: str | None = None
    """Measured: a CSV file with the columns samples, seed and value (and example)."""
    resamples: int = _RESAMPLES
    """Measured: how many laws to resample."""
    seed: int = 0
    """Measured: for the random numbers of resampling."""
    scale: float | None = None
    """Power: the loss at X + shift = 1, less the floor."""
    exponent: float | None = None
    """Power: how quickly the loss falls."""
    shift: float = 0.0
    """Power: samples that the loss at X = 0 is already worth."""
    floor: float = 0.0
    """Power: what no amount of data removes."""


_KEYS = {
    "paper": (),
    "power": ("measure", "scale", "exponent", "shift", "floor"),
    "measured": ("measure", "curve", "resamples", "seed"),
}
_REQUIRED = {
    "paper": (),
    "power": ("scale", "exponent"),
    "measured": ("measure", "curve"),
}


def read_laws(data: dict[str, Any], path: Path, mistakes: Mistakes) -> Law | list[Law] | None:
    """The law in the data of a consortium file at `path`, or a list if a client has its own.

    None stands for the paper's law. What is wrong is noted, except with the types of keys, which
    are checked with those of the whole file.
    """
    listed = data.get("clients")
    tables = listed if isinstance(listed, list) else []
    rounds = 1 if "rounds" in mistakes else data.get("rounds", 1)

    def read(table: Any, place: str, n: int) -> Law | None:
        if not _has_shape(table):
            return None
        try:
            return _law(table, path, rounds)
        except InvalidInput as error:
            for problem in error.problems:
                mistakes.add(_inside(problem, place), n)
        return None

    shared = read(data.get("law"), "law", -1)
    own = [
        read(_own_table(table, data.get("law")), f"clients[{n}].law", n)
        for n, table in enumerate(tables)
    ]
    if mistakes or all(law is None for law in own):
        return shared
    common = Law.paper(rounds) if shared is None else shared
    laws = [common if law is None else law for law in own]
    if len({law.measure for law in laws}) > 1:
        wrong = "all clients' laws must be of one measure, the unit of valuations"
        mistakes.add(Problem("law", wrong))
    return laws


def law_of(data: dict[str, Any]) -> Law | None:
    """The law that all clients share in the data of a file; None if it is the paper's, or wrong."""
    found = read_laws(data | {"clients": []}, Path("consortium.toml"), Mistakes("consortium.toml"))
    return found if isinstance(found, Law) and found.kind != "paper" else None


def load_law(path: str | Path, rounds: int = 1) -> Law:
    """The law of the loss in a file by itself.

    Args:
        path: A curve (CSV, of the error) to fit a law to, or TOML with a `[law]` table.
        rounds: G, for the paper's law.
    """
    file = Path(path)
    if file.suffix.lower() == ".csv":
        return _measured({"measure": "error", "curve": file.name}, file)
    table: Any = load_toml(file).get("law")
    mistakes = Mistakes(str(file))
    if not _has_shape(table):
        raise InvalidInput("has no [law] table that says which kind of law it is", str(file))
    try:
        return _law(table, file, rounds)
    except InvalidInput as error:
        for problem in error.problems:
            mistakes.add(_inside(problem, "law"))
    raise mistakes.error()


def _has_shape(table: Any) -> bool:
    try:
        LawTable.model_validate(table)
    except ValidationError:
        return False
    return True


def _own_table(client: Any, shared: Any) -> Any:
    """A client's own `law`; or its own `curve`, measured as the law of all says."""
    if not isinstance(client, dict) or not isinstance(client.get("curve"), str):
        return client.get("law") if isinstance(client, dict) else None
    if isinstance(client.get("law"), dict):
        return client["law"] | {"curve": client["curve"]}
    given = shared if isinstance(shared, dict) and shared.get("kind") == "measured" else {}
    return {"measure": "error"} | given | {"kind": "measured", "curve": client["curve"]}


def _inside(problem: Problem, place: str) -> Problem:
    where = place if problem.field in ("", "law") else f"{place}.{problem.field}"
    return Problem(problem.field, problem.message, f"{where}: {problem.place}".removesuffix(": "))


def _law(table: dict[str, Any], file: Path, rounds: int) -> Law:
    """The law in a `[law]` table whose keys have the right types."""
    if problems := list(_problems(table)):
        raise InvalidInput(problems)
    if table["kind"] == "paper":
        return Law.paper(rounds)
    if table["kind"] == "power":
        numbers = [table.get(name, 0.0) for name in ("scale", "exponent", "shift", "floor")]
        return Law.power(*numbers, measure=table.get("measure", "loss"))
    return _measured(table, file)


def _measured(table: dict[str, Any], file: Path) -> Law:
    """The law that is fitted to a curve, whose place is relative to the file."""
    curve = table["curve"]
    try:
        measured = load_curve(file.parent / curve, table["measure"])
        return fit_law(
            measured, resamples=table.get("resamples", _RESAMPLES), seed=table.get("seed", 0)
        )
    except InvalidInput as error:
        called = Path(curve).name
        places = [
            Problem("curve", each.message, f"{called}: {each.place}" if each.place else called)
            for each in error.problems
        ]
        raise InvalidInput(places) from None


def _problems(table: dict[str, Any]) -> Iterator[Problem]:
    kind = table["kind"]
    if kind not in _KEYS:
        yield Problem("kind", f"there is no law of kind {shown(kind)}; {unknown(kind, _KEYS)}")
        return
    for name in table:
        if name != "kind" and name not in _KEYS[kind]:
            whose = next(other for other, names in _KEYS.items() if name in names)
            yield Problem(name, f'goes with kind = "{whose}", not with "{kind}"')
    for name in _REQUIRED[kind]:
        if name not in table:
            yield Problem(name, f'{MISSING}; kind = "{kind}" needs it')
    measure = table.get("measure")
    if measure is not None and measure not in MEASURES:
        hint = unknown(measure, MEASURES)
        yield Problem("measure", f"there is no measure {shown(measure)}; {hint}")
    for name in ("scale", "exponent"):
        if name in table and (wrong := wrong_number(table[name], above=0)):
            yield Problem(name, wrong)
    for name in ("shift", "floor"):
        if name in table and (wrong := wrong_number(table[name], least=0)):
            yield Problem(name, wrong)
    for name, least, most in (("resamples", 1, MOST_RESAMPLES), ("seed", 0, None)):
        if name in table and (wrong := wrong_whole(table[name], least, most)):
            yield Problem(name, wrong)
