"""The paper's evaluation: its figures, and a verdict on each of its statements about them.

`presets.toml` has the settings of each figure and names its kind, which is a module of `figures`.

>>> from fedaccord.experiments import figures
>>> from fedaccord.experiments.presets import find_preset
>>> figures.run(find_preset("fig16")).swept[-1]
np.float64(0.995)
"""

import re


def __getattr__(name: str) -> object:
    """Say where the figures are now; each used to be a module of its name."""
    if re.fullmatch(r"fig\d+", name):
        raise ImportError(
            f"the module {name} was removed: use fedaccord.experiments.figures.run("
            f'find_preset("{name}")), with find_preset from fedaccord.experiments.presets'
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
