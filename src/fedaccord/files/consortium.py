"""Consortium files: what they must look like, and the Consortium that one describes.

pydantic checks the shape (keys, types), the Consortium's own rules check the numbers. Every
problem is noted with its place, so that all of them are reported together.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fedaccord.checks import is_number, normalised, shown, unknown, wrong_number
from fedaccord.errors import MISSING, UNKNOWN_KEY, InvalidInput, Problem
from fedaccord.files.clients import CPU_FIELDS, FIELDS, broken, check_clients, load_clients
from fedaccord.files.law import LawTable, read_laws
from fedaccord.files.numerals import InThreeDecimals
from fedaccord.files.questions import YES, Question, asks_now, unusual
from fedaccord.files.ranged import RangedRows, pairs_of, read_number_or_range
from fedaccord.files.ranges import Range
from fedaccord.files.reading import (
    TOML_LIMIT,
    Mistakes,
    is_table,
    load_toml,
    parse_toml,
    read_text,
    tell,
)
from fedaccord.files.tables import ClientTable, finite_number
from fedaccord.game.consortium import Consortium
from fedaccord.game.rules import broken_shared_rules, wrong_slot
from fedaccord.game.slot import slot_in_words
from fedaccord.numbers import FloatArray

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


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
    """What an accuracy loss of 1 costs the client; a number or a range, like the next."""
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
    leaves: float | None = None
    """The client's own probability of leaving after a slot, instead of the consortium's."""
    observed: float | None = None
    """How many samples it trained on when there was no agreement, if all clients have that."""


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
    leaves: float = 0.0
    """The probability that a client leaves for good after a slot, and is replaced by another."""
    growth: float = 0.0
    """The part by which data sizes and satiation points grow from slot to slot."""
    clients: Any
    """The clients: a list of tables, or the name of a spreadsheet."""
    states: Any = None
    """What may be the case in a slot: who is away, and which numbers are not as usual."""
    transitions: Any = None
    """For each state, the probabilities of those that may follow it; it lasts if it has none."""
    classes: Any = None
    """Ranges for clients that leave a number out: a table for each class that clients name."""
    sure: list[str] = []
    """Questions about unlikely numbers that are answered: the numbers are right."""


_INNER: dict[str, type[BaseModel]] = {"cpu": _Cpu, "law": LawTable}
"""The tables inside a client's, and inside the file's."""


def build_consortium(data: dict[str, Any], path: Path) -> Consortium:
    """The consortium in the data of a TOML file at `path`."""
    mistakes = Mistakes(str(path))
    data, patience = _plain_patience(data, mistakes)
    for error in _errors(TypeAdapter(_Shared), data):
        place, message = _exas_text(error, _Shared)
        mistakes.add(Problem(place, message))
    _check_shared(data, mistakes)
    clients = _clients(data, path, mistakes)
    cost_per_sample = check_clients(clients, mistakes)
    discount_factor = _discount_factor(clients, data, mistakes)
    law = read_laws(data, path, mistakes)
    if mistakes:
        raise mistakes.error()
    tell(clients.notes, path.parent / str(data["clients"]))
    quality = clients.numbers["quality"]
    numbers = {
        "valuation": clients.numbers["valuation"],
        "cost_per_sample": cost_per_sample,
        "samples": clients.numbers["samples"],
        "discount_factor": discount_factor,
    }
    ranges = pairs_of(_with_patience(clients, patience), numbers) | _observed(clients, mistakes)
    consortium = _checked(
        path,
        **numbers,
        communication_cost=np.nan_to_num(clients.numbers["communication_cost"]),
        rounds=data["rounds"],
        server_fee=data.get("server_fee", 0.0),
        name=data.get("name", "").strip() or path.stem,
        names=[str(name) for name in clients.names],
        law=law,
        quality=np.where(np.isnan(quality), 1.0, quality),
        currency=_counted(data) or clients.currency,
        slot=slot_in_words(slot) if (slot := data.get("slot", "").strip()) else "",
        ranges=ranges or None,
    )
    _ask_about(consortium, data, path)
    return _with_turnover(consortium, data, path)


def unlikely(consortium: Consortium, data: Mapping[str, Any]) -> list[Question]:
    """What is asked about a consortium's numbers, unless its file says that they are right."""
    numbers = {
        field: getattr(consortium, field) for field in ("valuation", "cost_per_sample", "samples")
    }
    sure = data.get("sure", ())
    return list(unusual(numbers, consortium.names, consortium.currency, sure))


def _ask_about(consortium: Consortium, data: Mapping[str, Any], path: Path) -> None:
    """Ask about unlikely numbers; if nobody is there, a note asks, and nothing is refused."""
    found = unlikely(consortium, data)
    if not found:
        return
    sure = json.dumps(sorted({*data.get("sure", ()), *(each.key for each in found)}))
    keep = f"sure = {sure} above the clients of the consortium file says so"
    asks = asks_now()
    for question in found:
        if asks is None:
            tell([f"{question.text} If all is right, {keep}"], path)
        elif asks(question) != YES:
            wrong = "is in question; correct it, or say that it is right. Nothing was done"
            raise InvalidInput(wrong, str(path), field=question.field)
    if asks is not None:
        tell([f"the numbers are taken as right; {keep} for good"], path)


def _with_turnover(consortium: Consortium, data: dict[str, Any], path: Path) -> Consortium:
    """The consortium if its members leave and are replaced, or grow, as the file says."""
    shared, growth = data.get("leaves", 0.0), data.get("growth", 0.0)
    tables = data["clients"] if isinstance(data["clients"], list) else [{}] * consortium.size
    leaves = [table.get("leaves", shared) for table in tables]
    if not any(leaves) and not growth:
        return consortium
    if wrong := wrong_number(shared, least=0, below=1):  # once, not for every client
        raise InvalidInput(wrong, str(path), field="leaves")
    try:
        return consortium.with_turnover(leaves, growth)
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None


def _checked(path: Path, **fields: Any) -> Consortium:
    """The consortium; what only all of its numbers together show is wrong has the file's name."""
    try:
        return Consortium(**fields)
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None


def _plain_patience(
    data: dict[str, Any], mistakes: Mistakes
) -> tuple[dict[str, Any], Range | None]:
    """The file with a number for the consortium's discount factor, and its range if it has one."""
    given = data.get("discount_factor")
    if given is None or is_number(given):
        return data, None
    found = read_number_or_range("discount_factor", given)
    if isinstance(found, str):
        mistakes.add(Problem("discount_factor", found))
        return data | {"discount_factor": 0.0}, None
    return data | {"discount_factor": found.likely}, found


def _with_patience(clients: ClientTable, shared: Range | None) -> Mapping[str, Mapping[int, Range]]:
    """The clients' ranges, with the consortium's discount factor for those without their own."""
    if shared is None:
        return clients.ranges
    without = np.flatnonzero(np.isnan(clients.numbers["discount_factor"])).tolist()
    patience = {**clients.ranges.get("discount_factor", {}), **dict.fromkeys(without, shared)}
    return {**clients.ranges, "discount_factor": patience}


def _observed(clients: ClientTable, mistakes: Mistakes) -> dict[str, FloatArray]:
    """What clients trained on when there was no agreement, which all have or none."""
    observed = clients.numbers.get("observed", np.array([]))
    seen = np.isfinite(observed)
    if not seen.any():
        return {}
    for n in np.flatnonzero(~seen).tolist():
        clients.add(mistakes, n, "observed", f"{MISSING}, and other clients have it")
    if mistakes:
        raise mistakes.error()
    return {"observed": observed}


def _errors(shape: TypeAdapter[Any], data: Any) -> list[Any]:
    """What pydantic finds wrong with the shape of the data."""
    try:
        shape.validate_python(data)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)
    return []


def unknown_keys(data: Mapping[str, Any]) -> list[tuple[str | int, ...]]:
    """The ways to keys of a file that mean nothing, which can be left out of it.

    >>> unknown_keys({"rounds": 5, "foo": 1, "clients": [{"name": "A", "bar": 2}]})
    [('foo',), ('clients', 0, 'bar')]
    """
    given = data.get("clients")
    tables = given if isinstance(given, list) else []
    rows = RangedRows(tables, data.get("classes"), Mistakes("")).rows
    shared = _errors(TypeAdapter(_Shared), data)
    own = [
        each | {"loc": ("clients", *each["loc"])}
        for each in _errors(TypeAdapter(list[_Client]), rows)
    ]
    return [each["loc"] for each in (*shared, *own) if each["type"] == _UNKNOWN]


_UNKNOWN = "extra_forbidden"
_WORDS = {
    "missing": MISSING,
    "float_type": "must be a number, got {}",
    "finite_number": "must be a finite number, got {}",
    "int_type": "must be a whole number, got {}",
    "string_type": "must be text in quotes, got {}",
}


def _exas_text(error: dict[str, Any], model: type[BaseModel]) -> tuple[str, str]:
    """The place and the words for one of pydantic's errors."""
    *outer, last = error["loc"]
    place = ".".join(map(str, (*outer, last)))
    if error["type"] == _UNKNOWN:
        known = (_INNER[outer[0]] if outer else model).model_fields
        return place, f"{UNKNOWN_KEY}; {unknown(str(last), known)}"
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


def _clients(data: dict[str, Any], path: Path, mistakes: Mistakes) -> ClientTable:
    given = data.get("clients")
    if given is None and "clients" in mistakes:
        raise mistakes.error()
    if isinstance(given, str):
        called = "" if is_table(path) else None
        return load_clients(path.parent / given, mistakes, _counted(data), called)
    if not isinstance(given, list):
        wrong = f"must be a list or the name of a spreadsheet, got {shown(given)}"
        mistakes.add(Problem("clients", wrong))
        raise mistakes.error()
    ranged = RangedRows(given, data.get("classes"), mistakes, _counted(data))
    clients = _clients_from_tables(ranged.rows, mistakes)
    return replace(clients, ranges=ranged.ranges, currency=ranged.currency)


def _counted(data: dict[str, Any]) -> str:
    """The currency that the file names; empty if it names none."""
    named = data.get("currency")
    return named.strip() if isinstance(named, str) else ""


def _clients_from_tables(tables: list[Any], mistakes: Mistakes) -> ClientTable:
    """The columns of `[[clients]]`; what pydantic finds wrong is noted."""
    if not tables:
        mistakes.add(Problem("clients", "a consortium needs at least one client"))
    rows = [row if isinstance(row, dict) else {} for row in tables]
    cpus = [row["cpu"] if isinstance(row.get("cpu"), dict) else {} for row in rows]
    names = [_name(row.get("name")) for row in rows]
    numbers = {
        field: np.array([finite_number(row.get(field)) for row in source], dtype=np.float64)
        for field in (*FIELDS, "observed")
        for source in [cpus if field in CPU_FIELDS else rows]
    }
    clients = ClientTable(names, numbers, _toml_place, lambda n: f"clients[{n}]")
    for n, row in enumerate(rows):
        for field in ("samples", "valuation"):
            if message := perhaps_thousands(field, row.get(field)):
                clients.add(mistakes, n, field, message)
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


def perhaps_thousands(field: str, given: Any) -> str | None:
    """What to say of `42.000` samples, or a valuation of `700.000`, which TOML takes for 42, 700.

    Nobody counts in thousandths, or writes an amount with three zeros after the point.
    """
    if not isinstance(given, InThreeDecimals):
        return None
    if field != "samples" and not given.written.endswith(".000"):
        return None
    thousands = given.written.replace(".", "_")
    return f"{given.written} is {given:g} in TOML; write {thousands} if that is meant, or {given:g}"


def _name(given: Any) -> str | None:
    return normalised(given.strip()) if isinstance(given, str) else None


def _toml_place(n: int, field: str) -> str:
    inner = f"cpu.{field}" if field in CPU_FIELDS else field
    return f"clients[{n}]" + (f".{inner}" if inner else "")


def _discount_factor(clients: ClientTable, data: dict[str, Any], mistakes: Mistakes) -> FloatArray:
    """delta_n: the client's own, or the consortium's."""
    own = clients.numbers["discount_factor"]
    shared = finite_number(data.get("discount_factor"))
    for _, message in broken("discount_factor", np.array([shared])):
        mistakes.add(Problem("discount_factor", message))
    without = np.flatnonzero(np.isnan(own)).tolist()
    if "discount_factor" not in data and len(without) == own.size > 0:
        mistakes.add(Problem("discount_factor", MISSING))
    elif "discount_factor" not in data:
        for n in without:
            if not any(clients.place(n, field) in mistakes for field in ("", "discount_factor")):
                message = f"{MISSING}, and the consortium has none for all"
                clients.add(mistakes, n, "discount_factor", message)
    result: FloatArray = np.where(np.isnan(own), shared, own)
    return result


FOR_A_TABLE = {"rounds": 50, "discount_factor": 0.9}
"""What is taken for a table of clients alone, which says nothing of what they share."""


def description_text(path: Path) -> str:
    """The text of a consortium file; of a table of clients, that of a file with that table."""
    if not is_table(path):
        return read_text(path, TOML_LIMIT)
    shared = "".join(f"{key} = {value}\n" for key, value in FOR_A_TABLE.items())
    return f"{shared}clients = {json.dumps(path.name, ensure_ascii=False)}\n"


def load_description(path: str | Path) -> dict[str, Any]:
    """The data of the same, with a note on what is taken for a table of clients alone."""
    file = Path(path)
    if not is_table(file) or not file.exists():
        return load_toml(file)
    taken = " and ".join(f"{key} = {value}" for key, value in FOR_A_TABLE.items())
    note = (
        f"{taken} are taken, where the table has no others; to change them, write them into a "
        f'consortium file (TOML), with clients = "{file.name}"'
    )
    tell([note], path)
    return parse_toml(description_text(file), str(path))


def load_consortium(path: str | Path) -> Consortium:
    """The consortium that a TOML file or a spreadsheet describes.

    Args:
        path: The TOML file; its clients may be in a spreadsheet beside it (CSV, XLSX, XLS or ODS).
            Or that spreadsheet alone. Its states, if it has any, are read by `load_changing`.

    Raises:
        InvalidInput: with every problem found in the files, each with its place.
    """
    data = load_description(path)
    if {"states", "transitions"} & data.keys():
        tell(["the states are left out here: this is everyone, with the usual numbers"], path)
    return build_consortium(data, Path(path))


def example_text() -> str:
    """A consortium file to start from, with comments."""
    return resources.files("fedaccord.files").joinpath("example.toml").read_text("utf-8")


def example_consortium() -> Consortium:
    """The consortium of `example_text`.

    >>> example_consortium().name
    'Breast imaging, six hospitals'
    """
    return build_consortium(parse_toml(example_text(), "example.toml"), Path("example.toml"))


def demo_text() -> str:
    """The consortium file of `fedaccord demo`, which says where its numbers come from."""
    return resources.files("fedaccord.files").joinpath("demo.toml").read_text("utf-8")


def demo_consortium() -> Consortium:
    """The consortium of `demo_text`, without the law that the demo measures.

    >>> demo_consortium().slot
    '3 months'
    """
    return build_consortium(parse_toml(demo_text(), "demo.toml"), Path("demo.toml"))
