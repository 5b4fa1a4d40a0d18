"""The mechanisms there are. The next one: write it in a file of its own, and list it here."""

from fedaccord.mechanisms.contract.contract import Contract
from fedaccord.mechanisms.mechanism import Mechanism
from fedaccord.mechanisms.simple import (
    Agreed,
    Everything,
    OracleDetection,
    Selfish,
    SocialOptimumWithTransfers,
)

MECHANISMS: tuple[Mechanism, ...] = (
    Selfish(),
    Agreed("uniform"),
    Agreed("individual"),
    SocialOptimumWithTransfers(),
    Everything(),
    Contract(),
    OracleDetection(),
)
