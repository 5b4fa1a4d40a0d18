"""Each slot as a run of MLflow: its rounds as metrics, how it ended as tags."""

from typing import Any

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from fedaccord.errors import FedaccordError
from fedaccord.flower.events import Event
from fedaccord.flower.server_events import (
    ClientVerdict,
    RoundOver,
    RunBegins,
    RunFailed,
    SlotBegins,
    SlotOver,
)


class MlflowRuns:
    """Logs slots to the tracking server or store at a URI, in an experiment of the consortium."""

    def __init__(self, uri: str) -> None:
        """Nothing is logged before the first event."""
        self.uri = uri
        self._client: Any = None
        self._experiment = self._run = ""
        self._verdicts: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        try:
            self._note(event)
        except MlflowException as error:
            raise FedaccordError(f"{self.uri}: MLflow does not take it: {error}") from None

    def _note(self, event: Event) -> None:
        match event:
            case RunBegins():
                self._client = MlflowClient(tracking_uri=self.uri)
                self._experiment = self._experiment_of(event.consortium)
                if event.round:  # a slot that goes on after the server was started again
                    self._begin(event.slot, {"resumed_after_round": str(event.round)})
            case SlotBegins():
                self._begin(event.slot, {"phase": event.phase})
            case RoundOver() if self._run:
                self._log_round(event)
            case ClientVerdict() if self._run:
                self._verdicts[event.verdict] = self._verdicts.get(event.verdict, 0) + 1
            case SlotOver() if self._run:
                self._end(event)
            case RunFailed() if self._run:
                self._client.set_terminated(self._run, "FAILED")
                self._run = ""

    def _experiment_of(self, consortium: str) -> str:
        known = self._client.get_experiment_by_name(consortium)
        return str(known.experiment_id if known else self._client.create_experiment(consortium))

    def _begin(self, slot: int, tags: dict[str, str]) -> None:
        run = self._client.create_run(
            self._experiment, run_name=f"slot {slot}", tags=tags | {"slot": str(slot)}
        )
        self._run, self._verdicts = run.info.run_id, {}

    def _log_round(self, over: RoundOver) -> None:
        found = {
            "seconds": over.seconds,
            "samples": over.samples,
            "clients": len(over.clients),
            "loss": over.loss,
            over.measure or "accuracy": over.accuracy,
        }
        for name, value in found.items():
            if value is not None:
                self._client.log_metric(self._run, name, value, step=over.round)

    def _end(self, over: SlotOver) -> None:
        self._client.log_metric(self._run, "total", over.total)
        for verdict, number in self._verdicts.items():
            self._client.log_metric(self._run, f"verdict_{verdict}", number)
        self._client.set_tag(self._run, "void", str(over.event == "void").lower())
        self._client.set_tag(self._run, "missing", ", ".join(one.client for one in over.missing))
        self._client.set_terminated(self._run, "FAILED" if over.event == "void" else "FINISHED")
        self._run = ""
