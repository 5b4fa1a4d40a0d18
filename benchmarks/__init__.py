"""How quick fedaccord is, as ratios: both contestants run side by side, in one run.

`make bench` runs them all; `make bench ARGS="--only batch"` runs one. To add one, write a module
here with `run() -> list[Row]` and name it in `registry.py`.
"""
