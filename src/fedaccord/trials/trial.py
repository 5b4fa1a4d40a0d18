"""`train`: several profiles, each trained with several seeds, and compared.

>>> from fedaccord.agreement.solve import solve_agreement
>>> from fedaccord.game.paper import paper_consortium
>>> consortium = paper_consortium(clients=5, samples=100, rounds=10, cost_per_sample=0.004)
>>> trial = train(solve_agreement(consortium), dataset="digits", seeds=3)
>>> alone, agreed = trial.scores
>>> alone.profile, agreed.profile, alone.total < agreed.total
('equilibrium', 'individual', True)
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.checks import check_choice, check_installed, check_whole
from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.repeated.match import Match
from fedaccord.training.comparison import Comparison
from fedaccord.training.records import ALONE
from fedaccord.trials.prediction import Prediction, predict
from fedaccord.trials.profiles import (
    PlayedProfile,
    Strategies,
    most_contributed,
    play_profiles,
    read_profiles,
    with_baselines,
)
from fedaccord.trials.setting import (
    AfterRound,
    Clients,
    Progress,
    RoundScore,
    build_course,
    clients_of,
)

if TYPE_CHECKING:
    from fedaccord.agreement.punishment import Punishment, PunishmentName
    from fedaccord.training.checkpoint import Checkpoint
    from fedaccord.training.course import Course, Score, TrainingRun
    from fedaccord.training.engine import Engine
    from fedaccord.training.optimisers import ServerOptimiser
    from fedaccord.training.rules import LocalRule
    from fedaccord.training.task import Task

_SEEDS = 3
ENGINES = ("vectorised", "plain")


@dataclass(frozen=True, eq=False, repr=False)
class Trial(Comparison):
    """The runs of some profiles and how they compare, with what was contributed in each."""

    played: tuple[PlayedProfile, ...] = ()
    """What was contributed under each profile, slot by slot."""
    predictions: tuple[Prediction, ...] = ()
    """What a measured law says of each profile; empty if the law says nothing of this training."""

    def to_dict(self) -> dict[str, Any]:
        """The score of each profile, what the law predicts of it, and every run."""
        return super().to_dict() | {"predictions": [one.to_dict() for one in self.predictions]}


def train(
    agreement: "Agreement | Consortium | Equilibrium | Match | Mapping[str, Any] | npt.ArrayLike",
    profiles: "Sequence[str] | Mapping[str, Any] | None" = None,
    *,
    dataset: "str | Dataset | None" = None,
    data: Any = None,
    task: "str | Task | None" = None,
    local: "LocalRule | None" = None,
    server: "ServerOptimiser | str | None" = None,
    fine_tuning: int | None = None,
    rounds: int | None = None,
    slots: int | None = None,
    strategies: "Strategies | None" = None,
    punishment: "Punishment | PunishmentName | None" = None,
    margin: float = 0.0,
    skew: float | None = None,
    scale: float | None = None,
    seeds: int | None = None,
    seed: int = 0,
    engine: "str | Engine" = "vectorised",
    checkpoint: "str | Path | None" = None,
    resume: bool = False,
    flower: bool = False,
    ledger: "str | Path | None" = None,
    progress: "Progress | None" = None,
    after_round: "AfterRound | None" = None,
) -> "Trial":
    """Train a real model under one profile or several, and compare their test accuracies.

    In each slot every client's data is redrawn and the model carries over. For a given seed all
    profiles have the same data and the same initial model, so they are compared seed by seed. A
    client that is suspended gets no model meanwhile, and trains one alone (`SlotRecord.alone`).
    Clients with tests of their own are judged by these as well (`ProfileScore.clients`).

    Args:
        agreement: what to train under. An `Agreement` is compared with its equilibrium. For a
            `Consortium`, `profiles` says which. A mapping has any profiles by name: agreements,
            equilibria, matches that were played, or contributions as numbers, one per client or
            one row per slot, or `alone` and `pooled`. Each but these may also be given by itself.
        profiles: for a consortium: some of `equilibrium`, `uniform`, `individual`, `suspension`
            (the individual agreement under suspension), `alone` (every client by itself) and
            `pooled` (everyone's data in one place); or a mapping as above, in which these names may
            occur. By default the first and the third, and the last two around them if clients have
            tests of their own.
        dataset: `digits` (the default), another one that `fedaccord.data.load_dataset` knows by
            name, or a `Dataset`. Clients named after the centres of `heart-disease` or `tcga-brca`
            have these centres' records; otherwise examples are dealt out at random.
        data: your own data instead, for each client or for all: a folder, arrays, a frame, a
            PyTorch dataset and more; see `fedaccord.data.read_data`.
        task: `softmax` (the default), `mlp`, `cnn`, `cox` (the default for survival times), one
            that another package adds, or a `Task`.
        local: what a client does in a round: `GradientStep()` (the default), `LocalEpochs()` or
            `LocalSteps()`.
        server: what the server does with the clients' average: `fedavg` (the default), `fedadam`,
            `fedyogi` or `fedadagrad`, or one with its numbers, such as `FedAdam(rate=0.03)`. It
            plays no part under `alone` and `pooled`.
        fine_tuning: after each slot, so many epochs of each client by itself, on what it
            contributed: its personal model is judged on its own test, and not averaged.
        rounds: rounds in a slot; those of the consortium by default, 50 without one.
        slots: how many slots to train; 1 by default.
        strategies: what clients do instead of keeping to the agreement, as in
            `fedaccord.repeated.play`.
        punishment: for a consortium: what follows a slip; reversion for ever by default.
        margin: for a consortium: how much less patient than stated the clients may be.
        skew: gives each client its own mixture of labels: alpha of a Dirichlet distribution.
        scale: examples of the dataset per sample of a client. By default 1, or as many as fit if a
            client has more samples than the dataset has examples.
        seeds: how many runs of each profile; 3 by default, 1 on Flower.
        seed: the seed of the first run.
        engine: `vectorised` (all clients at once), `plain` (a loop), or an `Engine`.
        checkpoint: a folder that keeps the state of every run, and its model.
        resume: continue from the checkpoints in that folder.
        flower: run the whole protocol in Flower's simulation, for one agreement and one seed.
        ledger: on Flower: the file or URL of the ledger; it resumes from one that has slots.
        progress: called as the work proceeds; see `Progress`.
        after_round: called with each round's score; see `RoundScore`.
    """
    check_installed("training", "torch", "sklearn")
    if flower:
        _check_flower(seeds, checkpoint, ledger)
        agreement, profiles = _alone(agreement, profiles)
    elif ledger is not None:
        raise InvalidInput("is kept on Flower only", field="ledger")
    if seeds is None:
        seeds = 1 if flower else _SEEDS
    check_whole("seeds", seeds, least=1)
    check_whole("seed", seed, least=0)
    if fine_tuning is not None:
        check_whole("fine_tuning", fine_tuning, least=1)
    usual = profiles is None and not isinstance(agreement, Mapping)
    folder = _checkpoint_folder(checkpoint, resume)
    _tell(progress, 0, 0, "Solving")
    consortium, named = read_profiles(agreement, profiles, punishment, margin)
    if flower:
        _check_one_agreement(named)
        named = {name: _offered(each, rounds) for name, each in named.items()}
    elif folder is not None and len({file_name(name) for name in named}) < len(named):
        raise InvalidInput(
            "their names must differ in letters or digits, for checkpoints", field="profiles"
        )
    played = play_profiles(consortium, named, slots, strategies)
    clients = clients_of(consortium) if consortium else _clients(played)
    course = build_course(
        clients,
        dataset=dataset,
        data=data,
        task=task,
        local=local,
        server=server,
        fine_tuning=fine_tuning or 0,
        rounds=rounds,
        skew=skew,
        scale=scale,
        progress=progress,
    )
    if usual and consortium is not None and not flower and len(course.partition(seed).tests):
        played = with_baselines(consortium, played)
    if flower:
        run = _run_on_flower(
            course,
            played[0],
            seed=seed,
            ledger=ledger,
            progress=progress,
            after_round=after_round,
        )
        runs, ran_on = [run], "flower"
    else:
        chosen = find_engine(engine)
        runs = _run_here(
            course,
            played,
            range(seed, seed + seeds),
            engine=chosen,
            folder=folder,
            progress=progress,
            after_round=after_round,
        )
        ran_on = chosen.name
    predictions = predict(consortium, played, course.rounds, course.model.task.measure.name)
    return Trial(clients.name, course, ran_on, tuple(runs), tuple(played), predictions)


def find_engine(engine: "str | Engine") -> "Engine":
    """An engine itself, or by name."""
    from fedaccord.training.engine import PlainEngine
    from fedaccord.training.vectorised.engine import VectorisedEngine

    if not isinstance(engine, str):
        return engine
    check_choice("engine", engine, ENGINES)
    return PlainEngine() if engine == "plain" else VectorisedEngine()


def _clients(played: Sequence[PlayedProfile]) -> Clients:
    """Clients without a consortium: each has as many samples as it contributes at most."""
    most = most_contributed(played)
    return Clients([f"client-{n}" for n in range(1, most.size + 1)], most)


def _tell(progress: Progress | None, done: int, of: int, doing: str) -> None:
    if progress is not None:
        progress(done, of, doing)


# --- On this machine -----------------------------------------------------------------------


def _run_here(
    course: "Course",
    profiles: Sequence[PlayedProfile],
    seeds: range,
    *,
    engine: "Engine",
    folder: Path | None,
    progress: Progress | None,
    after_round: AfterRound | None,
) -> "list[TrainingRun]":
    """Every profile with every seed."""
    from fedaccord.training.course import train as train_course
    from fedaccord.training.engine import TrainingFailed

    chosen = [(profile, seed) for profile in profiles for seed in seeds]
    rounds, measure = course.rounds * len(profiles[0].phases), course.model.task.measure.name
    runs = []
    for k, (profile, seed) in enumerate(chosen):
        store = _store(course, profile, seed, engine, folder)

        def tell(slot: int, turn: int, score: "Score", k: int = k) -> None:
            done = k * rounds + (slot - 1) * course.rounds + turn
            name, seed = chosen[k][0].name, chosen[k][1]
            _tell(
                progress, done, rounds * len(chosen), f"Training, {name}, seed {seed}, slot {slot}"
            )
            if after_round is not None:
                after_round(RoundScore(name, seed, slot, turn, score, measure))

        try:
            run = train_course(
                course,
                profile.contributions,
                profile.phases,
                alone=profile.alone,
                profile=profile.name,
                seed=seed,
                engine=engine,
                store=store,
                progress=tell,
            )
        except TrainingFailed as error:
            kept = f"; the last good model is kept in {store.path}" if store else ""
            raise TrainingFailed(f"{profile.name}, seed {seed}: {error}{kept}") from None
        if run.phase == ALONE:  # a mean over clients, known once all of them are through
            for record in run.slots:
                for turn, score in enumerate(record.rounds, 1):
                    tell(record.slot, turn, score)
        runs.append(_naming_suspended(run, profile, course.names))
    return runs


def _naming_suspended(
    run: "TrainingRun", profile: PlayedProfile, names: Sequence[str]
) -> "TrainingRun":
    """The run with everyone who was out; a client that trains on nothing alone has no record."""
    if profile.match is None or profile.match.suspended is None:
        return run
    slots = [
        replace(slot, suspended=tuple(compress(names, out)))
        for slot, out in zip(run.slots, profile.match.suspended.tolist(), strict=True)
    ]
    return replace(run, slots=tuple(slots))


def file_name(profile: str) -> str:
    """A profile's name, fit for a file.

    >>> file_name("my profile.csv")
    'my-profile-csv'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", profile).strip("-") or "profile"


def _store(
    course: "Course", profile: PlayedProfile, seed: int, engine: "Engine", folder: Path | None
) -> "Checkpoint | None":
    """The file that keeps one run's state."""
    if folder is None:
        return None
    from fedaccord.training.checkpoint import Checkpoint, identity_of

    identity = identity_of(
        course, profile.contributions, profile.phases, seed, engine, alone=profile.alone
    )
    return Checkpoint(folder / f"{file_name(profile.name)}-{seed}.pt", identity)


def _checkpoint_folder(given: str | Path | None, resume: bool) -> Path | None:
    """Where the runs keep their state; rejected before any work if it cannot be there."""
    if given is None:
        if resume:
            raise InvalidInput("there must be a checkpoint folder to resume from", field="resume")
        return None
    folder = Path(given)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is not a directory", field="checkpoint")
    if not resume and any(folder.glob("*.pt")):
        raise InvalidInput(
            f"{folder} has checkpoints already: resume from them, or name another",
            field="checkpoint",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: {error.strerror or error}", field="checkpoint") from None
    return folder


# --- On Flower -----------------------------------------------------------------------------


def _check_flower(
    seeds: int | None, checkpoint: str | Path | None, ledger: str | Path | None
) -> None:
    """Reject what does not go with a protocol that one consortium runs once."""
    check_installed("Flower's simulation", "flwr", "sqlalchemy", "alembic", "torch")
    problems = []
    if seeds not in (None, 1):
        problems.append(Problem("seeds", f"must be 1 on Flower, which runs once, got {seeds}"))
    if checkpoint is not None:
        problems.append(
            Problem("checkpoint", "cannot be used on Flower, where the ledger keeps the state")
        )
    if ledger is not None and Path(ledger).is_dir():
        problems.append(Problem("ledger", f"{ledger} is a directory, not a file"))
    if problems:
        raise InvalidInput(problems)


def _alone(agreement: Any, profiles: Any) -> tuple[Any, Any]:
    """The agreement without the equilibrium that it would be compared with."""
    if isinstance(agreement, Consortium):
        return agreement, profiles or ["individual"]
    if isinstance(agreement, Agreement | Match):
        agreed = agreement.agreement if isinstance(agreement, Match) else agreement
        return {agreed.kind: agreement}, profiles
    return agreement, profiles


def _check_one_agreement(profiles: Mapping[str, Any]) -> None:
    """Reject anything but one agreement: on Flower its terms are worked out again, by all."""
    first = next(iter(profiles.values()))
    agreement = first.agreement if isinstance(first, Match) else first
    solved = isinstance(agreement, Agreement) and agreement.kind != "given"
    if len(profiles) != 1 or not solved:
        raise InvalidInput(
            "on Flower there must be one, an individual or a uniform agreement", field="profiles"
        )


def _offered(given: Agreement | Match, rounds: int | None) -> Agreement | Match:
    """What the server would offer, so that what is shown is what is trained."""
    from fedaccord.flower.simulation import as_offered

    agreement = given.agreement if isinstance(given, Match) else given
    if not agreement.exists:
        return given
    offered = as_offered(agreement, rounds or agreement.consortium.rounds)
    if not isinstance(given, Match):
        return offered
    if np.abs(offered.profile - agreement.profile).max() >= 1.0:
        raise InvalidInput(
            f"a server, which knows no prices, would offer {offered.total:,.0f} samples and not "
            f"{agreement.total:,.0f} as in this match: train the agreement, which is then played",
            field="profiles",
        )
    return given


def _run_on_flower(
    course: "Course",
    profile: PlayedProfile,
    *,
    seed: int,
    ledger: str | Path | None,
    progress: Progress | None,
    after_round: AfterRound | None,
) -> "TrainingRun":
    """Report, rank, offer, train and settle, slot after slot."""
    from fedaccord.flower.simulation import simulate, slips_in, terms_of

    match, agreement = profile.match, profile.agreement
    if match is None or agreement is None:
        reason = agreement.reason if agreement else None
        raise InvalidInput(f"no {profile.name} agreement exists ({reason})", field="profiles")
    terms = terms_of(agreement, course)

    def tell(slot: int, turn: int, score: "Score") -> None:
        done = (slot - 1) * course.rounds + turn
        _tell(progress, done, course.rounds * match.slots, f"Training on Flower, slot {slot}")
        if after_round is not None:
            measure = course.model.task.measure.name
            after_round(RoundScore(profile.name, seed, slot, turn, score, measure))

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
