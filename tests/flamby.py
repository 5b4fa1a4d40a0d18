"""FLamby's published results on Heart-Disease and TCGA-BRCA, and our trainings in its settings.

The numbers are those of the files `flamby/results/results_benchmark_fed_heart_disease/
heart_seed42.csv` to `heart_seed46.csv` and of `tcga_seed42.csv` to `tcga_seed46.csv` in FLamby's
repository (github.com/owkin/FLamby), as counts: test patients that a model is right about, or pairs
of them that it puts in the right order.

`python -m tests.flamby` replays all of FLamby's runs on Heart-Disease, and writes the tables of the
page on FLamby. It takes some minutes, and needs the original files in FEDACCORD_DATA.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from fedaccord.data.heart_disease import load_heart_disease
from fedaccord.data.own import OwnPartition
from fedaccord.data.partition import Indices
from fedaccord.data.tcga_brca import load_tcga_brca
from fedaccord.numbers import FloatArray
from fedaccord.training.engine import PlainEngine, TrainingPlan
from fedaccord.training.measures import Measure
from fedaccord.training.optimisers import (
    FEDAVG,
    FedAdagrad,
    FedAdam,
    FedYogi,
    ServerOptimiser,
)
from fedaccord.training.rules import LocalEpochs, LocalRule, LocalSteps
from fedaccord.training.task import Model, Parameters, Task, find_task
from fedaccord.training.vectorised.many import train_many

SEEDS = range(42, 47)
"""FLamby's five."""
OUR_SEEDS = range(10)

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "flamby.md"

# --- What was published ----------------------------------------------------------------------


class Published(NamedTuple):
    """How many are right, of how many, with each of FLamby's seeds.

    One column for each centre's own test, and one for all test records together.
    """

    right: tuple[tuple[int, ...], ...]
    of: tuple[int, ...]

    @property
    def shares(self) -> FloatArray:
        """Accuracy or concordance, with a row for each seed."""
        of = np.array(self.of[: len(self.right[0])], dtype=np.float64)
        return np.array(self.right, dtype=np.float64) / of


PATIENTS = (104, 89, 16, 45, 254)
"""To test on in Cleveland, Hungary, Switzerland, Long Beach, and in all."""
_HEART_FEDAVG = (
    (79, 62, 11, 28, 191),
    (75, 66, 12, 30, 194),
    (77, 67, 8, 26, 194),
    (76, 60, 12, 28, 178),
    (73, 65, 9, 32, 193),
)
_HEART_FEDYOGI = (
    (79, 68, 12, 28, 199),
    (76, 65, 12, 30, 195),
    (80, 67, 12, 33, 199),
    (79, 66, 12, 31, 203),
    (81, 69, 11, 30, 193),
)
_HEART = {
    "alone": (
        (76, 67, 13, 34),
        (78, 66, 13, 31),
        (76, 67, 10, 30),
        (78, 66, 13, 29),
        (80, 66, 9, 34),
    ),
    "pooled": (
        (83, 68, 12, 29, 201),
        (81, 68, 12, 29, 202),
        (82, 68, 12, 29, 202),
        (81, 68, 12, 29, 203),
        (80, 68, 12, 29, 202),
    ),
    "FedAvg": _HEART_FEDAVG,
    "FedProx": _HEART_FEDAVG,  # the same, to the patient
    "FedAdam": (
        (79, 67, 12, 28, 197),
        (75, 65, 12, 29, 195),
        (79, 66, 12, 33, 198),
        (79, 65, 12, 31, 204),
        (79, 69, 11, 29, 195),
    ),
    "FedYogi": _HEART_FEDYOGI,
    "FedAdagrad": _HEART_FEDYOGI,
}
HEART = {name: Published(right, PATIENTS) for name, right in _HEART.items()}

PAIRS = (358, 44, 108, 48, 47, 3, 2730)
"""That can be compared in Northeast, South, West, Midwest, Europe, Canada, and in all."""
_TCGA = {
    "alone": (
        (231, 21, 95, 27, 43, 2),
        (236, 19, 90, 30, 42, 2),
        (241, 22, 95, 27, 39, 2),
        (207, 24, 86, 31, 40, 2),
        (238, 30, 93, 28, 36, 2),
    ),
    "pooled": (
        (287, 23, 90, 25, 47, 3, 2174),
        (251, 36, 91, 21, 46, 2, 2129),
        (284, 17, 53, 36, 29, 2, 1664),
        (307, 31, 83, 31, 41, 1, 2136),
        (255, 21, 64, 38, 17, 1, 1508),
    ),
    "FedAvg": (
        (271, 33, 82, 30, 46, 3, 2191),
        (206, 10, 38, 40, 6, 1, 1154),
        (277, 34, 82, 28, 47, 3, 2206),
        (299, 29, 87, 37, 40, 3, 2263),
        (280, 32, 84, 27, 46, 3, 2223),
    ),
    "FedAdam": (
        (305, 27, 95, 27, 44, 3, 2288),
        (306, 30, 88, 21, 41, 3, 2241),
        (300, 28, 100, 34, 44, 3, 2337),
        (316, 27, 97, 35, 42, 3, 2353),
        (292, 32, 96, 28, 41, 3, 2276),
    ),
}
TCGA = {name: Published(right, PAIRS) for name, right in _TCGA.items()}

COMPARED = {
    "heart": {row: HEART[row] for row in ("alone", "pooled", "FedAvg", "FedAdam", "FedYogi")},
    "tcga": TCGA,
}
"""Rows that differ from each other."""


# --- FLamby's settings -----------------------------------------------------------------------


def _logistic_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(
        outputs.flatten(), labels.to(outputs.dtype), reduction="none"
    )


def _wrong_sign(outputs: Tensor, labels: Tensor) -> Tensor:
    return ((outputs.flatten() > 0) != (labels == 1)).to(torch.float64)


LOGISTIC = Task(
    name="logistic regression with one output",
    build=lambda dataset: nn.Sequential(nn.Flatten(), nn.Linear(dataset.shape[0], 1)),
    loss=_logistic_loss,
    measure=Measure("accuracy", _wrong_sign),
)
"""FLamby's model of Heart-Disease. The task `softmax` has two outputs, so a step moves their
difference, which is all that counts, twice as far."""


@dataclass(frozen=True, eq=False)
class Setting:
    """How FLamby trains on one dataset."""

    data: OwnPartition
    model: Model
    pooled: Model
    """On the records as FLamby pools them: those of Heart-Disease are normalised differently."""
    alone: LocalRule
    """For training alone and on pooled records, in one round."""
    rounds: int
    strategies: dict[str, tuple[LocalSteps, ServerOptimiser]]

    @property
    def shares(self) -> list[Indices]:
        """Each centre's training records, in the order of the files."""
        return [np.sort(own) for own in self.data.draw(1)]

    def measured(self, models: Sequence[Parameters]) -> FloatArray:
        """The measure on each centre's own test, and on all test records as FLamby pools them.

        `models` are the centres' own, or one that all of them share.
        """
        centres = len(self.data.tests)
        if shared := len(models) == 1:
            models = [*models] * centres
        found = [
            1.0 - self.model.evaluate_each(has, own)[1].mean()
            for has, own in zip(models, self.data.tests, strict=True)
        ]
        if shared:
            found.append(1.0 - self.pooled.evaluate_each(models[0])[1].mean())
        return np.array(found)


def _adaptive(
    rate: float, batch: int, optimiser: type[FedAdam | FedYogi], server_rate: float
) -> tuple[LocalSteps, ServerOptimiser]:
    return LocalSteps(rate, batch, steps=100), optimiser(server_rate, beta2=0.999, tau=1e-8)


@cache
def heart() -> Setting:
    """Heart-Disease: 15 rounds of 100 steps; Adam for 50 epochs alone."""
    own, pooled = load_heart_disease(normalise="centre"), load_heart_disease(normalise="pooled")
    return Setting(
        data=own,
        model=Model(LOGISTIC, own.dataset),
        pooled=Model(LOGISTIC, pooled.dataset),
        alone=LocalEpochs(0.001, 4, epochs=50, optimiser="adam"),
        rounds=15,
        strategies={
            "FedAvg": (LocalSteps(0.001, 4, steps=100), FEDAVG),
            "FedProx": (LocalSteps(0.001, 4, steps=100, proximal=0.01), FEDAVG),
            "FedAdam": _adaptive(0.01, 4, FedAdam, 0.01),
            "FedYogi": _adaptive(0.003162, 4, FedYogi, 0.01),
            "FedAdagrad": (LocalSteps(0.003162, 4, steps=100), FedAdagrad(0.316228, tau=1e-8)),
        },
    )


@cache
def tcga() -> Setting:
    """TCGA-BRCA with the age in years: 5 rounds of 100 steps; Adam for 30 epochs alone."""
    data = load_tcga_brca(normalise="none")
    model = Model(find_task("cox"), data.dataset)
    return Setting(
        data=data,
        model=model,
        pooled=model,
        alone=LocalEpochs(0.1, 8, epochs=30, optimiser="adam"),
        rounds=5,
        strategies={
            "FedAvg": (LocalSteps(0.1, 8, steps=100), FEDAVG),
            "FedAdam": _adaptive(0.01, 8, FedAdam, 0.1),
        },
    )


# --- With FLamby's own mini-batches ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Replay(TrainingPlan):
    """A slot with given mini-batches."""

    given: dict[tuple[int, int], list[Indices]] = field(default_factory=dict)
    """By client and round."""

    def batches(self, client: int, turn: int) -> list[Indices]:
        """Those given."""
        return self.given[client, turn]


def replay_alone(setting: Setting, model: Model, records: Indices, seed: int) -> Parameters:
    """The plain engine on some records, with the mini-batches that FLamby's seed gives."""
    assert isinstance(setting.alone, LocalEpochs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        loader = _loader(records, setting.alone)
        given = [batch.numpy() for _ in range(setting.alone.epochs) for batch in loader]
    plan = Replay(model, [records], 1, setting.alone, given={(0, 1): given})
    return _last(plan, model.start(seed))


def replay_federated(setting: Setting, strategy: str, seed: int) -> Parameters:
    """Likewise federated. FLamby's loaders go on from round to round: an epoch may span two."""
    local, server = setting.strategies[strategy]
    given: dict[tuple[int, int], list[Indices]] = {}
    with torch.random.fork_rng(devices=[]):
        loaders = [_loader(own, local) for own in setting.shares]
        going_on = [iter(loader) for loader in loaders]
        torch.manual_seed(seed)  # after the first iterators are made, before they draw
        for turn in range(1, setting.rounds + 1):
            for client, loader in enumerate(loaders):
                given[client, turn] = []
                while len(given[client, turn]) < local.steps:
                    batch = next(going_on[client], None)
                    if batch is None:
                        going_on[client] = iter(loader)
                    else:
                        given[client, turn].append(batch.numpy())
    plan = Replay(setting.model, setting.shares, setting.rounds, local, server=server, given=given)
    return _last(plan, setting.model.start(seed))


FILES = (0, 2, 1, 3)
"""The order in which FLamby must have read the centres' files. Its pooled training depends on it:
of the 24 orders only this one gives the published numbers with all five seeds."""


def replay_heart(row: str, seed: int) -> list[int]:
    """How many test patients are right in a row of FLamby's table, with one of its seeds."""
    setting = heart()
    if row == "alone":
        models = [replay_alone(setting, setting.model, own, seed) for own in setting.shares]
    elif row == "pooled":
        every = np.concatenate([setting.shares[n] for n in FILES])
        models = [replay_alone(setting, setting.pooled, every, seed)]
    else:
        models = [replay_federated(setting, row, seed)]
    measured = setting.measured(models)
    return [round(n) for n in (measured * np.array(PATIENTS[: len(measured)])).tolist()]


def _loader(records: Indices, local: LocalRule) -> DataLoader[Tensor]:
    assert isinstance(local, LocalEpochs | LocalSteps)
    rows: list[Tensor] = list(torch.from_numpy(records))
    return DataLoader(rows, batch_size=local.batch, shuffle=True)  # type: ignore[arg-type]


def _last(plan: TrainingPlan, start: Parameters) -> Parameters:
    *_, after = PlainEngine().rounds(plan, start)
    return after


# --- With seeds and mini-batches of our own --------------------------------------------------

Train = Callable[[list[TrainingPlan], list[Parameters]], list[Parameters]]
"""Trains all plans, each from its start."""


def at_once(plans: list[TrainingPlan], starts: list[Parameters]) -> list[Parameters]:
    """The vectorised engine."""
    after = train_many(plans, starts)
    return [{name: value[n] for name, value in after.items()} for n in range(len(plans))]


def one_by_one(plans: list[TrainingPlan], starts: list[Parameters]) -> list[Parameters]:
    """The plain engine."""
    return [_last(plan, start) for plan, start in zip(plans, starts, strict=True)]


@cache
def ours(
    name: str, row: str, seeds: Sequence[int] = OUR_SEEDS, train: Train = at_once
) -> FloatArray:
    """The measures of a row in FLamby's table, one line for each of our seeds."""

    def trained(
        model: Model, groups: Sequence[list[Indices]], local: LocalRule, *rest: Any
    ) -> list[Parameters]:
        return _trained(model, groups, local, *rest, seeds=seeds, train=train)

    setting = {"heart": heart, "tcga": tcga}[name]()
    shares = setting.shares
    if row == "alone":
        none = [own[:0] for own in shares]
        apart = [[*none[:n], own, *none[n + 1 :]] for n, own in enumerate(shares)]
        models = iter(trained(setting.model, apart, setting.alone, 1))
        return np.array([setting.measured([next(models) for _ in apart]) for _ in seeds])
    if row == "pooled":
        found = trained(setting.pooled, [[np.concatenate(shares)]], setting.alone, 1)
    else:
        local, server = setting.strategies[row]
        found = trained(setting.model, [shares], local, setting.rounds, server)
    return np.array([setting.measured([model]) for model in found])


def fedavg_errors(model: Model) -> list[FloatArray]:
    """Of FedAvg on Heart-Disease at ten times FLamby's rate: own tests, by seed and patient."""
    setting = heart()
    models = _trained(model, [setting.shares], LocalSteps(0.01, 4, steps=100), setting.rounds)
    return [
        np.array([model.evaluate_each(each, own)[1] for each in models])
        for own in setting.data.tests
    ]


def _trained(
    model: Model,
    groups: Sequence[list[Indices]],
    local: LocalRule,
    rounds: int,
    server: ServerOptimiser = FEDAVG,
    *,
    seeds: Sequence[int] = OUR_SEEDS,
    train: Train = at_once,
) -> list[Parameters]:
    """The last model of each group, with one of our seeds after another."""
    each = [(group, seed) for seed in seeds for group in groups]
    plans = [TrainingPlan(model, own, rounds, local, seed, server=server) for own, seed in each]
    return train(plans, [model.start(seed) for _, seed in each])


# --- The page --------------------------------------------------------------------------------

_BLOCK = re.compile(r"(<!-- (heart|tcga) -->\n).*?(?=<!-- end of \2 -->)", re.DOTALL)


def table(name: str) -> str:
    """FLamby's mean over five seeds, and below it ours with its standard deviation."""
    data = {"heart": heart, "tcga": tcga}[name]().data
    lines = [
        f"| | {' | '.join(data.names)} | all together |",
        "|---" * (len(data.names) + 2) + "|",
    ]
    for row, theirs in COMPARED[name].items():
        mine = ours(name, row)
        cells = [f"{mean:.3f}" for mean in theirs.shares.mean(axis=0)]
        own = [
            f"{m:.3f} ± {s:.3f}"
            for m, s in zip(mine.mean(axis=0), mine.std(axis=0, ddof=1), strict=True)
        ]
        for who, values in ((f"{row}, FLamby", cells), (f"{row}, ours", own)):
            gaps = [""] * (len(data.names) + 1 - len(values))
            lines.append(f"| {who} | {' | '.join([*values, *gaps])} |")
    return "\n".join(["", *lines, "", ""])


def blocks(page: str) -> dict[str, str]:
    """The tables of a page, by dataset."""
    return {found[2]: found[0] for found in _BLOCK.finditer(page)}


def numbers(block: str) -> list[float]:
    """All numbers in a table."""
    return [float(found) for found in re.findall(r"\d\.\d{3}", block)]


if __name__ == "__main__":
    replays = [
        given == got
        for row, theirs in HEART.items()
        for seed, right in zip(SEEDS, theirs.right, strict=True)
        for given, got in zip(right, replay_heart(row, seed), strict=True)
    ]
    print(f"{sum(replays)} of {len(replays)} numbers on Heart-Disease are replayed to the patient")
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_BLOCK.sub(lambda found: found[1] + table(found[2]), text), "utf-8")
