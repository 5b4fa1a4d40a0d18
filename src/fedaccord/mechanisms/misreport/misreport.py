"""The records of who gains by lying."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from fedaccord.agreement.punishment import Punishment
from fedaccord.game.consortium import Consortium
from fedaccord.mechanisms.misreport.everyone import ReportingRun, distinct_totals
from fedaccord.mechanisms.misreport.reports import Field
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, columns_of

Lie = Field | Literal["refusal"]
"""What a client lies about; it may also refuse what it is asked for, and train alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Misreport(Record):
    """The best report of each client under one mechanism, while all others tell the truth."""

    consortium: Consortium
    name: str
    """The mechanism."""
    asks: tuple[Field, ...]
    """What could be misreported; empty if nothing is asked."""
    objective: str | None
    """Agreements: what the amounts are best at."""
    punishment: Punishment | None
    """What follows a slip from the amounts."""
    truthful_total: float
    """The samples that are trained on if everyone tells the truth."""
    equilibrium_total: float
    reports: int
    """How many reports of each client were tried."""
    names: tuple[str, ...]
    """The clients that were looked at."""
    fields: tuple[Lie | None, ...]
    """What each lies about; None if nothing gains it anything."""
    report: FloatArray
    """What it says; NaN if it tells the truth."""
    factor: FloatArray
    """That divided by the truth."""
    gain: FloatArray
    """What it saves by the lie per slot, in money."""
    computation: FloatArray
    """E_n x_n: what training costs it if it tells the truth."""
    saving: FloatArray
    """What it saves against the equilibrium if it tells the truth."""
    total: FloatArray
    """The samples that are trained on if it alone lies."""
    keeps: BoolArray
    """Whether it then keeps to what it is asked for; if not, it gains even more than `gain`."""
    everyone: tuple[ReportingRun, ...] = ()
    """What is left if everyone lies, in several orders; empty if that was not computed."""

    @property
    def gain_of_computation(self) -> FloatArray:
        """The gain divided by what training costs the client; infinite if it costs it nothing."""
        return _share(self.gain, self.computation, none=np.inf)

    @property
    def gain_of_saving(self) -> FloatArray:
        """The gain divided by what the client saves anyway; NaN if it saves nothing."""
        return _share(self.gain, self.saving, none=np.nan)

    @property
    def gaining(self) -> int:
        """How many clients gain by a lie."""
        return sum(field is not None for field in self.fields)

    @cached_property
    def largest_gain(self) -> float:
        """The largest gain of a client, divided by what training costs it."""
        share = self.gain_of_computation
        return float(share.max(where=np.isfinite(share), initial=0.0))

    @property
    def best_liar(self) -> str | None:
        """Who has the largest gain; None if nobody has any."""
        return None if self.best is None else self.names[self.best]

    @property
    def best(self) -> int | None:
        """The position of the client with the largest gain among those that were looked at."""
        if not self.gaining:
            return None
        share = self.gain_of_computation
        return int(np.argmax(np.where(np.isfinite(share), share, -1.0)))

    @property
    def totals_if_all_lie(self) -> list[float]:
        """The different totals at which changing reports ended."""
        return distinct_totals(self.everyone)

    _headline: ClassVar = ("name", "truthful_total", "gaining", "largest_gain", "best_liar")

    def _facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "asks": self.asks,
            "objective": self.objective,
            "punishment": self.punishment,
            "truthful_total": self.truthful_total,
            "equilibrium_total": self.equilibrium_total,
            "reports": self.reports,
            "gaining": self.gaining,
            "largest_gain": self.largest_gain,
            "best_liar": self.best_liar,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients, "everyone": self._everyone}

    def _clients(self) -> Columns:
        return {
            "name": self.names,
            "field": self.fields,
            "report": self.report,
            "factor": self.factor,
            "gain": self.gain,
            "gain_of_computation": self.gain_of_computation,
            "gain_of_saving": self.gain_of_saving,
            "total": self.total,
            "keeps": self.keeps,
        }

    def _everyone(self) -> Columns:
        return columns_of([run._facts() for run in self.everyone])


def _share(gain: FloatArray, of: FloatArray, none: float) -> FloatArray:
    """A gain as a fraction; 0 if there is no gain."""
    some = np.divide(gain, of, out=np.full_like(gain, none), where=of > 0.0)
    return np.where(gain > 0.0, some, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Misreports(Record):
    """Who gains by lying under several mechanisms."""

    consortium: Consortium
    entries: tuple[Misreport, ...]

    def __getitem__(self, name: str) -> Misreport:
        """The entry of the mechanism called `name`."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the command prints them in JSON: each mechanism with its clients."""
        return {
            "consortium": self.consortium.to_dict(),
            "mechanisms": [entry.to_dict() for entry in self.entries],
        }

    def _facts(self) -> dict[str, Any]:
        return {"consortium": self.consortium.name, "mechanisms": len(self.entries)}

    def _tables(self) -> Tables:
        return {"mechanisms": self._mechanisms}

    def _mechanisms(self) -> Columns:
        return columns_of([entry._facts() for entry in self.entries])
