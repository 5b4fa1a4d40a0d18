"""What a client remembers of suspensions: nobody is out, or back, without a reason."""

from fedaccord.audits.verdict import Standing, Verdict, standing_of
from fedaccord.protocol import notes
from fedaccord.protocol.envelopes import Place
from fedaccord.protocol.messages import AskedReport, Refusal, Suspended
from fedaccord.protocol.terms import Terms


class SuspensionMemory:
    """Compares who is said to be suspended with a client's own copy."""

    def __init__(self, own_name: str, copy: notes.Copy, terms: Terms) -> None:
        """Of one client."""
        self._own_name, self._notes, self._terms = own_name, copy, terms

    def check(self, place: Place, told: AskedReport, only: str | None = None) -> None:
        """Whoever was out when the client was last told must be out still, as long as agreed.

        Slots may have been played without this client, so others may have slipped or returned
        since then. But they return early only with its consent, or by terms that it signed.
        """
        standing = self._standing(told)
        settled = self._notes.newest_of(notes.Settlement, before=place.slot)
        if settled is None:
            return
        missed, known = place.slot - settled.slot - 1, settled.suspended
        for name, one in known.items():
            most = self._terms.still("suspension", one.slots_left)
            if most == 0 or name not in self._terms.clients or only not in (None, name):
                continue
            now = told.suspended.get(name)
            if now is None:
                over = most is not None and missed >= most
                cleared = standing.get((name, one.slipped_in)) in ("passed", "undecided")
                let_return = cleared or self._let_return(name, one, settled.slot, told)
                if not over and not let_return:
                    it = "it" if name == self._own_name else name
                    raise Refusal(f"{it} is suspended in slot {place.slot}, as its own copy says")
            elif now.slipped_in == one.slipped_in and not _counts_down(most, now, missed):
                raise Refusal(f"{name} is suspended for longer or shorter than its own copy says")
        for name, now in told.suspended.items():
            same = name in known and known[name].slipped_in == now.slipped_in
            failed = standing.get((name, now.slipped_in)) == "failed"
            if now.slipped_in <= settled.slot and not same and not failed:
                raise Refusal(f"{name} is suspended for a slip that its own copy does not have")

    def _standing(self, told: AskedReport) -> dict[tuple[str, int], Standing]:
        """What stands of the auditors' verdicts, by client and slot; each must be signed."""
        found: dict[tuple[str, int], list[Verdict]] = {}
        for signed in told.verdicts or ():
            verdict, rules = signed.verdict, self._terms.audits
            if rules is None or not signed.is_signed(self._terms.name, rules):
                raise Refusal("the server shows a verdict that no auditor of the terms signed")
            place = found.setdefault((verdict.client, verdict.slot), [])
            if any(one.auditor == verdict.auditor for one in place):
                raise Refusal("the server shows two verdicts of one auditor on the same audit")
            place.append(verdict)
        return {place: standing_of(verdicts) for place, verdicts in found.items()}

    def _let_return(self, name: str, out: Suspended, since: int, told: AskedReport) -> bool:
        """Whether a suspension was ended early: its own by the others, another's by all."""
        if name == self._own_name:
            return name in told.returned
        return any(
            (note.returns, note.slipped_in, note.agrees) == (name, out.slipped_in, True)
            for note in self._notes.since(notes.Consent, since)
        )


def _counts_down(most: int | None, now: Suspended, missed: int) -> bool:
    """Whether a suspension is as long as it can be after some slots; a void one need not count."""
    if most is None or now.slots_left is None:
        return now.slots_left is most
    return most - missed <= now.slots_left <= most
