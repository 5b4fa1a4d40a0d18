"""The process that trains: a job on its first line, then what happens, line by line.

It runs for one job and beside the page, so that the page stays quick and a training that is
cancelled really ends. Its input stays open for as long as somebody wants the result: when it
closes, whatever the reason, the trainer ends at once.
"""

import json
import os
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fedaccord.errors import FedaccordError, InvalidInput

if TYPE_CHECKING:
    from fedaccord.console.workshop.orders import Job, Upload
    from fedaccord.data.own import OwnPartition
    from fedaccord.game.consortium import Consortium
    from fedaccord.trials.setting import RoundScore
    from fedaccord.trials.trial import Trial

_OFTEN = 0.1
"""Seconds between two lines about progress."""


def main() -> None:
    """Read a job, train, and write what happens."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # nothing else may get between the lines
    os.nice(5)
    warnings.simplefilter("ignore")
    from fedaccord.console.workshop.orders import Job

    job = Job.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, args=(job.folder,), daemon=True).start()
    lines = Lines(out)
    try:
        from fedaccord.console.workshop.outcome import outcome_of

        trial = _trained(job, lines)
        lines.progress(1, 1, "Drawing the picture")
        found = outcome_of(trial)
        lines.write({"finished": found.model_dump(mode="json")})
    except InvalidInput as error:
        lead = f"{error.source}: " if error.source else ""
        lines.write({"failed": [f"{lead}{problem}" for problem in error.problems]})
    except FedaccordError as error:
        lines.write({"failed": [str(error)]})
    except MemoryError:
        lines.write({"failed": ["this machine has too little memory for this data"]})
    except Exception:
        traceback.print_exc()
        lines.write({"failed": ["something broke; what happened is in this program's log"]})
    out.flush()
    os._exit(0)


def _end_with_input(folder: str) -> None:
    """Wait until nobody wants the result any more; then leave nothing behind."""
    sys.stdin.buffer.read()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


class Lines:
    """What the page is told."""

    def __init__(self, out: IO[str]) -> None:
        """Write to this file."""
        self._out, self._last, self._doing = out, 0.0, ""

    def write(self, message: Mapping[str, Any]) -> None:
        """One line."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def progress(self, done: int, of: int, doing: str) -> None:
        """How far it is; not every time."""
        now = time.monotonic()
        if now - self._last < _OFTEN and doing == self._doing and done != of:
            return
        self._last, self._doing = now, doing
        self.write({"done": done, "of": of, "doing": doing})

    def after_round(self, told: "RoundScore") -> None:
        """The score after a round, if there is one."""
        if not isfinite(told.score.accuracy):
            return
        place = {"profile": told.profile, "seed": told.seed, "round": told.round}
        self.write({"round": place | {"score": told.score.accuracy, "measure": told.measure}})


def _trained(job: "Job", lines: Lines) -> "Trial":
    """The training."""
    lines.progress(0, 0, "Loading PyTorch")
    with suppress(ImportError):  # what is missing is said below
        import_module("torch")
    from fedaccord.console.workshop.answers import answer_for
    from fedaccord.console.workshop.draft import Draft
    from fedaccord.trials.trial import train

    order = job.order
    answer = answer_for(Draft(order.consortium), order.settings)
    named: dict[str, Any] = {name: name for name in order.in_order}
    if "agreement" in named:
        named["agreement"] = answer.agreement
    return train(
        answer.consortium,
        named,
        **_source(job, answer.consortium),
        **order.rules(),
        fine_tuning=order.fine_tuning or None,
        rounds=order.rounds,
        seeds=order.seeds,
        progress=lines.progress,
        after_round=lines.after_round,
    )


def _source(job: "Job", consortium: "Consortium") -> dict[str, Any]:
    """The data set, by name or from the files that were uploaded."""
    from fedaccord.console.workshop.training_files import check_size
    from fedaccord.data.inputs import as_dataset, read_examples

    if not job.uploads:
        return {"dataset": job.order.dataset}
    for upload in job.uploads:
        check_size(Path(upload.path))
    first = job.uploads[0]
    if not first.client:
        path = Path(first.path)
        return {"dataset": as_dataset(read_examples(path), path.name)}
    own = _own_data(job.uploads, consortium)
    # as many examples for each sample as everyone has
    scale = min([1.0, *(has / n for has, n in zip(own.sizes, consortium.samples, strict=True))])
    return {"data": own, "scale": scale if scale == 1 else float(scale) * (1 - 1e-9)}


def _own_data(uploads: "list[Upload]", consortium: "Consortium") -> "OwnPartition":
    from fedaccord.console.workshop.training_files import TEST, owner_of_test
    from fedaccord.data.inputs import read_examples
    from fedaccord.data.own import own_partition

    paths = {upload.client: Path(upload.path) for upload in uploads}
    tests = {owner_of_test(whose): path for whose, path in paths.items() if owner_of_test(whose)}
    if tests and TEST in paths:
        tests[TEST] = paths[TEST]

    def examples_of(name: str) -> Any:
        if name == TEST and tests:
            return {whose: read_examples(path) for whose, path in tests.items()}
        return read_examples(paths[name])

    return own_partition(examples_of, consortium.names, "the uploaded data")


if __name__ == "__main__":
    main()
