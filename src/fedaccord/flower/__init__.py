"""The protocol, the training and the ledger across machines, on Flower.

`ledger` records what happened, and `protocol` decides what happens next; neither knows Flower. The
modules here connect the two to Flower's apps.
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
