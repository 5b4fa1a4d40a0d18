"""A finished training as plain values, which cross from the trainer to the page."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from fedaccord.training.comparison import ProfileScore
    from fedaccord.trials.trial import Trial


class Row(BaseModel):
    """How one profile did."""

    profile: str
    examples: str
    loss: str
    score: str
    """With its interval."""
    predicted: str
    """By the consortium's law; empty if it says nothing of this training."""
    gain: str
    """Over the first profile."""


class OwnTable(BaseModel):
    """How each member did on a test of its own."""

    headings: list[str]
    rows: list[tuple[str, list[str]]]
    note: str


class Outcome(BaseModel):
    """What a page says about a training."""

    title: str
    setting: str
    sentences: list[str]
    measure: str
    predicted: str
    """The heading of what the law predicts; empty if it does not."""
    rows: list[Row]
    note: str
    """On the table."""
    caption: tuple[str, str]
    picture: str
    """SVG without styles."""
    notes: list[str]
    own: list[OwnTable]
    record: dict[str, Any]
    """The same as `train` prints for programs."""


def outcome_of(trial: "Trial") -> Outcome:
    """What there is to say about a training."""
    from fedaccord.console.web.pages import without_styles
    from fedaccord.plots import plot_learning
    from fedaccord.report.pages import as_svg
    from fedaccord.summaries import training as about
    from fedaccord.summaries.prediction import (
        PREDICTED_NOTE,
        gain_sentences,
        predicted_heading,
    )

    heading = [predicted_heading(one) for one in trial.predictions[:1]]
    return Outcome(
        title=about.training_title(trial),
        setting=about.setting_sentence(trial),
        sentences=gain_sentences(trial),
        measure=trial.measure,
        predicted=heading[0].replace("\n", " ") if heading else "",
        rows=[_row(trial, score) for score in trial.scores],
        note=about.scores_note(trial) + (f" {PREDICTED_NOTE}" if heading else ""),
        caption=about.learning_caption(trial),
        picture=without_styles(as_svg(plot_learning(trial), "learning")),
        notes=[*about.training_notes(trial), *about.alone_sentences(trial)],
        own=_own(trial),
        record=about.training_record(trial),
    )


def _row(trial: "Trial", score: "ProfileScore") -> Row:
    from fedaccord.summaries.prediction import predicted_level
    from fedaccord.summaries.training import written_score

    measure, first = trial.measure, score is trial.scores[0]
    predicted = {one.profile: predicted_level(one) for one in trial.predictions}
    return Row(
        profile=score.profile,
        examples=f"{score.total:,.0f}",
        loss=f"{score.loss.mean:.4f}",
        score=written_score(score.accuracy, measure),
        predicted=predicted.get(score.profile, ""),
        gain="" if first else written_score(score.accuracy_gain, measure, signed=True),
    )


def _own(trial: "Trial") -> list[OwnTable]:
    from fedaccord.summaries import own_tests as about

    tables = [
        (about.own_levels(trial), about.own_levels_note(trial)),
        (about.own_gains(trial), about.own_gains_note(trial)),
    ]
    return [
        OwnTable(
            headings=list(table.headings),
            rows=[(name, list(cells)) for name, cells in table.rows],
            note=note,
        )
        for table, note in tables
        if table.rows
    ]
