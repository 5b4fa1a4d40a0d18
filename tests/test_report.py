"""The HTML page: self-contained, correct, and safe with any names."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.files.provenance import Note, Provenance, Source
from fedaccord.numbers import write
from fedaccord.repeated.match import play
from fedaccord.repeated.strategies import AnyStrategy, DeviateOnce, FreeRide, Selfish
from fedaccord.repeated.tolerance import find_tolerance
from fedaccord.report import Origin, render_account, render_report
from fedaccord.summaries.clients import choose_clients
from fedaccord.summaries.match import account_of

NASTY = (
    "<script>alert(1)</script>",
    "$x^2$ $",
    "--> & \"quoted\" 'names'",
    "医院 é",
    "</svg><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %}",
)


class Tags(HTMLParser):
    """Counts the tags, and collects attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: dict[str, int] = {}
        self.closed: dict[str, int] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened[tag] = self.opened.get(tag, 0) + 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        self.closed[tag] = self.closed.get(tag, 0) + 1

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(agreement: fa.Agreement) -> str:
    return render_report(fa.certify(agreement))


@pytest.mark.slow
def test_the_story_of_the_example() -> None:
    text = Tags(page_of(fa.solve_agreement(example_consortium()))).text
    for words in (
        "Breast imaging, six hospitals",
        "An agreement that holds, with 2.20 times the data",
        "3 of 6 members would contribute nothing",
        "110,814 samples, 2.20 times as many",
        "All 6 members would pay less than without the agreement",
        "Proved: no member gains by slipping",
        "Why it holds",
        f"fedaccord {fa.__version__}",
        "by reversion for ever",
    ):
        assert words in " ".join(text.split())


def look_of(page: str) -> list[str]:
    """The colours of the boxes with verdicts."""
    return re.findall(r'class="verdict ([a-z ]+)"', page)


@pytest.mark.slow
def test_the_report_stands_alone() -> None:
    agreement = fa.solve_agreement(example_consortium(), punishment="suspension", margin=0.01)
    notes = (Note("St Mary", "valuation", "640_000", 'interview: <b>500 cases</b> & "more"'),)
    source = Source("consortium.toml", "ab" * 32)
    origin = Origin("2026-05-04", Provenance((source,), notes))
    page = render_report(fa.certify(agreement), origin=origin)
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
    for words in (
        "2026-05-04",
        f"consortium.toml, SHA-256 {'ab' * 32}",
        'St Mary valuation = 640_000 interview: <b>500 cases</b> & "more"',
        "Currency EUR",
        "A slot is 1 month",
        "The law of the loss is the paper's, 1/sqrt(X G) + 1/G: it is assumed",
        "What would break it Untrue statements: a member that states a lower valuation",
        "Counts that nobody verifies",
        "A model that does not age",
        "Worth signing: all members together save 480.04 EUR in a slot, 5,760 EUR a year",
        "Saved in a slot, EUR 480.04 5,760 EUR a year",
        "Signatures By signing, each member agrees",
        "Lakeside Clinic name, date, signature",
    ):
        assert words in text
    assert text.count("name, date, signature") == 6


@pytest.mark.slow
def test_only_what_is_worth_it_for_everybody_is_green() -> None:
    hospitals = example_consortium()
    kind = {"punishment": "suspension", "margin": 0.01}
    cents = fa.solve_agreement(hospitals, **kind)  # type: ignore[arg-type]
    assert look_of(page_of(cents)) == ["holds doubtful"]  # half a euro for Lakeside
    rich = fa.Consortium(
        valuation=[9e6] * 6, cost_per_sample=1.0, samples=2e4, rounds=50, discount_factor=0.9,
        currency="EUR", slot="1 month",
    )  # fmt: skip
    assert look_of(page_of(fa.solve_agreement(rich, **kind))) == ["holds"]  # type: ignore[arg-type]
    edge = fa.solve_agreement(rich, objective="most data", punishment="reversion")
    assert fa.certify(edge).slack.min() < 1e-6
    assert look_of(page_of(edge)) == ["holds doubtful", "holds doubtful"]


def test_everyone_gives_all_is_shown_as_good_news() -> None:
    small = fa.Consortium(
        valuation=[1e6, 2e6], cost_per_sample=1e-6, samples=10, rounds=50, discount_factor=0.9
    )
    page = page_of(fa.solve_agreement(small))
    assert look_of(page) == ["holds"]
    assert "Everyone trains on all it has, without an agreement" in page
    assert "Signatures" not in page


@pytest.mark.slow
def test_suspension_in_the_report() -> None:
    agreement = fa.solve_agreement(example_consortium(), punishment="suspension")
    text = " ".join(Tags(page_of(agreement)).text.split())
    for words in (
        "whoever does gets no model for 1 slot and trains alone, while the other members go on",
        "In any one slot nothing could cost it more",
        "What is assumed, not proved",
        "21.8 % of the agreed data",
        "by suspension for 1 slot",
    ):
        assert words in text


@pytest.mark.slow
def test_the_page_is_self_contained() -> None:
    page = page_of(fa.solve_agreement(example_consortium()))
    tags = Tags(page)
    assert tags.opened["svg"] == 3
    assert not {"script", "link", "img", "iframe", "object"} & tags.opened.keys()
    links = [value for name, value in tags.attributes if name in ("href", "src", "xlink:href")]
    assert all(value is not None and value.startswith("#") for value in links)
    assert not re.search(r"url\((?!#)|@import", page)


@pytest.mark.slow
def test_the_pictures_do_not_share_identifiers() -> None:
    tags = Tags(page_of(fa.solve_agreement(example_consortium())))
    ids = [value for name, value in tags.attributes if name == "id"]
    assert ids
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_names_are_escaped_and_shown_in_full() -> None:
    consortium = fa.Consortium(
        valuation=np.linspace(1, 3, len(NASTY)),
        cost_per_sample=1e-6,
        samples=500,
        rounds=50,
        discount_factor=0.8,
        name=NASTY[0],
        names=NASTY,
    )
    for profile in (np.full(6, 500.0), np.zeros(6)):
        page = page_of(fa.agreement_on(consortium, profile))
        tags = Tags(page)
        assert not {"script", "img"} & tags.opened.keys()
        assert not any(name.startswith("on") for name, _ in tags.attributes)
        assert tags.opened["table"] == tags.closed["table"]
        assert tags.opened["svg"] == tags.closed["svg"] == 3
        for name in NASTY:  # once in the table, once in each picture
            assert tags.text.count(name) >= 4


@pytest.mark.slow
def test_a_refuted_profile() -> None:
    consortium = example_consortium()
    text = Tags(page_of(fa.agreement_on(consortium, consortium.samples))).text
    assert "This profile would not hold" in text
    assert "Refuted, with reversion for ever: 1 of 6 members would slip, Lakeside" in text
    assert "Who would slip" in text
    assert "Why it does not hold" in text


def test_no_agreement() -> None:
    consortium = fa.paper_consortium(discount_factor=0.3)
    text = Tags(page_of(fa.solve_agreement(consortium, "uniform"))).text
    assert "No uniform agreement exists from client-2 on" in text
    assert "not patient enough" in text
    assert "Proved" not in text


@pytest.mark.slow
def test_without_an_agreement_the_page_does_not_mention_one() -> None:
    consortium = fa.paper_consortium(discount_factor=0.5)
    assert fa.solve_agreement(consortium, "individual").exists  # so one exists
    page = page_of(fa.solve_agreement(consortium, "uniform"))
    tags = Tags(page)
    assert tags.opened["svg"] == 1
    for words in ("agreement: ", "no agreement to better", "is asked to", "How patient", "Saving"):
        assert words not in tags.text
    assert "equilibrium: free rider" in tags.text
    assert "first converted: the paper's client" in tags.text
    feasible = page_of(fa.solve_agreement(consortium, "uniform", first_converted="feasible"))
    assert "first converted: the first that works" in feasible


def test_one_client() -> None:
    consortium = fa.Consortium(
        valuation=1, cost_per_sample=1e-6, samples=[500], rounds=50, discount_factor=0.5
    )
    text = Tags(page_of(fa.solve_agreement(consortium))).text
    assert "of 1 member" in text
    assert "1 members" not in text


@pytest.mark.slow
def test_a_hundred_thousand_clients_fit_on_a_small_page() -> None:
    page = page_of(fa.solve_agreement(fa.paper_consortium(clients=100_000)))
    assert len(page) < 2_000_000
    [listed] = re.findall(r"(\d+) of 100,000 members, spread evenly", page)
    assert 290 <= int(listed) <= 300  # a client may be chosen for two reasons
    assert f"{100_000 - int(listed):,} are left out" in page


def test_the_most_relevant_clients_are_listed() -> None:
    consortium = fa.paper_consortium(clients=1000)
    agreement = fa.solve_agreement(consortium, "uniform")
    certificate = fa.certify(agreement)
    chosen = [consortium.names[n] for n in choose_clients(certificate, 20)]
    assert len(chosen) <= 20
    assert agreement.first_converted in chosen
    assert agreement.equilibrium.critical_client in chosen
    assert certificate.worst_client in chosen
    assert {"client-1", "client-1000"} <= set(chosen)
    assert choose_clients(certificate, 1000) == list(range(1000))

    everyone_slips = fa.certify(fa.agreement_on(consortium, np.zeros(1000)))
    chosen_of_slipping = choose_clients(everyone_slips, 20)
    assert len(chosen_of_slipping) <= 20
    assert everyone_slips.worst in chosen_of_slipping


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([50396.84, 110814.2], ["50,397", "110,814"]),
        ([0.0, -0.0], ["0", "0"]),
        ([5.0, 3.25], ["5.000", "3.250"]),
        ([1e-5, -2e-9], ["0.00001000", "0.00000000"]),
        ([float("inf"), 12.0], ["–", "12"]),
        ([-0.4, 123456.0], ["0", "123,456"]),
    ],
)
def test_how_numbers_are_written(values: list[float], expected: list[str]) -> None:
    assert write(values) == expected


# --- A match -------------------------------------------------------------------------------


def match_page(
    agreement: fa.Agreement, strategies: dict[str, AnyStrategy], slots: int = 20, **chance: float
) -> str:
    best = find_tolerance(agreement, chance["noise"]) if "noise" in chance else None
    match = play(agreement, strategies, slots, **chance)  # type: ignore[arg-type]
    return render_account(account_of(match, best))


@pytest.mark.slow
def test_the_story_of_a_slip() -> None:
    agreement = fa.solve_agreement(example_consortium(), punishment=fa.Reversion(5), margin=0.02)
    page = match_page(agreement, {"Lakeside Clinic": DeviateOnce(5)}, noise=1e-3, tolerance=0.1)
    tags = Tags(page)
    text = " ".join(tags.text.split())
    for words in (
        "Lakeside Clinic slipped, and lost by it",
        "An individual agreement on ",
        "Slots 1-5 cooperating, 6-10 punishing, 11-20 cooperating.",
        "slot 5: Lakeside Clinic trained on 0 instead of",
        "False alarms: none.",
        "What slipping cost Lakeside Clinic.",
        "Which shortfall to tolerate.",
        f"fedaccord {fa.__version__}",
    ):
        assert words in text
    assert tags.opened["svg"] == tags.closed["svg"] == 4
    assert not {"script", "link", "img", "iframe", "object"} & tags.opened.keys()
    ids = [value for name, value in tags.attributes if name == "id"]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_a_match_of_nasty_names() -> None:
    consortium = fa.Consortium(
        valuation=np.linspace(1, 3, len(NASTY)),
        cost_per_sample=1e-6,
        samples=500,
        rounds=50,
        discount_factor=0.8,
        name=NASTY[0],
        names=NASTY,
    )
    agreement = fa.agreement_on(consortium, np.full(6, 400.0), punishment=fa.Reversion(3))
    everyone: dict[str, AnyStrategy] = dict.fromkeys(NASTY, DeviateOnce(4))
    tags = Tags(match_page(agreement, everyone))
    assert not {"script", "img"} & tags.opened.keys()
    assert not any(name.startswith("on") for name, _ in tags.attributes)
    for name in NASTY:
        assert name in tags.text


@pytest.mark.slow
def test_titles_of_matches() -> None:
    consortium = example_consortium()
    agreement = fa.solve_agreement(consortium)
    assert "<h1>20 slots in which everyone kept to the agreement</h1>" in match_page(agreement, {})
    both: dict[str, AnyStrategy] = {"Lakeside Clinic": FreeRide(), "Riverside": Selfish()}
    assert "<h1>2 members slipped in 20 slots</h1>" in match_page(agreement, both)
    none = fa.solve_agreement(fa.paper_consortium(discount_factor=0.3), "uniform")
    page = match_page(none, {}, dropout=0.1)
    assert (
        "<h1>No uniform agreement exists from client-2 on, so everyone acts selfishly</h1>" in page
    )
    assert "There is nothing to keep to" in page


@pytest.mark.slow
def test_a_slip_just_before_another_punishment_gains() -> None:
    agreement = fa.solve_agreement(example_consortium(), punishment=fa.Reversion(5), margin=0.02)
    unseen: dict[str, AnyStrategy] = {"Lakeside Clinic": DeviateOnce(5, amount=10_000.0)}
    page = match_page(agreement, unseen, tolerance=0.1)
    assert "<h1>Lakeside Clinic slipped, and gained by it</h1>" in page
