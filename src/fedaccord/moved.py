"""Modules that have moved: importing one by its old name says where it is now."""

import sys

NOW_IN = {
    "agreement.agreement_file": "agreement",
    "baselines": "mechanisms",
    "experiments.accuracy": "experiments.figures",
    "experiments.comparison": "experiments.figures",
    "experiments.contributors": "experiments.figures",
    "experiments.example": "experiments.evaluation",
    "experiments.law": "experiments.figures",
    "experiments.page": "experiments.evaluation",
    "experiments.ratios": "experiments.figures",
    "experiments.removed": "experiments.figures",
    "experiments.shapes": "experiments.figures",
    "experiments.table": "experiments.figure_data",
    "experiments.totals": "experiments.figures",
    "flower.engine": "flower.simulation",
    "flower.grid": "flower.grids",
    "flower.ledger": "ledger",
    "flower.memory": "protocol.notes",
    "flower.nodes": "flower.server_app",
    "flower.protocol": "protocol",
    "flower.protocol.own_row": "agreement",
    "flower.ray_cluster": "flower.grids",
    "flower.rules": "flower.shared_terms",
    "game.arrays": "numbers",
    "game.client_table": "files",
    "game.consortium_file": "files",
    "game.consortium_text": "files",
    "game.csv_cells": "files",
    "game.files": "files",
    "game.matching": "files",
    "game.mistakes": "files",
    "game.names": "checks",
    "game.profile_file": "files",
    "game.text_file": "files",
    "game.toml_file": "files",
    "game.whole_files": "atomic",
    "game.writing": "numbers",
    "play": "repeated",
    "play.account": "summaries.match",
    "plots.clients": "plots",
    "plots.labels": "plots",
    "plots.mechanisms": "plots",
    "plots.slots": "plots",
    "plots.style": "plots",
    "report.agreement": "summaries.agreement",
    "report.match": "summaries.match",
    "report.mechanisms": "summaries.mechanisms",
    "report.page": "report",
    "report.training": "summaries.training",
    "training.calibration": "training.learning_curve",
    "training.chain": "training.vectorised",
    "training.general": "training.vectorised",
    "training.groups": "training.vectorised",
    "training.law": "game.measured",
    "training.plain": "training.engine",
    "training.union": "training.vectorised",
} | {f"experiments.fig{number}": "experiments.figures" for number in range(3, 24)}
"""Old module (and everything below it) -> where to look now; both below `fedaccord`."""


class _Finder:
    """Asked last, for modules that do not exist."""

    @staticmethod
    def find_spec(fullname: str, *__: object) -> None:
        """Raise an error that names the new place; find nothing for any other module."""
        package, _, name = fullname.partition(".")
        if package == "fedaccord" and name in NOW_IN:
            command = "; its command is now `fedaccord detect`" if name == "baselines" else ""
            # Not the module's own name: `from fedaccord import baselines` would hide the error.
            # With no name at all, `python -m` would print a traceback.
            raise ModuleNotFoundError(
                f"fedaccord.{name} has moved: use fedaccord.{NOW_IN[name]}{command}", name=package
            )


def tell_of_moved_modules() -> None:
    """Let Python ask here for modules that it does not find."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
