"""Profile files: every form, and all problems together with their places."""

import json
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.files.tables import load_profile

THREE = fa.Consortium(
    valuation=[1, 2, 4],
    cost_per_sample=1e-6,
    samples=[500, 400, 900],
    rounds=50,
    discount_factor=0.8,
    names=["A", "B", "agreement"],
)
AMOUNTS = {"B": 20.5, "agreement": 900, "A": 0}
ENTRIES = [{"name": name, "contribution": amount} for name, amount in AMOUNTS.items()]
PROFILES = {
    "profile.csv": "name,contribution\nB,20.5\nagreement,900\nA,0\n",
    "pairs.json": json.dumps(AMOUNTS),
    "list.json": json.dumps(ENTRIES),
    "clients.json": json.dumps({"clients": ENTRIES}),
    "solve.json": json.dumps({"equilibrium": {}, "agreement": {"kind": "x", "clients": ENTRIES}}),
}


@pytest.mark.parametrize(("name", "text"), PROFILES.items(), ids=PROFILES.keys())
def test_every_form_of_a_profile(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert load_profile(tmp_path / name, THREE).tolist() == [0, 20.5, 900]


BAD_PROFILES = {
    "csv": (
        "p.csv",
        "name,contribution\nA,600\nA,1\nagreemint,1\nB,x\n",
        [
            "line 2, contribution: must be from 0 to 500, got 600 (A)",
            "line 3, name: 'A' is the name of the client on line 2 already",
            "line 4, name: there is no client called 'agreemint'; did you mean 'agreement'?",
            "line 5, contribution: must be a number, got 'x' (B)",
            "'agreement' has no contribution",
        ],
    ),
    "pairs": (
        "p.json",
        '{"A": -1, "B": NaN, "agreement": true, "Zürich": 1}',
        [
            "'A': must be from 0 to 500, got -1",
            "'B': must be a finite number, got nan",
            "'agreement': must be a finite number, got true",
            "'Zürich': there is no client called 'Zürich'; the first is 'A'",
        ],
    ),
    "list": (
        "p.json",
        '{"clients": [{"name": "A"}, 3, {"name": "B", "contribution": 1e999}]}',
        [
            "clients[0].contribution: is missing (A)",
            "clients[1].name: is missing",
            "clients[1].contribution: is missing",
            "clients[2].contribution: must be a finite number, got inf (B)",
            "'agreement' has no contribution",
        ],
    ),
    "a key twice": (
        "p.json",
        '{"A": 1, "A": 2}',
        ["is not usable JSON: the key 'A' appears twice"],
    ),
    "a number": ("p.json", "3", ["must be a list or an object of the clients' contributions"]),
    "columns": ("p.csv", "name,amount\nA,1\n", None),
    "broken": ("p.json", '{"A": ', None),
    "deep": ("p.json", "[" * 100_000, None),
    "empty": ("p.csv", "", ["is empty; its first line must name the columns"]),
}


@pytest.mark.parametrize(
    ("name", "text", "expected"), BAD_PROFILES.values(), ids=BAD_PROFILES.keys()
)
def test_problems_in_a_profile(
    tmp_path: Path, name: str, text: str, expected: list[str] | None
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(fa.InvalidInput) as caught:
        load_profile(tmp_path / name, THREE)
    assert caught.value.source == str(tmp_path / name)
    if expected is not None:
        assert list(map(str, caught.value.problems)) == expected
