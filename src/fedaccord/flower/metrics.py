"""Metrics for Prometheus: a text file that node_exporter's textfile collector reads.

There is no process of ours between two runs that Prometheus could ask. So the file stays where the
last event left it, and is replaced as a whole. No client's amounts are in it.
"""

from datetime import datetime
from pathlib import Path

from fedaccord.atomic import write_whole
from fedaccord.flower.events import Event
from fedaccord.flower.server_events import (
    ClientMissing,
    Reported,
    RoundOver,
    RunBegins,
    RunFailed,
    SlotBegins,
    SlotOver,
)

_METRICS = {
    "slot": ("gauge", "The slot that is under way, or was last."),
    "last_slot": ("gauge", "The slot with which the run ends."),
    "slots_settled_total": ("counter", "Slots that this run settled, void ones included."),
    "slots_void_total": ("counter", "Slots of this run in which nothing was trained."),
    "rounds_total": ("counter", "Rounds of this run with a new model."),
    "round_seconds": ("gauge", "How long the latest round took."),
    "round_samples": ("gauge", "Samples that were trained on in the latest round, in all."),
    "loss": ("gauge", "Loss of the model on the server's test examples."),
    "accuracy": (
        "gauge",
        "Accuracy of the model on the server's test examples, from 0 to 1; with survival times its "
        "concordance.",
    ),
    "clients_suspended": ("gauge", "How many clients are suspended in this slot."),
    "client_present": ("gauge", "Whether a client took part in the slot so far: 1 or 0."),
    "run_failed": ("gauge", "Whether the run ended before its last slot was settled: 1 or 0."),
    "event_timestamp_seconds": ("gauge", "When something happened last."),
}


class MetricsFile:
    """Keeps the metrics of a run in a file."""

    def __init__(self, path: Path) -> None:
        """Nothing is written before the first event."""
        self.path = path
        counters = [name for name, (kind, _) in _METRICS.items() if kind == "counter"]
        self._values: dict[str, float] = dict.fromkeys([*counters, "run_failed"], 0.0)
        self._present: dict[str, bool] = {}

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        self._values["event_timestamp_seconds"] = datetime.fromisoformat(event.time).timestamp()
        self._note(event)
        write_whole(self.path, self.text.encode())

    def _note(self, event: Event) -> None:
        values = self._values
        match event:
            case RunBegins():
                values |= {"slot": event.slot, "last_slot": event.last_slot}
            case SlotBegins():
                values |= {"slot": event.slot, "clients_suspended": len(event.suspended)}
                self._present = {}
            case Reported():
                self._present |= dict.fromkeys(event.clients, True)
            case ClientMissing():
                self._present[event.client] = False
            case RoundOver():
                values |= {"round_seconds": event.seconds, "round_samples": event.samples}
                values["rounds_total"] += event.averaged
                if event.loss is not None and event.accuracy is not None:
                    values |= {"loss": event.loss, "accuracy": event.accuracy}
            case SlotOver():
                values["slots_settled_total"] += 1
                values["slots_void_total"] += event.event == "void"
            case RunFailed():
                values["run_failed"] = 1

    @property
    def text(self) -> str:
        """The file's content, in Prometheus' text format."""
        lines = []
        for name, (kind, about) in _METRICS.items():
            if name == "client_present":
                samples = [
                    f'fedaccord_{name}{{client="{_quoted(client)}"}} {int(there)}'
                    for client, there in self._present.items()
                ]
            else:
                known = name in self._values
                samples = [f"fedaccord_{name} {self._values[name]!r}"] if known else []
            if samples:
                lines += [f"# HELP fedaccord_{name} {about}", f"# TYPE fedaccord_{name} {kind}"]
                lines += samples
        return "".join(f"{line}\n" for line in lines)


def _quoted(name: str) -> str:
    """A name as the value of a label."""
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
