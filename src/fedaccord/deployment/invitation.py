"""What the coordinator sends to every member: the terms, and how the server is reached.

Two files have this form. The invitation has terms without keys, since nobody has made any yet. The
file to sign has all keys, and the digest of the app that the members' nodes will run. Both are the
terms in TOML, with a table `[server]` after them. Nothing in them is secret.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fedaccord.errors import InvalidInput
from fedaccord.files.reading import TOML_LIMIT, load_toml, parse_toml
from fedaccord.protocol.mistakes import mistakes_in
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.protocol.terms_text import terms_text, toml_value

DIGEST = r"^[0-9a-f]{64}$"
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")


def _address(value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        raise ValueError("must be a name or an address and a port, such as server.example:8443")
    return value


Address = Annotated[str, AfterValidator(_address)]
"""HOST:PORT."""


class Reach(BaseModel):
    """How members reach the server, and which app it will ask them to run."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    address: Address
    authority: str = Field(pattern=r"^-----BEGIN CERTIFICATE-----\n")
    """The certificate by which members recognise the server, in PEM."""
    app: str | None = Field(default=None, pattern=DIGEST)
    """The SHA-256 digest of the app; missing in an invitation."""
    version: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Of the terms, where a room counts them: a signature on one version fits no other."""


@dataclass(frozen=True)
class Invitation:
    """The terms, and the server that they are about."""

    terms: Terms
    server: Reach

    @property
    def text(self) -> str:
        """The file: the terms, and a table after them."""
        lines = [terms_text(self.terms), "# How members reach the server, and how they know it."]
        lines.append("[server]")
        lines.append(f"address = {toml_value(self.server.address)}")
        lines.append(f"authority = '''\n{self.server.authority}'''")
        if self.server.app is not None:
            lines.append("# The SHA-256 digest of the app that members' nodes run, and no other.")
            lines.append(f"app = {toml_value(self.server.app)}")
        if self.server.version is not None:
            lines.append("# Which version of the terms this is in the room.")
            lines.append(f"version = {self.server.version}")
        return "\n".join([*lines, ""])


def without_keys(terms: Terms) -> Terms:
    """Terms as an invitation has them."""
    return terms if terms.keys is None else terms.model_copy(update={"keys": None})


def host_of(address: str) -> tuple[str, int]:
    """The host and the port of an address; an IPv6 address is without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def load_invitation(path: Path) -> Invitation:
    """The invitation in a file, or every mistake in it."""
    return _read(dict(load_toml(path)), str(path))


def read_invitation(text: str, source: str) -> Invitation:
    """The invitation in a text that came from elsewhere, or every mistake in it."""
    if len(text) > TOML_LIMIT:
        raise InvalidInput("is too large", source)
    return _read(parse_toml(text, source), source)


def _read(given: dict[str, Any], source: str) -> Invitation:
    if "server" not in given:
        raise InvalidInput(
            "has no table [server], so it is neither an invitation nor a file to sign", source
        )
    try:
        server = Reach.model_validate(given.pop("server"))
    except ValidationError as error:
        wrong = [one.inside("server") for one in mistakes_in(error)]
        raise InvalidInput(wrong, source) from None
    return Invitation(read_terms(given, source), server)
