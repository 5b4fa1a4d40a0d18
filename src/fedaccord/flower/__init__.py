"""The protocol, the training and the bookkeeping across machines, on Flower.

`ledger` keeps what happened, `protocol` decides what happens next and knows no Flower; the modules
here join the two to Flower's apps.
"""
