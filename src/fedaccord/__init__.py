"""Self-enforcing participation agreements for cross-silo federated learning.

>>> import fedaccord as fa
>>> consortium = fa.paper_consortium(clients=100)
>>> agreement = fa.solve_agreement(consortium, kind="individual")
>>> fa.certify(agreement).holds
True
"""

import lazy_loader

from fedaccord.moved import tell_of_moved_modules

# The public names, with their types, are in `__init__.pyi`; each is imported when it is first
# used, so that `fedaccord --help` needs no NumPy.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"

tell_of_moved_modules()
del tell_of_moved_modules  # not a public name
