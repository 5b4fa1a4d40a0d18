"""The punishments as records."""

from typing import Any

import pytest

import fedaccord as fa
from fedaccord.agreement.punishment import as_punishment, read_punishment

ALL = [
    fa.Reversion(),
    fa.Reversion(5),
    fa.Suspension(),
    fa.Suspension(None),
    fa.Suspension(3, model_keeps=0.2, fees_saved=True, or_reversion=True),
]


@pytest.mark.parametrize("slots", [0, -1, True, 2.5, 10**400])
@pytest.mark.parametrize("form", [fa.Reversion, fa.Suspension])
def test_slots_must_be_whole(form: Any, slots: Any) -> None:
    with pytest.raises(fa.InvalidInput, match="slots: must be"):
        form(slots)


@pytest.mark.parametrize(
    ("field", "value"),
    [("model_keeps", -0.1), ("model_keeps", 1.5), ("fees_saved", 1), ("or_reversion", "yes")],
)
def test_other_fields_are_checked(field: str, value: Any) -> None:
    with pytest.raises(fa.InvalidInput, match=f"{field}: must be"):
        fa.Suspension(**{field: value})


@pytest.mark.parametrize("punishment", ALL, ids=str)
def test_json_holds_all_of_it(punishment: Any) -> None:
    assert read_punishment(punishment.to_dict()) == punishment
    assert as_punishment(punishment) is punishment


def test_in_words() -> None:
    assert str(fa.Reversion()) == "reversion for ever"
    assert str(fa.Suspension()) == "suspension for 1 slot"
    kept = fa.Suspension(2, model_keeps=0.3, fees_saved=True)
    assert str(kept) == "suspension for 2 slots, an old model worth 30 %, fees saved"
    assert repr(fa.Suspension(2, fees_saved=True)) == "Suspension(slots=2, fees_saved=True)"
    assert fa.Suspension(2, model_keeps=0.1).lasting(None) == fa.Suspension(None, model_keeps=0.1)


class Exile(fa.Suspension):
    """A punishment of one's own, which the solvers would take for its base class."""

    def lasting(self, slots: Any) -> Any:
        return Exile(None)


class Fine(fa.Reversion):
    """Another one."""


class Glance(fa.Monitoring):
    """Audits of one's own, of which the solvers would use the fields alone."""

    def seen(self, shortfall: Any) -> Any:
        return 0.5 * shortfall


def test_subclasses_are_refused_by_name() -> None:
    for form in (Exile, Fine):
        with pytest.raises(fa.InvalidInput) as refused:
            form(3)
        assert str(refused.value) == (
            f"punishment: the subclass {form.__name__} is not supported: use Reversion or "
            "Suspension, and set their fields"
        )
    with pytest.raises(fa.InvalidInput, match="monitoring: the subclass Glance is not supported"):
        Glance(audit=0.5)
