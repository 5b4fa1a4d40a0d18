"""Services of systemd: the server's SuperLink, its nginx, and a client's node.

Each may write into its own directory only, and is started again when it fails.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from fedaccord.deployment.templates import filled
from fedaccord.errors import InvalidInput

_NO_DEVICES = "\nPrivateDevices=yes\n"
"""Not for a client's node: training may need a graphics card."""
_LOOPBACK_ONLY = """
# The SuperLink talks to this machine only. Add the address of the ledger's database, if it has one.
IPAddressDeny=any
IPAddressAllow=localhost
"""


def server_units(
    directory: Path, programs: Path, user: str, superlink: Sequence[str], nginx: Sequence[str]
) -> dict[str, str]:
    """The two services of the server's directory, by the names of their files.

    `programs` is the directory of fedaccord's and Flower's commands; `superlink` and `nginx` are
    the commands to run.
    """
    return {
        "fedaccord-superlink.service": _unit(
            directory,
            programs,
            user,
            [str(programs / superlink[0]), *superlink[1:]],
            description="The SuperLink of a fedaccord consortium, for this machine only",
            more=_NO_DEVICES + _LOOPBACK_ONLY,
        ),
        "fedaccord-fence.service": _unit(
            directory,
            programs,
            user,
            nginx,
            description="The fence around the SuperLink of a fedaccord consortium (nginx)",
            more=_NO_DEVICES + "ExecStartPre=mkdir -p run\nExecReload=kill -HUP $MAINPID\n",
        ),
    }


def member_unit(directory: Path, programs: Path, user: str, command: Sequence[str]) -> str:
    """The service that runs a client's node in its directory."""
    return _unit(
        directory,
        programs,
        user,
        [str(programs / command[0]), *command[1:]],
        description="A member of a fedaccord consortium",
        more="",
    )


def _unit(
    directory: Path,
    programs: Path,
    user: str,
    command: Sequence[str],
    *,
    description: str,
    more: str,
) -> str:
    return filled(
        "service",
        description=description,
        directory=_escaped(str(directory.absolute())),
        programs=_escaped(str(programs.absolute())),
        user=user,
        command=" ".join(_escaped(f"'{word}'" if " " in word else word) for word in command),
        more=more,
    )


def _escaped(text: str) -> str:
    """A word in a service's file, where some characters would be taken for something else."""
    if wrong := re.search(r'["$\\\x00-\x1f\x7f]', text):
        raise InvalidInput(f"{text!r}: systemd cannot have {wrong.group()!r} in a path")
    return text.replace("%", "%%")
