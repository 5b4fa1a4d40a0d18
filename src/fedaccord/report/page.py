"""A self-contained HTML page from a template and figures."""

import re
import warnings
from io import StringIO
from typing import TYPE_CHECKING, Any

import fedaccord
from fedaccord.numbers import count, patience, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fill(template: str, **values: Any) -> str:
    """A page, as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fedaccord.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        version=fedaccord.__version__, write=write, count=count, patience=patience, **values
    )


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
