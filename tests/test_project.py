"""Files about the project are up to date."""

import re
from pathlib import Path

import fedaccord

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_citation_has_the_current_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [fedaccord.__version__]


def test_every_page_is_in_the_navigation() -> None:
    contents = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", contents, re.MULTILINE)
    pages = {
        path.relative_to(DOCS).as_posix()
        for path in [*DOCS.glob("*/*.md"), *DOCS.glob("*/*.ipynb")]
        if path.name != "README.md"
    }

    assert sorted(linked) == sorted(pages)


def test_the_architecture_page_names_every_package_and_only_existing_files() -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    house = Path(fedaccord.__file__).parent
    rooms = {path.parent.name for path in house.glob("*/__init__.py")}
    named = set(re.findall(r"`([a-z_0-9]+/[a-z_0-9/]*(?:\.[a-z]+)?)`", page))

    assert rooms <= set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE))
    assert not {place for place in named if not (house / place).exists()}


def test_pages_name_modules_that_exist() -> None:
    house = Path(fedaccord.__file__).parent
    modules = {
        path.relative_to(house).with_suffix("").as_posix().replace("/", ".")
        for path in house.rglob("*.py")
    }
    rooms = "|".join(sorted({path.parent.name for path in house.glob("*/__init__.py")}))
    named = re.compile(rf"`(?:fedaccord\.)?((?:{rooms})(?:\.[a-z_0-9]+)+)\.[A-Za-z_]+[`(]")

    for page in DOCS.glob("decisions/*.md"):
        for module in named.findall(page.read_text(encoding="utf-8")):
            assert module in modules or f"{module}.__init__" in modules, f"{page.name}: {module}"
