"""A rehearsal's server gets the test examples of its data set; otherwise it has none."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI

from fedaccord.console.room.founding import FoundingForm, read_form, write_server
from fedaccord.flower.local import evaluation
from fedaccord.flower.running import own_examples
from fedaccord.flower.server_app import first_model
from tests.console.ledgers import logged_in, room_at

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize("dataset", ["digits", "breast-cancer"])
def test_a_rehearsal_comes_with_test_examples(tmp_path: Path, dataset: str) -> None:
    founded = read_form(FoundingForm(name="Two", members="a\nb", dataset=dataset))
    write_server(tmp_path / "app", founded, NOW)
    examples = tmp_path / "app" / own_examples(tmp_path / "app")
    score = evaluation(examples, founded.terms)(first_model(founded.terms))
    assert score is not None
    assert score.measure == "accuracy"


def test_members_with_their_own_examples_leave_the_server_without(tmp_path: Path) -> None:
    form = FoundingForm(name="Two", members="a\nb", dataset="own", shape="13", classes="2")
    write_server(tmp_path / "app", read_form(form), NOW)
    assert own_examples(tmp_path / "app") == ""


def test_the_page_says_whether_the_server_measures(tmp_path: Path) -> None:
    app: FastAPI
    app, ledger = room_at(tmp_path)
    client = logged_in(app)
    assert "With a file of test examples" in client.get("/run").text
    (ledger.parent / "test.csv").write_text("")
    assert "the test examples in <code>test.csv</code>" in client.get("/run").text
    app.state.room.close()
