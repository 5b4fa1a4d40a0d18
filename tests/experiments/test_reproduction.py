"""`fa.reproduce`, and the modules of the figures."""

import json
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.experiments import figures
from fedaccord.experiments.presets import figure_titles, find_preset


@pytest.mark.slow
def test_the_record_has_what_the_command_prints(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    done = fa.reproduce(
        ["fig16", "fig15"], tmp_path, progress=lambda *step: told.append(step), force=True
    )
    assert told == [
        (0, 2, "Figures, fig15"),
        (1, 2, "Figures, fig16"),
        (0, 2, "Claims, fig15"),
        (1, 2, "Claims, fig16"),
    ]
    assert [figure.figure for figure in done.figures] == ["fig15", "fig16"]
    assert [section.name for section in done.sections] == ["fig15", "fig16"]
    record = done.to_dict()
    assert list(record) == ["directory", "figures", "pages", "notes", "claims", "measured"]
    assert json.loads(json.dumps(record)) == record
    assert len(record["claims"]) == len(done.claims) == 5
    assert len(repr(done)) < 500


@pytest.mark.parametrize(
    ("names", "seed", "message"),
    [
        ("fig2", None, "there is no 'fig2': did you mean 'fig23'?"),
        ([], None, "figures: must name at least one"),
        ("fig17", -1, "seed: must be a whole number, 0 or more, got -1"),
        (["fig3", "fig4"], 1, "seed: no random numbers are drawn for fig3, fig4"),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, names: str | list[str], seed: int | None, message: str
) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        fa.reproduce(names, tmp_path / "out", seed=seed)
    assert message in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_preset_names_the_module_of_its_figure() -> None:
    directory = Path(figures.__file__).parent
    kinds = {find_preset(name).kind for name in figure_titles()}
    assert all((directory / f"{kind}.py").exists() for kind in kinds)
    assert find_preset("fig12").kind == "ratios"
    assert "kind" not in find_preset("fig12").as_json()


def test_the_former_module_of_a_figure_says_what_to_use_now() -> None:
    with pytest.raises(ImportError, match=r'figures\.run\(find_preset\("fig4"\)\)'):
        from fedaccord.experiments import fig4  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'figs'"):
        from fedaccord.experiments import figs  # noqa: F401
