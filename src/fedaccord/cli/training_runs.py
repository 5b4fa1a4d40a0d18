"""Every profile with every seed, with a progress bar and checkpoints."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedaccord.cli.console import counting
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.cli.training_profiles import PlayedProfile
    from fedaccord.training.checkpoint import Checkpoint
    from fedaccord.training.course import Course, Score, TrainingRun
    from fedaccord.training.engine import Engine, PlainEngine


def checkpoint_folder(folder: Path | None, resume: bool) -> Path | None:
    """Where the runs keep their state, refused at once if it can't be there."""
    if folder is None:
        if resume:
            raise InvalidInput("--resume: says to go on, --checkpoint DIR must say from where")
        return None
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"--checkpoint: {folder} is not a directory")
    if not resume and any(folder.glob("*.pt")):
        raise InvalidInput(
            f"--checkpoint: {folder} has checkpoints already; --resume goes on from them"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--checkpoint: {folder}: {error.strerror or error}") from None
    return folder


def find_engine(name: str) -> "Engine":
    """An engine on this machine, by name."""
    from fedaccord.training.vectorised.engine import VectorisedEngine

    return PlainEngine() if name == "plain" else VectorisedEngine()


def run_all(
    course: "Course",
    profiles: "Sequence[PlayedProfile]",
    seeds: range,
    engine: "Engine",
    folder: Path | None = None,
) -> "list[TrainingRun]":
    """Train, and keep everyone informed."""
    from fedaccord.training.course import train
    from fedaccord.training.engine import TrainingFailed

    chosen = [(profile, seed) for profile in profiles for seed in seeds]
    turns = course.rounds * len(profiles[0].phases)
    runs = []
    with counting("Training", turns * len(chosen)) as reach:
        for k, (profile, seed) in enumerate(chosen):
            doing = f"Training, {profile.name}, seed {seed}"

            def tell(slot: int, turn: int, _: "Score", k: int = k, doing: str = doing) -> None:
                reach(k * turns + (slot - 1) * course.rounds + turn, f"{doing}, slot {slot}")

            store = _store(course, profile, seed, engine, folder)
            try:
                run = train(
                    course,
                    profile.contributions,
                    profile.phases,
                    profile=profile.name,
                    seed=seed,
                    engine=engine,
                    store=store,
                    progress=tell,
                )
            except TrainingFailed as error:
                kept = f"; the last good model is kept in {store.path}" if store else ""
                raise TrainingFailed(f"{profile.name}, seed {seed}: {error}{kept}") from None
            runs.append(run)
    return runs


def idle_notes(
    course: "Course", profiles: "Sequence[PlayedProfile]", runs: "Sequence[TrainingRun]"
) -> list[str]:
    """Which profiles left a model as it was, and why: their scores say nothing about data."""
    from fedaccord.numbers import count

    notes = []
    for profile in profiles:
        run = next(run for run in runs if run.profile == profile.name)
        idle = [slot.slot for slot in run.slots if slot.total == 0]
        if idle:
            scaled = course.scale * float(profile.contributions[idle[0] - 1].sum())
            why = (
                f"all contributions make {scaled:.2g} examples at this scale"
                if scaled
                else "nobody contributes"
            )
            notes.append(
                f"{profile.name}: nothing was trained on in {len(idle):,} of "
                f"{count(len(run.slots), 'slot')} (slot {idle[0]}: {why})"
            )
    return notes


def _store(
    course: "Course", profile: "PlayedProfile", seed: int, engine: "Engine", folder: Path | None
) -> "Checkpoint | None":
    """The file that keeps one run's state."""
    if folder is None:
        return None
    from fedaccord.cli.training_profiles import file_name
    from fedaccord.training.checkpoint import Checkpoint, identity_of

    identity = identity_of(course, profile.contributions, profile.phases, seed, engine)
    return Checkpoint(folder / f"{file_name(profile.name)}-{seed}.pt", identity)
