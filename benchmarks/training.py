"""The vectorised engine against plain loops, as a share of peak performance, and its memory.

And many slots at once, against one after another.
"""

from importlib.util import find_spec

from benchmarks.row import Row


def run() -> list[Row]:
    if find_spec("torch") is None:
        note = "skipped: needs PyTorch, pip install 'fedaccord[train]'"
        return [Row("training", "training", "plain loops", note=note)]
    from benchmarks import training_engines, training_many, training_memory

    return [*training_engines.run(), *training_many.run(), training_memory.run()]
