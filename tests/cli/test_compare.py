"""`fedaccord compare`: the JSON contract, the table, the page, and invalid input."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import fedaccord as fa
from fedaccord.data import dataset as registry
from fedaccord.data.own import own_partition
from fedaccord.training.optimisers import FedAdam
from fedaccord.training.rules import LocalEpochs
from tests.cli.conftest import Run
from tests.cli.test_own_tests import NAMES as CENTRES
from tests.cli.test_own_tests import TOML
from tests.training.test_own_tests import clinics

CONTRACT = [  # the fields in their order; * marks later additions
    *("name", "contributors", "partial_contributors", "free_riders", "total", "total_cost"),
    "payments",
    *("paid_from_outside", "worst_client", "worst_saving"),  # *
    "self_enforcing",
    *("enforced_by", "punishment", "needs_patience"),  # *
    *("truthful", "truthful_reason", "largest_gain_by_lying"),  # *
    *("verified", "budget_balanced"),  # *
    *("worse_than_alone", "worse_than_equilibrium", "models"),  # *
    *("accuracy", "notes", "clients"),  # *
]
NAMES = [
    *("equilibrium", "uniform", "individual", "suspension", "posted", "everything"),
    *("clock", "serial clock", "fair exchange"),
    *("transfers", "social optimum", "contract", "detection"),
]


def compare_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("compare", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


@pytest.mark.slow
def test_the_json_contract(run: Run) -> None:
    answer = compare_json(run, "--paper")
    assert list(answer) == [
        *("consortium", "price_of_anarchy", "mechanisms", "measure", "optimiser", "alone")
    ]
    assert answer["measure"] is None
    assert [mechanism["name"] for mechanism in answer["mechanisms"]] == NAMES
    assert all(list(mechanism) == CONTRACT for mechanism in answer["mechanisms"])
    by_name = {mechanism["name"]: mechanism for mechanism in answer["mechanisms"]}
    assert by_name["equilibrium"]["total"] == pytest.approx(505_063.3, abs=0.05)
    assert by_name["uniform"]["total"] == pytest.approx(887_448.1, abs=0.05)
    assert by_name["individual"]["total"] == pytest.approx(993_957.4, abs=0.05)
    assert by_name["contract"]["contributors"] == 20
    detection = by_name["detection"]
    assert (detection["contributors"], detection["partial_contributors"]) == (50, 1)
    assert [m["name"] for m in answer["mechanisms"] if m["self_enforcing"]] == [
        *("equilibrium", "uniform", "individual", "suspension", "posted", "everything"),
        *("clock", "serial clock", "fair exchange", "transfers", "detection"),
    ]
    assert [m["name"] for m in answer["mechanisms"] if m["needs_patience"]] == [
        *("uniform", "individual", "suspension", "posted", "everything", "clock", "transfers"),
    ]
    lying = {name: one["largest_gain_by_lying"] for name, one in by_name.items()}
    assert lying["individual"] == pytest.approx(0.9926, abs=5e-5)
    assert lying["uniform"] == pytest.approx(1.692, abs=5e-4)
    assert {lying[name] for name in ("posted", "clock", "serial clock", "fair exchange")} == {0.0}
    assert lying["contract"] is None
    assert by_name["clock"]["punishment"]["kind"] == "suspension"
    assert by_name["contract"]["punishment"] is None
    assert by_name["serial clock"]["models"] == 2
    assert by_name["contract"]["enforced_by"] == "a payer"
    assert by_name["contract"]["paid_from_outside"] > 0
    assert by_name["social optimum"]["paid_from_outside"] == 0
    assert by_name["contract"]["accuracy"] is None


def test_nobody_trains_under_one_mechanism(run: Run) -> None:
    answer = compare_json(run, "--paper", "--cost-per-sample", "7.91e-8", "--mechanism", "contract")
    [contract] = answer["mechanisms"]
    assert (contract["contributors"], contract["total"]) == (0, 0.0)
    assert (contract["total_cost"], contract["worst_saving"]) == (None, None)


@pytest.mark.slow
def test_the_table(run: Run) -> None:
    text = run("compare", "--paper").stdout
    assert "100 clients with 1,000,000 samples in total" in text
    assert re.search(r"Contributors +Free +Samples", text)
    assert re.search(r"uniform +98 \+ 1 +1 +887,448 +101.767 +0 +0.00002\n", text)
    assert re.search(r"contract +20 +80 +200,000 +102.599 +0.00197 +-0.01162\n", text)
    assert re.search(r"uniform +reversion +no +169 % +yes +0 +0 +1\n", text)
    assert re.search(r"serial clock +one slot +yes +0 % +yes +0 +1 +2\n", text)
    assert re.search(r"contract +no +no +– +no +0 +100 +1\n", text)
    assert "suspension brings the most data: 1,000,000 samples" in text.replace("\n", " ")
    assert "The price of anarchy is 1.0028" in text


@pytest.mark.slow
def test_small_amounts_leave_room_for_the_names(run: Run) -> None:
    done = run("compare", "--paper", "--samples", "1", "--clients", "2")
    contract, _ = [line for line in done.stdout.splitlines() if line.startswith("contract ")]
    assert contract.split()[-2:] == ["1.97e-08", "9.85e-09"]
    assert any(line.startswith("social optimum ") for line in done.stdout.splitlines())


def test_chosen_mechanisms_are_in_the_given_order(run: Run) -> None:
    answer = compare_json(run, "--mechanism", "social-optimum", "--mechanism", "equilibrium")
    assert [m["name"] for m in answer["mechanisms"]] == ["social optimum", "equilibrium"]


def test_the_options_of_the_contract(run: Run) -> None:
    words = ("--paper", "--mechanism", "contract")

    def contract(*more: str) -> dict[str, Any]:
        return dict(compare_json(run, *words, *more)["mechanisms"][0])

    assert contract("--contract-classes", "4")["contributors"] == 25
    assert contract("--contract-valuation", "10")["contributors"] == 0
    graded = contract("--contract-valuation", "10", "--contract-menu", "graded")
    assert 0 < graded["total"] < 200_000
    free = contract("--contract-delay-price", "0", "--contract-valuation", "200")
    assert free["contributors"] == 100
    assert contract("--contract-information", "weak")["truthful"] is True
    assert contract("--contract-information", "strong")["total"] == 200_000


TYPES = """name,delay,cost_per_sample
St Mary,1,0.001
Children's Hospital,1,0.001
Lakeside Clinic,1,0.003
University Hospital,2,0.004
Northern General,1,0.004
Riverside,3,0.004
"""


def test_the_types_of_the_contract_from_a_file(run: Run) -> None:
    """The cheapest lots in time are bought first, at the prices in the file."""
    run("init")
    Path("types.csv").write_text(TYPES)
    words = ("consortium.toml", "--mechanism", "contract", "--contract-types", "types.csv")
    [contract] = compare_json(run, *words)["mechanisms"]
    assert contract["total"] == 18_000 + 12_000 + 16_000
    assert contract["payments"] == pytest.approx(0.001 * 18_000 + 0.001 * 12_000 + 0.003 * 16_000)


def test_a_file_of_types_may_give_costs_or_delays_alone(run: Run) -> None:
    run("init")
    rows = [line.split(",") for line in TYPES.splitlines()]
    words = ("consortium.toml", "--mechanism", "contract", "--contract-types", "types.csv")

    Path("types.csv").write_text("".join(f"{name},{cost}\n" for name, _, cost in rows))
    classes = ("--contract-classes", "1")  # all in time, so only the three cheapest lots
    [contract] = compare_json(run, *words, *classes)["mechanisms"]
    assert contract["total"] == 18_000 + 12_000 + 16_000

    Path("types.csv").write_text("".join(f"{name},{delay}\n" for name, delay, _ in rows))
    [contract] = compare_json(run, *words)["mechanisms"]
    # The three cheapest of the four in time, by the consortium's costs: St Mary, Northern General,
    # Children's Hospital.
    assert contract["total"] == 18_000 + 20_000 + 12_000


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("name\nSt Mary\n", [], "line 1: column 'delay' or 'cost_per_sample' is missing"),
        (TYPES.replace("St Mary", "St Mari"), [], "did you mean 'St Mary'?"),
        (TYPES.replace("Mary,1", "Mary,-1"), [], "delay: must be 0 or more, got -1 (St Mary)"),
        (TYPES.replace("Mary,1", "Mary,"), [], "delay: must be 0 or more, got none (St Mary)"),
        (TYPES.replace("0.003", "0"), [], "cost_per_sample: must be more than 0, got 0"),
        (TYPES.replace("0.003", "x"), [], "cost_per_sample: must be a number, got 'x'"),
        (TYPES, ["--contract-classes", "3"], "types.csv gives the delays already"),
        (TYPES, ["--mechanism", "uniform"], "--contract-types: goes with --mechanism contract"),
    ],
)
def test_invalid_types_are_rejected(run: Run, text: str, more: list[str], said: str) -> None:
    run("init")
    Path("types.csv").write_text(text)
    result = run("compare", "consortium.toml", "--contract-types", "types.csv", *more)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_a_file_with_unequal_data(run: Run) -> None:
    run("init")
    answer = compare_json(run, "consortium.toml", "--contract-information", "strong")
    assert answer["consortium"]["clients"] == 6
    totals = {m["name"]: m["total"] for m in answer["mechanisms"]}
    assert totals["everything"] == 116_000
    assert totals["individual"] == pytest.approx(110_813.6, abs=0.05)


@pytest.mark.slow
def test_one_client(run: Run) -> None:
    answer = compare_json(run, "--clients", "1")
    assert all(m["contributors"] == 1 for m in answer["mechanisms"])


@pytest.mark.slow
def test_the_files_it_writes(run: Run) -> None:
    result = run("compare", "--paper", "--csv", "m.csv", "--report", "m.html")
    assert result.exit_code == 0
    with Path("m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == NAMES
    assert float(rows[1]["total"]) == pytest.approx(887_448.1, abs=0.05)
    assert rows[0]["worst_client"] == ""
    assert rows[NAMES.index("clock")]["punishment"] == "suspension for 1 slot"
    assert rows[NAMES.index("contract")]["punishment"] == ""
    page = Path("m.html").read_text(encoding="utf-8")
    assert "<h1>13 mechanisms side by side</h1>" in page
    assert page.count("<svg") == 1
    assert "http" not in re.sub(r'"http://www.w3.org/[^"]*"', "", page)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mechanism", "auction"], "--mechanism: must be one of equilibrium, uniform"),
        (
            ["--contract-classes", "0"],
            "--contract-classes: must be a whole number, 1 or more, got 0",
        ),
        (["--contract-delay-price", "nan"], "--contract-delay-price: must be 0 or more, got nan"),
        (["--contract-valuation", "1e308"], "--contract-valuation: must be less than 1e+290"),
        (
            ["--mechanism", "uniform", "--contract-menu", "graded"],
            "--contract-menu: goes with --mechanism contract only",
        ),
        (["--seeds", "2"], "--seeds: goes with --train only"),
        (["--seed", "0"], "--seed: goes with --train only"),
        (["--fine-tune", "2"], "--fine-tune: goes with --train only"),
        (["--optimiser", "fedadam"], "--optimiser: goes with --train only"),
        (["--train", "digits", "--tau", "1"], "--tau: goes with --optimiser fedadam, fedyogi or"),
        (["--train", "digits", "--fine-tune", "2"], "--fine-tune: needs a test of each client's"),
        (["--train", "digits", "--seed", "-1"], "must be 0 or more, got -1"),
        (["--train", "digits", "--seed", str(2**64)], f"must be {2**63 - 1} or less"),
        (["--train", "faces"], "there is no dataset called 'faces'"),
        (["missing.toml"], "missing.toml: there is no such file"),
        (["--csv", "missing/m.csv"], "cannot be written"),
    ],
)
def test_rejected(run: Run, words: list[str], said: str) -> None:
    result = run("compare", *words, *(["--report", "m.html"] if "--csv" not in words else []))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not Path("m.html").exists()


@pytest.mark.slow
def test_measured_accuracy(run: Run) -> None:
    """From real training on little data: digits have ten classes, so 50 % is far from guessing."""
    words = ("--clients", "5", "--rounds", "20", "--train", "digits", "--seeds", "2")
    chosen = ("--mechanism", "equilibrium", "--mechanism", "contract")
    answer = compare_json(run, *words, *chosen)
    for mechanism in answer["mechanisms"]:
        assert 0.5 < mechanism["accuracy"]["mean"] <= 1.0
        assert mechanism["accuracy"]["half_width"] >= 0
    text = run("compare", *words, *chosen, "--csv", "m.csv", "--report", "m.html").stdout
    assert re.search(r"contract +\d\d\.\d\d ± \d+\.\d\d %", text)
    assert "Test<br>accuracy" in Path("m.html").read_text(encoding="utf-8")
    with Path("m.csv").open(newline="") as file:
        [first, _] = csv.DictReader(file)
    assert float(first["accuracy"]) == answer["mechanisms"][0]["accuracy"]["mean"]


@pytest.mark.slow
def test_own_tests(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients named after the centres of a dataset are judged by their own tests, too."""
    data = {name: clinics(name) for name in (*CENTRES, "test")}
    partition = own_partition(data, list(CENTRES), "clinics")
    monkeypatch.setitem(registry.DATASETS, "clinics", lambda _: partition)
    Path("three.toml").write_text(TOML, encoding="utf-8")
    words = ("three.toml", "--train", "clinics", "--local", "epochs", "--seeds", "2")
    rules = ("--optimiser", "fedadam", "--server-rate", "0.05", "--fine-tune", "3")
    files = ("--report", "m.html", "--csv", "m.csv")
    answer = compare_json(run, *words, *rules, *files)
    assert (answer["measure"], answer["optimiser"]) == ("accuracy", "fedadam")
    assert [client["name"] for client in answer["alone"]] == list(CENTRES)
    for mechanism in answer["mechanisms"]:
        three = mechanism["clients"][2]
        assert three["accuracy"]["half_width"] > 0
        assert three["fine_tuned_gain"]["half_width"] > 0
        gain = three["accuracy"]["mean"] - answer["alone"][2]["accuracy"]["mean"]
        assert three["accuracy_gain"]["mean"] == pytest.approx(gain)
    assert "On each member's own test" in Path("m.html").read_text(encoding="utf-8")
    assert "clients" not in Path("m.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    trial = fa.train(
        fa.load_consortium("three.toml"),
        ["individual"],
        data=partition,
        local=LocalEpochs(),
        server=FedAdam(rate=0.05),
        fine_tuning=3,
        seeds=2,
    )
    [individual] = [each for each in answer["mechanisms"] if each["name"] == "individual"]
    levels = [client["fine_tuned"]["mean"] for client in individual["clients"]]
    tuned = [client.fine_tuned for client in trial.scores[0].clients]
    assert levels == pytest.approx([each.mean for each in tuned if each is not None])
    monkeypatch.setenv("COLUMNS", "80")
    text = run("compare", *words, *rules).stdout
    said = " ".join(text.split())
    assert "worse on its own test than alone" in said
    assert "; FedAdam, rate 0.05" in said
    assert max(map(len, text.partition("Left to themselves")[0].splitlines())) <= 80
    assert text.count("(own test)") > 4  # 13 mechanisms, each with fine-tuning


@pytest.mark.slow
def test_seeds_count_from_the_first(run: Run) -> None:
    """The mean over seeds 4 and 5 is that of a run with 4 and a run with 5."""
    words = ("--clients", "3", "--rounds", "2", "--train", "digits", "--mechanism", "equilibrium")

    def accuracy(seed: int, seeds: int) -> float:
        more = ("--seed", str(seed), "--seeds", str(seeds))
        return float(compare_json(run, *words, *more)["mechanisms"][0]["accuracy"]["mean"])

    alone = [accuracy(seed, 1) for seed in (0, 4, 5)]
    assert len(set(alone)) == 3
    assert accuracy(4, 2) == pytest.approx((alone[1] + alone[2]) / 2, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["40", "80", "94"])
def test_a_narrow_terminal_shows_every_column_beside_the_names(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    run("init")
    monkeypatch.setenv("COLUMNS", columns)
    text = run("compare", "consortium.toml").stdout.partition("Self-enforcing: by search")[0]
    tables = {"40": 4, "80": 4, "94": 2}[columns]
    assert text.count("Mechanis") == tables
    assert text.count("\nindividu") == tables
    assert all(word in text for word in ("(+ partial)", "per slot", "enforcing", "Models"))
    assert "…" not in text
