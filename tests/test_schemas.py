"""The schemas are up to date, and describe exactly what fedaccord reads and prints."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, ValidationError, validators
from typer.testing import CliRunner

from fedaccord.cli import app
from fedaccord.cli.options import flag_of
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import build_consortium, example_text
from fedaccord.game.curve import Curve
from fedaccord.ledger.chain import Entry
from fedaccord.membership.agreeing import GroupAgreement
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.terms_text import terms_text
from tests.cli.test_join import consortium_file, folder
from tests.flower.stories import SUSPENDING, TERMS, told
from tests.interviews.organisations import HOSPITAL, LEAST
from tests.protocol.postings import KINDS, unreported
from tests.schemas import DRAFT_4, FOLDER, schemas, text_of

SCHEMAS = schemas()


def check(name: str, document: Any) -> None:
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    validators.validator_for(schema)(schema).validate(document)


def printed(*words: str) -> Any:
    return json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).stdout)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_current(name: str) -> None:
    current = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert current == text_of(SCHEMAS[name]), "run: python -m tests.schemas"


def test_there_are_no_other_schema_files() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid(name: str) -> None:
    schema = SCHEMAS[name]
    validator = validators.validator_for(schema)
    validator.check_schema(schema)
    assert (validator is Draft4Validator) == (schema["$schema"] == DRAFT_4)


def example() -> dict[str, Any]:
    return tomllib.loads(example_text())


def change(path: list[Any], value: Any) -> dict[str, Any]:
    """The example with one value changed, or removed if it is `...`."""
    data = example()
    *outer, last = path
    place: Any = data
    for key in outer:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return data


def test_the_example_matches_the_schema() -> None:
    check("consortium", example())
    check("consortium", change(["clients"], "clients.csv"))


@pytest.mark.parametrize(
    "data",
    [
        change(["rounds"], 0),
        change(["rounds"], 2.5),
        change(["rounds"], ...),
        change(["discount_factor"], 1.0),
        change(["discount_factor"], ...),
        change(["discount"], 0.5),
        change(["server_fee"], -1.0),
        change(["clients"], []),
        change(["clients", 0, "valuation"], 0.0),
        change(["clients", 0, "valuation"], 1e290),
        change(["clients", 0, "samples"], 0.5),
        change(["clients", 0, "samples"], -5),
        change(["clients", 0, "name"], ...),
        change(["clients", 0, "cost_per_sample"], ...),
        change(["clients", 3, "cost_per_sample"], 0.004),
        change(["clients", 3, "cpu", "hertz"], 0.0),
        change(["clients", 3, "cpu", "hertz"], ...),
        change(["clients", 0, "communication_cost"], "much"),
    ],
)
def test_the_schema_rejects_what_the_reader_rejects(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check("consortium", data)
    with pytest.raises(InvalidInput):
        build_consortium(data, Path("example.toml"))


def test_each_client_may_have_its_own_discount_factor() -> None:
    data = change(["discount_factor"], ...)
    for client in data["clients"]:
        client["discount_factor"] = 0.5
    check("consortium", data)


def test_written_terms_match_the_schema() -> None:
    data = tomllib.loads(terms_text(TERMS))
    check("terms", data)
    law = {"kind": "mixture", "measure": "error", "terms": [{"value": 1.0, "exponent": 0.5}]}
    check("terms", data | {"law": law})
    strange = law | {"terms": []}
    for wrong in ({"rounds": 0}, {"agreement": "unanimous"}, {"note": "hello"}, {"law": strange}):
        with pytest.raises(ValidationError):
            check("terms", data | wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_without_reports_match_the_schema(kind: str) -> None:
    terms = unreported(kind)
    data = tomllib.loads(terms_text(terms))
    assert Terms.model_validate(data) == terms
    check("terms", data)
    for wrong in ({"reports": "all"}, {"public": {"a": {"samples": 0}}}, {"clock_steps": 0}):
        with pytest.raises(ValidationError):
            check("terms", data | wrong)


SOLVED: dict[str, Callable[[], Any]] = {
    "uniform": lambda: printed("solve", "--paper", "--agreement", "uniform"),
    "whole samples": lambda: printed("solve", "--paper", "--whole-samples"),
    "none exists": lambda: printed("solve", "--paper", "--discount-factor", "0.01"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVED)
def test_solve(name: str) -> None:
    solution = SOLVED[name]()
    check("solve", solution)
    del solution["agreement"]["kind"]
    with pytest.raises(ValidationError):
        check("solve", solution)


@pytest.mark.parametrize("words", [("--everyone",), ("--client", "client-2")])
def test_misreport(words: tuple[str, ...]) -> None:
    found = printed("misreport", "--paper", "--clients", "3", "--reports", "8", *words)
    check("misreport", found)
    assert len(found["mechanisms"]) == 9
    del found["mechanisms"][0]["largest_gain"]
    with pytest.raises(ValidationError):
        check("misreport", found)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--skew", "0.3"), ("--clients", "9", "--permutations", "20")])
def test_value(words: tuple[str, ...]) -> None:
    found = printed("value", "--rounds", "3", "--seeds", "2", "--quality", "error", *words)
    check("value", found)
    del found["clients"][0]["gain"]
    with pytest.raises(ValidationError):
        check("value", found)


def quick_join(*words: str) -> Any:
    return printed("join", *words, "--data", folder(Path("data")), "--seeds", "2")


@pytest.mark.slow
def test_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = quick_join("--rounds", "3")
    check("join", found)
    assert len(found["ways"]) > 1
    assert found["agreement"] is None
    for wrong in (without(found, "unit"), found | {"note": "hello"}):
        with pytest.raises(ValidationError):
            check("join", wrong)


def test_join_with_an_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = quick_join(consortium_file(), "--optimiser", "fedavg")
    check("join", found)
    agreed = found["agreement"]
    assert agreed["contributions"].keys() == set(agreed["members"])
    for wrong in (without(agreed, "exists"), agreed | {"note": "hello"}):
        with pytest.raises(ValidationError):
            check("join", found | {"agreement": wrong})


def test_join_if_no_law_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    curve = Curve([10, 20, 40, 80], range(2), [[0.5, 0.5]] * 4)
    agreed = GroupAgreement(("North", "South"), curve, None, "the error does not fall").to_dict()
    assert not agreed["exists"]
    check("join", quick_join("--rounds", "2", "--optimiser", "fedavg") | {"agreement": agreed})


def without(record: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != field}


@pytest.mark.parametrize("answers", [HOSPITAL, LEAST, LEAST | {"point_worth": 1}])
def test_interview(answers: dict[str, Any]) -> None:
    words = [word for key, value in answers.items() for word in (flag_of(key), str(value))]
    record = printed("interview", *words)
    check("interview", record)
    del record["results"][0]["steps"][0]["formula"]
    with pytest.raises(ValidationError):
        check("interview", record)


def test_every_form_of_a_profile() -> None:
    solution = printed("solve", "--paper", "--clients", "5")
    clients = solution["agreement"]["clients"]
    amounts = {client["name"]: client["contribution"] for client in clients}
    for profile in (solution, solution["agreement"], clients, amounts):
        check("profile", profile)
    for wrong in ([{"name": "client-1"}], {"client-1": -1}, {"client-1": "all"}, "client-1"):
        with pytest.raises(ValidationError):
            check("profile", wrong)


@pytest.mark.parametrize("amount", [0, 5_000])
def test_certify(amount: int, tmp_path: Path) -> None:
    """If nobody trains, costs are infinite, which is null in JSON."""
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({f"client-{n}": amount for n in range(1, 4)}))
    check("certify", printed("certify", "--paper", "--clients", "3", str(profile)))


UNREPORTED = [unreported(kind, ("a", "b", "c")) for kind in ("posted", "serial clock")]


@pytest.mark.parametrize("terms", [TERMS, SUSPENDING, *UNREPORTED], ids=lambda terms: terms.name)
def test_the_ledger_of_a_server_and_the_copies_of_its_clients(terms: Terms, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    _, clients = told(path, slots=2, terms=terms)
    entries = printed("ledger", "show", str(path))
    assert len({entry["kind"] for entry in entries}) > 10
    check("ledger", entries)
    for copy in clients.copies.values():
        check("ledger", [shown(entry) for entry in copy.written])
    with pytest.raises(ValidationError):
        check("ledger", [entries[0] | {"kind": "rumour"}])
    slot = next(entry for entry in entries if entry["kind"] == "slot")
    with pytest.raises(ValidationError):
        check("ledger", [slot | {"body": {"phase": "resting"}}])


def shown(entry: Entry) -> dict[str, Any]:
    """An entry as `ledger show` prints it."""
    fields = entry._asdict()
    del fields["text"]
    return fields | {"body": entry.body}
