"""The templates, and figures inside a page: what every HTML page is made with."""

import re
import warnings
from io import StringIO
from typing import TYPE_CHECKING, Any

import fedaccord
from fedaccord.numbers import count, patience, write

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


def environment(*packages: str) -> "Environment":
    """What fills the templates of these packages, which may build on those of this one.

    Each package keeps its templates in its folder `templates`. Only HTML is escaped: a page in
    Markdown is text.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    filling = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "fedaccord.report")]),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filling.globals |= {
        "version": fedaccord.__version__,
        "write": write,
        "count": count,
        "patience": patience,
    }
    return filling


def fill(template: str, **values: Any) -> str:
    """A page, as text."""
    return environment().get_template(template).render(**values)


def as_svg(figure: "Figure", name: str) -> str:
    """A figure to put into a page: its size left to the page, its names free of the others'."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # a letter that matplotlib's own font lacks is the reader's browser's to find
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>", "", text.getvalue(), count=1, flags=re.DOTALL)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", svg)
