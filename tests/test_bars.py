"""Bars as SVG, written directly: well-formed, named, and of the right lengths."""

from xml.etree import ElementTree

import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.plots.bars import Bar, contribution_bars, draw_bars, patience_bars

SVG = "{http://www.w3.org/2000/svg}"


def widths(svg: str, fill: str) -> list[float]:
    root = ElementTree.fromstring(svg)
    rects = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == fill]
    return [float(str(rect.get("width")).rstrip("%")) for rect in rects]


def test_lengths_are_in_proportion() -> None:
    bars = [Bar("a", 4.0, 1.0, "4"), Bar("b", 2.0, 0.0, "2"), Bar("c", 0.0, 4.0, "0")]
    svg = draw_bars(bars, key="k", title="t", description="d")
    assert widths(svg, "#0072b2") == pytest.approx([46, 23])
    assert widths(svg, "none") == pytest.approx([11.5, 46])


def test_it_has_a_title_and_a_description() -> None:
    root = ElementTree.fromstring(draw_bars([], key="k", title="A < B", description="d"))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "k-title k-about"
    assert [child.text for child in root] == ["A < B", "d"]


def test_names_cannot_break_it() -> None:
    for name in ('</text><script>"', "<b>&\"'"):
        svg = draw_bars([Bar(name, 1.0, 1.0, "1")], key="k", title="t", description="d")
        texts = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        assert texts == [name, "1"]


def test_a_long_name_has_two_lines_and_its_row_is_higher() -> None:
    bars = [Bar("North", 1.0, 1.0, "1"), Bar("University Hospital", 1.0, 1.0, "1")]
    root = ElementTree.fromstring(draw_bars(bars, key="k", title="t", description="d"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["North", "1", "University", "Hospital", "1"]
    assert root.get("height") == str(24 + 24 + 14)
    long = draw_bars([Bar("L" * 200, 1.0, 1.0, "1")], key="k", title="t", description="")
    assert len(list(ElementTree.fromstring(long).iter(f"{SVG}text"))) == 3


def test_it_needs_no_style_sheet() -> None:
    certificate = fa.certify(fa.solve_agreement(example_consortium()))
    chosen = range(6)
    for svg in (
        contribution_bars(certificate.agreement, chosen, "a"),
        patience_bars(certificate, chosen, "b"),
    ):
        assert "style" not in svg
        assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}g"))) == 6


def test_a_patience_that_nobody_has_is_the_longest_bar() -> None:
    consortium = example_consortium()
    refuted = fa.certify(fa.agreement_on(consortium, 0.0 * consortium.samples))
    svg = patience_bars(refuted, range(6), "b")
    assert max(widths(svg, "#b3261e")) == pytest.approx(46)
    assert "none is enough" in svg
