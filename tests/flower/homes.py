"""A consortium in one place: the server's directory, and below `clients` those of its members."""

from collections.abc import Sequence
from pathlib import Path

from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.deployment.admission import admit, load_app_terms
from fedaccord.deployment.app_directory import write_app as write_server
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import MemberData, sign_member, write_member
from fedaccord.deployment.new_directory import folder_names
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms


def write_app(
    home: Path,
    terms: Terms,
    privates: Sequence[Private],
    dataset: Dataset | None = None,
    *,
    hosts: Sequence[str] = ("127.0.0.1",),
    port: int = 8443,
) -> Terms:
    """Everything from the invitation to the last signature; returns the terms with all keys."""
    write_server(home, terms, hosts, port=port)
    folders = {
        name: home / "clients" / plain for name, plain in folder_names(terms.clients).items()
    }
    parts = [None] * len(privates) if dataset is None else _dealt(privates, dataset)
    for private, data in zip(privates, parts, strict=True):
        write_member(
            folders[private.name], load_invitation(home / "invitation.toml"), private, data
        )
    admit(home, [folder / "card.json" for folder in folders.values()])
    for folder in folders.values():
        sign_member(folder, load_invitation(home / "to-sign.toml"))
    admit(home, [folder / "signature.json" for folder in folders.values()])
    return load_app_terms(home)


def _dealt(privates: Sequence[Private], dataset: Dataset) -> list[MemberData | None]:
    drawn = RandomPartition(dataset, [private.samples for private in privates]).draw(1)
    test = (dataset.test_inputs, dataset.test_labels)
    return [MemberData((dataset.inputs[own], dataset.labels[own]), test) for own in drawn]
