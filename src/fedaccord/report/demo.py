"""The page of the demo: its story, and the report about the agreement below."""

from typing import Any

from fedaccord import plots
from fedaccord.report.agreement_page import render_report
from fedaccord.report.pages import as_svg
from fedaccord.summaries import demo as about_demo


def render_demo(story: about_demo.Story) -> str:
    """The demo's page, as text."""
    parts: dict[str, Any] = {
        "story": story,
        "introduction": about_demo.INTRODUCTION,
        "tested_heading": about_demo.HEADINGS[4],
        "prediction_caption": about_demo.PREDICTION_CAPTION,
        "prediction_picture": as_svg(plots.plot_prediction(story.law, story.trial), "prediction"),
        "law_caption": about_demo.LAW_CAPTION,
        "law_picture": as_svg(plots.plot_law(story.law), "law"),
    }
    return render_report(
        story.certificate, comparison=story.trial, template="demo.html.j2", parts=parts
    )
