"""Consortium files: what they mean, and every problem with its place."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files import reading as text_file
from fedaccord.files.client_text import check_has_tables
from fedaccord.files.consortium import example_consortium, example_text
from fedaccord.files.questions import asking
from fedaccord.files.tables import load_profile

HEAD = "rounds = 50\ndiscount_factor = 0.8\n"
CLIENT = '[[clients]]\nname = "A"\nvaluation = 3.0\ncost_per_sample = 1e-6\nsamples = 500\n'


def load(directory: Path, toml: str | bytes, csv: str | bytes | None = None) -> fa.Consortium:
    data = toml if isinstance(toml, bytes) else toml.encode()
    (directory / "consortium.toml").write_bytes(data)
    if csv is not None:
        rows = csv if isinstance(csv, bytes) else csv.encode()
        (directory / "clients.csv").write_bytes(rows)
    return fa.load_consortium(directory / "consortium.toml")


def problems(directory: Path, toml: str | bytes, csv: str | bytes | None = None) -> list[str]:
    with pytest.raises(fa.InvalidInput) as caught:
        load(directory, toml, csv)
    assert caught.value.source == str(directory / "consortium.toml")
    return list(map(str, caught.value.problems))


# --- What is right -------------------------------------------------------------------------


def test_a_consortium_of_tables(tmp_path: Path) -> None:
    consortium = load(
        tmp_path,
        'name = "Two"\nserver_fee = 0.5\n' + HEAD + CLIENT + "[[clients]]\n"
        'name = "B"\nvaluation = 5\nsamples = 1e3\ncommunication_cost = 2\ndiscount_factor = 0.9\n'
        "cpu = { chip = 2e-28, cycles_per_sample = 1e7, hertz = 2e9 }\n",
    )
    assert (consortium.name, consortium.names) == ("Two", ("A", "B"))
    assert (consortium.rounds, consortium.server_fee) == (50, 0.5)
    np.testing.assert_allclose(consortium.valuation, [3, 5])
    np.testing.assert_allclose(consortium.cost_per_sample, [1e-6, 0.004])
    np.testing.assert_allclose(consortium.samples, [500, 1000])
    np.testing.assert_allclose(consortium.communication_cost, [0, 2])
    np.testing.assert_allclose(consortium.discount_factor, [0.8, 0.9])


def test_clients_in_a_csv_file_beside_it(tmp_path: Path) -> None:
    consortium = load(
        tmp_path,
        'clients = "clients.csv"\n' + HEAD,
        "samples, name ,valuation,cost_per_sample,chip,cycles_per_sample,hertz,discount_factor\r\n"
        '500,"A, and co",3,1e-6,,,,\r\n'
        "\r\n"
        "1000,B,5,,2e-28,1e7,2e9,0.9\r\n",
    )
    assert consortium.names == ("A, and co", "B")
    assert consortium.name == "consortium"  # the file's name, because it has no other
    np.testing.assert_allclose(consortium.cost_per_sample, [1e-6, 0.004])
    np.testing.assert_allclose(consortium.discount_factor, [0.8, 0.9])


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    csv = b"\xef\xbb\xbfname,valuation,cost_per_sample,samples\nA,1,1,1\n"
    toml = b'\xef\xbb\xbfrounds = 5\ndiscount_factor = 0.5\nclients = "clients.csv"\n'
    assert load(tmp_path, toml, csv).names == ("A",)


def test_a_discount_factor_for_each_client_is_enough(tmp_path: Path) -> None:
    consortium = load(tmp_path, "rounds = 50\n" + CLIENT + "discount_factor = 0.7\n")
    assert consortium.discount_factor.tolist() == [0.7]


def test_the_example_consortium_has_free_riders_and_both_agreements() -> None:
    equilibrium = fa.solve_equilibrium(example_consortium())
    agreement = fa.solve_agreement(equilibrium)
    assert (equilibrium.consortium.size, equilibrium.free_riders) == (6, 3)
    assert agreement.free_riders == 0
    assert agreement.ratio > 2
    assert fa.certify(agreement).holds
    assert fa.solve_agreement(equilibrium, "uniform").exists
    assert tomllib.loads(example_text())["rounds"] == 50


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_read_as_columns(tmp_path: Path) -> None:
    rows = "".join(f"client {n},{n + 1},1e-6,{n % 90 + 10}\n" for n in range(100_000))
    header = "name,valuation,cost_per_sample,samples\n"
    consortium = load(tmp_path, 'clients = "clients.csv"\n' + HEAD, header + rows)
    assert consortium.size == 100_000
    assert consortium.valuation[-1] == 100_000
    broken = header + rows + "last,x,1,1\n"
    assert problems(tmp_path, 'clients = "clients.csv"\n' + HEAD, broken) == [
        "clients.csv line 100002, valuation: must be a number, got 'x' (last)"
    ]


# --- What is wrong -------------------------------------------------------------------------

MISTAKES = {
    "unknown key": (
        "roundz = 3\n" + HEAD + CLIENT,
        ["roundz: unknown key; did you mean 'rounds'?"],
    ),
    "unknown key of a client": (
        HEAD + CLIENT + "sample = 3\n",
        ["clients[0].sample: unknown key; did you mean 'samples'? (A)"],
    ),
    "missing keys": (
        "discount_factor = 0.5\n[[clients]]\nvaluation = 1\nsamples = 1\n",
        [
            "rounds: is missing",
            "clients[0].name: is missing",
            "clients[0].cost_per_sample: is missing (or the figures of a cpu)",
        ],
    ),
    "no clients": (HEAD, ["clients: is missing"]),
    "empty list": (
        HEAD + "clients = []\n",
        ["clients: a consortium needs at least one client"],
    ),
    "clients that are no list": (
        HEAD + "clients = 3\n",
        ["clients: must be a list or the name of a spreadsheet, got 3"],
    ),
    "a client that is no table": (
        HEAD + "clients = [3]\n",
        ["clients[0]: must be a table, got 3"],
    ),
    "not a number": (
        HEAD + CLIENT.replace("3.0", "nan"),
        ["clients[0].valuation: must be a finite number, got nan (A)"],
    ),
    "infinite": (
        HEAD + CLIENT.replace("1e-6", "inf"),
        ["clients[0].cost_per_sample: must be a finite number, got inf (A)"],
    ),
    "zero cost": (
        HEAD + CLIENT.replace("1e-6", "0"),
        ["clients[0].cost_per_sample: must be more than 0, got 0 (A)"],
    ),
    "negative samples": (
        HEAD + CLIENT.replace("500", "-5"),
        ["clients[0].samples: must be more than 0, got -5 (A)"],
    ),
    "half a sample": (
        HEAD + CLIENT.replace("500", "10.5"),
        ["clients[0].samples: must be a whole number, got 10.5 (A)"],
    ),
    "text for a number": (
        HEAD + CLIENT.replace("3.0", '"3"'),
        ["clients[0].valuation: must be a number, got '3' (A)"],
    ),
    "truth for a number": (
        HEAD.replace("50", "true") + CLIENT.replace("500", "true"),
        [
            "rounds: must be a whole number, got true",
            "clients[0].samples: must be a number, got true (A)",
        ],
    ),
    "half a round": (
        HEAD.replace("50", "50.5") + CLIENT,
        ["rounds: must be a whole number, got 50.5"],
    ),
    "a number for a name": (
        HEAD + CLIENT.replace('"A"', "7"),
        ["clients[0].name: must be text in quotes, got 7"],
    ),
    "no rounds, negative fee": (
        "server_fee = -1\n" + HEAD.replace("50", "0") + CLIENT,
        [
            "rounds: must be a whole number, 1 or more, got 0",
            "server_fee: must be 0 or more, got -1",
        ],
    ),
    "a discount factor of 1 for all": (
        HEAD.replace("0.8", "1.0") + CLIENT,
        ["discount_factor: must be less than 1, got 1"],
    ),
    "a discount factor of 1 for one": (
        HEAD + CLIENT + "discount_factor = 1.0\n",
        ["clients[0].discount_factor: must be less than 1, got 1 (A)"],
    ),
    "no discount factor at all": (
        "rounds = 50\n" + CLIENT,
        ["discount_factor: is missing"],
    ),
    "no discount factor for some": (
        "rounds = 50\n" + CLIENT + "discount_factor = 0.5\n" + CLIENT.replace("A", "B"),
        [
            "clients[1].discount_factor: is missing, and the consortium has none for all (B)",
        ],
    ),
    "a name twice": (
        HEAD + CLIENT + CLIENT,
        ["clients[1].name: 'A' is the name of clients[0] already"],
    ),
    "an empty name": (HEAD + CLIENT.replace('"A"', '" "'), ["clients[0].name: must not be empty"]),
    "a name that plays with the terminal": (
        HEAD + CLIENT.replace('"A"', '"A\\u001b[31m"'),
        ["clients[0].name: must be one line of printable text"],
    ),
    "both costs": (
        HEAD + CLIENT + "cpu = { chip = 1, cycles_per_sample = 1, hertz = 1 }\n",
        ["clients[0]: has a cost_per_sample and figures of a cpu; give one (A)"],
    ),
    "a cpu's figures": (
        HEAD + CLIENT.replace("cost_per_sample = 1e-6", "cpu = { chip = 0, hertz = 1, herz = 1 }"),
        [
            "clients[0].cpu.cycles_per_sample: is missing (A)",
            "clients[0].cpu.herz: unknown key; did you mean 'hertz'? (A)",
            "clients[0].cpu.chip: must be more than 0, got 0 (A)",
        ],
    ),
    "a cpu that is no table": (
        HEAD + CLIENT.replace("cost_per_sample = 1e-6", "cpu = 3"),
        ["clients[0].cpu: must be a table, got 3 (A)"],
    ),
    "a cpu beyond all numbers": (
        HEAD
        + CLIENT.replace(
            "cost_per_sample = 1e-6", "cpu = { chip = 1e300, cycles_per_sample = 1, hertz = 1e99 }"
        ),
        ["clients[0]: cost_per_sample from its cpu must be more than 0, got inf (A)"],
    ),
    "a ratio beyond all numbers": (
        HEAD + CLIENT.replace("3.0", "1e280").replace("1e-6", "1e-300"),
        ["clients[0]: valuation / cost_per_sample is beyond what a number can hold (A)"],
    ),
    "a cost beyond all numbers": (
        HEAD + CLIENT.replace("1e-6", "1e300"),
        ["clients[0]: cost_per_sample * samples must be less than 1e+290 (A)"],
    ),
}


@pytest.mark.parametrize(("toml", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_problems_in_the_toml_file(tmp_path: Path, toml: str, expected: list[str]) -> None:
    assert problems(tmp_path, toml) == expected


CSV_HEADER = "name,valuation,cost_per_sample,samples\n"
CSV_MISTAKES = {
    "empty": ("", ["clients.csv: is empty; its first line must name the columns"]),
    "only a header": (CSV_HEADER, ["clients.csv: has no clients; a consortium needs at least one"]),
    "a missing column": (
        "name,valuation,cost_per_sample\nA,1,1\n",
        ["clients.csv: line 1: column 'samples' is missing"],
    ),
    "no cost": (
        "name,valuation,samples\nA,1,1\n",
        [
            "clients.csv: line 1: column 'cost_per_sample' is missing "
            "(or chip, cycles_per_sample and hertz)"
        ],
    ),
    "an unknown column": (
        CSV_HEADER.replace("samples", "sample") + "A,1,1,1\n",
        [
            "clients.csv: line 1: unknown column 'sample'; did you mean 'samples'?",
            "clients.csv: line 1: column 'samples' is missing",
        ],
    ),
    "a column twice": (
        "name,name,valuation,cost_per_sample,samples\nA,A,1,1,1\n",
        ["clients.csv: line 1: there are two columns 'name'"],
    ),
    "ragged rows": (
        CSV_HEADER + "A,1,1\nB,1,1,1\nC,1,1,1,1\n",
        [
            "clients.csv line 2: has 3 cells, the first line has 4",
            "clients.csv line 4: has 5 cells, the first line has 4",
        ],
    ),
    "numbers": (
        CSV_HEADER + "A,x,0,-5\nB,nan,inf,0.5\nC,,1,1\n",
        [
            "clients.csv line 2, valuation: must be a number, got 'x' (A)",
            "clients.csv line 2, samples: must be more than 0, got -5 (A)",
            "clients.csv line 2, cost_per_sample: must be more than 0, got 0 (A)",
            "clients.csv line 3, valuation: must be a finite number, got nan (B)",
            "clients.csv line 3, cost_per_sample: must be a finite number, got inf (B)",
            "clients.csv line 3, samples: must be a whole number, got 0.5 (B)",
            "clients.csv line 4, valuation: is missing (C)",
        ],
    ),
    "a name twice": (
        CSV_HEADER + "A,1,1,1\nA,1,1,1\n",
        ["clients.csv line 3, name: 'A' is the name of the client on line 2 already"],
    ),
    "half a cpu": (
        "name,valuation,samples,chip,cycles_per_sample,hertz\nA,1,1,1,1,1\nB,1,1,1,,1\nC,1,1,,,\n",
        [
            "clients.csv line 3, cycles_per_sample: is missing (B)",
            "clients.csv line 4, cost_per_sample: is missing (or the figures of a cpu) (C)",
        ],
    ),
    "an open quote": (
        CSV_HEADER + '"A,1,1,1\n',
        ["clients.csv: line 2: is not CSV: unexpected end of data"],
    ),
}


@pytest.mark.parametrize(("csv", "expected"), CSV_MISTAKES.values(), ids=CSV_MISTAKES.keys())
def test_problems_in_the_csv_file(tmp_path: Path, csv: str, expected: list[str]) -> None:
    assert problems(tmp_path, 'clients = "clients.csv"\n' + HEAD, csv) == expected


def test_mistakes_in_both_files_are_reported_together(tmp_path: Path) -> None:
    toml = 'clients = "clients.csv"\nrounds = 0\ndiscount_factor = 0.8\n'
    assert problems(tmp_path, toml, CSV_HEADER + "A,1,1,0\n") == [
        "rounds: must be a whole number, 1 or more, got 0",
        "clients.csv line 2, samples: must be more than 0, got 0 (A)",
    ]


def test_a_missing_csv_file(tmp_path: Path) -> None:
    toml = 'clients = "clients.csv"\n' + HEAD.replace("50", "0")
    assert problems(tmp_path, toml) == [
        "rounds: must be a whole number, 1 or more, got 0",
        "clients.csv: there is no such file",
    ]


def test_very_many_problems_are_only_counted(tmp_path: Path) -> None:
    rows = "".join(f"client {n},1,1,0\n" for n in range(62))
    with pytest.raises(fa.InvalidInput) as caught:
        load(tmp_path, 'clients = "clients.csv"\n' + HEAD, CSV_HEADER + rows)
    assert len(caught.value.problems) == 62
    _, *lines = str(caught.value).splitlines()
    assert ": 62 mistakes:" in str(caught.value)
    assert len(lines) == 51
    assert lines[-1] == "  and 12 more"


@pytest.mark.parametrize("text", ["rounds = \n", "rounds = 1\nrounds = 2\n"])
def test_invalid_toml(tmp_path: Path, text: str) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.startswith("is not TOML: ")
    assert re.search(r"line \d+, column \d+", problem)


@pytest.mark.parametrize("name", ["members.csv", "Members.XLSX", "members.ods"])
def test_a_table_in_place_of_a_consortium_file(tmp_path: Path, name: str) -> None:
    head = "Zentrum;Fallzahl;Wert;Kosten je Fall (€);Diskontfaktor"
    (tmp_path / name).write_text(f"{head}\nNord;300;7000;0,04;\nSüd;200;6000;0,04;0,8\n", "utf-8")
    for load in (fa.load_consortium, fa.load_changing):
        with pytest.warns(
            fa.FileNote, match="rounds = 50 and discount_factor = 0.9 are taken"
        ) as told:
            found = load(tmp_path / name)
        assert f'clients = "{name}"' in str(told[0].message)
        consortium = found if isinstance(found, fa.Consortium) else found.everyone
        assert (consortium.names, consortium.rounds) == (("Nord", "Süd"), 50)
        assert consortium.discount_factor.tolist() == [0.9, 0.8]
        assert consortium.currency == "EUR"
    with pytest.raises(fa.InvalidInput, match="there is no such file"):
        fa.load_consortium(tmp_path / "other.csv")


def test_problems_of_a_table_in_place_of_a_consortium_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name;samples;value;Kostpreis\nA;3;5;1\n", "utf-8")
    with pytest.warns(fa.FileNote), pytest.raises(fa.InvalidInput) as refused:
        fa.load_consortium(tmp_path / "t.csv")
    assert [str(problem) for problem in refused.value.problems] == [
        "line 1: I don't know the column 'Kostpreis'; is it 'cost_per_sample'? Then call it that"
    ]
    with pytest.raises(fa.InvalidInput, match="is a table of clients; give a"):
        check_has_tables(tmp_path / "t.csv")  # nothing can be written into it


def test_files_that_are_not_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems(tmp_path, b"rounds = 1\nname = '\xff'\n") == ["line 2: is not UTF-8 text"]
    assert problems(tmp_path, "rounds = 1\n".encode("utf-16")) == ["line 1: is not UTF-8 text"]
    with pytest.raises(fa.InvalidInput, match="is a directory, not a file"):
        fa.load_consortium(tmp_path)
    with pytest.raises(fa.InvalidInput, match="there is no such file"):
        fa.load_consortium(tmp_path / "nope.toml")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(fa.InvalidInput, match="cannot be read: Permission denied"):
        fa.load_consortium(tmp_path / "consortium.toml")


def test_a_slot_is_kept_as_a_number_of_months(tmp_path: Path) -> None:
    client = '[[clients]]\nname = "A"\nvaluation = 3\ncost_per_sample = 1\nsamples = 5\n'
    path = tmp_path / "c.toml"
    path.write_text(f'rounds = 5\ndiscount_factor = 0.9\nslot = "monthly"\n{client}')
    assert fa.load_consortium(path).slot == "1 month"


def test_a_file_that_is_too_large_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("huge.toml", 100_000_000), ("huge.csv", 65_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)  # sparse: takes no space on the disk
    consortium = example_consortium()  # before opening is forbidden: it is a file too
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(fa.InvalidInput, match=r"too large: 100\.0 MB, at most 10 MB"):
        fa.load_consortium(tmp_path / "huge.toml")
    with pytest.raises(fa.InvalidInput, match=r"too large: 65\.0 MB, at most 64 MB"):
        load_profile(tmp_path / "huge.csv", consortium)


def test_a_pipe_of_unknown_size_is_read_up_to_the_limit() -> None:
    with pytest.raises(fa.InvalidInput, match="too large"):
        text_file.read_text(Path("/dev/zero"), limit=1000)


@pytest.mark.parametrize("line", ["samples = 42.000", "samples = 42.125", "valuation = 700.000"])
def test_thousands_that_toml_takes_for_decimals(tmp_path: Path, line: str) -> None:
    key = line.split(maxsplit=1)[0]
    other = {"samples": "samples = 5", "valuation": "valuation = 5.125"} | {key: line}
    path = tmp_path / "c.toml"
    path.write_text(
        'rounds = 5\ndiscount_factor = 0.5\n[[clients]]\nname = "A"\ncost_per_sample = 1.000\n'
        + "\n".join(other.values())
    )
    with pytest.raises(fa.InvalidInput, match=f"{line.split()[2]} is .* in TOML; write ") as raised:
        fa.load_consortium(path)
    assert [problem.field for problem in raised.value.problems] == [key]


# --- Numbers that are possible and unlikely ------------------------------------------------


def clients_of(*numbers: tuple[float, float, float]) -> str:
    """A file whose clients have these valuations, costs per sample and samples."""
    rows = [
        f'[[clients]]\nname = "c{n}"\nvaluation = {valuation}\ncost_per_sample = {cost}\n'
        f"samples = {samples}\n"
        for n, (valuation, cost, samples) in enumerate(numbers)
    ]
    return HEAD + "\n".join(rows)


ODD_VALUATION = clients_of((120_100, 0.004, 9_000), (1_501, 0.004, 8_000))
ODD_COST = clients_of((700_000, 400_000, 9_000), (700_000, 0.004, 9_000))


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (
            ODD_VALUATION,
            "valuation",
            "The valuation of c1 is 1501, and half of the others have 120",
        ),
        (ODD_COST, "cost_per_sample", "One sample of c0 costs 400,000 in every slot"),
        (  # one is meant for a loss of 1, and the others for a point
            clients_of((1_500, 0.1, 900), (1_300, 0.1, 900), (1_700, 0.1, 900), (1.4e5, 0.1, 900)),
            "valuation",
            "The valuation of c3 is 140000, and half of the others have 1500",
        ),
    ],
)
def test_unlikely_numbers_are_asked_about(tmp_path: Path, text: str, key: str, words: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text, "utf-8")
    with pytest.warns(fa.FileNote) as told:
        fa.load_consortium(file)
    assert len(told) == 1
    assert words in str(told[0].message)
    assert f'sure = ["{key}"] above the clients' in str(told[0].message)
    file.write_text(f'sure = ["{key}"]\n{text}', "utf-8")
    fa.load_consortium(file)  # a note would be an error
    file.write_text(text, "utf-8")
    with asking(lambda _: "yes"), pytest.warns(fa.FileNote, match="are taken as right"):
        fa.load_consortium(file)
    with asking(lambda _: ""), pytest.raises(fa.InvalidInput, match=f"{key}: is in question"):
        fa.load_consortium(file)


@pytest.mark.parametrize(
    "numbers",
    [
        [(120_100, 0.004, 9_000), (1_501, 0.004, 120)],  # as small as it is
        [(120_100, 0.004, 9_000), (3_100, 0.004, 9_000)],  # 39 times
        [(120_100, 0.004, 9_000), (400, 0.004, 9_000)],  # 300 times: no slip of a unit
        [(120_100, 0.004, 900), (1_501, 0.004, 900), (13_000, 0.004, 900), (130_000, 0.004, 900)],
        [(1.0, 0.985e-8, 10_000), (1.0, 0.985e-8, 10_000)],  # the paper's
        [(2e6, 9_999, 900)],
        [(2e6, 19_999, 900)],  # less than a percentage point
        [(5, 9, 900)],  # toy numbers
    ],
)
def test_wide_numbers_are_not_asked_about(
    tmp_path: Path, numbers: list[tuple[float, float, float]]
) -> None:
    (tmp_path / "c.toml").write_text(clients_of(*numbers), "utf-8")
    assert fa.load_consortium(tmp_path / "c.toml").size == len(numbers)


def test_a_table_with_an_unlikely_number_is_asked_about() -> None:
    rows = "name;samples;value;cost per sample\nA;9000;120100;0,004\nB;9000;1501;0,004\n"
    read = fa.read_clients(rows)
    assert read.problems == ()
    assert [question.key for question in read.questions] == ["valuation"]
    assert fa.read_clients(rows, answers={"valuation": "yes"}).questions == ()
