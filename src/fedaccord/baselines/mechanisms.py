"""The mechanisms there are. The next one: write it in a file of its own, and list it here."""

from fedaccord.baselines.agreed import Agreed
from fedaccord.baselines.contract import Contract
from fedaccord.baselines.everything import Everything
from fedaccord.baselines.mechanism import Mechanism
from fedaccord.baselines.oracle_detection import OracleDetection
from fedaccord.baselines.selfish import Selfish
from fedaccord.baselines.transfers import SocialOptimumWithTransfers

MECHANISMS: tuple[Mechanism, ...] = (
    Selfish(),
    Agreed("uniform"),
    Agreed("individual"),
    SocialOptimumWithTransfers(),
    Everything(),
    Contract(),
    OracleDetection(),
)
