"""What an auditor looks at on a member's premises: its file, its data, its secret and its trace."""

from pathlib import Path

from fedaccord.audits.examination import Shown
from fedaccord.audits.merkle import MerkleTree
from fedaccord.audits.opening import open_records
from fedaccord.audits.records import Records
from fedaccord.audits.stated import Stated, drawn_records
from fedaccord.errors import InvalidInput
from fedaccord.flower.client_file import FileTraining, load_client_file
from fedaccord.flower.local import local_steps
from fedaccord.protocol.terms import Terms


class Premises:
    """A member's directory, as the auditor finds it."""

    def __init__(self, client_file: Path, terms: Terms) -> None:
        """`terms` are those of the ledger, under which the slot was played."""
        self.file = load_client_file(client_file)
        if self.file.name not in terms.clients:
            raise InvalidInput(
                f"name: there is no {self.file.name!r} in the terms", str(client_file)
            )
        self._terms = terms
        self._training = FileTraining(self.file, client_file.parent, terms)

    @property
    def records(self) -> Records:
        """All its records."""
        return self._training.member.records

    def show(self, stated: Stated) -> Shown:
        """What the member has to show for a drawn round."""
        member = self._training.member
        traced, incoming, update = member.trace.find(stated.draw.slot, stated.draw.turn)
        records, tree = member.records, MerkleTree(member.records, member.secret)
        places = [place for place in drawn_records(stated) if place < len(records)]
        return Shown(
            model=member.model,
            local=local_steps(self._terms),
            secret=member.secret,
            opened=open_records(tree, records, places),
            round=traced,
            incoming=incoming,
            update=update,
        )
