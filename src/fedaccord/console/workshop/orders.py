"""What is to be trained: checked here, before anything starts, and sent to the trainer."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fedaccord.console.workshop.settings import Settings
from fedaccord.data.dataset import datasets_here
from fedaccord.numbers import count

Profile = Literal["alone", "equilibrium", "agreement", "pooled"]
PROFILES: dict[Profile, str] = {
    "alone": "Each member by itself, on as much as pays for it.",
    "equilibrium": "Together, but without an agreement: each trains on as much as pays for it.",
    "agreement": "Together, as agreed on.",
    "pooled": "All data in one place: seldom allowed, but it shows the most that could be gained.",
}
"""What can be compared, in this order: gains are against the first one."""
USUAL: tuple[Profile, ...] = ("equilibrium", "agreement")
Optimiser = Literal["fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad"]
OPTIMISERS: dict[Optimiser, str] = {
    "fedavg": "their average (FedAvg)",
    "fedprox": "their average; members train in mini-batches, held near the last model (FedProx)",
    "fedadam": "a step towards their average, as Adam takes it (FedAdam)",
    "fedyogi": "the same with smaller changes of the step (FedYogi)",
    "fedadagrad": "the same with steps that only get smaller (FedAdagrad)",
}
"""What the server makes of the members' models in each round."""
MOST_SEEDS, MOST_ROUNDS, MOST_EPOCHS = 10, 200, 50
USUAL_SEEDS = 3
UPLOADED = "uploaded"
"""What stands for a data set of the visitor's own."""

ABOUT = {
    "digits": "1,797 handwritten digits of 8 x 8 pixels",
    "breast-cancer": "569 tumours with 30 measurements each, malignant or benign",
    "mnist": "70,000 handwritten digits of 28 x 28 pixels",
    "heart-disease": "740 patients of four clinics, each scaled by itself",
    "heart-disease-shared": "the same patients, scaled together",
    "heart-disease-imputed": "all 920 patients, with gaps filled",
    "tcga-brca": "1,088 patients with breast cancer, and how long they lived",
}
_PER_ROUND = {"digits": 0.012, "mnist": 0.12}
_PER_ROUND_ELSEWHERE = 0.004
_START = 5.0
"""Seconds until PyTorch is loaded and the first round begins."""
_ALONE = 3.0
"""Training alone takes longer by this factor: every member has a model that is tested."""


class Order(BaseModel):
    """A training under one profile or several."""

    model_config = ConfigDict(extra="forbid", strict=True)

    consortium: Annotated[str, Field(max_length=1_000_000)]
    """The text of a consortium file."""
    settings: Settings = Settings()
    """Of the agreement."""
    dataset: Annotated[str, Field(max_length=100)] = "digits"
    """One that is on this machine."""
    profiles: Annotated[list[Profile], Field(min_length=1, max_length=4)] = list(USUAL)
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = USUAL_SEEDS
    """Runs of each profile."""
    rounds: Annotated[int | None, Field(ge=1, le=MOST_ROUNDS)] = None
    """In the slot; None: as many as the file says, but at most 200."""
    optimiser: Optimiser = "fedavg"
    """How the server makes the next model."""
    fine_tuning: Annotated[int, Field(ge=0, le=MOST_EPOCHS)] = 0
    """Epochs that each member adds for itself, judged on its own test."""

    def rules(self) -> dict[str, Any]:
        """What the members do in a round, and the server with their models, as `train` takes it.

        Members take a gradient step each, unless they are to be held near the last model: a single
        step begins there.
        """
        from fedaccord.training.rules import USUAL_PROXIMAL, LocalEpochs

        if self.optimiser == "fedprox":
            return {"local": LocalEpochs(proximal=USUAL_PROXIMAL), "server": "fedavg"}
        return {"server": self.optimiser}

    @property
    def in_order(self) -> list[Profile]:
        """The profiles, each once."""
        return [profile for profile in PROFILES if profile in self.profiles]


class Upload(BaseModel):
    """A file of the visitor's own, kept for one training."""

    path: str
    client: str
    """Whose examples it has; `test`; `test/` and a name for a member's own test; or nothing if they
    are dealt out to all."""


class Job(BaseModel):
    """What the trainer gets."""

    order: Order
    uploads: list[Upload] = []
    folder: str = ""
    """Where the files are; the trainer removes it if nobody else can."""


def dataset_choices() -> list[tuple[str, str]]:
    """The data sets on this machine, each with a few words."""
    return [(name, ABOUT.get(name, "from another package")) for name in datasets_here()]


def time_in_words(dataset: str, profiles: list[Profile], seeds: int, rounds: int) -> str:
    """Roughly how long a training takes on a usual machine.

    >>> time_in_words("digits", ["equilibrium", "agreement"], 3, 50)
    'about 10 seconds'
    >>> time_in_words("mnist", ["alone"], 10, 200)
    'about 12 minutes'
    """
    if dataset == UPLOADED:
        return "seconds for a small table, minutes for many thousand examples"
    runs = sum(_ALONE if profile == "alone" else 1.0 for profile in profiles) * seeds
    seconds = _START + runs * rounds * _PER_ROUND.get(dataset, _PER_ROUND_ELSEWHERE)
    if seconds < 60:
        return f"about {max(round(seconds, -1), 10):.0f} seconds"
    return f"about {count(round(seconds / 60), 'minute')}"
