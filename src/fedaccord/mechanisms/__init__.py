"""What can be done about free riders, and how the alternatives compare.

`mechanism` says what a mechanism is, `verdict` judges whether clients keep to its outcome, `simple`
lists those that there are, and `comparison` compares them. In `clock` clients say when to stop;
`stopping` has the formulas for many consortia at once, and `tiers` what several models mean. In
`transfers` they pay each other. `contract` is contract design, `detection` finds free riders by
their updates. `posted` amounts follow from public ranges
alone, and `misreport` says who gains by lying under the mechanisms that ask.
"""
