"""What can be done about free riders, and how the alternatives compare.

`mechanism` says what a mechanism is, `simple` lists those that there are, and `comparison` compares
them. `contract` is contract design, `detection` finds free riders by their updates.
"""
