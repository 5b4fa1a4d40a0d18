"""Audits from the terms to the punishment, with members that have directories of their own."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from fedaccord.audits.replay import train_round
from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.trace import Trace
from fedaccord.audits.verdict import SignedVerdict, Verdict, sign_verdict
from fedaccord.errors import InvalidInput
from fedaccord.flower.audited import AuditedMember
from fedaccord.flower.client_file import FileClient, FileTraining
from fedaccord.flower.local import local_steps
from fedaccord.ledger.chain import START, Entry, extend
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.messages import Refusal, Suspended
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.terms import load_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.verification import look_over
from tests.audits.cheats import model_on, records_of
from tests.audits.consortium import Consortium, key_of
from tests.cli.conftest import Run


def trains_on_less(client: FileClient) -> None:
    """Train on one sample less than said, in every round."""
    honest = client._from_files

    def from_files() -> Any:
        read = honest()
        training = read.participant._audited
        assert isinstance(training, FileTraining)
        train = training.member.train

        def less(inputs: Any, parameters: Arrays) -> Arrays:
            fewer = inputs.model_copy(update={"amount": inputs.amount - 1})
            train(inputs, parameters)  # its trace looks as it should
            steps = local_steps(training.terms)
            return train_round(training.model, steps, fewer, parameters)

        training.train = less  # type: ignore[method-assign]
        return read

    client._from_files = from_files  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One slot, in which West cheats and everyone is drawn."""
    folder = tmp_path_factory.mktemp("three")
    Consortium(folder, {"West": trains_on_less}).play(1)
    return folder


@pytest.fixture
def played(original: Path, tmp_path: Path) -> Consortium:
    """The same, for each test to go on with."""
    copytree(original, tmp_path / "three")
    return Consortium(tmp_path / "three", {"West": trains_on_less})


def audit(run: Run, consortium: Consortium, name: str, auditor: str = "Notary") -> Any:
    home = consortium.folder
    return run(
        *("audit", "run", str(consortium.file(name)), str(consortium.ledger)),
        *("--auditor", auditor, "--key", str(consortium.auditor_key(auditor))),
        *("--verdict", str(home / f"{name}-{auditor}.json")),
    )


@pytest.mark.slow
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


def submit(run: Run, consortium: Consortium, name: str, auditor: str = "Notary") -> Any:
    verdict = consortium.folder / f"{name}-{auditor}.json"
    return run("audit", "submit", str(consortium.ledger), str(verdict))


def refuse(run: Run, consortium: Consortium, name: str, auditor: str) -> Any:
    return run(
        *("audit", "refused", str(consortium.ledger), name, "--reason", "the door was closed"),
        *("--auditor", auditor, "--key", str(consortium.auditor_key(auditor))),
        *("--verdict", str(consortium.folder / f"{name}-{auditor}.json")),
    )


@pytest.mark.slow
def test_an_auditors_error_is_appealed(played: Consortium, run: Run) -> None:
    assert refuse(run, played, "North", "Inspector").exit_code == 0
    assert "What stands: failed" in submit(run, played, "North", "Inspector").stdout
    assert audit(run, played, "North", "Notary").exit_code == 0
    assert "What stands: undecided" in submit(run, played, "North", "Notary").stdout
    assert audit(run, played, "North", "Institute").exit_code == 0
    assert "What stands: passed" in submit(run, played, "North", "Institute").stdout
    assert played.play(2).state.current.out == {}
    assert run("ledger", "verify", str(played.ledger)).exit_code == 0


@pytest.mark.slow
def test_a_verdict_comes_after_a_suspension_began(tmp_path: Path, run: Run) -> None:
    consortium = Consortium(tmp_path / "three", due=3)
    consortium.play(1)
    refuse(run, consortium, "North", "Inspector")
    submit(run, consortium, "North", "Inspector")
    assert list(consortium.play(2).state.current.out) == ["North"]
    refused = run(
        *("audit", "run", str(consortium.file("North")), str(consortium.ledger), "--slot", "1"),
        *("--auditor", "Notary", "--key", str(consortium.auditor_key("Notary"))),
        *("--verdict", str(consortium.folder / "North-Notary.json")),
    )
    assert refused.exit_code == 0
    submit(run, consortium, "North", "Notary")
    assert consortium.play(3).state.current.out == {}
    assert run("ledger", "verify", str(consortium.ledger)).exit_code == 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"outcome": "passed", "reason": ""}, "is not signed by Inspector"),
        ({"client": "South"}, "is not signed by Inspector|was not drawn"),
        ({"turn": 99}, "was not drawn"),
        ({"slot": 2}, "audits are over, or were never drawn"),
        ({"auditor": "Somebody"}, "Somebody is no auditor of the terms"),
        ({"auditor": "Notary"}, "is not signed by Notary"),
        ({"level": 1}, "the terms say level 2"),
        ({"draw": "0" * 64}, "is about another ledger"),
        ({"terms": "0" * 64}, "is about another ledger"),
        ({"reason": ""}, "a verdict has a reason unless it is passed"),
    ],
)
def test_a_forged_verdict_is_refused(
    played: Consortium, change: dict[str, Any], problem: str
) -> None:
    server = played.play(1)
    slot = server.state.audited[1]
    turn = next(one.turn for one in slot.draws if one.client == "North")
    verdict = Verdict(
        terms=slot.terms.digest,
        draw=slot.draw,
        client="North",
        slot=1,
        turn=turn,
        level=2,
        outcome="failed",
        reason="another update",
        auditor="Inspector",
    )
    right = sign_verdict(verdict, "Three", key_of("Inspector"))
    forged = SignedVerdict(verdict=verdict.model_copy(update=change), signature=right.signature)
    with open_ledger(played.ledger) as ledger:
        opened = Coordinator(None, ledger, key=key_of("server"))
        with pytest.raises(InvalidInput, match=problem):
            opened.submit_verdict(forged)
        opened.submit_verdict(right)
        with pytest.raises(InvalidInput, match="second verdict of this auditor"):
            opened.submit_verdict(right)


def test_a_suspension_without_a_signed_verdict_is_refused_by_members(played: Consortium) -> None:
    ask = next_question(played)
    told = ask.contents["South"]
    out = {"North": Suspended(slipped_in=1, slots_left=1)}
    framed = replace(ask, contents={"South": told.model_copy(update={"suspended": out})})
    with pytest.raises(Refusal, match="its own copy does not have"):
        played.clients["South"].answer(framed.body("South"), None)


def next_question(consortium: Consortium) -> Ask:
    with open_ledger(consortium.ledger) as ledger:
        ask = Coordinator(None, ledger, key=key_of("server")).next_ask(2)
    assert ask is not None
    return ask


def test_everyone_trains_by_seeds_of_the_ledger_and_commits(played: Consortium) -> None:
    with open_ledger(played.ledger) as ledger:
        entries = list(ledger.entries())
    presences = [entry for entry in entries if entry.kind == "presence"]
    assert all(entry.body["commitment"]["records"] == 60 for entry in presences)
    first = next(n for n, entry in enumerate(entries) if entry.kind == "contribution")
    for name in ("North", "South"):
        trace = Trace(played.folder / name / "audits" / "trace")
        assert {one.head for one in trace.rounds(1)} == {entries[first].previous}
    secret = played.folder / "North" / "audits" / "secret"
    assert secret.stat().st_mode & 0o077 == 0


def test_data_that_changed_and_a_lost_trace_show(played: Consortium, run: Run) -> None:
    data = played.folder / "South" / "data" / "South.npz"
    records = records_of(1, 60)
    labels = records.labels.copy()
    labels[0] = 1 - labels[0]
    np.savez(data, inputs=records.inputs, labels=labels)
    found = audit(run, played, "South")
    assert found.exit_code == 1
    assert "Failed: " in found.stdout
    (played.folder / "North" / "audits" / "trace" / "slot-1.jsonl").unlink()
    lost = audit(run, played, "North")
    assert lost.exit_code == 2
    assert "has no round" in lost.stderr


@pytest.mark.slow
def test_records_that_two_members_share_show(tmp_path: Path, run: Run) -> None:
    consortium = Consortium(tmp_path / "three")
    theirs = records_of(1, 60)  # those of South
    np.savez(
        consortium.folder / "North" / "data" / "North.npz",
        inputs=theirs.inputs,
        labels=theirs.labels,
    )
    consortium.play(1)
    key, digests = str(consortium.auditor_key("Notary")), str(tmp_path / "south.json")
    south, north = str(consortium.file("South")), str(consortium.file("North"))
    place = str(consortium.ledger)
    assert run("audit", "digests", south, place, digests, "--key", key).exit_code == 0
    found = run(
        *("audit", "run", north, place, "--auditor", "Notary", "--key", key, "--others", digests),
        *("--verdict", str(tmp_path / "verdict.json")),
    )
    assert found.exit_code == 1
    assert "100.0% of the records are also those of another member" in found.stdout


@pytest.mark.slow
def test_a_notarys_statement_is_attached_to_a_contribution(tmp_path: Path, run: Run) -> None:
    consortium = Consortium(tmp_path / "three", notary=True)
    consortium.play(1)
    place, north = str(consortium.ledger), str(consortium.file("North"))
    notary, paper = str(consortium.auditor_key("Inspector")), str(tmp_path / "paper")
    attached = str(tmp_path / "attached.json")
    assert run("audit", "notarise", place, "North", paper, "--key", notary).exit_code == 0
    attest = ("audit", "attest", north, place, attached, "--kind", "notary", "--evidence")
    assert run(*attest, paper).stdout.endswith("It holds.\n")
    assert "It holds" in run("audit", "submit", place, attached).stdout
    again = run("audit", "submit", place, attached)
    assert again.exit_code == 2
    assert "is there already" in again.stderr
    Path(paper).write_bytes(b"00" * 64)
    assert "proves nothing here: the notary did not sign" in run(*attest, paper).stdout
    assert run("audit", "submit", place, attached).exit_code == 0
    verified = run("ledger", "verify", place)
    assert verified.exit_code == 0
    assert "proves nothing here" in verified.stdout
    south = str(consortium.file("South"))
    run("audit", "notarise", place, "North", paper, "--key", notary)
    stolen = run("audit", "attest", south, place, attached, "--kind", "notary", "--evidence", paper)
    assert "the notary did not sign this contribution" in stolen.stdout


def test_the_tree_is_built_again_only_if_a_record_changed(played: Consortium) -> None:

    folder = played.folder / "fresh"
    records = records_of(3, 20)
    first = AuditedMember(model_on(records), played.terms, folder).commit()
    kept = folder / "commitment.json"
    before = kept.stat().st_mtime_ns
    assert AuditedMember(model_on(records), played.terms, folder).commit() == first
    assert kept.stat().st_mtime_ns == before
    labels = records.labels.copy()
    labels[0] = 1 - labels[0]
    changed = AuditedMember(model_on(replace(records, labels=labels)), played.terms, folder)
    assert changed.commit().root != first.root
    kept.write_text("damaged")
    assert AuditedMember(model_on(records), played.terms, folder).commit() == first


def test_a_commitment_does_not_wait_until_what_is_kept_of_it_is_on_disk(
    played: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = AuditedMember(model_on(records_of(3, 20)), played.terms, played.folder / "quick")
    assert member.secret  # which is on disk before anything is salted with it

    def wait(_: int) -> None:
        raise AssertionError("waits for the disk")

    monkeypatch.setattr("os.fsync", wait)
    member.commit()
    assert {path.name for path in member.folder.iterdir()} == {"secret", "commitment.json"}


@pytest.mark.parametrize(
    "audits",
    [
        {"per_slot": 1},
        {"probability": 0.25, "level": 1, "steps": True},
        {"probabilities": {"North": 0.5}, "attestations": {"notary": {"key": "some text"}}},
    ],
)
def test_terms_with_audits_are_written_as_they_are_read(
    played: Consortium, tmp_path: Path, audits: dict[str, Any]
) -> None:
    auditors = {"A notary": key_of("Notary").public}
    rules = AuditTerms.model_validate({"auditors": auditors, **audits})
    terms = played.terms.model_copy(update={"audits": rules})
    path = tmp_path / "terms.toml"
    path.write_text(terms_text(terms), encoding="utf-8")
    assert load_terms(path).digest == terms.digest


@pytest.mark.slow
def test_a_verification_goes_on_between_audits(played: Consortium, run: Run) -> None:
    verify = ("ledger", "verify", str(played.ledger), "--checkpoint", str(played.folder / "known"))
    assert run(*verify).exit_code == 0
    refuse(run, played, "North", "Inspector")
    submit(run, played, "North", "Inspector")
    assert run(*verify).exit_code == 0
    assert audit(run, played, "North", "Notary").exit_code == 0
    submit(run, played, "North", "Notary")
    played.play(2)
    assert run(*verify).exit_code == 0
    assert run("ledger", "verify", str(played.ledger)).exit_code == 0


def test_a_changed_verdict_shows(played: Consortium, run: Run) -> None:
    refuse(run, played, "North", "Inspector")
    submit(run, played, "North", "Inspector")
    with open_ledger(played.ledger) as ledger:
        entries = list(ledger.entries())
    place = next(n for n, entry in enumerate(entries) if entry.kind == "audit")
    body = entries[place].body
    body["verdict"] |= {"outcome": "passed", "reason": ""}
    head, chain = START, list[Entry]()
    for n, entry in enumerate(entries):
        fact = entry.fact._replace(body=body) if n == place else entry.fact
        chain += extend(head, [fact], entry.at)
        head = chain[-1].head
        if n == place:
            break
    (problem,) = look_over(chain).problems
    assert "is not signed by Inspector" in problem
