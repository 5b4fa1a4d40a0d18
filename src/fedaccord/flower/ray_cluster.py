"""The Ray cluster of a simulation: its own, on this machine, closed to everyone else.

By default Ray listens on all interfaces, and anyone who reaches a port can run code. Here its ports
are on the loopback interface and require a token that only this process and its children have, and
its files are in a directory that only this user can enter. A cluster that is already running, of
this user or another, is left alone.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from fedaccord.errors import FedaccordError

_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where Ray supports no clusters it uses the loopback interface only; with "0", on Linux too."""
_SHORT = "/tmp" if os.name == "posix" else None
"""Paths of sockets must be short, and TMPDIR may be long."""


@contextmanager
def closed_cluster() -> Iterator[dict[str, Any]]:
    """The arguments with which `ray.init` starts a closed cluster.

    The settings are in the environment, which Ray's processes inherit, and are removed afterwards.
    """
    import ray
    from ray._private import ray_constants

    if ray.is_initialized():
        raise FedaccordError(
            "Ray is already running in this process, and Flower would shut it down after the "
            "simulation: call ray.shutdown() first"
        )
    closed = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32), _LOOPBACK: "0"}
    quiet = {name: value for name, value in _QUIET.items() if name not in os.environ}
    folder = tempfile.TemporaryDirectory(prefix="ray-", dir=_SHORT, ignore_cleanup_errors=True)
    usual = ray_constants.ENABLE_RAY_CLUSTER
    try:
        with folder as place, _environment(quiet | closed):
            _read_settings_again(clusters=False)
            # "local" is never a cluster that is running, whatever RAY_ADDRESS says; Ray opens its
            # own directory to everyone, so it is a subdirectory of ours
            yield {"address": "local", "_temp_dir": str(Path(place, "ray"))}
    finally:
        _read_settings_again(clusters=usual)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    try:
        os.environ.update(values)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_settings_again(*, clusters: bool) -> None:
    """Ray reads them only on import; `clusters` says whether it may use other interfaces."""
    from ray._private import ray_constants
    from ray._raylet import (  # type: ignore[attr-defined,unused-ignore]
        AuthenticationTokenLoader,
        Config,
    )

    ray_constants.ENABLE_RAY_CLUSTER = clusters
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
