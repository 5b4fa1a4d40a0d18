"""How fast fedaccord is, as ratios: both contestants run side by side, in one run.

`make bench` runs all of them, each in a process of its own; `make bench ARGS="--only batch"` runs
one. To add one, write a module here with a function `run() -> Iterable[Row]` and list it in
`registry.py`.
"""
