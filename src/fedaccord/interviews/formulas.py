"""The formulas of the interview; docs/explanation/numbers.md explains each.

All money is in one currency. Each function rises or falls in each of its arguments, whatever the
others are, so that ranges of the arguments give the range of the result (`ranges.spread`).
"""

SECONDS_PER_HOUR = 3600.0
MONTHS_PER_YEAR = 12.0
POINTS = 100.0
"""Percentage points in a loss of 1."""


# --- Samples -------------------------------------------------------------------------------


def slots_in_use(years_used: float, slots_per_year: float) -> float:
    """In how many slots a case is trained on before it is too old; at least in one.

    >>> slots_in_use(2, slots_per_year=4)
    8.0
    """
    return max(1.0, float(years_used * slots_per_year))


def samples(cases_per_month: float, years_used: float, slots_per_year: float) -> float:
    """D_n: the cases that came in during the time for which a case is used.

    >>> samples(2000, years_used=2, slots_per_year=4)
    48000.0
    """
    months = slots_in_use(years_used, slots_per_year) * MONTHS_PER_YEAR / slots_per_year
    return cases_per_month * months


# --- Cost per sample -----------------------------------------------------------------------


def annotation(cost: float, years_used: float, slots_per_year: float) -> float:
    """What annotating one case costs, shared evenly by the slots in which the case is used.

    >>> annotation(8.0, years_used=2, slots_per_year=4)
    1.0
    """
    return cost / slots_in_use(years_used, slots_per_year)


def annotation_by_hand(minutes: float, hourly_wage: float) -> float:
    """What annotating one case costs, from the time that it takes.

    >>> annotation_by_hand(6, hourly_wage=80)
    8.0
    """
    return minutes / 60.0 * hourly_wage


def training(gpu_price: float, seconds_per_sample: float, rounds: float) -> float:
    """What training on one sample costs in a slot: it is used once in every round.

    >>> training(2.50, seconds_per_sample=1 / 200, rounds=50)  # 2.50 / 3600 x 50 / 200
    0.0001736...
    """
    return gpu_price / SECONDS_PER_HOUR * seconds_per_sample * rounds


def staff(hours: float, hourly_wage: float, samples: float) -> float:
    """What preparing one sample costs, if preparing them all takes so many hours in a slot.

    >>> staff(40, hourly_wage=80, samples=48_000)
    0.0666...
    """
    return hours * hourly_wage / samples


# --- Valuation -----------------------------------------------------------------------------


def wrong_case(prevalence: float, missed_cost: float, false_cost: float, uncaught: float) -> float:
    """What one case that the model gets wrong costs on average.

    A case with a finding is as likely to be got wrong as one without, so that a share
    `prevalence` of the wrong cases are missed findings, and the others are false ones. Of all
    of them a share `uncaught` has consequences: nobody notices in time.

    >>> wrong_case(0.02, missed_cost=25_000, false_cost=300, uncaught=0.2)  # 0.2 x (500 + 294)
    158.8...
    """
    return uncaught * (prevalence * missed_cost + (1.0 - prevalence) * false_cost)


def valuation_of_errors(cases_per_year: float, wrong_case: float, slots_per_year: float) -> float:
    """rho_n: what it would cost to get every case of a slot wrong, an error of 1.

    >>> valuation_of_errors(30_000, wrong_case=158.8, slots_per_year=4)
    1191000.0
    """
    return cases_per_year / slots_per_year * wrong_case


def valuation_of_points(point_worth: float, slots_per_year: float) -> float:
    """rho_n: a hundred times what a percentage point is worth in a slot.

    >>> valuation_of_points(60_000, slots_per_year=2)
    3000000.0
    """
    return POINTS * point_worth / slots_per_year
