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


def names(svg: str, width: str) -> list[list[str | None]]:
    """The lines of each name on a narrow or a wide screen."""
    hidden = "roomy" if width == "narrow" else "narrow"
    found = []
    for row in ElementTree.fromstring(svg).findall(f"{SVG}g"):
        [name] = row.findall(f"{SVG}svg")
        for group in name.findall(f"{SVG}g"):
            assert (group.get("display") == "none") == (group.get("class") == "roomy")
            if group.get("class") == hidden:
                name.remove(group)
        found.append([text.text for text in name.iter(f"{SVG}text")])
    return found


def test_a_longer_name_has_two_lines_only_where_there_is_no_room_for_one() -> None:
    called = ["North", "University Hospital", "University Hospital of the whole North"]
    svg = draw_bars(
        [Bar(name, 1.0, 1.0, "1") for name in called], key="k", title="t", description="d"
    )
    assert names(svg, "narrow") == [
        ["North"],
        ["University", "Hospital"],
        ["University", "Hospital of the…"],
    ]
    assert names(svg, "roomy") == [
        ["North"],
        ["University Hospital"],
        ["University Hospital of the", "whole North"],
    ]
    assert ElementTree.fromstring(svg).get("height") == str(24 + 30 + 30)
    long = draw_bars([Bar("L" * 200, 1.0, 1.0, "1")], key="k", title="t", description="")
    assert [[len(line or "") for line in each] for each in names(long, "narrow")] == [[16, 16]]


def test_it_needs_no_style_sheet() -> None:
    certificate = fa.certify(fa.solve_agreement(example_consortium()))
    chosen = range(6)
    for svg in (
        contribution_bars(certificate.agreement, chosen, "a"),
        patience_bars(certificate, chosen, "b"),
    ):
        assert "style" not in svg
        assert len(ElementTree.fromstring(svg).findall(f"{SVG}g")) == 6


def test_a_patience_that_nobody_has_is_the_longest_bar() -> None:
    consortium = example_consortium()
    refuted = fa.certify(fa.agreement_on(consortium, 0.0 * consortium.samples))
    svg = patience_bars(refuted, range(6), "b")
    assert max(widths(svg, "#b3261e")) == pytest.approx(46)
    assert "none is enough" in svg
