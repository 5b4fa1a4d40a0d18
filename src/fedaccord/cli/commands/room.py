"""`fedaccord room`: the coordinator's server, where terms are discussed, signed and watched."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.checks import check_installed

if TYPE_CHECKING:
    from fedaccord.console.room.doors import Doors

room = typer.Typer(
    help="Discuss, sign and watch an agreement on a server's page.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIR", hidden=True)]
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        show_default=False,
        help="PostgreSQL instead of DIR/room.db: a URL, or a file *.url of mode 0600 with one.",
    ),
]


@room.command()
def serve(
    directory: DirectoryArgument,
    *,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="A name at which the room is reached, with :PORT if that is another one than "
            "--port. The first is in links. Repeatable. Default: this machine only.",
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="ADDRESS",
            show_default=False,
            help="Where to listen (default 127.0.0.1).",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            show_default=False,
            help="Where to listen (default 8321; 0: any free).",
        ),
    ] = 8321,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="For TLS: the certificate (PEM)."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="For TLS: its private key (PEM).")
    ] = None,
    behind_proxy: Annotated[
        str,
        typer.Option(
            "--behind-proxy",
            metavar="ADDRESS",
            show_default=False,
            help="The address from which a reverse proxy with TLS calls; its word is taken for "
            "who calls.",
        ),
    ] = "",
    database: DatabaseOption = "",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Open no browser, and print no link.")
    ] = False,
) -> None:
    """Serve the room in DIR, which is made if it is new, until it is stopped (Ctrl-C).

    The coordinator creates the room on its first page, from names alone, and invites members by
    links; their keys and numbers stay with them. On a terminal the page is opened, or its link
    printed; elsewhere `fedaccord room link DIR` prints one. Beyond this machine the room is served
    by TLS only: with a certificate, or behind a proxy that has one.
    """
    _check_parts("torch", "sklearn")
    from fedaccord.console.room.app import create_room
    from fedaccord.console.room.serving import lock_room, reached_at
    from fedaccord.console.web.opening import opening_file
    from fedaccord.console.web.serving import check_certificate
    from fedaccord.console.web.serving import listen as listen_at
    from fedaccord.console.web.serving import serve as keep_serving
    from fedaccord.errors import InvalidInput

    if (certificate is None) != (key is None):
        raise InvalidInput("--certificate and --key: one is of no use without the other")
    files = (certificate, key) if certificate is not None and key is not None else None
    if files is not None:
        check_certificate(*files)
    reached_at(host or [], listen, port, tls=files is not None, proxy=behind_proxy)
    with lock_room(directory) as keep, listen_at(listen, port) as at:
        found = reached_at(
            host or [], listen, at.getsockname()[1], tls=files is not None, proxy=behind_proxy
        )
        app = create_room(
            directory,
            database=database,
            address=found.address,
            hosts=found.hosts,
            secure=found.secure,
        )
        keep()
        typer.echo(f"The room is at {found.address}/ (Ctrl-C ends it)")
        with ExitStack() as stack:
            opened = None
            if sys.stdout.isatty() and not no_browser:
                link = _link(app.state.room.doors, found.address)
                typer.echo(f"Your link, good for ten minutes and once: {link}")
                opened = stack.enter_context(opening_file(app.state.pages, link)).as_uri
            sys.stdout.flush()
            keep_serving(app, at, opened=opened, certificate=files, trusted_proxy=behind_proxy)


@room.command()
def link(directory: DirectoryArgument, *, database: DatabaseOption = "") -> None:
    """Print a link with which the coordinator enters the room in DIR: once, within ten minutes.

    Whoever can read and write DIR is the coordinator. The link goes to the terminal only.
    """
    _check_parts()
    from fedaccord.console.room.database import Database
    from fedaccord.console.room.doors import Doors
    from fedaccord.console.room.room import DATABASE
    from fedaccord.console.room.store import Store
    from fedaccord.errors import FedaccordError

    if not database and not (directory / DATABASE).is_file():
        raise FedaccordError(f"{directory}: has no room; serve it first")
    store = Store(Database(database or directory / DATABASE))
    try:
        address = store.address()
        if address is None:
            raise FedaccordError(f"{directory}: its room was never served")
        typer.echo(_link(Doors(store), address))
    finally:
        store.database.close()


def _link(doors: "Doors", address: str) -> str:
    from fedaccord.console.room.access import Viewer
    from fedaccord.console.room.moments import LINK

    return f"{address}/enter#{doors.ticket(Viewer('coordinator'), LINK)}"


def _check_parts(*more: str) -> None:
    parts = ("fastapi", "uvicorn", "python_multipart", "flwr", "sqlalchemy", "alembic")
    check_installed("fedaccord room", *parts, *more)
