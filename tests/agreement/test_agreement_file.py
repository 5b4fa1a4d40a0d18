"""Agreement files: read back as they were written, or refused."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.solution import solution_record
from fedaccord.cli.outputs import to_json
from tests.consortia import FEW, consortia

KINDS: list[dict[str, Any]] = [
    {},
    {"objective": "fair share", "margin": 0.05},
    {"punishment": fa.Reversion(3)},
    {"whole_samples": True},
    {"kind": "uniform"},
    {"kind": "uniform", "first_converted": "feasible", "punishment": fa.Reversion(7)},
]


def write(agreement: fa.Agreement, path: Path) -> None:
    optimum = fa.solve_social_optimum(agreement.consortium)
    record = solution_record(fa.certify(agreement), optimum, None)
    path.write_text(to_json(record, agreement.consortium.size))


@given(consortium=consortia(FEW, extreme=False, whole_data=True), options=st.sampled_from(KINDS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_round_trip_keeps_every_field(
    tmp_path: Path, consortium: fa.Consortium, options: dict[str, Any]
) -> None:
    agreement = fa.solve_agreement(consortium, **options)
    write(agreement, tmp_path / "a.json")
    read = fa.load_agreement(tmp_path / "a.json", consortium)
    for field in fields(fa.Agreement):
        if field.name == "equilibrium":
            continue
        here, there = getattr(agreement, field.name), getattr(read, field.name)
        assert np.array_equal(here, there), field.name
    assert np.array_equal(read.equilibrium.profile, agreement.equilibrium.profile)
    assert fa.certify(read).holds


@pytest.fixture
def short(tmp_path: Path) -> tuple[fa.Agreement, Path]:
    agreement = fa.solve_agreement(fa.paper_consortium(), margin=0.1)
    agreement = replace(agreement, punishment=fa.Reversion(3))  # four slots would enforce it
    write(agreement, tmp_path / "a.json")
    return agreement, tmp_path / "a.json"


def test_the_length_of_the_punishment_is_part_of_it(short: tuple[fa.Agreement, Path]) -> None:
    agreement, path = short
    read = fa.load_agreement(path, agreement.consortium)
    assert read.punishment == fa.Reversion(3)
    assert not fa.certify(read).holds
    assert fa.certify(replace(read, punishment=fa.Reversion(None))).holds
    same = fa.load_agreement(path, agreement.consortium, fa.Reversion(3))
    assert same.punishment == fa.Reversion(3)


def test_a_length_that_contradicts_the_agreement_is_refused(
    short: tuple[fa.Agreement, Path],
) -> None:
    agreement, path = short
    said = "punishes a slip by reversion for 3 slots, and not by "
    with pytest.raises(fa.InvalidInput, match=said + "reversion for 5 slots"):
        fa.load_agreement(path, agreement.consortium, fa.Reversion(5))
    with pytest.raises(fa.InvalidInput, match=said + "suspension for 1 slot"):
        fa.load_agreement(path, agreement.consortium, "suspension")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("punishment", ..., "is missing"),
        ("punishment", 5, "must be an object, got 5"),
        ("margin", "much", "must be a number, got 'much'"),
        ("margin", None, "must be a number, got None"),
        ("kind", "unanimous", "must be one of"),
        ("exists", 1, "must be true or false, got 1"),
        ("reason", 7, "must be text or null, got 7"),
    ],
)
def test_problems_in_an_agreement_file(
    short: tuple[fa.Agreement, Path], field: str, value: Any, problem: str
) -> None:
    agreement, path = short
    data = json.loads(path.read_text())
    if value is ...:
        del data["agreement"][field]
    else:
        data["agreement"][field] = value
    path.write_text(json.dumps(data))
    with pytest.raises(fa.InvalidInput, match=f"agreement.{field}: {problem}"):
        fa.load_agreement(path, agreement.consortium)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("slots", 0, "must be a whole number, 1 or more, got 0"),
        ("kind", "exile", "must be 'reversion' or 'suspension', got 'exile'"),
        ("length", 2, "unknown key"),
    ],
)
def test_problems_in_its_punishment(
    short: tuple[fa.Agreement, Path], field: str, value: Any, problem: str
) -> None:
    agreement, path = short
    data = json.loads(path.read_text())
    data["agreement"]["punishment"][field] = value
    path.write_text(json.dumps(data))
    with pytest.raises(fa.InvalidInput, match=f"agreement.punishment.{field}: {problem}"):
        fa.load_agreement(path, agreement.consortium)


def test_contributions_alone_make_an_agreement_of_kind_given(tmp_path: Path) -> None:
    consortium = fa.paper_consortium(2)
    (tmp_path / "p.csv").write_text("name,contribution\nclient-1,0\nclient-2,10\n")
    (tmp_path / "p.json").write_text('{"client-1": 0, "client-2": 10}')
    for name in ("p.csv", "p.json"):
        agreement = fa.load_agreement(tmp_path / name, consortium, fa.Reversion(4))
        assert (agreement.kind, agreement.punishment.slots) == ("given", 4)
        assert agreement.profile.tolist() == [0.0, 10.0]
