"""Builds the site from the pages with Sphinx: `make docs`, decision 0013.

The front page is README.md. The sidebar is docs/README.md: a section there is a section here, so a
page is added to the navigation by a link in that list.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

from fedaccord import __version__

ROOT = Path(__file__).parent.parent
PROJECT = ["docs/README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]

project = "fedaccord"
author = "The fedaccord authors"
version = release = __version__

# --- What is read --------------------------------------------------------------------------

extensions = ["myst_nb"]
root_doc = "README"
include_patterns = ["README.md", "docs/**", *PROJECT]
exclude_patterns = [".*", "benchmarks", "build", "dist", "src", "tests", "docs/images/README.md"]
myst_heading_anchors = 3
# A console block shows what a program prints, which need not look like shell input.
suppress_warnings = ["misc.highlighting_failure"]

# Notebooks are stored without outputs. They are executed here, and again when their code changes.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_in_temp = True  # one of them writes a page
nb_execution_timeout = 600
nb_execution_show_tb = True

# --- How it looks --------------------------------------------------------------------------

html_theme = "furo"
html_title = f"fedaccord {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
pygments_style = "friendly"


def navigation() -> str:
    """The sidebar's table of contents: a toctree for each section of docs/README.md."""
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    trees = []
    for section in re.split(r"^## ", contents, flags=re.MULTILINE)[1:]:
        links = re.findall(r"^- \[([^]]+)\]\(([^)]+)\)", section, flags=re.MULTILINE)
        entries = [f"{' '.join(title.split())} <docs/{path}>" for title, path in links]
        trees.append(toctree(section.splitlines()[0], entries))
    return "\n".join([*trees, toctree("Project", PROJECT)])


def toctree(caption: str, entries: list[str]) -> str:
    """A directive that puts pages into the sidebar, and shows nothing on the page itself."""
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```"])


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Appends the navigation to the front page as it is read; the file stays plain Markdown."""
    if page == root_doc:
        app.env.note_dependency(str(ROOT / "docs" / "README.md"))
        source[0] += "\n" + navigation()


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Makes the front page the one that a web server shows for the directory."""
    if error is None:
        shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """Connects the two hooks above to the build."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", write_index)
