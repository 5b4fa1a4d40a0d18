"""Slots as runs of MLflow, in a real store in a temporary directory."""

from pathlib import Path

import pytest

from fedaccord.errors import FedaccordError
from fedaccord.flower.server_events import RunFailed
from fedaccord.protocol.facts import Scored
from tests.flower.test_narration import played

mlflow = pytest.importorskip("mlflow")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of MLflow itself
]


def test_each_slot_is_a_run(tmp_path: Path) -> None:
    from fedaccord.flower.mlflow_runs import MlflowRuns

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    listener = MlflowRuns(uri)
    for event in played(tmp_path, slots=2, evaluate=lambda _: Scored(0.5, 0.75, "concordance")):
        listener(event)
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("test")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["slot 1", "slot 2"]
    (first,) = [run for run in runs if run.data.tags["slot"] == "1"]
    assert first.info.status == "FINISHED"
    assert (first.data.tags["void"], first.data.tags["phase"]) == ("false", "cooperating")
    assert first.data.metrics["verdict_kept"] == 3
    assert first.data.metrics["total"] == 112
    assert first.data.metrics["concordance"] == 0.75
    assert "accuracy" not in first.data.metrics
    history = client.get_metric_history(first.info.run_id, "loss")
    assert [(one.step, one.value) for one in history] == [(1, 0.5), (2, 0.5)]


def test_a_void_slot_and_a_failed_run(tmp_path: Path) -> None:
    from fedaccord.flower.mlflow_runs import MlflowRuns

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    listener = MlflowRuns(uri)
    events = played(tmp_path, "a")
    for event in events:
        listener(event)
    for event in events[:3]:  # a slot begins, and the run fails in it
        listener(event)
    listener(RunFailed(message="the SuperLink does not answer"))
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("test").experiment_id])
    assert [run.info.status for run in runs] == ["FAILED", "FAILED"]
    assert [run.data.tags.get("void") for run in runs].count("true") == 1
    assert "b, c" in [run.data.tags.get("missing") for run in runs]


def test_a_store_that_does_not_exist(tmp_path: Path) -> None:
    from fedaccord.flower.mlflow_runs import MlflowRuns

    listener = MlflowRuns("nonsense://nowhere")
    with pytest.raises(FedaccordError, match="MLflow does not take it"):
        listener(played(tmp_path)[1])
