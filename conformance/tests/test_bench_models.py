"""The networks of `conformance bench --models`: what they compute, and how sides are compared and reported."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.bench.models import catalogue
from timberframe_conformance.bench.models.command import selected
from timberframe_conformance.bench.models.measure import TOLERANCE, Effort, Row, Spread, difference, measure, settle
from timberframe_conformance.bench.models.report import INFERENCE, TRAINING, Results, geometric_means, markdown
from timberframe_conformance.bench.models.sides import DEVICE, ONNXRUNTIME, TENSORFLOW, Side, Sides, installed
from timberframe_conformance.target import Target
from timberframe_conformance.truth.graphs import Evaluator
from timberframe_conformance.truth.reference import quiet
from timberframe_sdk import plan_memory

pytestmark = pytest.mark.slow

LOOPS = ["LSTM", "GRU"]
PLAIN = [name for name in catalogue.names() if name not in LOOPS]
PARAMETERS = {
    "ResNet-50": 25_636_712,
    "InceptionV3": 23_851_784,
    "Xception": 22_910_480,
    "MobileNetV1 0.25": 475_544,
    "MobileNetV2": 3_538_984,
    "MobileNetV3 small": 2_554_968,
    "DenseNet-121": 8_062_504,
    "EfficientNet-B0": 5_330_564,
    "NASNet mobile": 5_326_716,
}
"""Numbers of parameters of Keras' versions; EfficientNet-B0 without the mean and variance of its images."""


def run(model: catalogue.Model) -> np.ndarray:
    """Returns the network's output on the best device there is."""
    with tf.Session(graph=model.graph) as session:
        if model.initialize is not None:
            session.run(model.initialize)
        return np.asarray(session.run(model.fetches[0], model.feeds))


def losses(model: catalogue.Model, steps: int) -> list[float]:
    """Returns the losses before each of the first training steps."""
    with tf.Session(graph=model.graph) as session:
        session.run(model.initialize)
        return [float(session.run([model.fetches[0], model.step], model.feeds)[0]) for _ in range(steps)]


def arenas(model: catalogue.Model, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Returns bytes of the arena of each of the CPU's programs, and of the most tensors in
    it that are alive together.
    """
    preparation, plans = pytest.importorskip("timberframe_cpu.preparation"), []

    def planned(*given: Any) -> Any:
        plans.append(plan_memory(*given))
        return plans[-1]

    with tf.Session(graph=model.graph) as session, monkeypatch.context() as patch:
        if model.initialize is not None:
            session.run(model.initialize)
        patch.setattr(preparation, "plan_memory", planned)
        session.run([*model.fetches, *([] if model.step is None else [model.step])], model.feeds)
    return [(plan.arena, plan.live) for plan in plans]


@pytest.mark.parametrize("name", [*catalogue.names(), *catalogue.training_names()])
def test_the_arena_is_hardly_larger_than_what_is_alive_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build = catalogue.build_training if name in catalogue.training_names() else catalogue.build
    found = arenas(build(name, device="/cpu:0"), monkeypatch)
    assert found
    assert all(live <= arena <= 1.05 * live for arena, live in found)


@pytest.mark.parametrize("name", PLAIN)
def test_network_computes_what_the_references_compute_in_float64(name: str) -> None:
    model = catalogue.build(name, 2, small=True)
    with quiet():
        (expected,) = Evaluator(model.fetches, list(model.feeds)).wide(list(model.feeds.values()))
    assert np.abs(run(model) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", catalogue.names())
def test_network_with_variables_computes_what_the_frozen_one_does(name: str) -> None:
    frozen, free = (run(catalogue.build(name, 2, small=True, variables=v)) for v in (False, True))
    assert difference(frozen, free) <= 1e-5


@pytest.mark.parametrize("name", PLAIN)
def test_activations_neither_vanish_nor_explode(name: str) -> None:
    model = catalogue.build(name, 2, small=True)
    sums = [op.outputs[0] for op in model.graph.get_operations() if op.type in ("FusedBatchNormV3", "BiasAdd")]
    with tf.Session(graph=model.graph) as session:
        spreads = [float(np.std(v)) for v in session.run(sums, model.feeds)]
    assert min(spreads) > 0.02
    assert max(spreads) < 50


@pytest.mark.parametrize("name", PARAMETERS)
def test_network_has_the_published_number_of_parameters(name: str) -> None:
    graph = catalogue.build(name, variables=True).graph
    variables = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    assert sum(math.prod(v.shape.as_list()) for v in variables) == PARAMETERS[name]


def loop_weights(model: catalogue.Model) -> list[np.ndarray]:
    """Returns the constants with weights of a recurrent network, in the order in which they were made."""
    values = [op.attrs["value"] for op in model.graph.get_operations() if op.type == "Const"]
    return [np.float64(v) for v in values if np.asarray(v).dtype == np.float32 and np.any(v)]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_lstm_follows_its_equations() -> None:
    model = catalogue.build("LSTM", 2, small=True)
    kernel, recurrent, bias = loop_weights(model)
    (x,) = model.feeds.values()
    hidden = cell = np.zeros((2, len(recurrent)))
    expected = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + hidden @ recurrent + bias, 4, 1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        expected.append(hidden)
    np.testing.assert_allclose(run(model), np.stack(expected, 1), rtol=0, atol=1e-6)


def test_gru_follows_its_equations() -> None:
    model = catalogue.build("GRU", 2, small=True)
    kernel, recurrent, bias, recurrent_bias = loop_weights(model)
    (x,) = model.feeds.values()
    hidden = np.zeros((2, len(recurrent)))
    expected = []
    for t in range(x.shape[1]):
        update, reset, new = np.split(x[:, t] @ kernel + bias, 3, 1)
        kept, again, old = np.split(hidden @ recurrent + recurrent_bias, 3, 1)
        z = sigmoid(update + kept)
        hidden = z * hidden + (1 - z) * np.tanh(new + sigmoid(reset + again) * old)
        expected.append(hidden)
    np.testing.assert_allclose(run(model), np.stack(expected, 1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", catalogue.training_names())
def test_training_steps_lower_the_loss(name: str) -> None:
    found = losses(catalogue.build_training(name, small=True), 6)
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_training_restarts_with_equal_values() -> None:
    first, second = (losses(catalogue.build_training("MLP training", small=True), 3) for _ in range(2))
    assert first == second


def test_batch_norm_in_training_moves_its_averages() -> None:
    model = catalogue.build_training("ResNet block training", small=True)
    trained = set(model.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES))
    averages = [v for v in model.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES) if v not in trained]
    averages = [v for v in averages if "Momentum" not in v.name]
    with tf.Session(graph=model.graph) as session:
        session.run(model.initialize)
        before = session.run(averages)
        session.run(model.step, model.feeds)
        after = session.run(averages)
    assert averages
    assert all((a != b).any() for a, b in zip(after, before, strict=True))


def test_a_saved_model_gives_what_the_frozen_one_does(target: Target) -> None:
    row = Row("MLP", 2, INFERENCE)
    with Sides(target, 1) as sides:
        measure(row, sides.inference("MLP", 2, []), Effort(1, 0.0, 0.0))
    assert row.failed == ""
    assert row.differences == {"device, variables": 0.0}


# Comparing and measuring


def side(name: str, value: float = 1.0, error: Exception | None = None) -> tuple[str, Callable[[], Side]]:
    """Returns a function that opens a side which computes this value or raises this error."""

    def opener() -> Side:
        if error is not None:
            raise error
        return Side(name, lambda: None, lambda: [np.array([value, 1.0])])

    return name, opener


def measured(*sides: tuple[str, Callable[[], Side]]) -> Row:
    return measure(Row("net", 1, INFERENCE), sides, Effort(rounds=3, seconds=0.0, warm_up=0.0))


def test_sides_that_agree_are_measured() -> None:
    row = measured(side(DEVICE), side(TENSORFLOW))
    assert not row.failed
    assert {name: spread.samples for name, spread in row.times.items()} == {DEVICE: 3, TENSORFLOW: 3}


def test_wrong_results_fail_the_row_before_anything_is_timed() -> None:
    row = measured(side(DEVICE), side(TENSORFLOW, 1 + 3 * TOLERANCE))
    assert row.failed.startswith("results differ from the device's: tensorflow by 0.0003")
    assert row.times == {}


def test_results_that_are_no_numbers_fail_the_row() -> None:
    assert measured(side(DEVICE), side(TENSORFLOW, math.nan)).failed


def test_peer_that_cannot_be_opened_is_left_out_with_its_reason() -> None:
    row = measured(side(DEVICE), side(ONNXRUNTIME, error=ValueError("no such op")))
    assert row.absent == {ONNXRUNTIME: "ValueError: no such op"}
    assert not row.failed
    assert set(row.times) == {DEVICE}


def test_device_that_cannot_run_a_network_fails_the_row() -> None:
    assert measured(side(DEVICE, error=LookupError("no kernel"))).failed == "device: LookupError: no kernel"


def test_sides_alternate_and_another_one_begins_each_round() -> None:
    order: list[str] = []

    def opener(name: str) -> tuple[str, Callable[[], Side]]:
        return name, lambda: Side(name, lambda: None, lambda: [np.zeros(1)], lambda: order.append(name))

    measured(opener(DEVICE), opener(TENSORFLOW))
    assert order[2:] == [DEVICE, TENSORFLOW, TENSORFLOW, DEVICE, DEVICE, TENSORFLOW]


def test_settling_waits_for_busy_threads_of_other_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    now, used, busy_until = 0.0, 0.0, 0.1

    def sleep(seconds: float) -> None:
        nonlocal now, used
        used += max(0.0, min(seconds, busy_until - now))
        now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(time, "process_time", lambda: used)
    settle()
    assert busy_until < now < 2 * busy_until


def test_geometric_mean_is_over_the_rows_that_have_the_peer() -> None:
    rows = [Row("a", 1, INFERENCE), Row("b", 1, INFERENCE)]
    for row, seconds in zip(rows, (2.0, 8.0), strict=True):
        row.times = {DEVICE: Spread(1, 1, 1, 1, 3, 1), TENSORFLOW: Spread(seconds, seconds, seconds, seconds, 3, 1)}
    rows[0].times[ONNXRUNTIME] = Spread(1, 1, 1, 1, 3, 1)
    means = geometric_means(rows, INFERENCE)
    assert means == pytest.approx({"of TF": 4.0, "of ORT": 1.0, "of the best": math.sqrt(8)})


def test_unknown_peers_are_left_out_with_a_reason() -> None:
    present, absent = installed(["fortran"])
    assert present == []
    assert absent == ["fortran: runs no models (known: tensorflow, onnxruntime)"]


def test_keyword_selects_networks_at_all_batches_and_training_steps() -> None:
    rows = [(row.name, row.batch, row.kind) for row in selected("mlp", (1, 8))]
    assert rows == [("MLP", 1, INFERENCE), ("MLP", 8, INFERENCE), ("MLP training", 128, TRAINING)]
    assert {row.name for row in selected("lenet", (1,))} == {"LeNet"}  # not MobileNet
    assert {row.name for row in selected("netv1", (1,))} == {"MobileNetV1 0.25"}


def test_tables_for_documents_have_a_line_for_each_row() -> None:
    row = Row("net", 8, INFERENCE, {DEVICE: Spread(2e-3, 1.9e-3, 2.1e-3, 1.8e-3, 3, 1)})
    text = markdown(Results("/device:X:0", 1, Effort(), {}, [row]))
    assert text.splitlines() == ["|model|batch|ours|", "|-|-|-|", "|net|8|2 ms ±5%|"]


def test_command_refuses_an_unknown_model(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_CLEARED", "{}")
    status, _, errors = command("bench", "--device=reference", "--models", "-k", "AlexNet", "--vs", "")
    assert status == 2
    assert "model 'AlexNet' is not known; models are ResNet-50, " in errors


def test_command_measures_models_and_writes_json(plugin_path: Path, tmp_path: Path) -> None:
    report, page = tmp_path / "models.json", tmp_path / "models.html"
    command = [sys.executable, "-m", "timberframe_conformance.cli", "bench", "--device=reference", "--models"]
    options = ["--quick", "-k", "GRU", "--vs", "", "--threads=1", f"--json={report}", f"--html={page}"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert [row["name"] for row in data["rows"]] == ["GRU"]
    assert data["method"]["threads"] == 1
    assert set(data["rows"][0]["times"]) == {"device", "device, variables"}
    assert "GRU" in done.stdout
    assert "<title>Speed of /device:REFERENCE:0</title>" in page.read_text()


def test_a_page_of_a_profile_is_refused(command: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    status, _, errors = command("bench", "--device=reference", "--models", "--profile", f"--html={page}")
    assert (status, "--html with --models --profile" in errors, page.exists()) == (2, True, False)
