"""Records in notebooks and programs: short reprs, safe HTML, strict JSON, data frames."""

import builtins
import copy
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fedaccord as fa
from fedaccord.cli import app
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.files.consortium import example_consortium
from fedaccord.game.candidates import compare_laws
from fedaccord.game.curve import Curve
from fedaccord.game.measured import fit_law
from fedaccord.game.next_measurement import next_measurement
from fedaccord.mechanisms.comparison import compare
from fedaccord.mechanisms.contract.contract import design_menu
from fedaccord.mechanisms.contract.model import ContractModel
from fedaccord.record import SHOWN_ROWS, Record, Value, columns_of, jsonable
from fedaccord.repeated.deviators import deviator_of
from fedaccord.repeated.match import play
from fedaccord.repeated.strategies import DeviateOnce
from fedaccord.repeated.tolerance import find_tolerance
from fedaccord.training.comparison import Comparison, ProfileScore, estimate
from fedaccord.training.course import Course, Score, SlotRecord, TrainingRun, train
from fedaccord.training.task import Model, find_task


@cache
def agreement() -> fa.Agreement:
    return fa.solve_agreement(fa.paper_consortium(), punishment=fa.Reversion(5), margin=0.02)


def slot_record() -> SlotRecord:
    scores = tuple(Score(loss=1.0 / k, accuracy=0.5) for k in range(1, 51))
    return SlotRecord(1, "cooperating", 300, scores, scores[-1])


@cache
def training() -> Comparison:
    digits = load_dataset("digits")
    course = Course(
        Model(find_task("softmax"), digits),
        partial(RandomPartition, digits, [50, 50]),
        rounds=3,
    )
    profiles = {"few": [[20, 0], [0, 0]], "more": [[50, 50], [50, 50]]}
    runs = [train(course, rows, profile=name) for name, rows in profiles.items()]
    return Comparison("two", course, "vectorised", tuple(runs))


def curve() -> Curve:
    sizes = np.geomspace(10, 1000, 8)
    noise = np.random.default_rng(0).normal(0, 0.01, (8, 3))
    return Curve(sizes, range(3), (2 / np.sqrt(sizes))[:, np.newaxis] + noise)


RECORDS: dict[str, Callable[[], Record]] = {
    "consortium": lambda: agreement().consortium,
    "client": lambda: next(iter(agreement().consortium)),
    "equilibrium": lambda: agreement().equilibrium,
    "social optimum": lambda: fa.solve_social_optimum(agreement().consortium),
    "dynamics": lambda: fa.run_dynamics(fa.paper_consortium()),
    "agreement": agreement,
    "certificate": lambda: fa.certify(agreement()),
    "refuted": lambda: fa.certify(fa.agreement_on(fa.paper_consortium(), 10_000)),
    "batch": lambda: fa.solve_batch(
        valuation=np.arange(1.0, 101.0),
        cost_per_sample=0.985e-8,
        samples=10_000.0,
        rounds=[[50], [100]],
        discount_factor=0.8,
        kind="uniform",
    ),
    "match": lambda: play(agreement(), {"client-7": DeviateOnce(slot=3)}, slots=200),
    "match of selfish clients": lambda: play(
        fa.paper_consortium(discount_factor=0.01), slots=3, noise=0.1
    ),
    "deviator": lambda: deviator_of(
        play(agreement(), {"client-7": DeviateOnce(slot=3)}, slots=20), 6
    ),
    "tolerance": lambda: find_tolerance(agreement(), noise=0.05),
    "mechanisms": lambda: compare(fa.paper_consortium()),
    "mechanism": lambda: compare(fa.paper_consortium()).entries[1],
    "outcome": lambda: compare(fa.paper_consortium())["contract"].outcome,
    "menu": lambda: design_menu(
        ContractModel(
            cost_per_sample=[1e-8, 2e-8],
            delay=[1, 2],
            clients=[3, 3],
            samples=10_000,
            rounds=50,
            valuation=100.0,
            delay_price=1e-9,
        ),
        "weak",
    ),
    "dataset": lambda: load_dataset("digits"),
    "slot": slot_record,
    "run": lambda: TrainingRun("agreement", 0, (slot_record(),), {}),
    "training": training,
    "score": lambda: ProfileScore(
        "agreement", 5.0, estimate([0.5]), estimate([0.5]), estimate([0.5])
    ),
    "curve": curve,
    "law": lambda: fit_law(curve(), resamples=20),
    "evidence": lambda: fit_law(curve(), resamples=20).evidence or pytest.fail("none"),
    "candidate": lambda: compare_laws(curve())[0],
    "next measurement": lambda: next_measurement(fit_law(curve()), 400.0, 900.0),
}


@cache
def suspending() -> fa.Agreement:
    return fa.solve_agreement(example_consortium(), punishment=fa.Suspension())


@cache
def changing() -> fa.ChangingAgreement:
    return fa.solve_changing(fa.ChangingConsortium.lasting(example_consortium()))


def with_ranges() -> fa.Consortium:
    return fa.Consortium(
        valuation=[1e6, 2e6],
        cost_per_sample=0.01,
        samples=[5_000, 8_000],
        rounds=50,
        discount_factor=[0.8, 0.9],
        names=["A", "B"],
        ranges={"valuation": (9e5, 3e6)},
    )


def audited(**rates: Any) -> fa.Agreement:
    return fa.solve_agreement(
        example_consortium(), punishment=fa.Suspension(), monitoring=fa.Monitoring(**rates)
    )


TRAINED: dict[str, Callable[[], Value]] = {
    "trial": lambda: fa.train(fa.paper_consortium(clients=2, samples=20, rounds=2), seeds=1),
    "skewed trial": lambda: fa.train(
        fa.paper_consortium(clients=2, samples=20, rounds=2), seeds=1, skew=0.5
    ),
    "calibration": lambda: fa.calibrate(rounds=2, seeds=2),
    "joining": lambda: fa.join(clients=2, rounds=2, seeds=2),
    "values of data": lambda: fa.value_data(clients=2, rounds=2, seeds=2),
}
"""Those that are trained."""
SLOW = {*TRAINED, "dataset", "audit budgets", "mechanisms", "mechanism", "outcome", "tolerance"}
VALUES: dict[str, Callable[[], Value]] = {
    **RECORDS,
    "least audits": lambda: fa.least_audits(fa.certify(suspending())),
    "audit budgets": lambda: fa.audit_budgets(suspending()),
    "coalition": lambda: (
        fa.find_coalition(
            fa.agreement_on(fa.paper_consortium(clients=4), [10.0, 10_000.0, 10.0, 0.0])
        )
        or pytest.fail("none")
    ),
    "departures": lambda: fa.departures(example_consortium()),
    "false alarms": lambda: fa.false_alarms(audited(audit=0.9, false_alarm=0.01)),
    "monitoring": lambda: fa.Monitoring(audit=0.9, false_alarm=0.01),
    "monitoring by name": lambda: fa.Monitoring(audit={"A": 0.9, "B": 0.8}),
    "reversion": lambda: fa.Reversion(5),
    "suspension": lambda: fa.Suspension(3, model_keeps=0.1),
    "range costs": lambda: fa.range_costs(with_ranges()),
    "ranges": lambda: with_ranges().ranges or pytest.fail("none"),
    "worth": lambda: fa.worth(fa.certify(suspending())),
    "changing consortium": lambda: changing().changing,
    "changing agreement": changing,
    "changing certificate": lambda: fa.certify_changing(changing()),
    "changing match": lambda: fa.play_changing(changing(), slots=5),
    "misreport": lambda: fa.best_misreport(fa.paper_consortium(clients=3)),
    "misreports": lambda: fa.Misreports(
        fa.paper_consortium(clients=3), (fa.best_misreport(fa.paper_consortium(clients=3)),)
    ),
    "interview": lambda: fa.interview(
        {
            "name": "A",
            "cases_per_month": 100,
            "years_used": 2,
            "gpu_price": 2.0,
            "samples_per_second": 50,
            "point_worth": 1_000.0,
        }
    ),
    **TRAINED,
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in VALUES]
)
def test_a_copy_is_equal_and_has_nothing_computed(name: str) -> None:
    value = VALUES[name]()
    if isinstance(value, Record):
        repr(value), value.to_dict(), value._repr_html_()  # some of what is computed once
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert other == value
        assert other is not value
        assert type(other) is type(value)
        assert other._made_of().keys() == getattr(other, "__dict__", other._made_of()).keys()
        for field, array in value._made_of().items():
            if isinstance(array, np.ndarray):
                assert getattr(other, field).flags.writeable == array.flags.writeable
        assert hash(other) == hash(value)
    assert value != "something else"


@pytest.mark.slow  # it makes them all
def test_every_public_frozen_record_is_among_them() -> None:
    public = {
        each
        for each in (getattr(fa, name) for name in fa.__all__)
        if isinstance(each, type) and issubclass(each, Value)
    }
    tested = {type(VALUES[name]()) for name in VALUES if name not in TRAINED}
    assert public - tested == {fa.Calibration, fa.DataValues, fa.Joining, fa.Trial}


def test_records_are_equal_by_value() -> None:
    one, other = with_ranges(), with_ranges()
    assert one == other
    assert one in [other]
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert fa.certify(fa.solve_agreement(one)) == fa.certify(fa.solve_agreement(other))


@pytest.mark.parametrize(
    "other",
    [
        fa.paper_consortium(clients=4),
        fa.paper_consortium(clients=3, samples=9_999),
        fa.paper_consortium(clients=3, rounds=49),
        fa.paper_consortium(clients=3).with_law(fa.Law.power(scale=1.0, exponent=0.5)),
        next(iter(fa.paper_consortium(clients=3))),
    ],
)
def test_what_differs_is_not_equal(other: Record) -> None:
    assert fa.paper_consortium(clients=3) != other


def test_names_count_and_missing_numbers_are_equal() -> None:
    named = with_ranges()
    assert named != fa.Consortium.of(
        [replace(client, name=client.name.lower()) for client in named], rounds=50
    )
    unknown = estimate([0.5])
    assert np.isnan(unknown.half_width)
    assert unknown == estimate([0.5])
    assert hash(unknown) == hash(estimate([0.5]))
    assert unknown != estimate([0.6])


@pytest.fixture(params=RECORDS, ids=lambda name: name)
def record(request: pytest.FixtureRequest) -> Record:
    return RECORDS[request.param]()


def test_the_repr_is_one_short_line(record: Record) -> None:
    text = repr(record)
    assert text.startswith(f"{type(record).__name__}(")
    assert text.endswith(")")
    assert "\n" not in text
    assert len(text) < 300


def test_the_dict_is_strict_json(record: Record) -> None:
    data = record.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_html_has_at_most_the_first_rows_and_says_so(record: Record) -> None:
    html = record._repr_html_()
    tables = record._tables()
    length = max(map(len, next(iter(tables.values()))().values())) if tables else 0
    rows = html.count("<tr>") - (1 if tables else 0)
    assert rows == min(length, SHOWN_ROWS)
    assert (f"The first {SHOWN_ROWS} of {length:,}" in html) == (length > SHOWN_ROWS)


def test_every_table_is_a_frame(record: Record) -> None:
    for name, columns in record._tables().items():
        frame = record.to_frame(name)
        assert list(frame.columns) == list(columns())
        assert len(frame) == max(map(len, columns().values()))


def test_without_a_table_the_facts_are_one_row() -> None:
    frame = next(iter(agreement().consortium)).to_frame()
    assert frame.loc[0, "name"] == "client-1"
    assert len(frame) == 1


def test_infinity_is_kept_in_a_frame_and_is_none_in_a_dict() -> None:
    certificate = fa.certify(fa.agreement_on(fa.paper_consortium(), 10_000))
    assert np.isinf(certificate.to_frame()["threshold"]).any()
    assert None in [row["threshold"] for row in certificate.to_dict()["clients"]]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("certify",), ("play", "--slots", "4"), ("compare",)])
def test_json_on_the_command_line_is_the_dict(words: tuple[str, ...], tmp_path: Path) -> None:
    consortium = fa.paper_consortium(clients=60)
    agreement = fa.solve_agreement(consortium)
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(agreement.to_dict()))
    expected: dict[str, dict[str, Any]] = {
        "certify": {"certificate": fa.certify(agreement).to_dict()},
        "play": play(agreement, slots=4).to_dict(),
        "compare": compare(consortium).to_dict(),
    }
    files = [str(profile)] if words == ("certify",) else []
    options = ["--paper", "--clients", "60", "--format", "json"]
    printed = json.loads(CliRunner().invoke(app, [*words, *files, *options]).stdout)
    for mechanism in printed.get("mechanisms", []):
        assert mechanism.pop("clients") == []  # of a training, and there was none
    here = expected[words[0]]
    assert {field: printed[field] for field in here} == here


def test_an_empty_slot_of_training_has_no_rounds() -> None:
    frame = training().to_frame("rounds")
    assert frame.groupby(["profile", "slot"]).size().to_dict() == {
        ("few", 1): 3,
        ("more", 1): 3,
        ("more", 2): 3,
    }


def test_an_unknown_table_gets_a_hint() -> None:
    match = play(agreement(), slots=2)
    with pytest.raises(fa.InvalidInput, match=r"no 'client': did you mean 'clients'\?"):
        match.to_frame("client")


def test_without_pandas_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_pandas(name: str, *args: Any) -> Any:
        if name == "pandas":
            raise ImportError
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(fa.FedaccordError, match=r"pip install 'fedaccord\[notebook\]'"):
        agreement().to_frame()


def test_html_is_escaped() -> None:
    consortium = fa.Consortium(
        valuation=[1e6, 2e6],
        cost_per_sample=0.004,
        samples=1000,
        rounds=50,
        discount_factor=0.8,
        name="<b>bold</b>",
        names=["<script>alert(1)</script>", "a & b"],
    )
    for shown in (consortium, fa.certify(fa.solve_agreement(consortium))):
        html = shown._repr_html_()
        assert "<script>" not in html
        assert "<b>" not in html
        assert "a &amp; b" in html


def test_lists_in_html_are_words() -> None:
    html = fa.compare(fa.paper_consortium(clients=5))._repr_html_()
    assert ">()</td>" not in html
    assert ">Clients pay each other so that all save the same." in html


def test_a_table_is_computed_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs without slips take one match per client, so they are computed on demand."""
    match = play(agreement(), {"client-7": DeviateOnce(slot=3)}, slots=20)
    monkeypatch.delattr(type(match), "without_slips")
    assert repr(match)
    assert match._repr_html_()
    assert len(match.to_frame()) == 20


def plain_values() -> Iterator[tuple[Any, Any]]:
    yield np.array([1.5, np.nan, np.inf]), [1.5, None, None]
    yield np.array([True, False]), [True, False]
    yield np.int64(3), 3
    yield ("a", None, (1, 2.5)), ["a", None, [1, 2.5]]
    yield {"a": float("-inf")}, {"a": None}
    yield fa.solve_equilibrium(fa.paper_consortium()).roles[0], "free rider"


@pytest.mark.parametrize(("value", "expected"), plain_values())
def test_values_that_json_can_have(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected
    assert type(jsonable(value)) is type(expected)


def test_a_table_without_rows_has_columns() -> None:
    assert columns_of([]) == {}


def test_reprs_of_large_and_small_numbers() -> None:
    consortium = fa.paper_consortium(clients=1000)
    assert "total=10000000," in repr(fa.solve_social_optimum(consortium))
    assert "total=505063," in repr(fa.solve_equilibrium(fa.paper_consortium()))
