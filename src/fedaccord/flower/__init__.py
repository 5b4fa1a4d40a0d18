"""The protocol, the training and the ledger across machines, on Flower.

`ledger` records what happened, and `protocol` decides what happens next; neither knows Flower. The
modules here connect the two to Flower's apps.
"""
