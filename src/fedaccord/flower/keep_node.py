"""Keeps a member's node running: in a process of its own, which is started again when it ends.

Flower ends its node's process when the server does not let the node in: for about a minute after
the node was killed, while its clock is wrong, or before its key is registered.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.member_log import write_log
from fedaccord.flower.node import check_node, run_node

LOG = logging.getLogger("fedaccord")
_PAUSE = 10.0
"""Seconds before the node is started again."""
_END = 10.0
"""Seconds that the node has to end by itself."""


def keep_node(client_file: Path) -> None:
    """Run the node of a client's file until a signal (SIGTERM, SIGINT) ends it."""
    check_node(client_file)
    write_log()
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        asked.set()

    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, ask)
    name = load_client_file(client_file).name
    while not asked.is_set():
        node = _start(client_file)
        while node.poll() is None and not asked.wait(0.2):
            pass
        if asked.is_set():
            _end(node)
        else:
            LOG.warning("the node of %s ended; it is started again in %.0f s", name, _PAUSE)
            asked.wait(_PAUSE)


def _start(client_file: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", __name__, str(client_file), str(os.getpid())]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)


def _end(node: "subprocess.Popen[bytes]") -> None:
    node.terminate()
    try:
        node.wait(_END)
    except subprocess.TimeoutExpired:
        node.kill()
        node.wait()


def _main(client_file: str, parent: str) -> None:
    """The node's process; it ends with the one that keeps it."""
    from flwr.supercore.app_utils import start_parent_process_monitor

    start_parent_process_monitor(int(parent))
    run_node(Path(client_file))


if __name__ == "__main__":
    _main(*sys.argv[1:])
