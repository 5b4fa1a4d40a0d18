"""The law of the loss on the page: two results that people remember, and the law through them.

Nobody knows the exponent of a power law offhand. But people know how well their model did with the
data of a first trial, and how well it does now.
"""

from collections.abc import Mapping
from typing import Any

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.members_form import Form, Place
from fedaccord.errors import InvalidInput
from fedaccord.files.law import law_of
from fedaccord.files.numerals import read_numeral
from fedaccord.files.ranges import as_range
from fedaccord.files.table_text import Value
from fedaccord.game.law import Law
from fedaccord.numbers import as_text

REACHED = {"accuracy": "error", "AUC": "1 - AUC", "concordance": "1 - concordance"}
"""What a model reaches, and what it loses: the measure of the law."""
_SAMPLES = ("law_few", "law_many")
_SHARES = ("law_few_reached", "law_many_reached", "law_best")
_OPTIONAL = "law_best"
LAW_FIELDS = ("law_reached", *_SAMPLES, *_SHARES, "law_paper")
"""What the page asks about the law; all empty if it stays as it is."""
_DIGITS = 6
"""Of the numbers of a law, significant: more than anybody's results have."""


def read_law(form: Form) -> tuple[dict[str, Value], dict[Place, str]]:
    """The law that the form asks for, if it asks for another one, and what is wrong."""
    if form.shared.get("law_paper"):
        return {"law": None}, {}
    typed = {each: form.shared.get(each, "").strip() for each in (*_SAMPLES, *_SHARES)}
    if not any(typed.values()):
        return {}, {}
    numbers, problems = _numbers(typed)
    problems = problems or _wrong_order(numbers)
    if problems:
        return {}, {Place(-1, each): wrong for each, wrong in problems.items()}
    few, many = (
        (numbers[size], 1.0 - numbers[reached])
        for size, reached in zip(_SAMPLES, _SHARES, strict=False)
    )
    measure = REACHED.get(form.shared.get("law_reached", ""), "error")
    law = Law.through(few, many, 1.0 - numbers.get(_OPTIONAL, 1.0), measure=measure)
    return {"law": _table(law)}, {}


def _numbers(typed: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """The results as numbers, and what is wrong with each."""
    numbers: dict[str, float] = {}
    problems: dict[str, str] = {}
    for each, text in typed.items():
        if not text and each == _OPTIONAL:
            continue
        try:
            numbers[each] = _samples(text) if each in _SAMPLES else _share(text)
        except InvalidInput as error:
            problems[each] = str(error)
    return numbers, problems


def _samples(text: str) -> float:
    value, unit = _number(text, "12 000")
    if unit or value <= 0:
        raise InvalidInput("must be a number of samples more than 0")
    return value


def _share(text: str) -> float:
    """A share, or a percentage with or without its sign; only 1 and less can be shares."""
    value, unit = _number(text, "88 %")
    share = value if unit or value <= 1 else value / 100
    if not 0 < share <= 1:
        raise InvalidInput("must be more than 0 % and at most 100 %")
    return share


def _number(text: str, example: str) -> tuple[float, str]:
    numeral = read_numeral(text)
    if not text:
        raise InvalidInput(f"is missing: the law needs two results; write it like {example}")
    if numeral is None or numeral.unit not in ("", "%"):
        raise InvalidInput(f"must be a number like {example}")
    if numeral.is_ambiguous:
        readings = " or ".join(as_text(each) for each in sorted((numeral.point, numeral.comma)))
        raise InvalidInput(f"could mean {readings}: please write it without the mark")
    return numeral.point, numeral.unit


def _wrong_order(numbers: Mapping[str, float]) -> dict[str, str]:
    """What cannot be, since more data makes a model better, and none reaches the best."""
    if numbers["law_many"] <= numbers["law_few"]:
        return {"law_many": "must be more than in the first result"}
    if numbers["law_many_reached"] <= numbers["law_few_reached"]:
        return {"law_many_reached": "must be better than with fewer samples"}
    if numbers.get(_OPTIONAL, 1.0) <= numbers["law_many_reached"]:
        return {_OPTIONAL: "must be better than what was reached"}
    return {}


def _table(law: Law) -> dict[str, float | str]:
    """The law as a consortium file has it."""
    numbers = {"scale": law.value[0], "exponent": law.exponent[0], "floor": law.floor}
    rounded = {key: float(f"{float(each):.{_DIGITS}g}") for key, each in numbers.items()}
    return {"kind": "power", "measure": law.measure, **rounded}


# --- What the page says about the law -------------------------------------------------------


def law_now(draft: Draft) -> str:
    """The law that the draft has, in the words of its measure."""
    data = draft.data
    law = law_of(data)
    if law is None:
        return (
            "The law is the paper's, a loss that falls with the square root of the data. It was "
            "not made for your model, and results are shown as loss. With two results of your own "
            "model they are shown as accuracy."
        )
    sizes = sorted(filter(None, map(_likely_samples, data.get("clients", []))))
    if not sizes:
        return f"The law is a power law of the {law.measure}."
    return (
        f"By the law of this consortium {_level(law, sizes[-1])} with the {sizes[-1]:,.0f} samples "
        f"of the largest member, and {_level(law, sum(sizes))} with all {sum(sizes):,.0f}."
    )


def _likely_samples(client: Any) -> float:
    """How many samples a member probably has; 0 if that is not known."""
    try:
        return as_range(client["samples"]).likely
    except (InvalidInput, KeyError, TypeError):
        return 0.0


def _level(law: Law, samples: float) -> str:
    loss = float(law.loss(samples))
    reached = next((each for each, measure in REACHED.items() if measure == law.measure), None)
    if reached is None:
        return f"the loss is {loss:.4g}"
    share = f"{100 * (1 - loss):.1f} %" if reached == "accuracy" else f"{1 - loss:.3f}"
    return f"the {reached} is {share}"
