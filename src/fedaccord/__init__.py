"""Self-enforcing participation agreements for cross-silo federated learning.

>>> import fedaccord as fa
>>> consortium = fa.paper_consortium(clients=100)
>>> agreement = fa.solve_agreement(consortium, kind="individual")
>>> fa.certify(agreement).holds
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedaccord.agreement.agreement import Agreement as Agreement
    from fedaccord.agreement.agreement import agreement_on as agreement_on
    from fedaccord.agreement.agreement_file import load_agreement as load_agreement
    from fedaccord.agreement.batch import Batch as Batch
    from fedaccord.agreement.batch import solve_batch as solve_batch
    from fedaccord.agreement.certificate import Certificate as Certificate
    from fedaccord.agreement.certificate import certify as certify
    from fedaccord.agreement.punishment import shortest_punishment as shortest_punishment
    from fedaccord.agreement.solve import smallest_discount_factor as smallest_discount_factor
    from fedaccord.agreement.solve import solve_agreement as solve_agreement
    from fedaccord.errors import FedaccordError as FedaccordError
    from fedaccord.errors import InvalidInput as InvalidInput
    from fedaccord.errors import NotConverged as NotConverged
    from fedaccord.game.algorithm1 import own_contribution as own_contribution
    from fedaccord.game.algorithm1 import rank_clients as rank_clients
    from fedaccord.game.consortium import Client as Client
    from fedaccord.game.consortium import Consortium as Consortium
    from fedaccord.game.cost import cost as cost
    from fedaccord.game.dynamics import run_dynamics as run_dynamics
    from fedaccord.game.equilibrium import Equilibrium as Equilibrium
    from fedaccord.game.equilibrium import best_response as best_response
    from fedaccord.game.equilibrium import solve_equilibrium as solve_equilibrium
    from fedaccord.game.files import load_consortium as load_consortium
    from fedaccord.game.files import load_profile as load_profile
    from fedaccord.game.paper import paper_consortium as paper_consortium
    from fedaccord.game.social_optimum import price_of_anarchy as price_of_anarchy
    from fedaccord.game.social_optimum import solve_social_optimum as solve_social_optimum

_HOMES = {
    "Agreement": "agreement.agreement",
    "agreement_on": "agreement.agreement",
    "load_agreement": "agreement.agreement_file",
    "Batch": "agreement.batch",
    "solve_batch": "agreement.batch",
    "Certificate": "agreement.certificate",
    "certify": "agreement.certificate",
    "shortest_punishment": "agreement.punishment",
    "smallest_discount_factor": "agreement.solve",
    "solve_agreement": "agreement.solve",
    "FedaccordError": "errors",
    "InvalidInput": "errors",
    "NotConverged": "errors",
    "own_contribution": "game.algorithm1",
    "rank_clients": "game.algorithm1",
    "Client": "game.consortium",
    "Consortium": "game.consortium",
    "cost": "game.cost",
    "run_dynamics": "game.dynamics",
    "Equilibrium": "game.equilibrium",
    "best_response": "game.equilibrium",
    "solve_equilibrium": "game.equilibrium",
    "load_consortium": "game.files",
    "load_profile": "game.files",
    "paper_consortium": "game.paper",
    "price_of_anarchy": "game.social_optimum",
    "solve_social_optimum": "game.social_optimum",
}

__all__ = list(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `fedaccord --help` needs no NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fedaccord' has no attribute {name!r}")
    value = getattr(import_module(f"fedaccord.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*_HOMES, "__version__"])
