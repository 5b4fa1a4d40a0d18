"""The form of a training, as it was filled in: perhaps wrongly."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.orders import (
    MOST_EPOCHS,
    MOST_ROUNDS,
    MOST_SEEDS,
    OPTIMISERS,
    PROFILES,
    UPLOADED,
    USUAL,
    USUAL_SEEDS,
    Optimiser,
    Order,
    Profile,
    time_in_words,
)
from fedaccord.console.workshop.settings import Settings
from fedaccord.data.dataset import datasets_here
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium

OPTIMISER: Optimiser = "fedavg"
"""The usual one."""


class TrainingForm(BaseModel):
    """What stands in the fields; anything may."""

    dataset: Annotated[str, Field(max_length=100)] = "digits"
    profile: list[str] = []
    seeds: str = str(USUAL_SEEDS)
    rounds: str = ""
    optimiser: Annotated[str, Field(max_length=100)] = OPTIMISER
    fine_tuning: str = ""

    @property
    def chosen(self) -> list[Profile]:
        """The profiles that are ticked; the usual two if none is."""
        return [name for name in PROFILES if name in self.profile] or list(USUAL)

    @property
    def chosen_optimiser(self) -> Optimiser:
        """What the server does; as usual if it is none that there is."""
        return next((name for name in OPTIMISERS if name == self.optimiser), OPTIMISER)

    @property
    def seeds_or_usual(self) -> int:
        """How many runs of each profile."""
        return _whole(self.seeds, MOST_SEEDS) or USUAL_SEEDS

    def rounds_of(self, consortium: Consortium) -> int:
        """As many rounds as asked for, or as the consortium has."""
        usual = min(int(consortium.rounds), MOST_ROUNDS)
        return _whole(self.rounds, MOST_ROUNDS) or usual

    def time(self, rounds: int) -> str:
        """Roughly how long it takes."""
        return time_in_words(self.dataset, self.chosen, self.seeds_or_usual, rounds)

    def order(self, draft: Draft, settings: Settings, consortium: Consortium) -> Order:
        """What is to be trained; `InvalidInput` has what is wrong, field by field."""
        problems = list(self._problems())
        if problems:
            raise InvalidInput(problems)
        try:
            return Order(
                consortium=draft.text,
                settings=settings,
                dataset=self.dataset,
                profiles=self.chosen,
                seeds=self.seeds_or_usual,
                rounds=self.rounds_of(consortium),
                optimiser=self.chosen_optimiser,
                fine_tuning=_whole(self.fine_tuning, MOST_EPOCHS) or 0,
            )
        except ValidationError:
            raise InvalidInput("is too large to train on from this page", field="") from None

    def _problems(self) -> list[Problem]:
        found = []
        if self.dataset != UPLOADED and self.dataset not in datasets_here():
            found.append(Problem("dataset", "Choose one of these."))
        if not any(name in self.profile for name in PROFILES):
            found.append(Problem("profile", "Choose at least one."))
        if self.optimiser not in OPTIMISERS:
            found.append(Problem("optimiser", "Choose one of these."))
        for field, most in (("seeds", MOST_SEEDS), ("rounds", MOST_ROUNDS)):
            given = getattr(self, field).strip()
            if _whole(given, most) is None and (given or field == "seeds"):
                found.append(Problem(field, f"A whole number from 1 to {most}."))
        epochs = self.fine_tuning.strip()
        if epochs not in ("", "0") and _whole(epochs, MOST_EPOCHS) is None:
            found.append(Problem("fine_tuning", f"A whole number from 0 to {MOST_EPOCHS}."))
        return found


def _whole(text: str, most: int) -> int | None:
    """A whole number from 1 to `most`; None if the text is none."""
    text = text.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        return None
    return int(text) if 1 <= int(text) <= most else None
