"""Spreadsheets as people have them: what is read, what is noted, and what is refused."""

import codecs
import tempfile
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.cli.outputs import write_csv
from fedaccord.files.clients import FIELDS, ClientsRead, read_clients
from fedaccord.files.headings import OTHER_WORDS, read_heading
from fedaccord.files.questions import Question, asking
from fedaccord.files.tables import load_profile

HEAD = "name;samples;valuation;cost_per_sample;discount_factor"


def sheet(*rows: str, head: str = HEAD) -> ClientsRead:
    return read_clients("\n".join([head, *rows]) + "\n")


def numbers(read: ClientsRead, field: str) -> list[float]:
    assert read.problems == ()
    assert read.table is not None
    return list(read.table.numbers[field].tolist())


def problems(read: ClientsRead) -> list[str]:
    return list(map(str, read.problems))


# --- Encodings and separators --------------------------------------------------------------

ROWS = "name,samples,valuation,cost per sample\nZürich,500,3,1e-6\nBâle,400,2,1e-6\n"
PLAIN = [
    ROWS.encode(),
    codecs.BOM_UTF8 + ROWS.encode(),
    ROWS.encode("utf-16"),
    codecs.BOM_UTF16_BE + ROWS.encode("utf-16-be"),
    ROWS.replace("\n", "\r\n").encode(),
    ROWS.replace(",", ";").encode(),
    ROWS.replace(",", "\t").encode(),
    ("sep=;\r\n" + ROWS.replace(",", ";")).encode(),
    ("\n ,,,\n" + ROWS.replace("\n", "\n,,\n\n")).encode(),
    ROWS.replace("\n", ",,\n").encode(),
    ROWS.replace("cost per sample", '"cost per sample"').encode(),
]


@pytest.mark.parametrize("data", PLAIN)
def test_encodings_separators_empty_rows_and_empty_columns(data: bytes) -> None:
    read = read_clients(data)
    assert numbers(read, "samples") == [500, 400]
    assert read.table is not None
    assert read.table.names == ["Zürich", "Bâle"]
    assert read.notes == ()


def test_windows_1252_is_noted() -> None:
    read = read_clients(ROWS.replace("name", "name ").encode("cp1252"))
    assert read.table is not None
    assert read.table.names == ["Zürich", "Bâle"]
    assert read.notes == ("line 2: is not UTF-8; read as Windows-1252, with 'Zürich'",)
    euro = read_clients("name;samples;value;cost per sample\nA;5;3 €;1 €\n".encode("cp1252"))
    assert numbers(euro, "valuation") == [3]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            codecs.BOM_UTF8 + b"name\n\xff",
            "line 2: is not UTF-8 text, though its first bytes say so",
        ),
        (codecs.BOM_UTF16_LE + b"a", "line 1: is not UTF-16 text, though its first bytes say so"),
        (b"name\n\x81", "line 2: is neither UTF-8 nor Windows-1252 text; save the file as UTF-8"),
        (ROWS.encode("utf-16-le"), "line 1: is not text; save the file as UTF-8"),
        (b"%PDF-1.7\n%\xe2", "is a PDF; save it as XLSX or as CSV"),
        (b"\x89PNG\r\n\x1a\n\0", "is a picture; save it as XLSX or as CSV"),
        (b"\n<!DOCTYPE html><table>", "is a web page; save it as XLSX or as CSV"),
        (b'{"name": "A"}', "is JSON; save the table as XLSX or as CSV"),
        (b'[{"name": "A"}]', "is JSON; save the table as XLSX or as CSV"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            "cannot be read as XLS or ODS: it is damaged, has a password, or has cells too far "
            "apart; save the sheet as XLSX or as CSV",
        ),
    ],
)
def test_what_is_not_text(data: bytes, problem: str) -> None:
    read = read_clients(data)
    assert read.table is None
    assert problems(read) == [problem]
    assert problems(read_clients(data, "c.csv")) == [f"c.csv: {problem}"]


# --- Headings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "Hospital;Cases;Value;Cost per case;Discount factor",
        "Hôpital;Échantillons;Valeur;Coût par échantillon;Facteur d'actualisation",
        "Nombre;Muestras;Valor;Coste por muestra;Factor de descuento",
        "Ospedale;Numero di campioni;Valore;Costo per campione;Fattore di sconto",
        "Klinik;Anzahl Proben;Wert;Kosten pro Probe;Diskontfaktor",
        "CLIENT NAME;Number of Samples;rho;Cost-per-Sample;delta",
        "Member; samples ;Valuation (EUR);Cost per sample [EUR per slot];Discount factor (δ)",
        "organisation;Examples;ρ;cost_per_sample in EUR;δ",
        "Site;records;valuation €;cost (per sample);discount-factor",
    ],
)
def test_what_people_call_the_columns(head: str) -> None:
    read = sheet("A;5;3;1;0,9", head=head)
    assert [numbers(read, each) for each in ("samples", "valuation", "cost_per_sample")] == [
        [5],
        [3],
        [1],
    ]
    assert numbers(read, "discount_factor") == [0.9]


HEADINGS = {
    "name;Hospital;samples;valuation;cost_per_sample": [
        "line 1: the columns 'name' and 'Hospital' both mean name; keep one"
    ],
    "name;samples (thousands);valuation (kEUR);cost_per_sample": [
        "line 1: column 'samples (thousands)' has an unknown unit, 'thousands'; "
        "write its numbers in full under the heading 'samples'",
        "line 1: column 'valuation (kEUR)' has an unknown unit, 'kEUR'; "
        "write its numbers in full under the heading 'valuation'",
    ],
    "name;samples (EUR);valuation (%);cost_per_sample": [
        "line 1: column 'samples (EUR)' must be a number, not an amount of money in EUR",
        "line 1: column 'valuation (%)' must be a number, not a percentage",
    ],
    "name;samples;valuation;cost_per_sample;discount rate": [
        "line 1: unknown column 'discount rate'; give the discount factor instead, "
        "which is 1 / (1 + rate)"
    ],
    "name;samples;valuation;cost_per_sample;Discount rate (%)": [
        "line 1: unknown column 'Discount rate (%)'; give the discount factor instead, "
        "which is 1 / (1 + rate)"
    ],
    "name;samples;valuation;cost_per_sample;Discount": [
        "line 1: unknown column 'Discount'; call it 'discount_factor' if it is one; "
        "that of a rate is 1 / (1 + rate)"
    ],
    "name;samples;valuation;cost_per_sample;Discount in %": [
        "line 1: unknown column 'Discount in %'; call it 'discount_factor' if it is one; "
        "that of a rate is 1 / (1 + rate)"
    ],
    "name;samples;valuation;cost_per_sample;discuont factor": [
        "line 1: unknown column 'discuont factor'; did you mean 'discount_factor'?"
    ],
}


@pytest.mark.parametrize(("head", "expected"), HEADINGS.items(), ids=HEADINGS.keys())
def test_headings_that_could_mislead(head: str, expected: list[str]) -> None:
    assert problems(sheet("A;5;3;1;0,9", head=head)) == expected


def test_other_columns_are_kept_aside_with_a_note() -> None:
    head = "Region;name;samples;;valuation;cost_per_sample;Contact"
    read = sheet("EU;A;5;x;3;1;a@b", "US;B;5;;3;1;", head=head)
    assert numbers(read, "samples") == [5, 5]
    assert read.table is not None
    assert read.table.extra == {
        "Region": ["EU", "US"],
        "column 4": ["x", ""],
        "Contact": ["a@b", ""],
    }
    assert read.notes == ("not used: 3 columns, 'Region', 'column 4', 'Contact'",)


def test_cells_beyond_the_headings() -> None:
    read = sheet("A;5;3;1;0,9;;a remark", "B;5;3;1;0,9", head=HEAD + ";;")
    assert numbers(read, "samples") == [5, 5]
    assert read.notes == ("not used: 1 column, 'column 7'",)
    assert problems(sheet("A;5;3;1;0,9;;a remark", "B;5;3;1")) == [
        "line 2: has 7 cells, the first line has 5",
        "line 3: has 4 cells, the first line has 5",
    ]


# --- Numbers -------------------------------------------------------------------------------


def test_what_is_ambiguous_is_refused_with_both_readings() -> None:
    assert problems(sheet("A;42.000;1,234;3;")) == [
        "line 2, samples: '42.000' is either 42 or 42000; write the one that is meant (A)",
        "line 2, valuation: '1,234' is either 1.2340 or 1234; write the one that is meant (A)",
    ]


def test_another_number_of_the_file_settles_it_with_a_note() -> None:
    read = sheet("A;42.000;3;0,0042;", "B;30.000;1.234;0,004;")
    assert numbers(read, "samples") == [42_000, 30_000]
    assert numbers(read, "valuation") == [3, 1234]
    assert read.notes == (
        "line 2, samples: '42.000' was read as 42000 (2 numbers like it in the same way), because "
        "'0,0042' (line 2, cost_per_sample) shows that the file has decimal commas",
    )
    point = sheet("A;42;1,234,567;4.200;")
    assert numbers(point, "cost_per_sample") == [4.2]
    assert "shows that the file has decimal points" in point.notes[0]


@pytest.mark.parametrize(
    "row",
    ["A;42.000;3;0.0042;", "A;42;700.000;0.0042;", "A;42,500;3;0,0042;", "A;4.000-9.000;3;0.5;"],
)
def test_decimals_that_nobody_writes_are_asked_about(row: str) -> None:
    read = sheet(row)
    assert "is either" in str(read.problems[0])
    assert len(read.questions) == 1


def test_both_decimal_marks_in_a_file_are_refused() -> None:
    assert problems(sheet("A;42.000;3;0.5;", "B;5;1,5;1;")) == [
        "has decimal points ('0.5', line 2, cost_per_sample) and decimal commas ('1,5', line 3, "
        "valuation); use one of them",
        "line 2, samples: '42.000' is either 42 or 42000; write the one that is meant (A)",
    ]


def test_a_comma_in_quotes_in_a_file_with_commas() -> None:
    read = read_clients(b'name,samples,value,cost per sample\nA,"1,234","3,5","0,25"\n')
    either = "'1,234' is either 1.2340 or 1234; write the one that is meant (A)"
    assert problems(read) == [f"line 2, samples: {either}"]


def test_percentages_and_factors() -> None:
    assert numbers(sheet("A;5;3;1;97 %", "B;5;3;1;0,97"), "discount_factor") == [0.97, 0.97]
    assert problems(sheet("A;5;3;1;97", "B;5 %;3;1;1,5")) == [
        "line 2, discount_factor: must be less than 1, got 97; did you mean 0.97? (A)",
        "line 3, samples: must be a number, not a percentage, got '5 %' (B)",
        "line 3, discount_factor: must be less than 1, got 1.5 (B)",
    ]


def test_a_percentage_that_is_probably_no_factor() -> None:
    rate = "an interest rate, whose factor is 1 / (1 + rate); write the factor that is meant"
    assert problems(sheet("A;5;3;1;3 %", "B;5;3;1;0,97%", "C;5;3;1;2 - 4 %", "D;5;3;1;0,03")) == [
        f"line 2, discount_factor: '3 %' is either 0.03 or {rate}, without % (A)",
        "line 3, discount_factor: '0,97%' is either 0.0097 or 0.97; "
        "write the factor that is meant, without % (B)",
        f"line 4, discount_factor: '2 - 4 %' is either 0.02 to 0.04 or {rate}, without % (C)",
    ]
    head = HEAD.replace("discount_factor", "discount factor (%)")
    assert problems(sheet("A;5;3;1;3", head=head)) == [
        f"line 2, discount_factor: '3' is either 0.03 or {rate}, without % (A)"
    ]


def test_a_number_with_a_scale_has_its_readings() -> None:
    assert problems(sheet("A;5;1.500k;1;")) == [
        "line 2, valuation: '1.500k' is either 1500 or 1500000; write the one that is meant (A)"
    ]
    [note] = sheet("A;5;1.500k;1;0.5").notes
    assert "'1.500k' was read as 1500, because '0.5'" in note


def test_a_heading_with_a_percent_sign() -> None:
    head = HEAD.replace("discount_factor", "discount factor (%)")
    read = sheet("A;5;3;1;97", "B;5;3;1;97,3 %", "C;5;3;1;", "D;5;3;1;97,3", head=head)
    np.testing.assert_array_equal(numbers(read, "discount_factor"), [0.97, 0.973, np.nan, 0.973])
    assert problems(sheet("A;5;3;1;0,97", head=head)) == [
        "line 2, discount_factor: '0,97' under a heading with % could be a share; "
        "write it with a % (A)"
    ]


def test_currencies() -> None:
    read = sheet("A;5;3 €;EUR 1;", head=HEAD.replace("valuation", "valuation (EUR)"))
    assert numbers(read, "valuation") == [3]
    assert read.table is not None
    assert read.table.currency == "EUR"
    assert problems(sheet("A;5;3 $;1 €;", "B;5 €;3;1;")) == [
        "line 2, cost_per_sample: is in EUR, and line 2, valuation in $; "
        "give all amounts in one currency (A)",
        "line 3, samples: must be a number, not an amount of money in EUR, got '5 €' (B)",
    ]


def test_headings_in_two_currencies() -> None:
    head = HEAD.replace("valuation", "valuation (EUR)").replace("sample", "sample (USD)")
    head = head.replace("sample (USD)s", "samples")
    assert problems(sheet("A;5;3;1;", head=head)) == [
        "line 1: column 'cost_per_sample (USD)' is in USD, and column "
        "'valuation (EUR)' in EUR; give all amounts in one currency"
    ]


@pytest.mark.parametrize(("unit", "counted"), [("€", "EUR"), ("$", "CAD"), ("USD", "$")])
def test_a_currency_that_is_the_consortium_s(unit: str, counted: str) -> None:
    read = read_clients(f"{HEAD}\nA;5;3 {unit};1;\n", counted=counted)
    assert problems(read) == []


@pytest.mark.parametrize("head", [HEAD, HEAD.replace("valuation", "valuation (USD)")])
def test_a_currency_that_is_not_the_consortium_s(tmp_path: Path, head: str) -> None:
    cell = "3" if "(USD)" in head else "3 $"
    (tmp_path / "c.csv").write_text(f"{head}\nA;5;{cell};1;\n", encoding="utf-8")
    toml = 'rounds = 5\ndiscount_factor = 0.5\ncurrency = "EUR"\nclients = "c.csv"\n'
    (tmp_path / "c.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match=r"and this consortium counts in EUR"):
        fa.load_consortium(tmp_path / "c.toml")


def test_a_row_of_sums_is_not_a_client() -> None:
    assert problems(sheet("A;5;3;1;", "Total:;5;3;1;")) == [
        "line 3, name: 'Total:' looks like a row of sums; remove it, or rename the client"
    ]


def test_a_discount_factor_of_97_in_toml(tmp_path: Path) -> None:
    client = '[[clients]]\nname = "A"\nvaluation = 3\ncost_per_sample = 1\nsamples = 5\n'
    (tmp_path / "c.toml").write_text(f"rounds = 5\ndiscount_factor = 97\n{client}")
    with pytest.raises(fa.InvalidInput, match=r"got 97; did you mean 0\.97\?$"):
        fa.load_consortium(tmp_path / "c.toml")
    with pytest.raises(fa.InvalidInput, match=r"got 95\.5; did you mean 0\.955\?$"):
        fa.Consortium(valuation=3, cost_per_sample=1, samples=5, rounds=5, discount_factor=95.5)


# --- Files ---------------------------------------------------------------------------------


def test_notes_are_warnings_of_their_own_kind(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('rounds = 5\ndiscount_factor = 0.9\nclients = "c.csv"\n')
    (tmp_path / "c.csv").write_text("Hospital;Cases;Value;Cost per sample;City\nA;1.000;3;0,1;X\n")
    with pytest.warns(fa.FileNote) as noted:
        consortium = fa.load_consortium(tmp_path / "c.toml")
    assert consortium.samples.tolist() == [1000]
    assert [str(each.message).removeprefix(f"{tmp_path}/") for each in noted] == [
        "c.csv: not used: 1 column, 'City'",
        "c.csv: line 2, samples: '1.000' was read as 1000, because '0,1' (line 2, cost_per_sample) "
        "shows that the file has decimal commas",
    ]


def test_a_profile_in_the_same_style(tmp_path: Path) -> None:
    consortium = fa.Consortium(
        valuation=[3, 3], cost_per_sample=1, samples=50_000, rounds=5, discount_factor=0.9
    )
    path = tmp_path / "p.csv"
    path.write_text("Member;Contribution\nclient-2;42 000,5\nclient-1;0\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_profile(path, consortium).tolist() == [0, 42_000.5]
    path.write_text("Member;Contribution\nclient-2;42.000\nclient-1;0\n")
    with pytest.raises(fa.InvalidInput, match=r"'42\.000' is either 42 or 42000"):
        load_profile(path, consortium)


@given(st.lists(st.floats(0, 50_000), min_size=2, max_size=2))
@example([450.123, 1.234])
def test_a_profile_that_fedaccord_writes_is_read_exactly(amounts: list[float]) -> None:
    consortium = fa.Consortium(
        valuation=[3, 3], cost_per_sample=1, samples=50_000, rounds=5, discount_factor=0.9
    )
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("error")
        path = Path(directory) / "p.csv"
        write_csv(path, ["name", "contribution"], zip(consortium.names, amounts, strict=True))
        assert load_profile(path, consortium).tolist() == amounts


# --- Questions -----------------------------------------------------------------------------


def test_answers_settle_what_was_asked() -> None:
    text = f"{HEAD}\nA;42.000;1,234;3;97\nSumme;1;2;3;\n"
    read = read_clients(text)
    assert [question.key for question in read.questions] == ["dot", "comma", "percent", "sums"]
    answers = {"dot": "thousands", "comma": "decimal", "percent": "yes", "sums": "yes"}
    settled = read_clients(text, answers=answers)
    assert settled.questions == ()
    assert numbers(settled, "samples") == [42_000]
    assert numbers(settled, "valuation") == [1.234]
    assert numbers(settled, "discount_factor") == [0.97]


@pytest.mark.parametrize("answers", [{"dots": "thousands"}, {"dot": "yes"}])
def test_answers_to_other_questions_are_refused(answers: dict[str, str]) -> None:
    assert "must be one of" in str(read_clients(f"{HEAD}\nA;1;2;3;\n", answers=answers).problems[0])


def test_a_partial_table_needs_names_alone() -> None:
    assert read_clients("name\nA\n", partial=True).problems == ()
    assert read_clients("samples\n5\n", partial=True).table is None


@pytest.mark.parametrize(
    ("cell", "low", "high"),
    [
        ("0,4 - 0,9 €", 0.4, 0.9),
        ("5 000 to 8 000", 5000, 8000),
        ("1.234.567-2.000.000", 1234567, 2e6),
    ],
)
def test_ranges_with_any_decimal_mark(cell: str, low: float, high: float) -> None:
    read = sheet(f"A;5;{cell};0,5;")
    assert read.problems == ()
    assert read.table is not None
    found = read.table.ranges["valuation"][0]
    assert (found.low, found.high) == (low, high)


def test_titles_above_the_headings_are_noted() -> None:
    read = read_clients(f"Our clinics;;;;\n\n{HEAD}\nA;5;3;1;\n")
    assert numbers(read, "samples") == [5]
    assert read.notes == ("line 1: not used; the headings are in line 3",)


@pytest.mark.parametrize(
    "head",
    [
        "Klinik;Fälle;Wert;Kosten pro Fall",
        "Nom;Cas;Valeur;Coût par cas",
        "Nome;Casi;Valore;Costo per caso",
    ],
)
def test_headings_in_other_languages(head: str) -> None:
    assert numbers(sheet("A;5;3;1", head=head), "samples") == [5]


def test_quotes_in_a_copied_table_may_be_part_of_a_name() -> None:
    read = read_clients(f'{HEAD}\nThe \'Big\' "One";5;3;1;\n"Big" One;5;3;1;\n'.replace(";", "\t"))
    assert read.table is not None
    assert read.table.names == ["The 'Big' \"One\"", '"Big" One']


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Kosten je Fall (€)", "cost_per_sample"),
        ("KOSTEN PRO UNTERSUCHUNG", "cost_per_sample"),
        ("Coût par cas", "cost_per_sample"),
        ("Cout par cas", "cost_per_sample"),
        ("Costo per esame", "cost_per_sample"),
        ("Coste por imagen", "cost_per_sample"),
        ("Cost per exam", "cost_per_sample"),
        ("Fallzahl", "samples"),
        ("Anzahl der Fälle", "samples"),
        ("Nombre d'examens", "samples"),
        ("Nombre d’examens", "samples"),
        ("Numero di casi", "samples"),
        ("Número de muestras", "samples"),
        ("Établissement", "name"),
        ("ETABLISSEMENT", "name"),
        ("Zentrum", "name"),
        ("Valutazione", "valuation"),
    ],
)
def test_headings_in_several_languages(heading: str, field: str) -> None:
    assert read_heading(heading, ["name", *FIELDS]).field == field


def test_no_heading_means_two_columns() -> None:
    spelled = [
        (unicodedata.normalize("NFKD", word).casefold(), field)
        for field, words in OTHER_WORDS.items()
        for word in words
    ]
    assert len({word for word, _ in spelled}) == len(set(spelled))


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (
            "name;samples;value;Kostpreis (€)",
            "I don't know the column 'Kostpreis (€)'; is it 'cost_per_sample'? Then call it that",
        ),
        (
            "Ort;samples;value;cost per sample;notes",
            "I don't know the columns 'Ort', 'notes'; are they among 'name'? Then call them that",
        ),
        (
            "name;samples;Nutzen",
            "I don't know the column 'Nutzen'; is it one of 'valuation', 'cost_per_sample'? "
            "Then call it that",
        ),
        ("name;samples;value", "column 'cost_per_sample' is missing (or chip, cycles_per_sample"),
    ],
)
def test_an_unknown_column_is_named_once(head: str, problem: str) -> None:
    row = ";".join("A5311"[: head.count(";") + 1])
    found = problems(read_clients("\n".join([head, *[row] * 11]) + "\n"))
    assert len(found) == 1
    assert found[0].removeprefix("line 1: ").startswith(problem)


def test_what_a_table_leaves_open_is_asked(tmp_path: Path) -> None:
    text = "Ort;samples;value;Kostpreis (€);notes\nA;42.000;5;1;x\nB;30.000;5;1;y\n"
    (tmp_path / "t.csv").write_text(text, "utf-8")
    replies = {"Ort": "name", "Kostpreis": "cost_per_sample", "'42.000'": "thousands"}
    asked = []

    def answer(question: Question) -> str:
        asked.append(question.text)
        return next(reply for word, reply in replies.items() if word in question.text)

    with asking(answer), pytest.warns(fa.FileNote) as told:
        consortium = fa.load_consortium(tmp_path / "t.csv")
    assert "not used: 1 column, 'notes'" in str(told[-1].message)
    assert consortium.names == ("A", "B")
    assert consortium.samples.tolist() == [42_000, 30_000]
    assert consortium.currency == "EUR"
    assert asked == [
        "I don't know the column 'Ort', which begins with A, B. What is it?",
        "I don't know the column 'Kostpreis (€)', which begins with 1, 1. What is it?",
        "What does '42.000' (and 1 more like it) mean?",
    ]


def test_what_is_asked_and_not_answered_stays_a_problem(tmp_path: Path) -> None:
    text = "name;samples;value;Kostpreis;notes\nA;42.000;5;1;x\n"
    (tmp_path / "t.csv").write_text(text, "utf-8")
    with (
        asking(lambda _: ""),
        pytest.warns(fa.FileNote),
        pytest.raises(fa.InvalidInput, match="column 'cost_per_sample' is missing"),
    ):
        fa.load_consortium(tmp_path / "t.csv")
