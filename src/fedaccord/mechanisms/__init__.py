"""What can be done about free riders, and how the alternatives compare.

`mechanism` says what a mechanism is, `verdict` judges whether clients keep to its outcome, `simple`
lists those that there are, and `comparison` compares them. In `clock` clients say when to stop, and
`tiers` has what several models mean; in `transfers` they pay each other. `contract` is contract
design, `detection` finds free riders by their updates.
"""
