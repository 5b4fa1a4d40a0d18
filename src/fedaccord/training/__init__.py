"""FedAvg under a profile: each client trains on as many samples as it contributes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # see __init__.pyi
