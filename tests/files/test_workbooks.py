"""Workbooks: values, formulas, formats, and what is refused, by the name of its cell."""

import datetime
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.clients import read_clients

openpyxl: Any = pytest.importorskip("openpyxl")

HEAD = ["Hospital", "Cases", "Value", "Cost per sample (EUR)", "Discount factor"]
NORTH = ["North", 42_000, 700_000, 0.0042, 0.9]


def saved(book: Any) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def workbook(*rows: list[Any], formats: dict[str, str] | None = None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, style in (formats or {}).items():
        book.active[cell].number_format = style
    return saved(book)


def problems(data: bytes) -> list[str]:
    return list(map(str, read_clients(data, "c.xlsx").problems))


def test_numbers_need_no_decimal_mark() -> None:
    south = ["South", "30 000", "640.000,00 €", 1.234, "97 %"]
    read = read_clients(workbook(HEAD, NORTH, [None] * 5, south))
    assert read.problems == ()
    assert read.notes == ()
    assert read.table is not None
    assert read.table.names == ["North", "South"]
    assert read.table.currency == "EUR"
    assert read.table.numbers["samples"].tolist() == [42_000, 30_000]
    assert read.table.numbers["cost_per_sample"].tolist() == [0.0042, 1.234]
    assert read.table.numbers["discount_factor"].tolist() == [0.9, 0.97]


def test_a_stored_number_is_no_evidence_for_text() -> None:
    text = ["South", "30.000", 5, 1.5, 0.9]
    assert problems(workbook(HEAD, NORTH, text)) == [
        "c.xlsx cell B3, samples: '30.000' is either 30 or 30000; "
        "write the one that is meant (South)"
    ]


def test_formats_carry_units() -> None:
    data = workbook(HEAD, NORTH, formats={"E2": "0.0%", "C2": "#,##0.00 [$€-407]"})
    read = read_clients(data)
    assert read.problems == ()
    assert read.table is not None
    assert read.table.numbers["discount_factor"].tolist() == [0.9]
    assert problems(workbook(HEAD, NORTH, formats={"C2": "[$£-809]#,##0"})) == [
        "c.xlsx cell C2, valuation: is in GBP, and the heading of cost_per_sample in EUR; "
        "give all amounts in one currency (North)"
    ]
    assert problems(workbook(HEAD, NORTH, formats={"B2": "0%"})) == [
        "c.xlsx cell B2, samples: must be a number, not a percentage, got '42000' (North)"
    ]


def test_a_percent_heading_over_stored_numbers() -> None:
    head = [*HEAD[:4], "Discount factor (%)"]
    rows = [["A", 5, 3, 1, 97.123], ["B", 5, 3, 1, 0.97]]
    read = read_clients(workbook(head, *rows, formats={"E3": "0%"}))
    assert read.problems == ()
    assert read.table is not None
    assert read.table.numbers["discount_factor"].tolist() == [0.97123, 0.97]


def test_a_stored_percentage_that_is_probably_no_factor() -> None:
    found = problems(workbook(HEAD, [*NORTH[:4], 0.03], formats={"E2": "0%"}))
    assert len(found) == 1
    assert "'3 %' is either 0.03 or an interest rate" in found[0]


def test_cells_without_a_usable_value() -> None:
    broken = ["=1+1", datetime.date(2026, 1, 31), 1, datetime.time(12, 30)]
    book = openpyxl.load_workbook(io.BytesIO(workbook(HEAD, ["A", *broken], ["B", True, 5, 1, 97])))
    book.active["D2"].value = "#DIV/0!"
    book.active["D2"].data_type = "e"
    assert problems(saved(book)) == [
        "c.xlsx cell B2, samples: has a formula without a saved value (A)",
        "c.xlsx cell C2, valuation: is a date or a time; write it as a number or as text (A)",
        "c.xlsx cell D2, cost_per_sample: has the error '#DIV/0!' (A)",
        "c.xlsx cell E2, discount_factor: is a date or a time; write it as a number or as text (A)",
        "c.xlsx cell B3, samples: must be a number, got 'true' (B)",
        "c.xlsx cell E3, discount_factor: must be less than 1, got 97; did you mean 0.97? (B)",
    ]


def edited(data: bytes, old: bytes, new: bytes) -> bytes:
    """The workbook with a part of its sheet replaced."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(changed, "w") as after:
        for part in before.namelist():
            content = before.read(part)
            assert part != "xl/worksheets/sheet1.xml" or old in content
            after.writestr(part, content.replace(old, new))
    return changed.getvalue()


@pytest.mark.slow
def test_numbers_beyond_all_numbers_and_rows_beyond_all_rows() -> None:
    data = workbook(HEAD, NORTH)
    assert problems(edited(data, b"<v>42000</v>", b"<v>1e999</v>")) == [
        "c.xlsx cell B2, samples: must be a finite number, got inf (North)"
    ]
    assert problems(edited(data, b'<row r="2"', b'<row r="99999999"')) == [
        "c.xlsx: has more than 1,048,576 rows"
    ]


TOO_MANY = "{}, with the empty ones; delete those that are not needed, or save the sheet as CSV"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (b"<row/>" * 1_800_000, TOO_MANY.format("has more than 100,000 rows")),
        (
            b"<row>" + b"<c/>" * 1_000_000 + b"</row>",
            TOO_MANY.format("has more than 1,000,000 cells"),
        ),
        (  # each of these rows is filled up to its last column
            b"".join(b'<row r="%d"><c r="XFD%d"/></row>' % (n, n) for n in range(3, 90)),
            TOO_MANY.format("has more than 1,000,000 cells"),
        ),
    ],
)
def test_a_small_file_of_very_many_cells(rows: bytes, problem: str) -> None:
    plain = edited(workbook(HEAD, NORTH), b"</sheetData>", rows + b"</sheetData>")
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(plain)) as before,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for part in before.namelist():
            after.writestr(part, before.read(part))
    assert len(packed.getvalue()) < 57_000
    assert problems(packed.getvalue()) == [f"c.xlsx: {problem}"]


@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/sharedStrings.xml"])
def test_a_small_file_of_very_many_texts_or_formats(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    name = "_MOST_TAGS" if "shared" in part else "_MOST_STYLE_TAGS"
    monkeypatch.setattr(f"fedaccord.files.workbook.{name}", 3)
    assert problems(workbook(HEAD, NORTH)) == [
        "c.xlsx: is too large; delete those that are not needed, or save the sheet as CSV"
    ]


def test_a_remark_beside_the_table() -> None:
    read = read_clients(workbook(HEAD, [*NORTH, None, "a remark"]))
    assert read.problems == ()
    assert read.notes == ("not used: 1 column, 'column 7'",)


def test_a_formula_has_the_value_that_was_saved_with_it() -> None:
    formula = b"<f>6*7000</f><v>42000</v>"
    read = read_clients(edited(workbook(HEAD, NORTH), b"<v>42000</v>", formula))
    assert read.problems == ()
    assert read.table is not None
    assert read.table.numbers["samples"].tolist() == [42_000]


def test_the_sheet_called_clients_or_the_first() -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(HEAD, NORTH)))
    book.active.title = "Numbers"
    book.create_sheet("Other").append(["x"])
    read = read_clients(saved(book))
    assert read.problems == ()
    assert read.notes == (
        "has 2 sheets, none of them called 'clients'; the first was read, 'Numbers'",
    )
    book.move_sheet("Numbers", 1)
    book["Numbers"].title = "Clients"
    assert read_clients(saved(book)).notes == ()


def test_problems_of_rows_and_headings() -> None:
    assert problems(workbook(["Hospital", "Cases", "Worth"], ["A", 1, 1])) == [
        "c.xlsx: row 1: I don't know the column 'Worth'; is it one of 'valuation', "
        "'cost_per_sample'? Then call it that",
    ]
    assert problems(workbook(HEAD[:3], ["A", 1, 1])) == [
        "c.xlsx: row 1: column 'cost_per_sample' is missing (or chip, cycles_per_sample and hertz)"
    ]
    assert problems(workbook([*HEAD, "Member"], NORTH)) == [
        "c.xlsx: cell F1: the columns 'Hospital' and 'Member' both mean name; keep one"
    ]
    assert problems(workbook(HEAD, NORTH, NORTH)) == [
        "c.xlsx cell A3, name: 'North' is the name of the client on row 2 already"
    ]
    assert problems(workbook()) == ["c.xlsx: is empty; its first line must name the columns"]
    assert problems(workbook(HEAD)) == ["c.xlsx: has no clients; a consortium needs at least one"]
    assert problems(workbook(HEAD, [datetime.date(2026, 1, 31), 5, 3, 1, 0.9])) == [
        "c.xlsx cell A2, name: is a date or a time; write it as a number or as text"
    ]


def test_damaged_and_oversized_files(monkeypatch: pytest.MonkeyPatch) -> None:
    data = workbook(HEAD, NORTH)
    assert problems(data[:2000])[0].startswith("c.xlsx: cannot be read as XLSX: ")
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("a.txt", "not a workbook")
    not_excel = "c.xlsx: is not a workbook of Excel; save it as XLSX or as CSV"
    assert problems(empty.getvalue()) == [not_excel]
    monkeypatch.setattr("fedaccord.files.workbook._UNPACKED", 1000)
    assert problems(data) == ["c.xlsx: is too large: it unpacks to more than 0 MB"]


def test_a_consortium_with_clients_in_a_workbook(tmp_path: Path) -> None:
    toml = 'rounds = 5\ndiscount_factor = 0.9\nclients = "clients.xlsx"\n'
    (tmp_path / "c.toml").write_text(toml)
    (tmp_path / "clients.xlsx").write_bytes(workbook(HEAD, NORTH))
    consortium = fa.load_consortium(tmp_path / "c.toml")
    assert consortium.names == ("North",)
    np.testing.assert_array_equal(consortium.samples, [42_000])


# --- XLS and ODS ---------------------------------------------------------------------------

XLS = (Path(__file__).parent / "clients.xls").read_bytes()
"""Two sheets; the second is called "Clients " and has a table from B2 on."""


def ods(*rows: str) -> bytes:
    """A spreadsheet as LibreOffice packs it, with these rows in its only sheet."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<office:document-content {spaces} office:version="1.3"><office:body>'
        f'<office:spreadsheet><table:table table:name="Clients">{"".join(rows)}'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return file.getvalue()


def ods_row(*values: Any, more: str = "") -> str:
    cells = [
        f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        if isinstance(value, str)
        else f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        for value in values
    ]
    return f"<table:table-row{more}>{''.join(cells)}</table:table-row>"


def test_a_file_of_an_old_excel() -> None:
    read = read_clients(XLS, "c.xls")
    assert read.table is not None
    assert read.table.names == ["Nord", "Süd"]
    assert read.table.currency == "EUR"
    assert read.table.numbers["samples"].tolist() == [42_000, 30_000]
    assert list(map(str, read.problems)) == [
        "c.xls cell D4, valuation: must be a number, got 'true' (Süd)",
        "c.xls cell F4, discount_factor: is a date or a time; write it as a number or as text "
        "(Süd)",
    ]


def test_a_file_of_libreoffice() -> None:
    many = ' table:number-rows-repeated="1048000"'
    end = f"<table:table-row{many}><table:table-cell/></table:table-row>"
    data = ods(ods_row(*HEAD), ods_row(*NORTH), ods_row("South", "30 000", 5, 1, "#N/A"), end)
    read = read_clients(data, "c.ods")
    assert read.table is not None
    assert read.table.names == ["North", "South"]
    assert read.table.numbers["samples"].tolist() == [42_000, 30_000]
    assert list(map(str, read.problems)) == [
        "c.ods cell E3, discount_factor: has the error '#N/A' (South)"
    ]


TOO_FAR = (
    "cannot be read as XLS or ODS: it is damaged, has a password, or has cells too far apart; "
    "save the sheet as XLSX or as CSV"
)


@pytest.mark.slow
def test_a_small_file_of_libreoffice_with_very_many_cells() -> None:
    everywhere = ' table:number-rows-repeated="1048576"'
    wide = '<table:table-cell table:number-columns-repeated="16383"/>'
    far = ods_row("x").replace("<table:table-cell ", f"{wide}<table:table-cell ", 1)
    gap = f"<table:table-row{everywhere}><table:table-cell/></table:table-row>"
    rows = (ods_row(*HEAD), ods_row(*NORTH))
    assert list(map(str, read_clients(ods(*rows, gap, far), "c.ods").problems)) == [
        f"c.ods: {TOO_FAR}"
    ]
    assert list(map(str, read_clients(ods(*rows, ods_row("x", more=everywhere))).problems)) == [
        TOO_MANY.format("has more than 100,000 rows")
    ]


@pytest.mark.slow
def test_a_file_of_an_old_excel_with_cells_far_apart() -> None:
    far = XLS.replace(b"\x03\x02\x0e\x00\x02\x00\x04\x00", b"\x03\x02\x0e\x00\xff\xff\xff\x00")
    assert far != XLS
    assert list(map(str, read_clients(far).problems)) == [TOO_FAR]


def test_damaged_files_of_an_old_excel_and_libreoffice() -> None:
    for data in (XLS[:300], ods("<broken")):
        assert list(map(str, read_clients(data).problems)) == [TOO_FAR]


@pytest.mark.slow
def test_a_damaged_file_that_is_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedaccord.files.workbook._SECONDS", 1)
    assert list(map(str, read_clients(XLS[:3000]).problems)) == [TOO_FAR]


def test_without_openpyxl(monkeypatch: pytest.MonkeyPatch) -> None:
    data = workbook(HEAD, NORTH)
    monkeypatch.setattr("fedaccord.checks.is_installed", lambda _: False)
    with pytest.raises(fa.FedaccordError) as caught:
        read_clients(data)
    assert str(caught.value) == (
        "an XLSX file needs openpyxl: pip install 'fedaccord[spreadsheets]'"
    )
    with pytest.raises(fa.FedaccordError, match="an XLS or ODS file needs python-calamine: "):
        read_clients(XLS)
