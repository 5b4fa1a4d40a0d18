"""The program of a node that a member's page starts, with one sentence if it cannot run."""

import sys
from pathlib import Path

from fedaccord.errors import FedaccordError


def _main(client_file: str) -> None:
    from fedaccord.flower.keep_node import keep_node

    try:
        keep_node(Path(client_file))
    except FedaccordError as error:
        sys.exit(f"The node cannot run: {error}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
