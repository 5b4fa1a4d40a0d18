"""Names that are written from right to left do not turn sentences around."""

import pytest

from fedaccord.report.directions import isolate

NORTH, SOUTH = "צפון", "דרום"


@pytest.mark.parametrize(
    ("page", "isolated"),
    [
        ("<p>North: 0.5</p>", "<p>North: 0.5</p>"),
        (f"<p>{NORTH} 0.5 to 2</p>", f"<p><bdi>{NORTH}</bdi> 0.5 to 2</p>"),
        (f"<li>{NORTH}, {SOUTH}</li>", f"<li><bdi>{NORTH}</bdi>, <bdi>{SOUTH}</bdi></li>"),
        (f"{NORTH} and {SOUTH}", f"<bdi>{NORTH}</bdi> and <bdi>{SOUTH}</bdi>"),
        (f"{NORTH}. {SOUTH} waits", f"<bdi>{NORTH}</bdi>. <bdi>{SOUTH}</bdi> waits"),
        (f"{NORTH} 12 ({SOUTH}): 3", f"<bdi>{NORTH} 12 ({SOUTH})</bdi>: 3"),
        (f"{NORTH}&#39;{SOUTH}", f"<bdi>{NORTH}&#39;{SOUTH}</bdi>"),
        ("مستشفى الشمال", "<bdi>مستشفى الشمال</bdi>"),
    ],
)
def test_names_in_sentences(page: str, isolated: str) -> None:
    assert isolate(page) == isolated


@pytest.mark.parametrize("element", ["bdi", "title", "textarea", "option", "script", "svg"])
def test_what_isolates_itself_or_takes_no_elements_is_left_alone(element: str) -> None:
    inside = f'<{element} id="x">1 < 2 {NORTH}</{element}>'
    assert isolate(f"{inside} {NORTH}") == f"{inside} <bdi>{NORTH}</bdi>"


def test_attributes_are_left_alone() -> None:
    page = f'<a title="{NORTH}, {SOUTH}">a</a>'
    assert isolate(page) == page
