"""Self-contained HTML pages to send to the clients: agreement, match, training, mechanisms.

The sentences, the choice of clients to list and the way numbers are written are here as well,
because the command line says the same things.
"""

from fedaccord.report.agreement import (
    ClientRow,
    choose_clients,
    client_rows,
    render_report,
    summary,
    title,
    verdict,
)
from fedaccord.report.match import DeviatorRow, deviator_rows, match_title, render_account
from fedaccord.report.mechanisms import (
    MechanismRow,
    comparison_summary,
    mechanism_rows,
    render_comparison,
)
from fedaccord.report.training import (
    gain_sentence,
    percent,
    render_training,
    setting_sentence,
    training_title,
)

__all__ = [
    "ClientRow",
    "DeviatorRow",
    "MechanismRow",
    "choose_clients",
    "client_rows",
    "comparison_summary",
    "deviator_rows",
    "gain_sentence",
    "match_title",
    "mechanism_rows",
    "percent",
    "render_account",
    "render_comparison",
    "render_report",
    "render_training",
    "setting_sentence",
    "summary",
    "title",
    "training_title",
    "verdict",
]
