"""An agreement for a group that wants to train together: its own law is measured, then solved.

The law is of the models that members use. With fine-tuning these are personal ones, each judged by
its owner's own test; so the curve is the mean over all members' test examples, and not what the
shared model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import USUAL_MARGIN
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.coalition import Coalition, find_coalition
from fedaccord.agreement.solution import solution_record
from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium_text import with_law
from fedaccord.game.changing import some_members
from fedaccord.game.consortium import Consortium
from fedaccord.game.curve import Curve
from fedaccord.game.measured import fit_law
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.membership.joining import Joining
from fedaccord.membership.measuring import Run, judge_runs
from fedaccord.membership.ways import Setting, Told, Way
from fedaccord.record import Record
from fedaccord.training.learning_curve import beginning, deal, spread_sizes

CURVE_SEEDS = 20
"""Trainings at each size: an agreement rests on how the curve falls, not only on where it ends."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupAgreement(Record):
    """What a group can agree on, or why there is no law to agree by."""

    members: tuple[str, ...]
    measured: Curve | None
    """How the error falls; None if they have too few records for a curve."""
    certificate: Certificate | None
    reason: str | None = None
    """Why there is no curve, or no law that fits it."""
    for_the_fit: bool = False
    """Whether no agreement holds for every law that fits, so that this one is for the best fit."""

    @property
    def curve(self) -> Curve:
        """How the error falls, where it was measured: always if there is a certificate."""
        assert self.measured is not None
        return self.measured

    @cached_property
    def coalition(self) -> Coalition | None:
        """Those of its members, if any, that would do better on their own, for good."""
        found = self.certificate
        if found is None or not (found.agreement.exists and found.holds):
            return None
        return find_coalition(found.agreement)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "members": list(self.members),
            "reason": self.reason,
            "exists": False,
            "total": None,
            "holds": False,
            "for_the_fit": self.for_the_fit,
            "contributions": None,
            "coalition": self.coalition,
            "solution": None,
        }
        if self.certificate is not None:
            agreement = self.certificate.agreement
            facts |= {
                "exists": agreement.exists,
                "total": agreement.total,
                "holds": self.certificate.holds,
                "contributions": dict(zip(self.members, agreement.profile.tolist(), strict=True)),
                "solution": self._solution(self.certificate),
            }
        return facts

    @staticmethod
    def _solution(certificate: Certificate) -> dict[str, Any]:
        """All that `solve` says about it: savings, thresholds, the certificate, its worth."""
        optimum = solve_social_optimum(certificate.agreement.consortium)
        return solution_record(certificate, optimum, exists_from=None)

    def written_into(
        self, file: str | Path, curve: str = "curve.csv", comments: Sequence[str] = ()
    ) -> str:
        """The text of a consortium file for this group alone, with its law.

        The curve is in the file of that name; `comments` go to the top.
        """
        table = {"kind": "measured", "measure": self.curve.measure, "curve": curve}
        return with_law(file, table, comments, self.members)


def agree(
    joining: Joining, consortium: Consortium, group: int, progress: Told | None = None
) -> GroupAgreement:
    """The agreement of a group under suspension, with the law measured on its own data."""
    names = joining.members_of(group)
    setting = replace(joining.setting, partition=joining.setting.partition.of(names))
    some = some_members(consortium, np.isin(consortium.names, names))
    first = joining.scores.seeds[0]
    curve = None
    try:
        curve = group_curve(setting, joining.ways.together, first=first, progress=progress)
        law = fit_law(curve)
    except InvalidInput as error:
        return GroupAgreement(names, curve, None, str(error))
    options: dict[str, Any] = {
        "punishment": "suspension",
        "margin": USUAL_MARGIN,
        "whole_samples": True,
        "nobody_worse": True,
    }
    solved = solve_agreement(some.with_law(law), **options)
    if not solved.exists:
        for_the_fit = solve_agreement(some.with_law(law), robust="ranges", **options)
        if for_the_fit.exists:
            return GroupAgreement(names, curve, certify(for_the_fit), for_the_fit=True)
    return GroupAgreement(names, curve, certify(solved))


def group_curve(
    setting: Setting,
    way: Way,
    seeds: int = CURVE_SEEDS,
    *,
    first: int = 0,
    progress: Told | None = None,
) -> Curve:
    """The error by the number of samples that all clients together train on.

    Every size is shared by the clients in proportion to what they have. `first` is the seed of the
    first training. Samples are those of the consortium.
    """
    course = setting.course(way)
    sizes = spread_sizes(sum(setting.partition.sizes))
    runs = []
    for seed in range(first, first + seeds):
        drawn = course.partition(seed).draw(1)
        dealt = deal(drawn)
        runs += [Run(beginning(drawn, dealt, size), seed) for size in sizes]

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, len(runs))

    used = _used(setting, way)
    errors = np.array([judged.errors[used] for judged in judge_runs(course, runs, tell)])
    by_run = errors.reshape(seeds, len(sizes), -1)
    return Curve(
        np.rint(np.asarray(sizes) / setting.scale),
        range(first, first + seeds),
        by_run.mean(axis=2).T,
        _measure(setting),
        by_run.mean(axis=0),
    )


def _used(setting: Setting, way: Way) -> slice:
    """The examples that count: those of own tests if models are personal, else the common."""
    common = len(setting.partition.dataset.test_labels)
    own = way.fine_tuning > 0 and bool(setting.partition.tests)
    return slice(common, None) if own else slice(common)


def _measure(setting: Setting) -> str:
    name = setting.task.measure.name
    return "error" if name == "accuracy" else f"1 - {name}"
