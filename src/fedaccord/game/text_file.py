"""A text file as text, or one sentence about why not."""

from pathlib import Path

from fedaccord.errors import InvalidInput

MEGABYTE = 1_000_000


def read_text(path: Path, limit: int) -> str:
    """The text of a UTF-8 file (with or without a byte order mark) of at most `limit` bytes."""
    try:
        if path.is_dir():
            raise InvalidInput("is a directory, not a file", str(path))
        if path.stat().st_size > limit:
            raise InvalidInput(_too_large(path.stat().st_size, limit), str(path))
        with path.open("rb") as file:
            data = file.read(limit + 1)  # a pipe has no size, so read no more than allowed
    except FileNotFoundError:
        raise InvalidInput("there is no such file", str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot be read: {why}", str(path)) from None
    if len(data) > limit:
        raise InvalidInput(_too_large(len(data), limit), str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line}: is not UTF-8 text", str(path)) from None


def _too_large(size: int, limit: int) -> str:
    return (
        f"is too large: {size / MEGABYTE:,.1f} MB, at most {limit / MEGABYTE:,.0f} MB can be read"
    )
