"""Commands with several outputs write all of them or none."""

import os
import stat
from pathlib import Path

import pytest

from fedaccord.cli.outputs import all_or_none, rewrite_file, write_file
from fedaccord.errors import FedaccordError
from tests.cli.conftest import Run
from tests.cli.test_calibrate import WITH_FILE, example

COMMANDS = {
    "solve": ("solve", "mine.toml", "--profile-out", "p.csv", "--report", "r.html"),
    "play": ("play", "mine.toml", "--slots", "3", "--csv", "s.csv", "--report", "r.html"),
    "compare": ("compare", "mine.toml", "--csv", "c.csv", "--report", "r.html"),
    "train": (
        *("train", "mine.toml", "--dataset", "digits", "--slots", "1", "--seeds", "1"),
        *("--csv", "t.csv", "--report", "r.html"),
    ),
    "calibrate": ("calibrate", "mine.toml", *WITH_FILE, "--out", "new.toml", "--picture", "l.png"),
}
"""Commands that write two files or more."""
QUICK = ("play",)


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=() if c in QUICK else pytest.mark.slow) for c in COMMANDS]
)
def test_an_interrupted_command_leaves_all_or_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Each file is flushed to the disk before it gets its name; the second flush is interrupted.

    A calibration has flushed what it measured before.
    """
    last = 3 if command == "calibrate" else 2
    example(run)
    before, flush, flushed = set(Path().iterdir()), os.fsync, list[int]()

    def interrupted(descriptor: int) -> None:
        flush(descriptor)
        flushed.append(descriptor)
        if len(flushed) == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        result = run(*COMMANDS[command])
    assert len(flushed) == last, result.output
    assert set(Path().iterdir()) - before <= {Path("curve.csv.part")}


def test_files_of_a_block_are_written_together(tmp_path: Path) -> None:
    one, two, nowhere = tmp_path / "one", tmp_path / "two", tmp_path / "no" / "three"
    one.write_text("old")

    def interrupted(other: Path) -> None:
        with all_or_none():
            write_file(one, "new")
            write_file(other, "new")
            if other == two:
                raise ValueError("a mistake")

    with pytest.raises(FedaccordError, match="no/three: cannot be written: No such file"):
        interrupted(nowhere)
    with pytest.raises(ValueError, match="a mistake"):
        interrupted(two)
    assert one.read_text() == "old"
    with all_or_none():
        write_file(one, "new")
        write_file(Path("/dev/null"), "new")
        write_file(two, [b"in ", b"parts"], private=True)
        assert one.read_text() == "old"
    assert (one.read_text(), two.read_text()) == ("new", "in parts")
    assert stat.S_IMODE(two.stat().st_mode) == 0o600
    write_file(two, "alone")
    assert two.read_text() == "alone"


def test_a_link_is_followed_and_a_device_is_written_into(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)
    assert rewrite_file(link, lambda: link.read_bytes() + b" and new") == b"old and new"
    assert link.is_symlink()
    assert file.read_text() == "old and new"
    assert rewrite_file(Path("/dev/null"), lambda: b"nothing") == b"nothing"
