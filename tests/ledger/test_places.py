"""Where the server's ledger is: nobody learns the password of its database on the way."""

from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

from fedaccord.errors import InvalidInput
from fedaccord.flower.server_app import server_app
from fedaccord.ledger.access import VARIABLE, server_place
from fedaccord.ledger.store import open_ledger, read_ledger
from tests.flower.grids import grid_of
from tests.lies import lie

URL = "postgresql+psycopg://me:secret@database.example/consortium"


def url_file(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "ledger.url"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@lie(
    "a client",
    "read the database's password in the configuration of the run",
    "the server refuses a URL there: it comes from its environment, or from a file of mode 0600",
)
def test_a_url_in_the_run_configuration_is_refused(tmp_path: Path) -> None:
    terms = tmp_path / "terms.toml"
    terms.write_text(
        'name = "t"\nclients = ["a"]\nrounds = 1\ndiscount_factor = 0.5\n'
        "[training]\nshape = [2]\nclasses = 2\n"
    )
    context = Context(1, 1, {}, RecordDict(), {"ledger": URL, "last-slot": 1})
    with pytest.raises(InvalidInput, match="every client can read") as refused:
        server_app(terms)(grid_of(), context)
    assert "secret" not in str(refused.value)


def test_the_environment_comes_before_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert server_place("ledger.db") == "ledger.db"
    monkeypatch.setenv(VARIABLE, URL)
    assert server_place("ledger.db") == URL


def test_a_url_from_a_file(tmp_path: Path) -> None:
    file = url_file(tmp_path, f"sqlite:///{tmp_path}/elsewhere.db\n")
    open_ledger(file).close()
    assert (tmp_path / "elsewhere.db").is_file()
    read_ledger(file).close()


@lie(
    "whoever reaches the machine",
    "read the database's password in a file that others can read",
    "the file is refused until only its owner can read it",
)
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"others can read it \(mode {mode:04o}\)") as refused:
        open_ledger(url_file(tmp_path, URL, mode))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "secret", f"{URL}\n{URL}"])
def test_a_file_without_a_url_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must contain one line") as refused:
        open_ledger(url_file(tmp_path, text))
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_ledger(str(tmp_path / "none.url"))
    (tmp_path / "bytes.url").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="cannot be read: it is not text"):
        read_ledger(str(tmp_path / "bytes.url"))
