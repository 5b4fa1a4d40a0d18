"""A consortium in one place: the server's directory, and below `clients` those of its members."""

from collections.abc import Sequence
from pathlib import Path

from fedaccord.data.dataset import Dataset
from fedaccord.deployment.admission import load_app_terms
from fedaccord.deployment.app_directory import write_app as write_server
from fedaccord.deployment.stand_ins import examples_of, join_everyone
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
    examples = {} if dataset is None else examples_of(terms, privates, dataset)
    join_everyone(home, home / "clients", privates, examples)
    return load_app_terms(home)
