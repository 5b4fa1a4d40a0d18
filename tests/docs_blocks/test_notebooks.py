"""The notebooks run from top to bottom, show their pictures, and are stored without outputs."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def draws(cell: Any) -> bool:
    return "plots.plot_" in cell.source or "axes.set" in cell.source


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["coordinator", "researcher", "sweep"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    for cell in code_cells(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.mark.slow  # the site is built from them, too, by make check
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pictures = 0
    for cell in code_cells(notebook):
        shown = [output.data for output in cell.outputs if "data" in output]
        assert all(output.output_type != "error" for output in cell.outputs)
        assert not any("Warning" in output.get("text", "") for output in cell.outputs)
        if draws(cell):
            assert any("image/png" in data for data in shown), cell.source
            pictures += 1
    assert pictures >= 1
    assert list(tmp_path.iterdir()) == [tmp_path / "agreement.html"] * (path.stem == "coordinator")
