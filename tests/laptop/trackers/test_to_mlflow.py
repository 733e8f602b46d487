"""With MLflow itself, in a store of its own."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
from exported import BEGAN_S, cell

from boxcar.laptop.trackers.exported_cell import Point, offline

pytest.importorskip("mlflow", reason="mlflow is not installed")


def test_a_run_has_config_curves_and_numbers_and_is_replaced_by_its_id(tmp_path: Path) -> None:
    with offline(io.StringIO()):
        from mlflow.tracking import MlflowClient

        from boxcar.laptop.trackers import to_mlflow

        assert to_mlflow.write(tmp_path, cell()) == "mlflow.db"
        to_mlflow.write(tmp_path, cell("b"))
        to_mlflow.write(tmp_path, cell(numbers={"acc": 0.5}))
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
        experiment = client.get_experiment_by_name("tiny")
        runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
        assert set(runs) == {"a_seed1", "b"}
        run = runs["a_seed1"]
        loss = client.get_metric_history(run.info.run_id, "loss")
    assert [one.step for one in loss] == [1, 2, 5] and math.isnan(loss[1].value)
    assert loss[0].timestamp == int((BEGAN_S + 1) * 1000)
    assert run.data.params["model.name"] == "x|<b>" and run.data.params["lr"] == "0.1"
    assert run.data.metrics["final/acc"] == 0.5 and run.info.status == "FINISHED"
    assert run.data.tags["boxcar.id"] == cell().id and run.data.tags["seed"] == "1"


def test_keys_that_differ_only_in_what_its_store_refuses_stay_two(tmp_path: Path) -> None:
    config = {"aug@train": 1, "aug#train": 2, "a//b": 3, "/": 4, "fold": "007"}
    points = (Point(1, BEGAN_S, {"top-1 acc (%)": 0.5, "top-1 acc [%]": 0.25}),)
    with offline(io.StringIO()):
        from mlflow.tracking import MlflowClient

        from boxcar.laptop.trackers import to_mlflow

        to_mlflow.write(tmp_path, cell(config=config, points=points))
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
        experiment = client.get_experiment_by_name("tiny")
        [run] = client.search_runs([experiment.experiment_id])
    assert run.data.params == {
        **{"aug_train": "1", "aug_train_2": "2", "a/b": "3", "_": "4", "fold": "007"}
    }
    curves = {key: value for key, value in run.data.metrics.items() if key.startswith("top")}
    assert curves == {"top-1 acc ___": 0.5, "top-1 acc ____2": 0.25}
