"""Trainings that run beside the page, each in a process of its own."""

import json
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fedaccord.console.workshop import orders
from fedaccord.console.workshop.orders import Order
from fedaccord.console.workshop.outcome import Outcome

State = Literal["running", "finished", "failed", "cancelled"]
AT_ONCE = 2
KEPT = 20
"""Trainings that are over and can still be looked at."""


class Training:
    """One training, as far as it has come."""

    def __init__(self, job: orders.Job) -> None:
        """Start it."""
        self.id = secrets.token_urlsafe(12)
        self.order: Order = job.order
        self.uploaded = len(job.uploads)
        self.state: State = "running"
        self.done, self.of, self.doing = 0, 0, "Starting"
        self.measure = "accuracy"
        self.problems: list[str] = []
        self.outcome: Outcome | None = None
        self.version = 0
        self._scores: dict[str, dict[int, dict[int, float]]] = {}
        self._cancelled = False
        self._folder = job.folder
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fedaccord.console.workshop.trainer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, args=(job,), daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        """Whether it is not over yet."""
        return self.state == "running"

    @property
    def pid(self) -> int:
        """The process that trains."""
        return self._process.pid

    @property
    def curves(self) -> dict[str, list[float]]:
        """For each profile the mean score after each round that all seeds so far have reached."""
        with self._lock:
            found = {
                profile: [list(by_round.values()) for by_round in by_seed.values()]
                for profile, by_seed in self._scores.items()
            }
        return {profile: _means(seeds) for profile, seeds in found.items()}

    def cancel(self) -> None:
        """End it now; nothing happens if it is over."""
        if self.running:
            self._cancelled = True
            self._process.kill()
            self._reader.join(5)

    def _read(self, job: orders.Job) -> None:
        """Follow what the trainer says until it is gone."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(job.model_dump_json().encode() + b"\n")
            process.stdin.flush()  # it stays open: the trainer ends when it closes
            for line in process.stdout:
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass  # it was cancelled in the middle of a line
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._end()

    def _take(self, told: Mapping[str, Any]) -> None:
        """Take in a line."""
        with self._lock:
            if "round" in told:
                at = told["round"]
                seeds = self._scores.setdefault(at["profile"], {})
                seeds.setdefault(at["seed"], {})[at["round"]] = at["score"]
                self.measure = at["measure"]
            elif "finished" in told:
                self.outcome = Outcome.model_validate(told["finished"])
            elif "failed" in told:
                self.problems = list(told["failed"])
            else:
                self.done, self.of, self.doing = told["done"], told["of"], told["doing"]
            self.version += 1

    def _end(self) -> None:
        with self._lock:
            if self._cancelled:
                self.state = "cancelled"
            elif self.outcome is not None:
                self.state = "finished"
            else:
                self.state = "failed"
                self.problems = self.problems or ["the training stopped before its end"]
            self.version += 1


def _means(seeds: list[list[float]]) -> list[float]:
    """The means over the seeds that have come as far as the first one.

    >>> _means([[0.5, 0.7], [0.7, 0.9], [0.1]])
    [0.6, 0.8]
    """
    longest = max(map(len, seeds))
    through = [scores for scores in seeds if len(scores) == longest]
    return [sum(scores) / len(scores) for scores in zip(*through, strict=True)]


class Trainings:
    """All trainings of this server."""

    def __init__(self) -> None:
        """None yet."""
        self._known: dict[str, Training] = {}
        self._lock = threading.Lock()

    def start(self, order: Order, **files: Any) -> Training:
        """Start one; refused while two others run."""
        with self._lock:
            if sum(each.running for each in self._known.values()) >= AT_ONCE:
                raise HTTPException(
                    409, f"{AT_ONCE} trainings run already; wait for one, or cancel it"
                )
            training = Training(orders.Job(order=order, **files))
            self._known[training.id] = training
            over = [key for key, each in self._known.items() if not each.running]
            for key in over[: max(len(over) - KEPT, 0)]:
                del self._known[key]
            return training

    def find(self, job: str) -> Training:
        """One of them; an error 404 if it is not known, or forgotten."""
        if job not in self._known:
            raise HTTPException(404, "this training is no longer here; start it again")
        return self._known[job]

    @property
    def running(self) -> list[Training]:
        """Those that are not over."""
        return [each for each in list(self._known.values()) if each.running]

    def close(self) -> None:
        """End all of them."""
        for training in self.running:
            training.cancel()


_creating = threading.Lock()


def trainings_of(request: Request) -> Trainings:
    """The trainings of this server."""
    with _creating:
        if not hasattr(request.app.state, "trainings"):
            request.app.state.trainings = Trainings()
    found: Trainings = request.app.state.trainings
    return found
