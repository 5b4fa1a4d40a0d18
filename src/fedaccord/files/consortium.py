"""Consortium files: what they must look like, and the Consortium that one describes.

pydantic checks the shape (keys, types), the Consortium's own rules check the numbers. Every
problem is noted with its place, so that all of them are reported together.
"""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fedaccord.checks import normalised, shown, unknown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.law import LawTable, read_laws
from fedaccord.files.reading import Mistakes, load_toml, parse_toml
from fedaccord.files.tables import ClientTable, check_names, finite_number, read_csv
from fedaccord.game.consortium import (
    Consortium,
    broken_rules,
    broken_shared_rules,
    extreme_together,
    wrong_slot,
)
from fedaccord.game.cost import cost_per_sample_of_cpu
from fedaccord.numbers import FloatArray, as_text

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_CPU_FIELDS = ("chip", "cycles_per_sample", "hertz")
_ALWAYS = ("valuation", "samples")
_SOMETIMES = ("cost_per_sample", *_CPU_FIELDS, "communication_cost", "discount_factor", "quality")


class _Cpu(BaseModel):
    """The figures of a client's machine (eq. 4)."""

    model_config = _STRICT
    chip: float
    """The coefficient of its chip in eq. 4, times the price of energy."""
    cycles_per_sample: float
    """CPU cycles that training on one sample for a slot takes."""
    hertz: float
    """CPU cycles per second."""


class _Client(BaseModel):
    """One `[[clients]]` table."""

    model_config = _STRICT
    name: str
    """What the client is called; no two have the same name."""
    valuation: float
    """What an accuracy loss of 1 costs the client."""
    cost_per_sample: float | None = None
    """What training on one sample for a slot costs it; or give `cpu`."""
    cpu: _Cpu | None = None
    """The figures of its machine, instead of `cost_per_sample`."""
    samples: float
    """How many samples it has."""
    communication_cost: float = 0.0
    """What it pays per slot for sending models."""
    discount_factor: float | None = None
    """The client's own discount factor, instead of the consortium's."""
    quality: float = 1.0
    """What one of its samples is worth, in samples of quality 1."""
    law: LawTable | None = None
    """The client's own law of the loss, instead of the consortium's."""
    curve: str | None = None
    """Or only its own curve, measured as the consortium's law says."""


class _Shared(BaseModel):
    """The top of a consortium file. `clients`, a list or a file's name, is checked later."""

    model_config = _STRICT
    name: str | None = None
    """What the consortium is called; the file's name if left out."""
    rounds: int
    """Rounds of federated averaging in a slot."""
    discount_factor: float | None = None
    """What 1 saved in the next slot is worth now; required unless each client has its own."""
    server_fee: float = 0.0
    """What each client pays the server per slot."""
    currency: str = ""
    """What costs are counted in, such as "EUR"."""
    slot: str = ""
    """How long a slot is, such as "3 months"."""
    law: LawTable | None = None
    """How the loss falls with data; the paper's law if left out."""
    clients: Any
    """The clients: a list of tables, or the name of a CSV file."""


_INNER: dict[str, type[BaseModel]] = {"cpu": _Cpu, "law": LawTable}
"""The tables inside a client's, and inside the file's."""


def build_consortium(data: dict[str, Any], path: Path) -> Consortium:
    """The consortium in the data of a TOML file at `path`."""
    mistakes = Mistakes(str(path))
    for error in _errors(TypeAdapter(_Shared), data):
        place, message = _exas_text(error, _Shared)
        mistakes.add(Problem(place, message))
    _check_shared(data, mistakes)
    clients = _clients(data.get("clients"), path, mistakes)
    check_names(clients, mistakes)
    _check_numbers(clients, mistakes)
    cost_per_sample = _cost_per_sample(clients, mistakes)
    discount_factor = _discount_factor(clients, data, mistakes)
    law = read_laws(data, path, mistakes)
    if mistakes:
        raise mistakes.error()
    quality = clients.numbers["quality"]
    return Consortium(
        valuation=clients.numbers["valuation"],
        cost_per_sample=cost_per_sample,
        samples=clients.numbers["samples"],
        communication_cost=np.nan_to_num(clients.numbers["communication_cost"]),
        discount_factor=discount_factor,
        rounds=data["rounds"],
        server_fee=data.get("server_fee", 0.0),
        name=data.get("name", "").strip() or path.stem,
        names=[str(name) for name in clients.names],
        law=law,
        quality=np.where(np.isnan(quality), 1.0, quality),
        currency=data.get("currency", "").strip(),
        slot=data.get("slot", "").strip(),
    )


def _errors(shape: TypeAdapter[Any], data: Any) -> list[Any]:
    """What pydantic finds wrong with the shape of the data."""
    try:
        shape.validate_python(data)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)
    return []


_WORDS = {
    "missing": "is missing",
    "float_type": "must be a number, got {}",
    "finite_number": "must be a finite number, got {}",
    "int_type": "must be a whole number, got {}",
    "string_type": "must be text in quotes, got {}",
}


def _exas_text(error: dict[str, Any], model: type[BaseModel]) -> tuple[str, str]:
    """The place and the words for one of pydantic's errors."""
    *outer, last = error["loc"]
    place = ".".join(map(str, (*outer, last)))
    if error["type"] == "extra_forbidden":
        known = (_INNER[outer[0]] if outer else model).model_fields
        return place, f"unknown key; {unknown(str(last), known)}"
    words = _WORDS.get(error["type"], "must be a table, got {}")
    return place, words.format(shown(error["input"]))


def _check_shared(data: dict[str, Any], mistakes: Mistakes) -> None:
    rounds, fee = data.get("rounds", 1), data.get("server_fee", 0.0)
    for problem in broken_shared_rules(
        1 if "rounds" in mistakes else rounds, 0.0 if "server_fee" in mistakes else fee
    ):
        mistakes.add(problem)
    for field in ("name", "currency", "slot"):
        text = data.get(field)
        if isinstance(text, str) and not text.isprintable():
            mistakes.add(Problem(field, "must be one line of printable text"))
        elif field == "slot" and isinstance(text, str):
            for problem in wrong_slot(text.strip()):
                mistakes.add(problem)


def _clients(given: Any, path: Path, mistakes: Mistakes) -> ClientTable:
    if given is None and "clients" in mistakes:
        raise mistakes.error()
    if isinstance(given, str):
        return _clients_from_csv(given, path, mistakes)
    if not isinstance(given, list):
        wrong = f"must be a list or the name of a CSV file, got {shown(given)}"
        mistakes.add(Problem("clients", wrong))
        raise mistakes.error()
    return _clients_from_tables(given, mistakes)


def _clients_from_csv(name: str, path: Path, mistakes: Mistakes) -> ClientTable:
    called = Path(name).name
    try:
        table = read_csv(path.parent / name, mistakes, _ALWAYS, _SOMETIMES, called)
        if not {"cost_per_sample", *_CPU_FIELDS} & table.numbers.keys():
            missing = "column 'cost_per_sample' is missing (or chip, cycles_per_sample and hertz)"
            raise InvalidInput(Problem("cost_per_sample", missing, "line 1"))
        if not table.names:
            raise InvalidInput("has no clients; a consortium needs at least one")
    except InvalidInput as error:
        for problem in error.problems:
            mistakes.add(problem.inside(called))
        raise mistakes.error() from None
    absent = np.full(len(table.names), np.nan)
    table.numbers.update({field: absent for field in _SOMETIMES if field not in table.numbers})
    return table


def _clients_from_tables(tables: list[Any], mistakes: Mistakes) -> ClientTable:
    """The columns of `[[clients]]`; what pydantic finds wrong is noted."""
    if not tables:
        mistakes.add(Problem("clients", "a consortium needs at least one client"))
    rows = [row if isinstance(row, dict) else {} for row in tables]
    cpus = [row["cpu"] if isinstance(row.get("cpu"), dict) else {} for row in rows]
    names = [_name(row.get("name")) for row in rows]
    numbers = {
        field: np.array([finite_number(row.get(field)) for row in source], dtype=np.float64)
        for field in (*_ALWAYS, *_SOMETIMES)
        for source in [cpus if field in _CPU_FIELDS else rows]
    }
    clients = ClientTable(names, numbers, _toml_place, lambda n: f"clients[{n}]")
    for error in _errors(TypeAdapter(list[_Client]), tables):
        n, *inner = error["loc"]
        if not inner:
            wrong = f"must be a table, got {shown(error['input'])}"
            mistakes.add(Problem("clients", wrong, f"clients[{n}]"), n)
            continue
        field, message = _exas_text(error | {"loc": inner}, _Client)
        problem = Problem(field, message, f"clients[{n}].{field}")
        mistakes.add(problem, n, None if field == "name" else names[n])
    return clients


def _name(given: Any) -> str | None:
    return normalised(given.strip()) if isinstance(given, str) else None


def _toml_place(n: int, field: str) -> str:
    inner = f"cpu.{field}" if field in _CPU_FIELDS else field
    return f"clients[{n}]" + (f".{inner}" if inner else "")


def _check_numbers(clients: ClientTable, mistakes: Mistakes) -> None:
    for field in (*_ALWAYS, *_SOMETIMES):
        for n, message in _breaks(field, clients.numbers[field]):
            clients.add(mistakes, n, field, message)
    samples = clients.numbers["samples"]
    for n in np.flatnonzero(samples > np.floor(samples)).tolist():
        if clients.place(n, "samples") not in mistakes:
            message = f"must be a whole number, got {as_text(samples[n])}"
            clients.add(mistakes, n, "samples", message)


def _cost_per_sample(clients: ClientTable, mistakes: Mistakes) -> FloatArray:
    """E_n as given, or from the CPU's figures (eq. 4): each client must have one or the other."""
    given = clients.numbers["cost_per_sample"]
    figures = np.array([clients.numbers[field] for field in _CPU_FIELDS])
    has_given = ~np.isnan(given)
    has_figure = ~np.isnan(figures)
    has_some, has_all = has_figure.any(axis=0), has_figure.all(axis=0)
    for n in np.flatnonzero((has_given == has_all) | (has_some & ~has_all)).tolist():
        noted = (clients.place(n, field) for field in ("", "cpu", "cost_per_sample", *_CPU_FIELDS))
        if any(place in mistakes for place in noted):
            continue
        if has_given[n]:
            clients.add(mistakes, n, "", "has a cost_per_sample and figures of a cpu; give one")
        elif has_some[n]:
            for field in _CPU_FIELDS:
                if np.isnan(clients.numbers[field][n]):
                    clients.add(mistakes, n, field, "is missing")
        else:
            clients.add(mistakes, n, "cost_per_sample", "is missing (or the figures of a cpu)")
    with np.errstate(over="ignore", under="ignore"):
        worked_out = np.asarray(cost_per_sample_of_cpu(*figures))
    for n, message in _breaks("cost_per_sample", np.where(has_given, np.nan, worked_out)):
        if not any(clients.place(n, field) in mistakes for field in _CPU_FIELDS):
            clients.add(mistakes, n, "", f"cost_per_sample from its cpu {message}")
    result: FloatArray = np.where(has_given, given, worked_out)
    valuation, samples = clients.numbers["valuation"], clients.numbers["samples"]
    for n, message in extreme_together(valuation, result, samples):
        clients.add(mistakes, n, "", message)
    return result


def _discount_factor(clients: ClientTable, data: dict[str, Any], mistakes: Mistakes) -> FloatArray:
    """delta_n: the client's own, or the consortium's."""
    own = clients.numbers["discount_factor"]
    shared = finite_number(data.get("discount_factor"))
    for _, message in _breaks("discount_factor", np.array([shared])):
        mistakes.add(Problem("discount_factor", message))
    without = np.flatnonzero(np.isnan(own)).tolist()
    if "discount_factor" not in data and len(without) == own.size > 0:
        mistakes.add(Problem("discount_factor", "is missing"))
    elif "discount_factor" not in data:
        for n in without:
            if not any(clients.place(n, field) in mistakes for field in ("", "discount_factor")):
                message = "is missing, and the consortium has none for all"
                clients.add(mistakes, n, "discount_factor", message)
    result: FloatArray = np.where(np.isnan(own), shared, own)
    return result


def _breaks(field: str, values: FloatArray) -> Iterator[tuple[int, str]]:
    """Positions of numbers that break the field's rule, and how; missing ones (NaN) do not."""
    present = np.flatnonzero(~np.isnan(values))
    # each figure of a CPU obeys the rule of the cost that they make up together
    rule = "cost_per_sample" if field in _CPU_FIELDS else field
    for k, message in broken_rules(rule, values[present]):
        yield int(present[k]), message


def load_consortium(path: str | Path) -> Consortium:
    """The consortium that a TOML file describes.

    Args:
        path: The TOML file; its clients may be in a CSV file beside it.

    Raises:
        InvalidInput: with every problem found in the files, each with its place.
    """
    return build_consortium(load_toml(path), Path(path))


def example_text() -> str:
    """A consortium file to start from, with comments."""
    return resources.files("fedaccord.files").joinpath("example.toml").read_text("utf-8")


def example_consortium() -> Consortium:
    """The consortium of `example_text`.

    >>> example_consortium().name
    'Breast imaging, six hospitals'
    """
    return build_consortium(parse_toml(example_text(), "example.toml"), Path("example.toml"))
