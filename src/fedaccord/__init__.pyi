from .agreement.agreement import Agreement as Agreement
from .agreement.agreement import agreement_on as agreement_on
from .agreement.batch import Batch as Batch
from .agreement.batch import solve_batch as solve_batch
from .agreement.certificate import Certificate as Certificate
from .agreement.certificate import certify as certify
from .agreement.coalition import Coalition as Coalition
from .agreement.coalition import find_coalition as find_coalition
from .agreement.file import load_agreement as load_agreement
from .agreement.punishment import Reversion as Reversion
from .agreement.punishment import Suspension as Suspension
from .agreement.solve import shortest_punishment as shortest_punishment
from .agreement.solve import smallest_discount_factor as smallest_discount_factor
from .agreement.solve import solve_agreement as solve_agreement
from .errors import FedaccordError as FedaccordError
from .errors import InvalidInput as InvalidInput
from .errors import NotConverged as NotConverged
from .experiments.reproduction import Reproduction as Reproduction
from .experiments.reproduction import reproduce as reproduce
from .files.consortium import load_consortium as load_consortium
from .files.tables import load_profile as load_profile
from .game.algorithm1 import own_contribution as own_contribution
from .game.algorithm1 import rank_clients as rank_clients
from .game.consortium import Client as Client
from .game.consortium import Consortium as Consortium
from .game.cost import cost as cost
from .game.dynamics import run_dynamics as run_dynamics
from .game.equilibrium import Equilibrium as Equilibrium
from .game.equilibrium import best_response as best_response
from .game.equilibrium import solve_equilibrium as solve_equilibrium
from .game.paper import paper_consortium as paper_consortium
from .game.social_optimum import price_of_anarchy as price_of_anarchy
from .game.social_optimum import solve_social_optimum as solve_social_optimum
from .interviews.interview import Interview as Interview
from .interviews.interview import interview as interview
from .mechanisms.comparison import MechanismComparison as MechanismComparison
from .mechanisms.comparison import compare as compare
from .repeated.match import Match as Match
from .repeated.match import play as play
from .trials.calibration import Calibration as Calibration
from .trials.calibration import calibrate as calibrate
from .trials.trial import Trial as Trial
from .trials.trial import train as train

__version__: str

__all__: list[str]
