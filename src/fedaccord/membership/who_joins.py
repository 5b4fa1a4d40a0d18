"""`fedaccord.join`: who should train together, on data in any form that `train` accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedaccord.checks import check_whole
from fedaccord.data.dataset import Dataset
from fedaccord.data.own import OwnPartition
from fedaccord.game.consortium import Consortium
from fedaccord.membership.holdings import holders_course
from fedaccord.trials.setting import Progress

if TYPE_CHECKING:
    from fedaccord.membership.joining import Joining
    from fedaccord.membership.ways import Way
    from fedaccord.training.rules import LocalRule
    from fedaccord.training.task import Task


def join(
    consortium: Consortium | None = None,
    *,
    dataset: str | Dataset | None = None,
    data: Any = None,
    clients: int | None = None,
    task: str | Task | None = None,
    local: LocalRule | None = None,
    ways: Sequence[Way] | None = None,
    rounds: int | None = None,
    skew: float | None = None,
    scale: float | None = None,
    seeds: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joining:
    """Find out who gains by training together, with whom, and which groups hold together.

    Every group of up to 10 clients is trained, and each member is judged by its own test, or by
    the common one if there is no other.

    Args:
        consortium: who they are, and what an error and a slot cost them: groups are then compared
            by money. Without one, whoever the data is of, compared by accuracy.
        dataset: a dataset, or the name of one; `digits` by default. If it comes with centres, these
            are the clients.
        data: your own data instead, as for `fedaccord.train`.
        clients: how many share a dataset without centres evenly; 5 by default.
        task: `softmax`, `mlp`, `cnn`, `cox`, one that another package adds, or a `Task`.
        local: what a client does in a round, as for `fedaccord.train`.
        ways: how they may train, as `fedaccord.membership.ways.Way`; by default FedAvg with `local`
            at three rates, and FedAdam, each without and with fine-tuning. The best is chosen on
            training examples alone, and compared with plain FedAvg.
        rounds: rounds in a slot; the consortium's, or else 50.
        skew: gives each client its own mixture of labels, and its own test.
        scale: examples of the dataset per sample of a client.
        seeds: how many runs of each group.
        seed: that of the first run, and of what is drawn.
        progress: called as the work proceeds; see `Progress`.
    """
    check_whole("seed", seed, least=0)
    course = holders_course(
        consortium,
        dataset=dataset,
        data=data,
        clients=clients,
        skew=skew,
        seed=seed,
        progress=progress,
        task=task,
        local=local,
        rounds=rounds,
        scale=scale,
    )
    from fedaccord.membership.joining import join_groups
    from fedaccord.membership.ways import usual_ways

    partition = course.partition(seed)
    assert isinstance(partition, OwnPartition)
    own_tests = bool(len(partition.tests))
    return join_groups(
        partition,
        course.model.task,
        usual_ways(course.local, own_tests=own_tests) if ways is None else ways,
        rounds=course.rounds,
        scale=course.scale,
        seeds=seeds,
        seed=seed,
        consortium=consortium,
        progress=progress,
    )
