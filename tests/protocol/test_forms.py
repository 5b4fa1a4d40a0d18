"""Records and statements in the one form that is hashed: the quick way is the plain one."""

from hypothesis import given
from hypothesis import strategies as st

from fedaccord.protocol import messages
from fedaccord.signing.canonical import canonical
from fedaccord.signing.statement import PREFIX, Statement

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(
    statement=st.builds(
        Statement,
        role=st.sampled_from(["server", "client"]),
        consortium=TEXT,
        terms=DIGESTS,
        slot=st.integers(0),
        stage=st.sampled_from(["report", "train"]),
        turn=st.integers(0),
        client=st.none() | TEXT,
        head=st.tuples(st.integers(0), DIGESTS),
        body=st.dictionaries(TEXT, TEXT | st.integers() | st.none()),
        previous=DIGESTS,
    )
)
def test_a_statement_is_canonical_json(statement: Statement) -> None:
    fields = statement._asdict() | {"head": list(statement.head)}
    assert statement.content.decode() == PREFIX + canonical(fields)


@given(contribution=st.integers(0, 10**12), above=st.none() | st.integers(0, 10**12))
def test_the_body_of_plain_records_is_their_json(contribution: int, above: int | None) -> None:
    training = messages.AskedTraining(basis="agreement", contribution=contribution, model="0" * 64)
    placed = messages.AskedRank(rank=1, clients=2, above=above, tied=None)
    for record in (training, placed):
        assert record.plain
        assert record.body == record.model_dump(mode="json", exclude_defaults=True)
    assert not messages.AskedReport.plain
    assert not messages.ReportAnswer.plain
