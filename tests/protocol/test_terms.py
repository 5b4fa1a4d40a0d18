"""The rules about the punishment and the training in the terms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.protocol.posted import PublicNumbers
from fedaccord.protocol.terms import Terms, load_terms, read_terms, rules_of
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.training_terms import TrainingTerms
from tests.flower.consortia import TRAINING, key_of

GIVEN = {
    "name": "test",
    "clients": ["a", "b", "c", "d", "e"],
    "rounds": 2,
    "discount_factor": 0.8,
    "training": TRAINING,
}
OWN = TRAINING | {"task": "hospital.models:build", "code": "a" * 64}
EPOCHS = TRAINING | {"local": "epochs"}
ADAM = TRAINING | {"optimiser": "fedadam"}
PUBLIC = {name: {"samples": 5} for name in "abcde"}
AUDITS = {"probability": 0.5, "auditors": {"Notary": key_of("Notary").public}}


def terms(**rules: Any) -> Terms:
    return read_terms(GIVEN | rules, "test")


@pytest.mark.parametrize(
    ("rules", "punishment", "objective"),
    [
        ({}, fa.Reversion(), "most data"),
        ({"punishment_slots": 4}, fa.Reversion(4), "most data"),
        ({"punishment": "suspension"}, fa.Suspension(1), "least total cost"),
        ({"punishment": "suspension", "punishment_slots": 3}, fa.Suspension(3), "least total cost"),
        (
            {"punishment": "suspension", "punishment_slots": "for ever", "objective": "fair share"},
            fa.Suspension(None),
            "fair share",
        ),
        (
            {"punishment": "suspension", "model_keeps": 0.25, "fees_saved": True},
            fa.Suspension(1, model_keeps=0.25, fees_saved=True),
            "least total cost",
        ),
    ],
)
def test_what_is_left_out_is_as_usual(
    rules: dict[str, Any], punishment: Any, objective: str, tmp_path: Any
) -> None:
    found = terms(**rules)
    assert (found.after_slip, found.objective) == (punishment, objective)
    assert terms(**(rules | rules_of(punishment))) == found
    file = tmp_path / "terms.toml"
    file.write_text(terms_text(found))  # which leaves nothing out
    assert load_terms(file) == found
    assert load_terms(file).digest == found.digest


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"punishment": "exile"}, "punishment: must be 'reversion' or 'suspension', got 'exile'"),
        ({"punishment_slots": "never"}, "punishment_slots: must be a whole number, got 'never'"),
        ({"punishment_slots": 0}, "punishment_slots: must be 1 or more, got 0"),
        ({"model_keeps": 0.5}, "model_keeps: is for suspension, but the punishment is reversion"),
        ({"fees_saved": True}, "fees_saved: is for suspension, but the punishment is reversion"),
        ({"nobody_worse": 1}, "nobody_worse: must be true or false, got 1"),
        ({"training": TRAINING | {"task": "m:build"}}, "training: code is missing"),
        ({"training": TRAINING | {"code": "a" * 64}}, "training: code is for a task by module:fun"),
        (
            {"training": TRAINING | {"code": None}},
            "training: code is for a task by module:function",
        ),
        ({"training": OWN | {"code": "a" * 63}}, r"training\.code: must have the form"),
        ({"training": OWN | {"task": "m.py:build"}}, "training: task must be module:function"),
        ({"training": OWN | {"task": "a/b:build"}}, "training: task must be module:function"),
        ({"training": OWN | {"task": "m:1"}}, "training: task must be module:function, got 'm:1'"),
        ({"training": TRAINING | {"scale": 0.0}}, r"training\.scale: must be more than 0, got 0"),
        (
            {"training": TRAINING | {"scale": 0.5}, "audits": AUDITS},
            r"training\.scale: must be 1 with audits",
        ),
        (
            {"training": TRAINING | {"classes": 1}},
            "classes: must be 2 or more, got 1; 0 is for surv",
        ),
        ({"training": TRAINING | {"classes": -1}}, r"training\.classes: must be 0 or more, got -1"),
        ({"training": TRAINING | {"local": "steps"}}, r"training\.steps: is missing: how many"),
        ({"training": TRAINING | {"steps": 5}}, r'training\.steps: is for local = "steps"'),
        (
            {"training": TRAINING | {"local": "steps", "steps": 5, "epochs": 2}},
            'training: epochs is for local = "epochs"',
        ),
        (
            {"training": TRAINING | {"proximal": 0.1}},
            r"training\.proximal: is for local = \"epochs",
        ),
        ({"training": EPOCHS | {"proximal": -0.1}}, r"training\.proximal: must be 0 or more"),
        (
            {"training": TRAINING | {"local_optimiser": "adam"}},
            r"training\.local_optimiser: is for local = \"epochs\" or \"steps\"",
        ),
        ({"training": EPOCHS | {"local_optimiser": "lion"}}, "must be 'sgd' or 'adam', got 'lion'"),
        ({"training": TRAINING | {"optimiser": "fedsgd"}}, "must be 'fedavg', 'fedadam', 'fedyogi"),
        ({"training": TRAINING | {"server_rate": 0.1}}, r"server_rate: is not for fedavg"),
        ({"training": ADAM | {"server_rate": 0.0}}, r"server_rate: must be more than 0, got 0.0"),
        ({"training": ADAM | {"beta1": 1.0}}, r"training\.beta1: must be less than 1, got 1.0"),
        ({"training": ADAM | {"beta2": -0.1}}, r"training\.beta2: must be 0 or more, got -0.1"),
        ({"training": ADAM | {"tau": 0.0}}, r"training\.tau: must be more than 0, got 0.0"),
        (
            {"training": TRAINING | {"optimiser": "fedadagrad", "beta2": 0.9}},
            r"training\.beta2: is not for fedadagrad",
        ),
    ],
)
def test_what_does_not_go_together(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        terms(**rules)


def test_code_and_scale_are_left_out_unless_they_say_something(tmp_path: Path) -> None:
    """So that the digest of terms without them is what it was."""
    usual = terms().digest
    assert usual == "3457f402f570d92c69b91fdac0755f24492974147a1d843fc1f2d15145a83ada"
    assert terms(training=TRAINING | {"scale": 1.0}).digest == usual
    found = terms(training=OWN | {"scale": 0.25})
    assert len({found.digest, usual, terms(training=OWN).digest}) == 3
    (tmp_path / "terms.toml").write_text(terms_text(found))
    assert load_terms(tmp_path / "terms.toml") == found


WAYS: list[dict[str, Any]] = [
    {"local": "epochs", "proximal": 0.25},
    {"local": "epochs", "local_optimiser": "adam", "epochs": 3},
    {"local": "steps", "steps": 100, "proximal": 0.1, "local_optimiser": "adam", "batch": 4},
    {"optimiser": "fedadam"},
    {"optimiser": "fedyogi", "server_rate": 0.01, "beta1": 0.5, "beta2": 0.9, "tau": 1e-8},
    {"optimiser": "fedadagrad", "server_rate": 1.0},
    {"classes": 0},
    {"classes": 0, "task": "hospital.models:survival", "code": "a" * 64},
]


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_train_are_signed_like_the_rest(way: dict[str, Any], tmp_path: Path) -> None:
    """Each has a digest of its own, and comes back from a file and from a ledger."""
    found = terms(training=TRAINING | way)
    others = {terms().digest, *(terms(training=TRAINING | one).digest for one in WAYS)}
    assert found.digest in others
    assert len(others) == 1 + len(WAYS)
    (tmp_path / "terms.toml").write_text(terms_text(found))
    for again in (
        load_terms(tmp_path / "terms.toml"),
        read_terms(found.model_dump(mode="json"), ""),
    ):
        assert again == found
        assert again.digest == found.digest


def test_what_an_optimiser_usually_has_is_written_down() -> None:
    """So that terms do not depend on what is usual in the version that reads them."""
    written = terms(training=ADAM).model_dump()["training"]
    numbers = {"server_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001}
    assert written == terms().model_dump()["training"] | {"optimiser": "fedadam"} | numbers
    assert terms(training=ADAM | numbers).digest == terms(training=ADAM).digest
    usual = {"optimiser": "fedavg", "local_optimiser": "sgd", "proximal": 0.0}
    assert terms(training=TRAINING | usual).digest == terms().digest


def test_survival_times_are_learned_by_cox_unless_another_task_is_named() -> None:
    assert terms(training={"shape": [3], "classes": 0}).training.task == "cox"
    assert terms(training={"shape": [3], "classes": 2}).training.task == "softmax"
    assert terms(training={"shape": [3], "classes": 0, "task": "mine"}).training.task == "mine"


@pytest.mark.parametrize(("scale", "steps"), [(1.0, [1, 2, 20]), (0.1, [1, 1, 2])])
def test_local_steps_are_counted_in_examples(scale: float, steps: list[int]) -> None:
    training = terms(training=TRAINING | {"local": "epochs", "batch": 50, "scale": scale}).training
    assert training.steps_on([50, 51, 1_000]).tolist() == steps
    assert terms().training.steps_on([50, 51]).tolist() == [1, 1]
    fixed = terms(training=TRAINING | {"local": "steps", "steps": 7}).training
    assert fixed.steps_on([50, 51]).tolist() == [7, 7]


def test_the_harsher_of_two_punishments_is_no_rule() -> None:
    with pytest.raises(InvalidInput, match="or_reversion: cannot be a rule of the protocol"):
        rules_of(fa.Suspension(1, or_reversion=True))


@pytest.mark.parametrize(
    ("quorum", "clients", "needed"),
    [(0, 5, 3), (0, 4, 3), (0, 2, 2), (0, 1, 1), (0, 0, 1), (4, 5, 4), (4, 3, 3), (4, 0, 1)],
)
def test_a_quorum_is_of_those_who_are_not_suspended(quorum: int, clients: int, needed: int) -> None:
    assert terms(quorum=quorum).needed(clients) == needed


@pytest.mark.parametrize(
    ("longest", "slots", "left"),
    [(2, 1, 1), (2, 3, 2), (2, None, 2), ("for ever", 3, 3), ("for ever", None, None)],
)
def test_what_is_left_of_a_punishment_under_new_terms(
    longest: Any, slots: int | None, left: int | None
) -> None:
    suspending = terms(punishment="suspension", punishment_slots=longest)
    reverting = terms(punishment="reversion", punishment_slots=longest)
    assert suspending.still("suspension", slots) == reverting.still("reversion", slots) == left
    assert suspending.still("reversion", slots) == reverting.still("suspension", slots) == 0


@pytest.mark.parametrize("other", ["A", "a ", "\u0430"])
def test_terms_in_which_two_names_look_alike(other: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        terms(clients=["a", "b", other])
    assert "the name of clients[0]" in str(refused.value)
    Terms.model_validate(GIVEN | {"clients": ["a", "b", other]})  # a ledger that has them is read


# --- What each number may be -----------------------------------------------------------------

MOST = 10**9
SUSPENSION: dict[str, Any] = {"punishment": "suspension"}
FIELDS: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    ({}, "rounds", [1, MOST], [0, MOST + 1, 2.0, "2"]),
    ({}, "discount_factor", [0.0, 0.999], [-0.1, 1.0, "0.5", np.nan]),
    ({}, "margin", [0.0, 0.999], [-0.1, 1.0]),
    ({}, "punishment_slots", [1, MOST, "for ever"], [0, MOST + 1, "never"]),
    ({"agreement": "clock", "public": PUBLIC}, "clock_steps", [1, 10_000], [0, 10_001, 2.0]),
    (SUSPENSION, "model_keeps", [0.0, 1.0], [-0.1, 1.1]),
    (SUSPENSION, "fees_saved", [True], [1]),
    ({}, "nobody_worse", [True], [1, "yes"]),
    ({}, "server_fee", [0.0, 1e6], [-0.1, np.inf]),
    ({}, "tolerance", [0.0, 0.999], [-0.1, 1.0]),
    ({}, "models_kept", [1, 1_000], [0, 1_001, 1.0]),
    ({}, "name", ["a"], ["", 1]),
    ({}, "clients", [list("abc"), ["x"]], [[], ["a", "a"], ["a", " "]]),
]
TRAINED: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    (TRAINING, "shape", [[1], [3, 2]], [[], [0], [2.0]]),
    (TRAINING, "classes", [2, MOST], [1, -1, MOST + 1, 2.0]),
    (TRAINING, "rate", [1e-9, 5.0], [0.0, -1.0, np.inf]),
    (EPOCHS, "batch", [1, MOST], [0, MOST + 1, 1.0]),
    (EPOCHS, "epochs", [1, MOST], [0, MOST + 1, 1.0]),
    (TRAINING | {"local": "steps"}, "steps", [1, MOST], [0, MOST + 1, None]),
    (EPOCHS, "proximal", [0.0, 3.0], [-0.1, np.nan]),
    (TRAINING, "proximal", [0.0], [0.1]),
    (EPOCHS, "local_optimiser", ["sgd", "adam"], ["fedadam"]),
    (TRAINING, "local_optimiser", ["sgd"], ["adam"]),
    (ADAM, "server_rate", [1e-9, 3.0], [0.0, -1.0]),
    (ADAM, "beta1", [0.0, 0.999], [-0.1, 1.0]),
    (ADAM, "beta2", [0.0, 0.999], [-0.1, 1.0]),
    (ADAM, "tau", [1e-9, 3.0], [0.0, -1.0]),
    (TRAINING, "tau", [None], [0.1]),
    (TRAINING, "seed", [0, 2**63 - 1], [-1, 2**63, 1.0]),
    (TRAINING, "scale", [1e-3, 10.0], [0.0, -1.0]),
]


@pytest.mark.parametrize(("given", "field", "right", "wrong"), FIELDS)
def test_each_rule_has_its_bounds(
    given: dict[str, Any], field: str, right: list[Any], wrong: list[Any]
) -> None:
    for value in right:
        terms(**given | {field: value})
    for value in wrong:
        with pytest.raises(InvalidInput, match=field):
            terms(**given | {field: value})


@pytest.mark.parametrize(("given", "field", "right", "wrong"), TRAINED)
def test_each_rule_about_training_has_its_bounds(
    given: dict[str, Any], field: str, right: list[Any], wrong: list[Any]
) -> None:
    for value in right:
        TrainingTerms.model_validate(given | {field: value})
    for value in wrong:
        with pytest.raises(ValidationError, match=field):
            TrainingTerms.model_validate(given | {field: value})


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("samples", [1, 10**12], [0, 10**12 + 1, 5.0]),
        ("contribution", [0, 10**12, None], [-1, 10**12 + 1, 5.0]),
        ("lowest_ratio", [1e-100, 1e100, None], [0.9e-100, 1.1e100, np.inf]),
        ("lowest_discount_factor", [0.0, 0.999, None], [-0.1, 1.0]),
    ],
)
def test_what_is_public_has_its_bounds(field: str, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        PublicNumbers.model_validate({"samples": 5, field: value})
    for value in wrong:
        with pytest.raises(ValidationError, match=field):
            PublicNumbers.model_validate({"samples": 5, field: value})


def test_the_most_clients_and_the_usual_steps_of_a_clock() -> None:
    many = [f"client-{n}" for n in range(9_001)]
    Terms.model_validate(GIVEN | {"clients": many[:-1]})
    with pytest.raises(ValidationError, match="at most 9000 items"):
        Terms.model_validate(GIVEN | {"clients": many})
    assert terms(agreement="clock", public=PUBLIC).clock_steps == 20
