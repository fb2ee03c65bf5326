"""Estimators: trained, evaluated, asked and exported."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .regression import ROWS, SHUFFLED, X, Y, estimator, model_fn


def values(made: Any) -> dict[str, bytes]:
    return {name: made.get_variable_value(name).tobytes() for name in made.get_variable_names()}


# Training


def test_training_goes_so_many_steps_from_the_latest_checkpoint(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=3)
    made.train(SHUFFLED, steps=4)
    assert made.get_variable_value("global_step") == 7


def test_training_ends_at_a_step(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, max_steps=3)
    made.train(SHUFFLED, max_steps=3)
    assert made.latest_checkpoint() == str(tmp_path / "model.ckpt-3")


def test_training_ends_with_its_input(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(ROWS)
    assert made.get_variable_value("global_step") == 3


class Killed(tf.train.SessionRunHook):
    """Ends the training with an error in the seventh run."""

    runs = 0

    def before_run(self, run_context: Any) -> None:
        self.runs += 1
        if self.runs == 7:
            raise KeyboardInterrupt


def test_training_that_goes_on_ends_with_the_bits_of_one_that_was_not_interrupted(tmp_path: Path) -> None:
    whole, parts = estimator(tmp_path / "whole"), estimator(tmp_path / "parts")
    whole.train(SHUFFLED, max_steps=8)
    with pytest.raises(KeyboardInterrupt):
        parts.train(SHUFFLED, hooks=[Killed()], max_steps=8)
    parts.train(SHUFFLED, max_steps=8)
    assert values(parts) == values(whole)


def test_another_training_begins_its_input_anew(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    for _ in range(3):
        made.train(ROWS)
    assert made.get_variable_value("global_step") == 9


def test_training_learns(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    before = made.evaluate(ROWS)["loss"]
    made.train(SHUFFLED, steps=60)
    assert made.evaluate(ROWS)["loss"] < before / 3


def test_checkpoints_and_the_graph_are_written(tmp_path: Path) -> None:
    estimator(tmp_path).train(SHUFFLED, steps=7)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert [os.path.basename(p) for p in state.all_model_checkpoint_paths] == [f"model.ckpt-{i}" for i in (0, 5, 7)]
    assert (tmp_path / "graph.pbtxt").exists()


def test_a_loss_is_among_the_summaries(tmp_path: Path) -> None:
    estimator(tmp_path, save_summary_steps=2).train(SHUFFLED, steps=3)
    tf.summary.FileWriterCache.clear()
    (events,) = tmp_path.glob("events*")
    assert [e.step for e in tf.train.summary_iterator(events) for v in e.summary.value if v.tag == "loss"] == [1, 3]


def test_no_thread_outlives_an_estimator_that_was_used(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=3)
    made.evaluate(ROWS)
    list(made.predict(ROWS))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread.name


def test_hooks_and_listeners_are_called(tmp_path: Path) -> None:
    class Counts(tf.train.SessionRunHook, tf.train.CheckpointSaverListener):
        runs = 0
        saves: list[int] = []

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1

        def after_save(self, session: Any, global_step_value: int) -> None:
            self.saves.append(global_step_value)

        def end(self, session: Any, global_step_value: int = 0) -> None:
            pass

    counts = Counts()
    estimator(tmp_path).train(SHUFFLED, hooks=[counts], steps=6, saving_listeners=[counts])
    assert (counts.runs, counts.saves) == (6, [0, 5, 6])


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    def diverges(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.get_variable("v", [], initializer=tf.zeros_initializer()) + float("nan")
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.get_global_step().assign_add(1))

    with pytest.raises(tf.train.NanLossDuringTrainingError):
        estimator(tmp_path, diverges).train(ROWS)


def test_a_warm_start_begins_with_the_values_of_another(tmp_path: Path) -> None:
    first = estimator(tmp_path / "first")
    first.train(SHUFFLED, steps=5)
    second = tf.estimator.Estimator(
        model_fn, str(tmp_path / "second"), params={"rate": 0.0}, warm_start_from=str(tmp_path / "first")
    )
    second.train(SHUFFLED, steps=1)
    np.testing.assert_array_equal(second.get_variable_value("y/kernel"), first.get_variable_value("y/kernel"))
    assert second.get_variable_value("global_step") == 1


# Evaluation


def test_an_evaluation_gives_metrics_over_all_batches(tmp_path: Path) -> None:
    found = estimator(tmp_path).evaluate(ROWS)
    error = np.abs(0.5 * X.sum(1, keepdims=True) - Y)
    np.testing.assert_allclose([found["error"], found["loss"]], [error.mean(), (error**2).mean()], rtol=1e-5)
    assert found["global_step"] == 0


def test_an_evaluation_stops_after_so_many_batches(tmp_path: Path) -> None:
    found = estimator(tmp_path).evaluate(ROWS, steps=1)
    np.testing.assert_allclose(found["error"], np.abs(0.5 * Y[:8]).mean(), rtol=1e-5)


def test_an_evaluation_writes_summaries_into_its_folder(tmp_path: Path) -> None:
    estimator(tmp_path).evaluate(ROWS, name="test")
    tf.summary.FileWriterCache.clear()
    (events,) = (tmp_path / "eval_test").glob("events*")
    tags = [v.tag for e in tf.train.summary_iterator(events) for v in e.summary.value]
    assert tags == ["error", "loss"]


def test_summaries_of_an_evaluation_name_the_checkpoint(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=2)
    made.evaluate(ROWS)
    tf.summary.FileWriterCache.clear()
    (events,) = (tmp_path / "eval").glob("events*")
    values = {v.tag: v.tensor for e in tf.train.summary_iterator(events) for v in e.summary.value}
    assert tf.make_ndarray(values["checkpoint_path"]) == made.latest_checkpoint().encode()


def test_an_evaluation_takes_another_checkpoint(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=7)
    assert made.evaluate(ROWS, checkpoint_path=str(tmp_path / "model.ckpt-5"))["global_step"] == 5


# Prediction


def test_predictions_come_one_by_one(tmp_path: Path) -> None:
    found = list(estimator(tmp_path).predict(ROWS))
    np.testing.assert_allclose([p["y"] for p in found], 0.5 * Y, rtol=1e-5, atol=1e-6)


def test_predictions_come_in_batches(tmp_path: Path) -> None:
    found = estimator(tmp_path).predict(ROWS, yield_single_examples=False)
    assert [p["y"].shape for p in found] == [(8, 1)] * 3


def test_predictions_of_some_keys(tmp_path: Path) -> None:
    assert next(estimator(tmp_path).predict(ROWS, predict_keys=["x"])).keys() == {"x"}


def test_predict_keys_that_are_no_predictions_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="predict_keys are z, and predictions are y, x"):
        next(estimator(tmp_path).predict(ROWS, predict_keys="z"))


# Export


def receives() -> Any:
    x = tf.placeholder(tf.float32, [None, 3], name="given")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"input": x})


def test_an_exported_model_predicts_what_the_estimator_does(tmp_path: Path) -> None:
    made = estimator(tmp_path / "model")
    made.train(SHUFFLED, steps=3)
    folder = made.export_savedmodel(str(tmp_path / "exported"), receives)
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        found = session.run(signature.outputs["y"].name, {signature.inputs["input"].name: X})
    np.testing.assert_allclose(found, [p["y"] for p in made.predict(ROWS)], rtol=1e-6)


def test_an_exported_model_parses_examples(tmp_path: Path) -> None:
    made = estimator(tmp_path / "model")
    made.train(SHUFFLED, steps=1)
    spec = {"x": tf.FixedLenFeature([3], tf.float32)}
    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    folder = made.export_saved_model(str(tmp_path / "exported"), receive)
    values = tf.train.Feature(float_list=tf.train.FloatList(value=X[0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": values}))
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        found = session.run(signature.outputs["x"].name, {"input_example_tensor:0": [example.SerializeToString()]})
    np.testing.assert_array_equal(found, X[:1])


def test_a_model_that_was_not_trained_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no checkpoint in model_dir"):
        estimator(tmp_path).export_saved_model(str(tmp_path / "exported"), receives)


def test_further_files_are_exported(tmp_path: Path) -> None:
    made = estimator(tmp_path / "model")
    made.train(SHUFFLED, steps=1)
    (tmp_path / "words").write_text("a b")
    folder = made.export_saved_model(str(tmp_path / "exported"), receives, {"text/words.txt": str(tmp_path / "words")})
    assert (Path(os.fsdecode(folder)) / "assets.extra" / "text" / "words.txt").read_text() == "a b"


# train_and_evaluate


def test_training_is_evaluated_after_checkpoints_and_exported_at_the_end(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    exporter = tf.estimator.FinalExporter("final", receives)
    metrics, exported = tf.estimator.train_and_evaluate(
        made,
        tf.estimator.TrainSpec(SHUFFLED, max_steps=12),
        tf.estimator.EvalSpec(ROWS, steps=None, exporters=exporter, throttle_secs=0),
    )
    assert metrics["global_step"] == 12
    assert [os.path.dirname(os.fsdecode(p)) for p in exported] == [str(tmp_path / "export" / "final")]
    tf.summary.FileWriterCache.clear()
    (events,) = (tmp_path / "eval").glob("events*")
    assert [e.step for e in tf.train.summary_iterator(events) if e.summary.value] == [5, 10, 12]


def test_the_best_model_is_exported(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=1)
    exporter = tf.estimator.BestExporter("best", receives)

    def exports(loss: float) -> bool:
        path = str(tmp_path / "export")
        return exporter.export(made, path, made.latest_checkpoint(), {"loss": loss}, False) is not None

    assert [exports(loss) for loss in (3.0, 4.0, 2.0)] == [True, False, True]


def test_old_exports_are_removed(tmp_path: Path) -> None:
    made = estimator(tmp_path)
    made.train(SHUFFLED, steps=1)
    exporter = tf.estimator.LatestExporter("latest", receives, exports_to_keep=2)
    written = [exporter.export(made, str(tmp_path / "out"), made.latest_checkpoint(), {}, False) for _ in range(3)]
    assert sorted(str(p) for p in (tmp_path / "out").iterdir()) == [os.fsdecode(p) for p in written[1:]]
