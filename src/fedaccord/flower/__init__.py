"""The protocol, the training and the bookkeeping across machines, on Flower.

`ledger` keeps what happened, `protocol` decides what happens next and knows no Flower; the modules
here join the two to Flower's apps.
"""

from importlib.util import find_spec

from fedaccord.errors import FedaccordError


def check_installed(*modules: str) -> None:
    """Say what to install when something is missing, before anything is imported."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise FedaccordError(
            f"this needs {' and '.join(missing)}, which {are} not installed: "
            f"pip install 'fedaccord[train,flower]' brings {them}"
        )
