"""What a client does in a round: one gradient step, or mini-batches for some epochs or steps.

With `proximal` (mu) the gradient of each mini-batch is that of loss + mu/2 |w - w_global|^2, which
keeps a client near the global model: FedProx (Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith,
Federated optimization in heterogeneous networks, MLSys 2020). The models are averaged as usual.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from fedaccord.checks import check_choice, check_number
from fedaccord.errors import InvalidInput

LocalOptimiser: TypeAlias = Literal["sgd", "adam"]
USUAL_PROXIMAL = 0.01
"""mu of FedProx, unless another number is asked for."""
LOCAL_OPTIMISERS: tuple[LocalOptimiser, ...] = ("sgd", "adam")


def _check_rate(rate: float) -> None:
    """Reject a rate that is 0 or infinite in 32-bit precision, which most models use."""
    limits = np.finfo(np.float32)
    if not float(limits.tiny) <= rate <= float(limits.max):
        raise InvalidInput(f"must be more than 0 and fit 32 bits, got {rate:g}", field="rate")


@dataclass(frozen=True)
class GradientStep:
    """Each client takes one step along the gradient of all its samples (batch B = X in all)."""

    rate: float = 1.0

    def __post_init__(self) -> None:
        """Reject an unusable rate."""
        _check_rate(self.rate)

    def __str__(self) -> str:
        """In words, with every digit of the rate: checkpoints are distinguished by it."""
        return f"one gradient step, rate {self.rate!r}"


@dataclass(frozen=True)
class MiniBatches(ABC):
    """What `LocalEpochs` and `LocalSteps` have in common."""

    rate: float = 0.1
    batch: int = 64
    proximal: float = field(default=0.0, kw_only=True)
    """mu, the weight of the distance to the global model; 0 for none."""
    optimiser: LocalOptimiser = field(default="sgd", kw_only=True)
    """`adam` has PyTorch's defaults and starts afresh in each round."""

    def __post_init__(self) -> None:
        """Reject unusable numbers."""
        _check_rate(self.rate)
        check_number("proximal", self.proximal, least=0)
        check_choice("optimiser", self.optimiser, LOCAL_OPTIMISERS)

    @abstractmethod
    def steps_for(self, samples: int) -> int:
        """How many mini-batches a client with so many samples takes in a round."""

    def epochs_for(self, samples: int) -> int:
        """How often it shuffles its samples for that."""
        return ceil(self.steps_for(samples) / ceil(samples / self.batch))

    def _details(self) -> str:
        """What comes last in words: every digit, and nothing that is as usual."""
        proximal = f", proximal {self.proximal!r}" if self.proximal else ""
        return f"rate {self.rate!r}{proximal}{', Adam' if self.optimiser == 'adam' else ''}"


@dataclass(frozen=True)
class LocalEpochs(MiniBatches):
    """Each client goes through its samples in mini-batches, `epochs` times."""

    epochs: int = 1

    def __post_init__(self) -> None:
        """Reject unusable numbers."""
        super().__post_init__()
        if min(self.batch, self.epochs) < 1:
            raise InvalidInput("batch and epochs: must be 1 or more")

    def steps_for(self, samples: int) -> int:
        """As many as the epochs have."""
        return self.epochs * ceil(samples / self.batch)

    def __str__(self) -> str:
        """In words, with every digit of the rate."""
        return f"mini-batches of {self.batch}, epochs {self.epochs}, {self._details()}"


@dataclass(frozen=True)
class LocalSteps(MiniBatches):
    """Each client takes `steps` mini-batches, whatever it has, and shuffles after each epoch.

    So a client with few samples sees each of them more often than a client with many.
    """

    steps: int = 100

    def __post_init__(self) -> None:
        """Reject unusable numbers."""
        super().__post_init__()
        if min(self.batch, self.steps) < 1:
            raise InvalidInput("batch and steps: must be 1 or more")

    def steps_for(self, samples: int) -> int:
        """The same for everyone."""
        del samples
        return self.steps

    def __str__(self) -> str:
        """In words, with every digit of the rate."""
        return f"mini-batches of {self.batch}, steps {self.steps}, {self._details()}"


LocalRule: TypeAlias = GradientStep | LocalEpochs | LocalSteps
