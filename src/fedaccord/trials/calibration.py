"""`calibrate`: measures the law of the loss on your data and your model, and what a sample costs.

The model is trained on more and more samples, with several seeds, and the law is fitted to what it
loses (`game.measured`). What a sample costs follows from the time that it takes on this machine, at
a price per second or by eq. 4 of the paper. What accuracy is worth cannot be measured: valuations
are never touched.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.checks import check_choice, check_installed, check_whole
from fedaccord.data.dataset import Dataset
from fedaccord.data.inputs import is_one_source
from fedaccord.data.own import OwnPartition, read_data
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.consortium_text import with_law
from fedaccord.game.candidates import Candidate, compare_laws
from fedaccord.game.consortium import Consortium
from fedaccord.game.curve import MEASURES, Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.game.next_measurement import NextMeasurement, next_measurement
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables, jsonable
from fedaccord.training.estimates import Estimate, estimate, estimate_lost
from fedaccord.trials.setting import (
    Progress,
    find_model,
    find_source,
    local_steps,
    own_part,
    server_optimiser,
)

if TYPE_CHECKING:
    from fedaccord.training.course import Course
    from fedaccord.training.learning_curve import LearningCurves, Measure
    from fedaccord.training.optimisers import ServerOptimiser
    from fedaccord.training.rules import LocalRule
    from fedaccord.training.speed import Speed
    from fedaccord.training.task import Model, Task

SEEDS = 10
"""Unless another number is asked for."""
_CLIENTS = 5
"""That share the samples evenly where no consortium says who has how many."""
_ROUNDS = 50


@dataclass(frozen=True, eq=False, repr=False)
class AloneScore(Record):
    """What a member reaches with its own data alone: measured, not read off the law."""

    name: str
    samples: float
    """That it has, and trained on."""
    value: float
    """The mean of the measure over seeds."""
    error: float
    """The standard error of that mean; NaN with one seed."""
    half_width: float
    """Half of its 95 % interval, over the seeds; NaN with one."""
    by_law: float
    """What the law says for as many samples of all members' data; NaN with fine-tuning, when the
    law is about own tests."""
    worth: float
    """How many of all members' samples one of its own is worth to it alone, by the law; NaN as
    above."""
    own: Estimate | None = None
    """The measure on its own test; None without one."""
    together: Estimate | None = None
    """The measure on its own test if all members train on everything: of the shared model, or of
    what the member makes of it by fine-tuning."""

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "samples": self.samples,
            "value": self.value,
            "error": self.error,
            "half_width": self.half_width,
            "by_law": self.by_law,
            "worth": self.worth,
            "own": self.own,
            "together": self.together,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Record):
    """What was measured, and the numbers that follow from it."""

    course: "Course"
    curves: "LearningCurves"
    measure: "Measure"
    """What was asked for: `error`, which is 1 minus the task's measure, or `loss`."""
    speed: "Speed"
    price_per_second: float | None = None
    """What a second of this machine costs."""

    @property
    def model(self) -> "Model":
        """What was trained."""
        return self.course.model

    @property
    def rounds(self) -> int:
        """G, in a slot. The law belongs to them: with others it would be another one."""
        return self.course.rounds

    @property
    def lost(self) -> str:
        """What the law is about, as consortium files call it: `1 - concordance` for cox."""
        called = f"1 - {self.model.task.measure.name}"
        return called if self.measure == "error" and called in MEASURES else self.measure

    @cached_property
    def curve(self) -> Curve:
        """The curve of the measure, in samples of the consortium."""
        return self.curves.curve(self.measure, self.course.scale, self.lost)

    @cached_property
    def law(self) -> Law:
        """The law fitted to the curve; raises InvalidInput if the curve can have none."""
        return fit_law(self.curve)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The law beside a single power and the paper's, by what each says of unseen sizes."""
        return compare_laws(self.curve)

    @cached_property
    def next(self) -> NextMeasurement:
        """Which further training would tell most about the second half of the data."""
        largest = self.curve.largest
        return next_measurement(self.law, largest / 2, largest, most=largest)

    @cached_property
    def alone(self) -> tuple[AloneScore, ...]:
        """What each member reaches alone; empty unless each has data of its own."""
        values = self.curves.state.alone[self.measure]
        sizes = [len(share) for share in self.course.partition(0).draw(1)]
        law = None if self.course.fine_tuning else self.law
        scores = [
            _alone_score(name, size / self.course.scale, row, law)
            for name, size, row in zip(self.course.names, sizes, values, strict=False)
        ]
        state = self.curves.state
        own = self._on_own_tests(state.own, state.own_by_example)
        together = self._on_own_tests(state.together, state.together_by_example)
        if not own:
            return tuple(scores)
        return tuple(
            replace(score, own=own[n], together=together[n]) for n, score in enumerate(scores)
        )

    def _on_own_tests(
        self, by_seed: "dict[Measure, FloatArray]", summed: "dict[Measure, FloatArray]"
    ) -> list[Estimate]:
        """What each member loses on its own test, given values by seed and sums by example."""
        tests = self.course.partition(0).tests
        if not len(by_seed[self.measure]):
            return []
        ends = np.cumsum([len(own) for own in tests])
        by_example = np.split(summed[self.measure] / len(self.curves.seeds), ends)
        return [
            estimate_lost(row, each, self.model.weight(own) if self.measure == "error" else None)
            for row, each, own in zip(by_seed[self.measure], by_example, tests, strict=False)
        ]

    @property
    def cost_per_sample(self) -> float | None:
        """E, per slot: each sample is trained on in every round. None without a price."""
        if self.price_per_second is None:
            return None
        return self.price_per_second * self.speed.seconds * self.rounds

    def to_dict(self) -> dict[str, Any]:
        """The numbers, the law, the curve and what each member reaches alone."""
        return {
            **jsonable(self._facts()),
            "law": self.law.to_dict(),
            "candidates": [one.to_dict() for one in self.candidates],
            "next": self.next.to_dict(),
            "curve": self.curve.to_dict()["curve"],
            "alone": [score.to_dict() for score in self.alone],
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "dataset": self.model.dataset.name,
            "task": self.model.task.name,
            "optimiser": self.course.optimiser,
            "fine_tuning": self.course.fine_tuning,
            "rounds": self.rounds,
            "measure": self.lost,
            "seeds": len(self.curve.seeds),
            "test_examples": self.curve.examples,
            "scale": self.course.scale,
            "seconds_per_sample": self.speed.seconds,
            "cost_per_sample": self.cost_per_sample,
        }

    def _tables(self) -> Tables:
        return self.curve._tables() | {"alone": self._alone}

    def _alone(self) -> Columns:
        names = ("name", "samples", "value", "error", "half_width", "by_law", "worth")
        return {name: [getattr(score, name) for score in self.alone] for name in names}

    def written_into(
        self, file: str | Path, curve: str = "curve.csv", comments: Sequence[str] = ()
    ) -> str:
        """The text of a consortium file with this law, whose curve is in the file of that name.

        Its own comments stay, and `comments` go to the top. Nothing but the law changes.
        """
        self.law  # refuses a curve that no law can be fitted to  # noqa: B018
        table = {"kind": "measured", "measure": self.lost, "curve": curve}
        return with_law(file, table, comments)


def _alone_score(name: str, samples: float, values: FloatArray, law: Law | None) -> AloneScore:
    found = estimate(values.tolist())
    error = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan
    by_law = worth = np.nan
    if law is not None:
        by_law, worth = float(law.loss(samples)), _total_with(law, found.mean, samples) / samples
    return AloneScore(name, samples, found.mean, error, found.half_width, by_law, worth)


def _total_with(law: Law, value: float, samples: float) -> float:
    """The total at which the law has this value: 0 below none, infinite if it never gets there."""
    totals = samples * np.geomspace(1e-3, 1e3, 6001)
    losses = law.loss(totals)
    if value >= losses[0]:
        return 0.0
    if value <= losses[-1]:
        return inf
    return float(np.exp(np.interp(-value, -losses, np.log(totals))))


def calibrate(
    dataset: "str | Dataset | None" = None,
    *,
    data: Any = None,
    consortium: Consortium | None = None,
    task: "str | Task | None" = None,
    local: "LocalRule | None" = None,
    server: "ServerOptimiser | str | None" = None,
    fine_tuning: int | None = None,
    rounds: int | None = None,
    measure: "Measure" = "error",
    seeds: int = SEEDS,
    smallest: int | None = None,
    price_per_second: float | None = None,
    chip: float | None = None,
    hertz: float | None = None,
    checkpoint: str | Path | None = None,
    progress: "Progress | None" = None,
) -> "Calibration":
    """Measure the law of the loss on your data and model, and what a sample costs here.

    Args:
        dataset: `digits` (the default), another one that `fedaccord.data.load_dataset` knows by
            name, or a `Dataset`.
        data: instead, your own: a folder or a mapping with each client's examples, arrays, a data
            frame; whatever `fedaccord.train` accepts.
        consortium: who has how many samples. A dataset that is smaller than all of them together is
            scaled; without a consortium, five clients share it evenly. In a dataset that comes from
            several centres, each of them is a client, unless the consortium's clients are others.
        task: `softmax` (the default), `mlp`, `cnn`, `cox` (the default for survival times), one
            that another package adds, or a `Task`.
        local: what a client does in a round: `GradientStep()` (the default), `LocalEpochs()` or
            `LocalSteps()`.
        server: what the server does with the clients' average: `fedavg` (the default), `fedadam`,
            `fedyogi` or `fedadagrad`, or one with its numbers, such as `FedAdam(rate=0.03)`.
        fine_tuning: epochs that each client adds by itself at the end, on its share. The law is
            then that of these personal models, each judged on its owner's own test.
        rounds: rounds in a slot; the consortium's, or else 50.
        measure: what is lost: `error` (1 - accuracy, or 1 - concordance for survival times) or
            `loss`, the task's own.
        seeds: how many runs for each size.
        smallest: the fewest examples to train on; a 64th of all, but at least 10, unless given.
        price_per_second: what a second of this machine costs; turns seconds into a cost.
        chip: instead, by eq. 4 of the paper: the chip's coefficient, together with `hertz`.
        hertz: the chip's clock speed.
        checkpoint: a file that keeps what has been measured: a call that was interrupted resumes
            there, and one that was not is over at once.
        progress: called as the work proceeds; see `Progress`.
    """
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.curve_store import CurveFile, identity_of
    from fedaccord.training.learning_curve import MEASURED, measure_curves, spread_sizes
    from fedaccord.training.speed import measure_speed

    price = _price(price_per_second, chip, hertz)
    check_choice("measure", measure, MEASURED)
    check_whole("seeds", seeds, least=1)
    if smallest is not None:
        check_whole("smallest", smallest, least=1)
    source = _source(dataset, data, consortium, progress)
    own = isinstance(source, OwnPartition)
    course = _course(source, consortium, task, local_steps(local), rounds)
    course = replace(course, server=server_optimiser(server), fine_tuning=fine_tuning or 0)
    if fine_tuning is not None:
        _check_fine_tuning(fine_tuning, course)
    largest = sum(len(share) for share in course.partition(0).draw(1))
    sizes = spread_sizes(largest, **({} if smallest is None else {"smallest": smallest}))
    store = None
    if checkpoint is not None:
        store = CurveFile(Path(checkpoint), identity_of(course, sizes, seeds, own))
        store.load()  # refuses another measurement before any work is done
    if progress is not None:
        progress(0, 0, "Timing")
    speed = measure_speed(course.model, course.local)

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(done, of, "Training")

    curves = measure_curves(course, sizes, seeds, alone=own, store=store, progress=tell)
    found = Calibration(course, curves, measure, speed, price)
    _check_positive("cost_per_sample", found.cost_per_sample, "the cost per sample")
    return found


def _source(
    dataset: "str | Dataset | None",
    data: Any,
    consortium: Consortium | None,
    progress: "Progress | None",
) -> OwnPartition | Dataset:
    """Data of each client's own, or one dataset for all."""
    clients = None if consortium is None else consortium.names
    if data is None:
        return find_source(dataset, clients, progress)
    if dataset is not None:
        raise InvalidInput("cannot be combined with data, which is another one", field="dataset")
    if isinstance(data, OwnPartition):
        return data if clients is None else own_part(data, clients)
    if isinstance(data, Dataset):
        return data
    if progress is not None:
        progress(0, 0, "Reading")
    names = clients_in(data) if clients is None else clients
    if not names and callable(data) and not hasattr(data, "__getitem__"):
        raise InvalidInput("a function of a client's name needs a consortium", field="data")
    return read_data(data, names)


def _course(
    source: OwnPartition | Dataset,
    consortium: Consortium | None,
    task: "str | Task | None",
    local: "LocalRule",
    rounds: int | None,
) -> "Course":
    """What is trained, by whom: a dataset is dealt out in proportion to everyone's samples."""
    from fedaccord.training.course import Course

    if rounds is not None:
        check_whole("rounds", rounds, least=1)
    slot = rounds or (_ROUNDS if consortium is None else int(consortium.rounds))
    if isinstance(source, OwnPartition):
        model = find_model(task, source.dataset)
        return Course(model, source.reordered, slot, local, names=source.names)
    held = source
    samples = _evenly(held.size) if consortium is None else consortium.samples
    scale = min(1.0, held.size / float(samples.sum()))
    sizes = [int(size) for size in np.floor(samples * scale)]
    names = [f"client-{n + 1}" for n in range(len(sizes))]
    return Course(
        model=find_model(task, held),
        partition=partial(RandomPartition, held, sizes),
        rounds=slot,
        local=local,
        scale=scale,
        names=names if consortium is None else consortium.names,
    )


def _check_fine_tuning(epochs: int, course: "Course") -> None:
    """Refuse to fine-tune if somebody's own test cannot judge the result."""
    from fedaccord.training.fine_tuning import check_fine_tuning

    check_whole("fine_tuning", epochs, least=1)
    model, partition = course.model, course.partition(0)
    check_fine_tuning(epochs, partition)
    for name, own in zip(course.names, partition.tests, strict=True):
        if np.isnan(model.evaluate_each(model.start(0), own)[1]).any():
            raise InvalidInput(
                f"{name}: its own test has no two examples of which it is known whose event came "
                "first",
                field="fine_tuning",
            )


def _evenly(size: int) -> FloatArray:
    parts = np.array_split(np.arange(size), min(_CLIENTS, size))
    return np.array([len(part) for part in parts], dtype=np.float64)


def clients_in(data: Any) -> tuple[str, ...]:
    """The clients that a folder or a mapping has examples of; none if it is one dataset."""
    found: Iterable[str] = ()
    if isinstance(data, str | Path) and Path(data).is_dir():
        files = (path for path in sorted(Path(data).iterdir()) if path.suffix in (".npz", ".csv"))
        found = dict.fromkeys(path.stem for path in files)
    elif isinstance(data, Mapping) and not is_one_source(data):
        found = data
    return tuple(name for name in found if name != "test")


def _price(per_second: float | None, chip: float | None, hertz: float | None) -> float | None:
    """What a second costs: as given, or chip / 2 x hertz^3, which is eq. 4 for a second.

    A sample takes cycles = seconds x hertz, and costs chip / 2 x cycles x hertz^2.
    """
    if (chip is None) != (hertz is None):
        missing, given = ("hertz", "chip") if hertz is None else ("chip", "hertz")
        raise InvalidInput(f"must be given together with {given}", field=missing)
    if chip is not None and per_second is not None:
        raise InvalidInput("must be given alone, without chip and hertz", field="price_per_second")
    _check_positive("price_per_second", per_second)
    _check_positive("chip", chip)
    _check_positive("hertz", hertz)
    if chip is not None and hertz is not None:
        per_second = chip / 2 * hertz * hertz * hertz  # a power would raise OverflowError
        _check_positive("hertz", per_second, "what a second costs")
    return per_second


def _check_positive(field: str, value: float | None, place: str = "") -> None:
    if value is not None and not 0 < value < inf:
        raise InvalidInput(Problem(field, f"must be more than 0 and finite, got {value:g}", place))
