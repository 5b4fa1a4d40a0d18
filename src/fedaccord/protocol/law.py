"""The law of the loss in the terms, so that server and clients calculate with the same numbers.

The terms carry it only if it is not the paper's, which follows from the rounds. Whoever wrote the
terms may have written anything, so that every number has a range: whatever is computed from a law
in these ranges, and from ratios in theirs, is finite.

>>> from fedaccord.game.law import Law
>>> told = law_in_terms(Law.power(scale=200.0, exponent=1.0, shift=100.0))
>>> told["kind"], told["terms"]
('power', [{'value': 2.0, 'shift': 100.0, 'exponent': 1.0}])
>>> float(LawTerms.model_validate(told).law.loss(100.0))
1.0
"""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fedaccord.game.law import Law

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

MOST_TERMS = 64
"""Of a law: measured ones have a dozen at most."""
LONGEST_MEASURE = 100
"""Characters."""
_LEAST_SHIFT = 1e-9
_STEEPEST = 5.0
"""The largest exponent of a term that has no shift, and is infinite at X = 0."""


def _not_tiny(shift: float) -> float:
    if 0 < shift < _LEAST_SHIFT:
        raise ValueError(f"must be 0, or {_LEAST_SHIFT:g} or more, got {shift!r}")
    return shift


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable and not empty")
    return text


class LawTerm(BaseModel):
    """One term: value (1 + X / shift)^-exponent, or value X^-exponent without a shift."""

    model_config = _STRICT
    value: float = Field(ge=1e-50, le=1e50)
    """At X = 0, or at X = 1 without a shift."""
    shift: Annotated[float, Field(ge=0, le=1e16), AfterValidator(_not_tiny)] = 0.0
    exponent: float = Field(ge=1e-3, le=100)

    @model_validator(mode="after")
    def _not_too_steep(self) -> Self:
        if self.shift == 0 and self.exponent > _STEEPEST:
            raise ValueError(
                f"without a shift the exponent must be {_STEEPEST:g} or less, got {self.exponent!r}"
            )
        return self


class LawTerms(BaseModel):
    """The law of the loss that the clients have signed: a floor, and a sum of shifted powers."""

    model_config = _STRICT
    kind: Literal["power", "mixture", "measured"]
    measure: Annotated[str, Field(max_length=LONGEST_MEASURE), AfterValidator(_printable)]
    """What is lost, and the unit of valuations, such as "error" or "loss"."""
    floor: float = Field(default=0.0, ge=0, le=1e50)
    """What no amount of data removes."""
    terms: tuple[LawTerm, ...] = Field(
        max_length=MOST_TERMS, strict=False, json_schema_extra={"minItems": 1}
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.terms:
            raise ValueError("needs at least one term")
        if self.kind == "power" and len(self.terms) > 1:
            raise ValueError("a power law has one term; several are a mixture")
        return self

    @cached_property
    def law(self) -> Law:
        """The same, to calculate with."""
        shift = np.array([term.shift for term in self.terms])
        return Law(
            value=np.array([term.value for term in self.terms]),
            unit=np.where(shift > 0, shift, 1.0),
            shift=shift,
            exponent=np.array([term.exponent for term in self.terms]),
            floor=np.asarray(self.floor),
            kind=self.kind,
            measure=self.measure,
        )


def law_in_terms(law: Law) -> dict[str, Any]:
    """What the terms say about a law that all clients have.

    Its numbers are those of the law, to the last bit, unless a unit is neither the shift nor 1.
    """
    parts = [_part(*map(float, term[1:])) for term in law.terms if term.value > 0]
    return {
        "kind": law.kind,
        "measure": law.measure,
        "floor": float(law.floor),
        "terms": parts,
    }


def _part(value: float, unit: float, shift: float, exponent: float) -> dict[str, float]:
    """A term, in the unit that the terms use."""
    usual = shift if shift > 0 else 1.0
    if unit != usual:
        with np.errstate(over="ignore"):  # the terms refuse what is not finite
            value *= float(np.power(unit / usual, exponent))
    return {"value": value, "shift": shift, "exponent": exponent}
