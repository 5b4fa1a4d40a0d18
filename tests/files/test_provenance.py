"""Where the numbers of a consortium file came from."""

import os
from hashlib import sha256
from pathlib import Path

from fedaccord.files.consortium import example_text
from fedaccord.files.provenance import Note, provenance_of


def test_the_example_has_a_digest_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "consortium.toml"
    path.write_text(example_text(), encoding="utf-8")
    found = provenance_of(path)
    assert found is not None
    (source,) = found.sources
    assert (source.name, source.digest) == (path.name, sha256(path.read_bytes()).hexdigest())
    assert found.notes[0] == Note("", "rounds", "50", "rounds of federated averaging in one slot")
    of_a_client = [note for note in found.notes if note.whose == "St Mary"]
    assert [note.field for note in of_a_client] == ["communication_cost"]


def test_files_that_it_names_have_digests_too(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        'rounds = 5 # five\nclients = "clients.csv"\n[law] # the law\nkind = "measured"\n'
        'curve = "curve.csv" # by hand\n'
    )
    for name in ("clients.csv", "curve.csv"):
        (tmp_path / name).write_text(name)
    found = provenance_of(path)
    assert found is not None
    assert [source.name for source in found.sources] == ["c.toml", "clients.csv", "curve.csv"]
    assert found.sources[1].digest == sha256(b"clients.csv").hexdigest()
    assert ("law.curve", "by hand") in [(note.field, note.comment) for note in found.notes]


def test_curves_of_clients(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[[clients]]\nname = "A"\ncurve = "a.csv"\n[[clients]]\nlaw.curve = "b.csv"\n')
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    found = provenance_of(path)
    assert found is not None
    assert [source.name for source in found.sources] == ["c.toml", "a.csv", "b.csv"]


def test_a_pipe_has_none_and_a_huge_file_no_comments(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert provenance_of(pipe) is None
    huge = tmp_path / "huge.toml"
    huge.write_text("rounds = 5 # five\n" + "# filler\n" * 120_000)
    found = provenance_of(huge)
    assert found is not None
    assert (len(found.sources), found.notes) == (1, ())
