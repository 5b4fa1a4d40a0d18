"""The table of cheats and levels in docs/explanation/audited-training.md.

    python -m tests.audits.table

writes it; a test fails when it is out of date.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedaccord.mechanisms.detection.methods import Ecod
from fedaccord.numbers import FloatArray
from tests.audits.cheats import CHEATS, Member, incoming, records_of
from tests.audits.odds import found_when_opened, found_when_replayed

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "audited-training.md"
BEGIN, END = "<!-- cheats: begin -->\n", "<!-- cheats: end -->\n"
SEEDS, HONEST = 10, 19
"""How often the statistics are tried, each time beside other honest members."""
TURN = 1


def table() -> str:
    """The table, as Markdown.

    For the statistics: how often the detector ranks the member first, told that there is one cheat
    among twenty.
    """
    lines = [
        "| cheat | opening | replay of a round with the cheat | statistics (ECOD) |",
        "|---|---|---|---|",
    ]
    others = [_honest(seed) for seed in range(SEEDS)]
    named = _ranked_first(_moved(Member()), others)
    lines.append(f"| none: it is honest | passed | passed | {named} of {SEEDS} |")
    for cheat, member in CHEATS.items():
        count = _ranked_first(_moved(member), others)
        level1 = _in_words(found_when_opened(cheat))
        assert found_when_replayed(cheat) > 0
        lines.append(f"| {cheat} | {level1} | found | {count} of {SEEDS} |")
    return "\n".join(lines) + "\n"


def _in_words(probability: float) -> str:
    return {0.0: "not found", 1.0: "found"}.get(probability, f"found with {probability:.0%}")


def _honest(seed: int) -> FloatArray:
    first = 100 + HONEST * seed
    members = [Member(records=records_of(first + n)) for n in range(HONEST)]
    return np.array([_moved(member) for member in members])


def _moved(member: Member) -> FloatArray:
    """How a member's update moves the model, as one row."""
    sent, came = member.sent(TURN), incoming(TURN)
    return np.concatenate([(sent[name] - came[name]).ravel() for name in came])


def _ranked_first(cheat: FloatArray, others: list[FloatArray]) -> int:
    found = 0
    for honest in others:
        updates = np.vstack([cheat, honest])
        scores = Ecod().fit(updates).scores(updates)
        found += int(np.argmax(scores) == 0)
    return found


def on_page() -> str:
    """The table that the page has now."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def cells(text: str) -> Iterator[list[str]]:
    """The rows of a table without its head."""
    for line in text.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
