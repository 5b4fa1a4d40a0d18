"""Self-contained HTML pages to send to the clients: agreement, match, training, mechanisms."""

from fedaccord.report.agreement_page import Origin, render_report
from fedaccord.report.demo import render_demo
from fedaccord.report.pages import render_account, render_comparison, render_training

__all__ = [
    "Origin",
    "render_account",
    "render_comparison",
    "render_demo",
    "render_report",
    "render_training",
]
