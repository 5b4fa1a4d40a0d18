"""`fedaccord init`: a consortium file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from fedaccord.atomic import ABSENT
from fedaccord.cli.outputs import check_writable, write_file
from fedaccord.errors import FedaccordError


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", hidden=True)] = Path("consortium.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented consortium file to start from.

    FILE defaults to consortium.toml.
    """
    check_writable(file)
    if file.exists() and not force:
        raise FedaccordError(f"{file}: already exists; --force overwrites it")
    from fedaccord.files.consortium import example_text

    write_file(file, example_text(), seen=None if force else ABSENT)
    typer.echo(f"Wrote {file}. Change the numbers to yours, then run: fedaccord solve {file}")
