"""Hypothesis settings: the same examples every time, more of them with the slow tests.

`make test ARGS="--hypothesis-profile=explore"` draws new ones, and more of them.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=15)
settings.register_profile(
    "explore", settings.get_profile("repeatable"), derandomize=False, max_examples=1_000
)
settings.load_profile("repeatable")
