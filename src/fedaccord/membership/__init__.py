"""Who should be in a consortium: whose data helps whom, and which groups hold together.

`group_scores` has the errors of models that groups of clients trained, `shapley` and `values` what
each client's data is worth to whom, `quality` what one of its samples is worth in the game, and
`stability` which groups nobody would rather leave.
"""
