"""Training under an agreement, on this machine or on Flower; and what a sample costs and is worth.

`fedaccord.train` and `fedaccord.calibrate` are here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # see __init__.pyi
