"""Organisations to interview."""

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
