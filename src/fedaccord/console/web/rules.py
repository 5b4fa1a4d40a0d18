"""The terms in words: the main rules, and what is different between two versions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedaccord.flower.client_file import rules_by_name
from fedaccord.numbers import count
from fedaccord.protocol.terms import AgreementKind, Terms

_LABELS = {
    "name": "Name",
    "clients": "Members",
    "rounds": "Rounds in each slot",
    "discount_factor": "Discount factor of members that keep theirs to themselves",
    "reports": "What members report",
    "agreement": "How amounts are found",
    "clock_steps": "Steps of the clock",
    "margin": "Margin",
    "objective": "What the agreement aims at",
    "nobody_worse": "Nobody may pay more than without it",
    "punishment": "What follows a slip",
    "punishment_slots": "Slots for which a slip is punished",
    "model_keeps": "What an old model is worth during a suspension",
    "fees_saved": "Fees are saved during a suspension",
    "server_fee": "Fee to the server in each slot",
    "tolerance": "Share that may be missing unpunished",
    "quorum": "Members that a slot needs",
    "on_refusal": "If a member refuses",
    "answer_seconds": "Seconds to wait for answers",
    "training_seconds": "Seconds to wait for training",
    "update_bound": "How far one update may move the model",
    "models_kept": "Models that the server keeps",
    "rollback_consent": "Who must agree to go back to an older model",
    "training.task": "What is trained",
    "training.code": "Code of what is trained",
    "training.shape": "Shape of an example",
    "training.classes": "Classes",
    "training.local": "What a member does in a round",
    "training.rate": "Learning rate",
    "training.scale": "Examples for each sample",
    "audits": "Audits",
    "law.kind": "Law of the loss",
}
_PUNISHED = {"reversion": "everyone acts selfishly", "suspension": "whoever slipped gets no model"}


@dataclass(frozen=True)
class Change:
    """A rule that is different in a new version."""

    rule: str
    """In words."""
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.before} -> {self.after}"


def changes_between(old: Terms, new: Terms) -> list[Change]:
    """Every rule that differs, in the order of the terms; keys are not rules.

    >>> terms = Terms.model_validate({"name": "Six", "clients": ("A", "B"), "rounds": 50,
    ...     "discount_factor": 0.9, "training": {"shape": (4,), "classes": 2}})
    >>> [str(one) for one in changes_between(terms, terms.model_copy(update={"rounds": 60}))]
    ['Rounds in each slot: 50 -> 60']
    """
    before, after = rules_by_name(old), rules_by_name(new)
    return [
        Change(label_of(key), _worded(before, key), _worded(after, key))
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key) and key.split(".")[0] != "keys"
    ]


def label_of(rule: str) -> str:
    """A rule's name in words."""
    if rule in _LABELS:
        return _LABELS[rule]
    table, _, field = rule.partition(".")
    if table == "public":
        name, _, what = field.rpartition(".")
        return f"{name}: {'amount' if what == 'contribution' else what.replace('_', ' ')}"
    return rule.replace("_", " ").replace(".", ": ").capitalize()


def rules_in_words(terms: Terms) -> list[tuple[str, str]]:
    """The main rules, for people who decide whether to sign."""
    training = terms.training
    labels = "survival times" if training.survival else f"{training.classes} classes"
    members = len(terms.clients)
    shape = " x ".join(map(str, training.shape))
    return [
        ("What is trained", f"{training.task} on examples of {shape} numbers, {labels}"),
        ("Rounds in each slot", f"{terms.rounds}"),
        ("What members report", reports_in_words(terms)),
        ("How amounts are found", amounts_in_words(terms)),
        ("What follows a slip", punishment_in_words(terms)),
        ("If a member refuses an offer", _REFUSED[terms.on_refusal]),
        (
            "Members that a slot needs",
            f"{terms.needed(members)} of {members}",
        ),
        ("Share that may be missing unpunished", _share(terms.tolerance)),
        ("Fee to the server in each slot", f"{terms.server_fee:g}"),
        ("Audits", "none" if terms.audits is None else "as the terms say in full"),
    ]


_REFUSED = {
    "without": "the others agree without it",
    "equilibrium": "everyone acts selfishly in that slot",
    "void": "nothing is trained in that slot",
}


def reports_in_words(terms: Terms) -> str:
    """What leaves a member, in one sentence."""
    if terms.reports == "none":
        return "Nothing: no member reports a private number."
    fees = " and what its fees are worth in samples" if terms.fees_saved else ""
    return (
        "In each slot a member reports how many samples it has, and a ratio: what the model is "
        f"worth to it, divided by what a sample costs it{fees}. That worth and that cost stay on "
        "its own machine."
    )


_FOUND: dict[AgreementKind, str] = {
    "individual": "computed in each slot from what members report: each member its own",
    "uniform": "computed in each slot from what members report: one level for many",
    "posted": "as posted in the terms",
    "everything": "all samples of everyone",
    "clock": "a clock raises everyone's share until somebody says stop",
    "serial clock": "a clock raises everyone's share, and goes on without those who say stop",
}


def amounts_in_words(terms: Terms) -> str:
    """Where the amounts come from."""
    return _FOUND[terms.agreement]


def posts_amounts(terms: Terms) -> bool:
    """Whether the terms say how much each member trains on; an agreement file belongs to them."""
    return terms.agreement == "posted"


def punishment_in_words(terms: Terms) -> str:
    """What happens to whoever trains on less."""
    slots = terms.punishment_slots
    duration = "for ever" if slots is None else f"for {count(slots, 'slot')}"
    return f"{_PUNISHED[terms.punishment]} {duration}"


def _share(part: float) -> str:
    return f"{part:.2%}" if part else "none"


_WORDED: dict[str, Callable[[Any], str]] = {
    "tolerance": _share,
    "quorum": lambda number: str(number) if number else "more than half",
    "punishment": lambda kind: _PUNISHED[kind],
    "on_refusal": lambda kind: _REFUSED[kind],
    "reports": lambda kind: "nothing" if kind == "none" else "their samples and a ratio",
    "agreement": lambda kind: _FOUND[kind],
}
"""Rules whose values have words of their own; what terms leave out is None."""


def _worded(rules: dict[str, Any], key: str) -> str:
    if key in _WORDED:
        return _WORDED[key](rules.get(key))
    if key not in rules:
        return "not there"
    if rules[key] is None and key == "punishment_slots":
        return "for ever"
    return _plainly(rules[key])


def _plainly(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name} {_plainly(one)}" for name, one in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
