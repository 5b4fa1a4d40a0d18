"""The vectorised engine against plain loops, as a share of peak performance, and its memory.

And many slots at once, against one after another.
"""

from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.row import Row


def run() -> Iterator[Row]:
    if find_spec("torch") is None:
        note = "skipped: needs PyTorch, pip install 'fedaccord[train]'"
        yield Row("training", "training", "plain loops", note=note)
        return
    from benchmarks import training_engines, training_many, training_memory

    yield from training_engines.run()
    yield from training_many.run()
    yield training_memory.run()
