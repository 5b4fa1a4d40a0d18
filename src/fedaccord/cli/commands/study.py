"""`fedaccord study`: a case study on real organisations' records, as a page."""

from pathlib import Path
from typing import Annotated

import typer

from fedaccord.cli.options import from_one
from fedaccord.cli.outputs import all_or_none, check_writable, write_file, write_picture
from fedaccord.cli.training_options import progress_bar
from fedaccord.errors import InvalidInput


def study(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page: FILE.html, or FILE.md with its pictures beside it; default: the name "
            "of the study, .html.",
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds",
            callback=from_one,
            show_default=False,
            help="Trainings of each group, at least 2; default 10.",
        ),
    ] = 10,
) -> None:
    """Carry out a case study: who should join, what they can agree on, and what it is worth.

    NAME is four-hospitals or six-regions. The records are real: those of four hospitals
    (heart-disease-shared), or of six regions (tcga-brca). What errors and records cost is assumed,
    and the page says what.
    """
    from fedaccord.studies.study import find_study, run_study

    found = find_study(name)
    out = out or Path(f"{found.name}.html")
    if out.suffix not in (".html", ".md"):
        raise InvalidInput(f"--out: must end in .html or .md, got {out}")
    if seeds < 2:
        raise InvalidInput("--seeds: must be 2 or more, since one run does not show any noise")
    check_writable(out)
    with progress_bar() as progress:
        result = run_study(found, seeds, progress)
    from fedaccord.report.document import as_markdown, as_page
    from fedaccord.report.study_page import study_document

    document = study_document(result)
    if out.suffix == ".html":
        write_file(out, as_page(document))
    else:
        with all_or_none():
            write_file(out, as_markdown(document))
            for picture in document.pictures:
                write_picture(out.parent / f"{picture.name}.png", picture.figure)
    typer.echo(f"Wrote {out}.")
