"""A hundred clients in Flower's simulation: `python -m tests.flower.hundred LEDGER MODEL`.

In a process of its own, since Ray leaves things behind in the one that it runs in.
"""

import sys
from pathlib import Path

from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.flower.simulation import simulate, terms_for
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.parameters import to_bytes
from fedaccord.training.course import Course, TrainingRun
from fedaccord.training.optimisers import FedAdam
from fedaccord.training.rules import LocalSteps
from fedaccord.training.task import Model, find_task


def run(ledger: Path | None, *, in_process: bool) -> TrainingRun:
    """Two slots; one client slips in the first. Client and server both adapt their steps."""
    digits = load_dataset("digits")
    sizes = [10 + n % 5 for n in range(100)]
    consortium = Consortium(
        valuation=[10.0 + n for n in range(100)],
        cost_per_sample=0.005,
        samples=sizes,
        rounds=2,
        discount_factor=0.8,
    )
    model = Model(find_task("softmax"), digits)
    course = Course(
        model,
        lambda seed: RandomPartition(digits, sizes, seed),
        rounds=2,
        local=LocalSteps(0.05, 5, 4, proximal=0.1, optimiser="adam"),
        server=FedAdam(0.2),
    )
    terms = terms_for(consortium, course, punishment_slots=1, margin=0.05)
    slips = {"client-40": {1: 0}}
    return simulate(
        consortium, course, terms, slots=2, ledger=ledger, slips=slips, in_process=in_process
    )


if __name__ == "__main__":
    found = run(Path(sys.argv[1]), in_process=False)
    arrays = {name: value.numpy() for name, value in found.parameters.items()}
    Path(sys.argv[2]).write_bytes(to_bytes(arrays))
