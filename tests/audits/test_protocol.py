"""Audits from the terms to the punishment, with members that have directories of their own."""

import json
from pathlib import Path
from typing import Any

import pytest

from fedaccord.flower.client_file import FileClient, FileTraining
from fedaccord.protocol.parameters import Arrays
from tests.audits.consortium import Consortium
from tests.cli.conftest import Run


def trains_on_less(client: FileClient) -> None:
    """Train on one sample less than said, in every round."""
    honest = client._from_files

    def from_files() -> Any:
        file, participant = honest()
        training = participant._audited
        assert isinstance(training, FileTraining)
        train = training.member.train

        def less(inputs: Any, parameters: Arrays) -> Arrays:
            fewer = inputs.model_copy(update={"amount": inputs.amount - 1})
            from fedaccord.audits.replay import train_round
            from fedaccord.flower.local import local_steps

            train(inputs, parameters)  # its trace looks as it should
            steps = local_steps(training.terms)
            return train_round(training.model, steps, fewer, parameters)

        training.train = less  # type: ignore[method-assign]
        return file, participant

    client._from_files = from_files  # type: ignore[method-assign]


@pytest.fixture
def played(tmp_path: Path) -> Consortium:
    """One slot, in which West cheats and everyone is drawn."""
    consortium = Consortium(tmp_path, {"West": trains_on_less})
    consortium.play(1)
    return consortium


def audit(run: Run, consortium: Consortium, name: str, auditor: str = "Notary") -> Any:
    home = consortium.folder
    return run(
        *("audit", "run", str(consortium.file(name)), str(consortium.ledger)),
        *("--auditor", auditor, "--key", str(consortium.auditor_key(auditor))),
        *("--verdict", str(home / f"{name}-{auditor}.json")),
    )


def test_honest_members_pass_and_a_cheat_is_suspended(played: Consortium, run: Run) -> None:
    drawn = json.loads(run("audit", "draw", str(played.ledger), "--format", "json").stdout)
    assert [one["client"] for one in drawn["slots"][0]["audits"]] == ["North", "South", "West"]
    codes = {name: audit(run, played, name).exit_code for name in ("North", "South", "West")}
    assert codes == {"North": 0, "South": 0, "West": 1}
    for name in codes:
        verdict = str(played.folder / f"{name}-Notary.json")
        assert run("audit", "submit", str(played.ledger), verdict).exit_code == 0
    server = played.play(2)
    assert list(server.state.current.out) == ["West"]
    verified = run("ledger", "verify", str(played.ledger), "--format", "json")
    assert json.loads(verified.stdout)["holds"]
    assert server.state.current.contributed.keys() == {"North", "South"}
