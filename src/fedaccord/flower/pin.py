"""The pin: a node starts only the app whose digest its member signed.

A SuperNode of Flower runs whatever app its SuperLink sends, or, with `--trusted-entities`, an app
that a trusted key has signed. Here the node itself is that trusted key: it signs, with a key that
never leaves the process, the bundles whose SHA-256 is `app` in the member's `client.toml`. Flower's
own check then lets those pass, and answers every other one with an error.

What the pin does not hold: Flower's own code and every package that is installed on the machine,
what the messages of the server say, and whoever can write `client.toml` or run programs as the
node's user.
"""

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fedaccord.errors import InvalidInput
from fedaccord.flower.client_file import load_client_file

_SIGNER = "this-node"
"""Under which name Flower knows the key that signs what this member has signed."""


class Pin:
    """The app that a member signed, as its file says now: a newly signed app needs no restart."""

    def __init__(self, client_file: Path) -> None:
        """The file must have a digest."""
        self.client_file = client_file
        self._key = Ed25519PrivateKey.generate()
        self.signed()

    def signed(self) -> str:
        """The digest of the app that the member signed."""
        found = load_client_file(self.client_file).app
        if found is None:
            raise InvalidInput(
                "app is missing: this member has signed no app yet, and its node starts no other; "
                "sign it with `fedaccord member sign`",
                str(self.client_file),
            )
        return found

    def refusal(self, content: bytes, claimed: str) -> str | None:
        """Why a bundle must not be started; None if it is the one that the member signed."""
        found = hashlib.sha256(content).hexdigest()
        try:
            signed = self.signed()
        except InvalidInput as error:
            return f"the server's app was not started: {error}"
        if found == claimed == signed:
            return None
        pretended = "" if claimed == found else f", which the server calls {claimed}"
        return (
            f"the server's app was not started: its digest is {found}{pretended}, and this member "
            f"signed {signed}. If the consortium has agreed on a new app, sign it with `fedaccord "
            "member sign`; if not, ask whoever runs the server why it sends another"
        )

    @property
    def trusted_entities(self) -> dict[str, str]:
        """Flower's argument of this name: only this node's own key is trusted."""
        public = self._key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return {_SIGNER: public.decode("ascii")}

    def verifications(self, content: bytes, *, signed: bool) -> dict[str, str]:
        """What Flower checks of a bundle: whatever the server sent is left out."""
        from flwr.supercore.primitives.asymmetric_ed25519 import create_message_to_sign

        licence = {"valid_license": "true"}  # else Flower says that the server cannot verify apps
        if not signed:
            return licence
        at = int(time.time())
        text = create_message_to_sign(hashlib.sha256(content).digest(), at)
        signature = urlsafe_b64encode(self._key.sign(text)).decode("ascii")
        return licence | {_SIGNER: json.dumps({"signed_at": at, "signature": signature})}
