"""Opens a page whose address has a code, so that only this user sees the code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fedaccord.console.web.pages import Pages


@contextmanager
def opening_file(pages: Pages, address: str) -> Iterator[Path]:
    """A file that only this user can read, and that leads to the address.

    Everybody on a machine sees with which words a browser is started; the code is not in them.
    """
    with TemporaryDirectory(prefix="fedaccord-") as folder:
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(pages.text("opening.html.j2", address=address), encoding="utf-8")
        yield file
