"""Organisations to interview, and a loader that knows the keys that an interview writes."""

import pytest
from pydantic import create_model

import fedaccord.files.consortium as loader

HOSPITAL = {
    "name": "University Hospital",
    "cases_per_month": 2000,
    "years_used": 2,
    "annotation_minutes": 6,
    "hourly_wage": 80,
    "gpu_price": 2.5,
    "samples_per_second": 200,
    "staff_hours": 40,
    "cases_per_year": 30_000,
    "missed_cost": 25_000,
    "false_cost": 300,
    "prevalence": 0.02,
    "uncaught": 0.2,
    "interest": 0.03,
    "ending": 0.1,
}
LEAST = {
    "name": "Least",
    "samples": 1000,
    "gpu_price": 1,
    "seconds_per_sample": 0.01,
    "point_worth": 500,
}
"""Everything else has a default."""


@pytest.fixture
def _slots_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets consortium files have `slot` and `currency`, if they cannot have them yet."""
    if "slot" not in loader._Shared.model_fields:
        fields = {"slot": (str | None, None), "currency": (str | None, None)}
        wider = create_model("_Shared", __base__=loader._Shared, **fields)  # type: ignore[call-overload]
        monkeypatch.setattr(loader, "_Shared", wider)
