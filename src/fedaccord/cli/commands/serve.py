"""`fedaccord serve`: the workshop in the browser."""

from typing import Annotated

import typer

from fedaccord.checks import check_installed

PortOption = Annotated[
    int,
    typer.Option(
        "--port", min=0, max=65_535, show_default=False, help="Where to listen; default: any free."
    ),
]
NoBrowserOption = Annotated[
    bool, typer.Option("--no-browser", help="Only print the address, and open no browser.")
]


def serve(*, port: PortOption = 0, no_browser: NoBrowserOption = False) -> None:
    """Open the workshop: design an agreement in the browser, on this machine alone.

    Describe a consortium, move sliders, compare, train and download what to sign. Nobody else can
    reach the page, it needs no account, and nothing leaves this machine. Ctrl-C ends it.
    """
    check_installed("fedaccord serve", "fastapi", "uvicorn", "python_multipart")
    from fedaccord.console.web.serving import listen
    from fedaccord.console.web.serving import serve as keep_serving
    from fedaccord.console.workshop.app import create_workshop

    at = listen("127.0.0.1", port)
    address = f"http://127.0.0.1:{at.getsockname()[1]}/"
    typer.echo(f"The workshop is at {address} (Ctrl-C ends it)")
    keep_serving(create_workshop(), at, opened=None if no_browser else lambda: address)
