"""`fedaccord reproduce`: the paper's evaluation, figure by figure."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fedaccord.cli.console import output
from fedaccord.cli.figure_files import make_directory
from fedaccord.cli.options import FormatOption, from_zero
from fedaccord.cli.reproduction import ALL, CLAIMS, Reproduction
from fedaccord.cli.verdicts import evaluation_record, print_evaluation
from fedaccord.errors import InvalidInput


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(metavar="[FIGURE]...", hidden=True)] = None,
    *,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", show_default=False, help="Where to (reproduction)."),
    ] = Path("reproduction"),
    width: Annotated[
        Literal["one-column", "two-columns"],
        typer.Option(
            "--width",
            show_default=False,
            help="Pictures for one column of a paper (one-column), or for two.",
        ),
    ] = "one-column",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            callback=from_zero,
            help="In place of a figure's own, where chance plays a part.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Make again what is there already.")
    ] = False,
    output_format: FormatOption = "text",
) -> None:
    """Compute the paper's figures again, and check what the paper says about them.

    FIGURE is fig3 to fig23, as the paper counts them; accuracy and law for what the paper leaves
    out, real training on MNIST (some minutes); claims for a page of all its statements with our
    verdicts; all for everything and one HTML page of it. With no FIGURE they get listed.

    Each figure becomes FIGURE.csv, FIGURE.svg, FIGURE.png and FIGURE.json (its settings). A
    figure that is there already, made with the same settings, is kept. Training that was broken
    off goes on where it was.
    """
    from fedaccord.experiments.presets import figure_titles, training_titles

    titles = {**figure_titles(), **training_titles()}
    if not figures:
        _list(titles, output_format)
        return
    _check(figures, [*titles, CLAIMS, ALL])
    if seed is not None:
        _check_chance(figures)
    make_directory(out)
    done = Reproduction(figures, out, width, seed, force)
    done.draw_figures()
    done.check_claims()
    done.write_pages()  # now, in case that training is broken off
    done.train()
    done.write_pages()
    if output_format == "json":
        from fedaccord.cli.records import to_json

        typer.echo(to_json(evaluation_record(done), 0))
    else:
        print_evaluation(output(), done)


def _list(titles: dict[str, str], output_format: str) -> None:
    titles = titles | {
        CLAIMS: "Every statement of the paper about its figures, with our verdict",
        ALL: "All of these, and one HTML page",
    }
    if output_format == "json":
        from fedaccord.cli.records import to_json

        figures = [{"figure": name, "title": title} for name, title in titles.items()]
        typer.echo(to_json({"figures": figures}, 0))
        return
    for name, title in titles.items():
        typer.echo(f"{name:9} {title}")


def _check_chance(words: list[str]) -> None:
    """Refuse a seed that nothing would be drawn with."""
    from fedaccord.experiments.presets import drawn_by_chance

    if not {*drawn_by_chance(), CLAIMS, ALL} & set(words):
        raise InvalidInput(f"--seed: chance plays no part in {', '.join(words)}")


def _check(words: list[str], known: list[str]) -> None:
    """Refuse what there is not, all of it at once."""
    from fedaccord.checks import unknown

    wrong = [word for word in words if word not in known]
    if wrong:
        raise InvalidInput([f"there is no {word!r}: {unknown(word, known)}" for word in wrong])
