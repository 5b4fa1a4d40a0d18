"""What only a client itself knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Private:
    """A client's numbers, and what it has decided.

    Of all this it reveals its ratio and its samples, and what it saves while it is suspended if the
    terms say that it saves its fees; and nothing at all if they say that nobody reports.
    """

    name: str
    valuation: float
    cost_per_sample: float
    samples: int
    discount_factor: float
    communication_cost: float = 0.0
    tells_discount_factor: bool = False
    consents_to_slot: int | None = None
    """The slot whose model it agrees to go back to, if that is proposed."""
    consents_to_return: tuple[str, int] | None = None
    """The suspended client whose early return it agrees to, if that is proposed, and the slot in
    which that one slipped: consent to one suspension is not consent to the next."""
    slips: Mapping[int, int] = field(default_factory=dict)
    """For rehearsals: slots in which it trains on another number of samples than asked."""

    @property
    def ratio(self) -> float:
        """rho/E."""
        return self.valuation / self.cost_per_sample
