"""Documents in sections: Markdown for a site, one HTML page for everyone else."""

from matplotlib.figure import Figure

from fedaccord.report.document import (
    Commands,
    Document,
    Picture,
    Points,
    Section,
    Slider,
    Table,
    as_markdown,
    as_page,
)

NASTY = "<b>Clinic | 1</b>"


def document() -> Document:
    table = Table(("Times", "Saved"), (("0.5", "10"), ("1", "20"), ("2", NASTY)), "In EUR.")
    parts = (
        "One paragraph.",
        Points(("First.", "Second.")),
        table,
        Slider("How many times", table, start=1),
        Picture("a-picture", ("What it shows.", "And more."), Figure()),
        Commands(("fedaccord study four-hospitals",)),
    )
    return Document("A title", "What matters.", (Section("A section", parts),), "Case study")


def test_markdown_has_everything_once() -> None:
    text = as_markdown(document(), "images/")
    assert text.startswith(
        "# A title\n\nWhat matters.\n\n## A section\n\nOne paragraph.\n\n- First.\n- Second.\n"
    )
    assert "| Times | Saved |\n|---|---|\n| 0.5 | 10 |" in text
    assert "![What it shows.](images/a-picture.png)" in text
    assert "<b>Clinic \\| 1</b>" in text  # a bar in a cell does not end it
    assert "<!-- skip: next -->\n\n```console\n$ fedaccord study four-hospitals\n```" in text
    assert text.count("How many times:") == 1


def test_the_page_is_whole_without_javascript_and_escapes_text() -> None:
    page = as_page(document())
    assert page.count("<td") == 12  # both tables in full; the script hides rows later
    assert "&lt;b&gt;Clinic | 1&lt;/b&gt;" in page
    assert "<b>Clinic" not in page
    assert 'data-start="1"' in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_pictures_are_listed() -> None:
    assert [picture.name for picture in document().pictures] == ["a-picture"]
