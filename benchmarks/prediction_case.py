"""One calibration, the agreements that follow from it, and what they gain in fact.

The examples of a dataset are shuffled and cut into three: one part to train on, one to calibrate
with, and one that nothing but the judgement sees. The six hospitals of the example share the first
part. The law is measured with ten seeds, the agreement is made for it, and then the equilibrium and
the agreement are trained with ten other seeds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.consortia import six_hospitals
from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_consortium
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.numbers import FloatArray
from fedaccord.training.course import train
from fedaccord.training.engine import GradientStep
from fedaccord.training.learning_curve import MEASURED, Measure
from fedaccord.trials.calibration import Calibration, calibrate

RANGES = {"all": 1.0, "half": 0.5}
"""How much of the data the law is measured on; the agreement is always about all of it."""


@dataclass(frozen=True)
class Setting:
    """A dataset, a task, and how the examples are cut."""

    dataset: str
    task: str
    examples: int
    """To train on, all hospitals together."""
    tests: int
    """Test examples to calibrate with, and as many others to judge by."""
    rate: float = 1.0
    """Of a gradient step; one is taken in each round."""
    rounds: int = 50
    seeds: int = 10
    """To calibrate with, and as many others to judge by."""


@dataclass(frozen=True)
class Prediction:
    """What was predicted of an agreement, and what was measured."""

    dataset: str
    task: str
    rate: float
    measure: str
    split: int
    measured_range: str
    """Of the law: "all" of the data or "half" of it."""
    made_for: str
    """The laws that the agreement holds for: "all laws" or "the fit"."""
    objections: int
    """That `calibrate` raises against the law."""
    chi2: float
    equilibrium: float
    """The part of all data that is trained on at the equilibrium."""
    agreed: float
    """The same under the agreement."""
    predicted: float
    """The gain by the fitted law."""
    low: float
    """The band of the gain on other test examples, and that gain."""
    high: float
    gain: float
    low_same: float
    """The band of the gain on the same test examples, and that gain."""
    high_same: float
    gain_same: float

    @property
    def covered(self) -> bool:
        """Whether the gain on other test examples lies in its band."""
        return self.low <= self.gain <= self.high

    @property
    def covered_same(self) -> bool:
        """Whether the gain on the same test examples lies in its band."""
        return self.low_same <= self.gain_same <= self.high_same


@dataclass(frozen=True)
class Refusal:
    """A curve that no law was fitted to, or a law without any agreement."""

    dataset: str
    task: str
    rate: float
    measure: str
    split: int
    measured_range: str
    reason: str


def agreement_for(law: Law) -> tuple[Agreement, str]:
    """The agreement that holds for all resampled laws; if there is none, that for the fit."""
    consortium = six_hospitals(law)
    agreement = solve_agreement(consortium)
    if agreement.exists:
        return agreement, "all laws"
    return solve_agreement(consortium, robust=False), "the fit"


def up_to(curve: Curve, part: float) -> Curve:
    """The curve as far as a part of its largest size."""
    kept = curve.sizes <= part * curve.largest * 1.01
    examples = None if curve.by_example is None else curve.by_example[kept]
    return Curve(curve.sizes[kept], curve.seeds, curve.values[kept], curve.measure, examples)


@dataclass(frozen=True)
class Case:
    """A setting with one way to cut its examples."""

    setting: Setting
    split: int

    @cached_property
    def data(self) -> Dataset:
        """The examples to train on and to calibrate with."""
        return self._cut[0]

    @cached_property
    def others(self) -> tuple[Any, Any]:
        """Inputs and labels that only the judgement sees."""
        return self._cut[1]

    @cached_property
    def _cut(self) -> tuple[Dataset, tuple[Any, Any]]:
        whole = load_dataset(self.setting.dataset)
        inputs = np.concatenate([whole.inputs, whole.test_inputs])
        labels = np.concatenate([whole.labels, whole.test_labels])
        order = np.random.default_rng(self.split).permutation(len(labels))
        ends = np.cumsum([self.setting.examples, self.setting.tests, self.setting.tests])
        own, test, others = np.split(order, ends)[:3]
        cut = (inputs[own], labels[own], inputs[test], labels[test])
        return Dataset(whole.name, *cut, whole.classes), (inputs[others], labels[others])

    @cached_property
    def calibration(self) -> Calibration:
        """The law, measured on all of the data."""
        return calibrate(
            self.data,
            consortium=example_consortium(),
            task=self.setting.task,
            local=GradientStep(self.setting.rate),
            rounds=self.setting.rounds,
            seeds=self.setting.seeds,
        )

    def predictions(self) -> Iterator[Prediction | Refusal]:
        """One for each measure and range."""
        for measure in MEASURED:
            for name in RANGES:
                try:
                    yield self._prediction(measure, name)
                except InvalidInput as wrong:
                    yield Refusal(*self._facts(measure, name), str(wrong))

    def _facts(self, measure: Measure, name: str) -> tuple[str, str, float, str, int, str]:
        setting = self.setting
        return setting.dataset, setting.task, setting.rate, measure, self.split, name

    def _prediction(self, measure: Measure, name: str) -> Prediction:
        course, runs = self.calibration.course, self.setting.seeds
        law = fit_law(up_to(self.calibration.curves.curve(measure, course.scale), RANGES[name]))
        agreement, made_for = agreement_for(law)
        if not agreement.exists:
            raise InvalidInput(f"no agreement: {agreement.reason}")
        evidence = law.evidence
        assert evidence is not None
        profiles = agreement.equilibrium.profile, agreement.profile
        gain, gain_same = self._gains(measure, *profiles)
        totals = [float(examples_for(one, course.scale).sum()) / course.scale for one in profiles]
        everything = float(agreement.consortium.samples.sum())
        low, high = evidence.band_of_gain(*totals, runs=runs, examples=self.setting.tests)
        low_same, high_same = evidence.band_of_gain(*totals, runs=runs)
        return Prediction(
            *self._facts(measure, name),
            made_for=made_for,
            objections=len(evidence.objections),
            chi2=evidence.chi2,
            equilibrium=totals[0] / everything,
            agreed=totals[1] / everything,
            predicted=float(law.fall(totals[0], totals[1] - totals[0])),
            low=float(low),
            high=float(high),
            gain=gain,
            low_same=float(low_same),
            high_same=float(high_same),
            gain_same=gain_same,
        )

    def _gains(
        self, measure: Measure, before: FloatArray, after: FloatArray
    ) -> tuple[float, float]:
        """The mean gain over fresh seeds: on other test examples, and on the same ones."""
        fresh = range(self.setting.seeds, 2 * self.setting.seeds)
        lost = [[self._lost(one, seed)[measure] for seed in fresh] for one in (before, after)]
        other, same = -np.diff(np.array(lost), axis=0)[0].mean(axis=0)
        return float(other), float(same)

    def _lost(self, profile: FloatArray, seed: int) -> dict[Measure, tuple[float, float]]:
        """What a profile loses with a seed, on other test examples and on the same ones."""
        course = self.calibration.course
        run = (*examples_for(profile, course.scale).tolist(), seed)
        if run not in self._runs:
            done = train(course, profile, seed=seed)
            loss, accuracy = course.model.evaluate(done.parameters, *self.others)
            wrong = (1 - accuracy, 1 - done.final.accuracy)
            self._runs[run] = {"error": wrong, "loss": (loss, done.final.loss)}
        return self._runs[run]

    @cached_property
    def _runs(self) -> dict[tuple[int, ...], dict[Measure, tuple[float, float]]]:
        """What was trained already: all laws of a case lead to the same equilibrium."""
        return {}
