"""`train --engine flower`: the whole protocol in Flower's simulation, with its ledger."""

from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.cli.console import counting
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.cli.training_profiles import PlayedProfile
    from fedaccord.training.course import Course, Score, TrainingRun

_KINDS = ("individual", "uniform")


def check_flower_options(
    profiles: list[str], seeds: int, ledger: str | None, checkpoint: Path | None
) -> None:
    """Refuse what does not go with a protocol that one consortium runs once."""
    from fedaccord.checks import check_installed

    check_installed("Flower's simulation", "flwr", "sqlalchemy", "alembic", "torch")
    problems = []
    if len(profiles) != 1 or profiles[0] not in _KINDS:
        problems.append("--profile: with --engine flower it is one of individual and uniform")
    if seeds != 1:
        problems.append("--seeds: with --engine flower there is one run, --seeds 1")
    if checkpoint is not None:
        problems.append("--checkpoint: with --engine flower the ledger keeps the state (--ledger)")
    if ledger is not None and Path(ledger).is_dir():
        problems.append(f"--ledger: {ledger} is a directory, not a file")
    if problems:
        raise InvalidInput(problems)


def run_on_flower(
    course: "Course", profile: "PlayedProfile", seed: int, ledger: str | None
) -> "TrainingRun":
    """Report, rank, offer, train and settle, slot after slot."""
    from fedaccord.flower.simulation import simulate, slips_in, terms_for

    match = profile.match
    if match is None:
        raise InvalidInput(f"--engine flower: {profile.notes[0]}")
    agreement = match.agreement
    terms = terms_for(
        agreement.consortium,
        course,
        agreement=agreement.kind,
        punishment_slots=agreement.punishment_slots,
    )
    with counting("Training on Flower", course.rounds * match.slots) as reach:

        def tell(slot: int, turn: int, _: "Score") -> None:
            reach((slot - 1) * course.rounds + turn, f"Training on Flower, slot {slot}")

        return simulate(
            agreement.consortium,
            course,
            terms,
            slots=match.slots,
            ledger=ledger,
            slips=slips_in(match),
            seed=seed,
            profile=profile.name,
            progress=tell,
        )
