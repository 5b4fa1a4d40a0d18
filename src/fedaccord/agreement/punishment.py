"""Punishments: what follows when a client contributes less than agreed.

Under *reversion*, the paper's punishment, everyone goes back to the equilibrium. Under *suspension*
only whoever slipped is punished: it is sent no model and trains alone, while the others go on.

>>> Reversion(), Reversion(5), Suspension()
(Reversion(slots=None), Reversion(slots=5), Suspension(slots=1))
>>> as_punishment("suspension") == Suspension(), Suspension(3).to_dict()["slots"]
(True, 3)
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from fedaccord.checks import (
    LARGEST_COUNT,
    check_choice,
    check_number,
    check_whole,
    refuse_subclass,
    shown,
)
from fedaccord.errors import InvalidInput
from fedaccord.numbers import count
from fedaccord.record import Record

PunishmentName = Literal["reversion", "suspension"]

_INSTEAD = "use Reversion or Suspension, and set their fields"
"""Of a subclass."""


@dataclass(frozen=True, eq=False, repr=False)
class _Punishment(Record):
    """What all punishments have in common."""

    kind: ClassVar[PunishmentName]
    slots: int | None
    """How many slots it lasts; None: for ever."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse subclasses: the solvers compute with the fields, whatever the methods are."""
        refuse_subclass("punishment", cls, Reversion, Suspension, instead=_INSTEAD)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check the length."""
        if self.slots is not None:
            check_whole("slots", self.slots, 1, LARGEST_COUNT)

    def lasting(self, slots: int | None) -> Any:
        """The same punishment with another length."""
        return replace(self, slots=slots)

    def __str__(self) -> str:
        """The kind and the length, in words, and what makes it milder or harsher."""
        return ", ".join([f"{self.kind} {self.duration}", *self._qualities()])

    def _qualities(self) -> list[str]:
        """What else there is to say."""
        return []

    @property
    def duration(self) -> str:
        """How long it lasts, in words."""
        return "for ever" if self.slots is None else f"for {count(self.slots, 'slot')}"

    def _facts(self) -> dict[str, Any]:
        return {"kind": self.kind} | {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        """The length, and what is not as by default."""
        own = [f for f in fields(self) if f.name == "slots" or getattr(self, f.name) != f.default]
        said = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in own)
        return f"{type(self).__name__}({said})"


@dataclass(frozen=True, eq=False, repr=False)
class Reversion(_Punishment):
    """Everyone goes back to the equilibrium: x^pun, the paper's punishment."""

    kind = "reversion"
    slots: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Suspension(_Punishment):
    """Whoever slipped is sent no model and trains alone; the others go on."""

    kind = "suspension"
    slots: int | None = 1
    model_keeps: float = 0.0
    """kappa: the share of the agreed data that an old model is worth in a slot of suspension."""
    fees_saved: bool = False
    """Whether a suspended client saves its communication cost and the server's fee."""
    or_reversion: bool = False
    """Whether everyone reverts to the equilibrium instead after a slip of a client that this would
    cost more."""

    def _qualities(self) -> list[str]:
        said = [f"an old model worth {100 * self.model_keeps:.3g} %"] if self.model_keeps else []
        said += ["fees saved"] if self.fees_saved else []
        return said + (["or reversion where that is harsher"] if self.or_reversion else [])

    def __post_init__(self) -> None:
        """Check all fields."""
        super().__post_init__()
        check_number("model_keeps", self.model_keeps, least=0)
        if self.model_keeps > 1:
            raise InvalidInput(f"must be 1 or less, got {self.model_keeps}", field="model_keeps")
        for name in ("fees_saved", "or_reversion"):
            if not isinstance(getattr(self, name), bool):
                wrong = f"must be true or false, got {shown(getattr(self, name))}"
                raise InvalidInput(wrong, field=name)


Punishment: TypeAlias = Reversion | Suspension

PUNISHMENTS: dict[str, Punishment] = {"reversion": Reversion(), "suspension": Suspension()}
"""Each kind, with its usual length."""


def as_punishment(given: Punishment | PunishmentName) -> Punishment:
    """A punishment, or the usual one of a kind."""
    if isinstance(given, Reversion | Suspension):
        return given
    if not isinstance(given, str):
        raise InvalidInput(
            f"must be a Reversion or a Suspension, got {given!r}", field="punishment"
        )
    check_choice("punishment", given, get_args(PunishmentName))
    return PUNISHMENTS[given]


def read_punishment(given: object) -> Punishment:
    """The punishment in JSON, as `to_dict` returns it.

    >>> read_punishment({"kind": "reversion", "slots": None})
    Reversion(slots=None)
    """
    if not isinstance(given, dict):
        raise InvalidInput(f"must be an object, got {shown(given)}", field="punishment")
    rest = dict(given)
    kind = rest.pop("kind", None)
    if kind not in PUNISHMENTS:
        names = " or ".join(map(shown, PUNISHMENTS))
        raise InvalidInput(f"must be {names}, got {shown(kind)}", field="kind")
    usual = PUNISHMENTS[kind]
    extra = [name for name in rest if name not in {field.name for field in fields(usual)}]
    if extra:
        raise InvalidInput("unknown key", field=str(extra[0]))
    return replace(usual, **rest)
