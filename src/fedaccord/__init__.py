"""Self-enforcing participation agreements for cross-silo federated learning.

>>> import fedaccord as fa
>>> consortium = fa.paper_consortium(clients=100)
>>> agreement = fa.solve_agreement(consortium, kind="individual")
>>> fa.certify(agreement).holds
True
"""

from os import listdir

import lazy_loader

from fedaccord.moved import tell_of_moved_modules

# The public names with their types, and the subpackages, are in `__init__.pyi`; each is imported
# when it is first used, so that `fedaccord --help` needs no NumPy.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# `from fedaccord import *` takes the names alone: some subpackages need extras.
_files = set(listdir(__path__[0]))  # noqa: PTH208 (importing pathlib would take longer than all this)
__all__ = [name for name in __all__ if name not in _files]

__version__ = "0.1.0"

tell_of_moved_modules()
del tell_of_moved_modules, listdir, _files  # not public names
