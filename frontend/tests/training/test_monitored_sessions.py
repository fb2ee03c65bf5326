"""Monitored sessions: hooks, checkpoints and what is restored of them, lost sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


class Recorder(tf.train.SessionRunHook):
    """Writes down what is called; `raises` maps a method's name to exceptions that its next calls raise."""

    def __init__(self, name: str = "", calls: list[str] | None = None, **raises: Any) -> None:
        self.name = name
        self.calls = [] if calls is None else calls
        self.raises = raises

    def _note(self, method: str) -> None:
        self.calls.append(self.name + method)
        if self.raises.get(method):
            raise self.raises[method].pop(0)

    def begin(self) -> None:
        self._note("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._note("after_create_session")

    def before_run(self, run_context: Any) -> None:
        self._note("before_run")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._note("after_run")

    def end(self, session: Any) -> None:
        self._note("end")


def training() -> Any:
    """The operation that raises a global step by one."""
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


def model() -> Any:
    """A small training with dropout on random numbers, none of which has a seed."""
    x = tf.random_normal([8, 4])
    hidden = tf.nn.dropout(tf.layers.dense(x, 5, tf.nn.relu), rate=0.5)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - tf.reduce_sum(x, 1, keepdims=True)))
    return tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())


def final(folder: Path) -> dict[str, np.ndarray]:
    """The values of the latest checkpoint."""
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


# Hooks


def test_methods_of_hooks_are_called_in_order() -> None:
    calls: list[str] = []
    with tf.train.MonitoredSession(hooks=[Recorder("a.", calls), Recorder("b.", calls)]) as session:
        session.run(tf.train.get_global_step() or [])
    methods = ["begin", "after_create_session", "before_run", "after_run", "end"]
    assert calls == [f"{hook}.{method}" for method in methods for hook in "ab"]


def test_hooks_run_tensors_and_see_their_values() -> None:
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0

    class Hook(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs({"y": y})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.found = run_values.results

    hook = Hook()
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert session.run(x, {x: 3.0}) == 3.0
    assert hook.found == {"y": 6.0}


def test_two_hooks_that_feed_one_tensor_are_an_error() -> None:
    x = tf.placeholder(tf.float32, [])
    hooks = [tf.train.FeedFnHook(lambda: {x: 1.0}), tf.train.FeedFnHook(lambda: {x: 2.0})]
    with (
        pytest.raises(RuntimeError, match=r"'Placeholder:0' is fed by FeedFnHook"),
        tf.train.MonitoredSession(hooks=hooks) as session,
    ):
        session.run(x)


def test_a_hook_feeds() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 5.0})]) as session:
        assert session.run(x) == 5.0


def test_a_run_after_a_stop_is_an_error() -> None:
    step = training()
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1)]) as session:
        session.run(step)
        with pytest.raises(RuntimeError, match="asked to stop"):
            session.run(step)


@pytest.mark.parametrize(("arguments", "steps"), [({"last_step": 5}, 5), ({"num_steps": 3}, 3)])
def test_training_stops_at_a_step(arguments: Any, steps: int) -> None:
    step, count = training(), 0
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(**arguments)]) as session:
        while not session.should_stop():
            session.run(step)
            count += 1
    assert count == steps


def test_a_loss_that_is_no_number_is_an_error() -> None:
    loss = tf.log(tf.constant(-1.0))
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError),
        tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as session,
    ):
        session.run(loss)


def test_a_loss_that_is_no_number_stops_the_training() -> None:
    loss = tf.log(tf.constant(-1.0))
    hook = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(loss)
        assert session.should_stop()


def test_final_values_are_those_of_the_end() -> None:
    step = training()
    hook = tf.train.FinalOpsHook({"step": tf.train.get_global_step()})
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
        session.run(step)
    assert hook.final_ops_values == {"step": 2}


def test_tensors_are_logged_every_second_run(caplog: pytest.LogCaptureFixture) -> None:
    x = tf.placeholder(tf.float32, [])
    hook = tf.train.LoggingTensorHook({"x": x}, every_n_iter=2, formatter=lambda values: f"x is {values['x']}")
    with caplog.at_level("INFO", "timberframe"), tf.train.MonitoredSession(hooks=[hook]) as session:
        for i in range(4):
            session.run(x, {x: i})
    assert [r.message for r in caplog.records if r.message.startswith("x is")] == ["x is 0.0", "x is 2.0"]


def test_a_tensor_is_logged_by_the_name_of_its_operation(caplog: pytest.LogCaptureFixture) -> None:
    tf.identity(3.0, name="three")
    hook = tf.train.LoggingTensorHook({"x": "three"}, every_n_iter=1)
    with caplog.at_level("INFO", "timberframe"), tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run([])
    assert [r.message for r in caplog.records] == ["x = 3.0"]


def test_an_operation_of_several_outputs_cannot_be_logged() -> None:
    tf.split(tf.zeros([4]), 2, name="parts")
    with pytest.raises(ValueError, match="operation 'parts' has 2 outputs; name one, such as 'parts:0'"):
        tf.train.MonitoredSession(hooks=[tf.train.LoggingTensorHook(["parts"], every_n_iter=1)])


def test_a_hook_that_gets_no_period_is_an_error() -> None:
    with pytest.raises(ValueError, match="neither of every_n_iter and every_n_secs given; exactly one is required"):
        tf.train.LoggingTensorHook(["x"])


def test_a_training_without_global_step_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"has no global step; tf.train.get_or_create_global_step\(\) makes one"):
        tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path))


def test_a_timeline_is_written_every_second_step(tmp_path: Path) -> None:
    step = training()
    with tf.train.MonitoredSession(hooks=[tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))]) as session:
        for _ in range(5):
            session.run(step)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["timeline-2.json", "timeline-4.json"]


def test_summaries_and_speed_are_written(tmp_path: Path) -> None:
    step = training()
    tf.summary.scalar("loss", tf.cast(tf.train.get_global_step(), tf.float32))
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=2, log_step_count_steps=3
    ) as session:
        for _ in range(5):
            session.run(step)
    tf.summary.FileWriterCache.clear()
    (events,) = tmp_path.glob("events*")
    found = [(e.step, v.tag) for e in tf.train.summary_iterator(events) for v in e.summary.value]
    assert found == [(1, "loss"), (3, "loss"), (4, "global_step/sec"), (5, "loss")]


# Sessions


def test_the_end_of_the_data_ends_the_block() -> None:
    with tf.train.MonitoredSession(hooks=[hook := Recorder()]):
        raise tf.errors.OutOfRangeError("the end")
    assert hook.calls[-1] == "end"


def test_another_error_leaves_the_block_without_the_end_of_hooks() -> None:
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredSession(hooks=[hook := Recorder()]):
        raise ZeroDivisionError
    assert "end" not in hook.calls


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_lost_session_is_replaced_and_the_run_repeated(tmp_path: Path, error: Any) -> None:
    step = training()
    hook = Recorder()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, hooks=[hook]
    ) as session:
        found = [session.run(step) for _ in range(3)]
        hook.raises["before_run"] = [error("lost")]
        found.append(session.run(step))
    assert found == [1, 2, 3, 3]  # the third step was after the last checkpoint
    assert hook.calls.count("after_create_session") == 2


def test_a_session_that_does_not_recover_raises() -> None:
    hook = Recorder(before_run=[tf.errors.AbortedError("lost")])
    with pytest.raises(tf.errors.AbortedError), tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        session.run([])


def test_a_singular_session_hands_out_its_session() -> None:
    with tf.train.SingularMonitoredSession() as session:
        assert isinstance(session.raw_session(), tf.Session)


def test_the_graph_is_final_while_the_session_lives(graph: Any) -> None:
    with tf.train.MonitoredSession():
        assert graph.finalized
    assert not graph.finalized


def test_a_closed_session_is_an_error_to_run() -> None:
    session = tf.train.MonitoredSession()
    session.close()
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="closed"):
        session.run([])


def test_tensors_are_evaluated_in_a_monitored_session() -> None:
    x = tf.constant(3.0)
    with tf.train.MonitoredSession() as session:
        assert x.eval(session=session) == 3.0


def test_a_step_function_runs_with_and_without_hooks() -> None:
    x = tf.constant(3.0)

    def step_fn(step_context: Any) -> Any:
        return step_context.session.run(x) + step_context.run_with_hooks(x)

    with tf.train.MonitoredSession(hooks=[hook := Recorder()]) as session:
        assert session.run_step_fn(step_fn) == 6.0
    assert hook.calls.count("before_run") == 1


def test_a_step_function_ends_the_block() -> None:
    with tf.train.MonitoredSession() as session:
        session.run_step_fn(lambda step_context: step_context.request_stop())
        pytest.fail("the block goes on")


def test_an_error_of_a_queue_runner_is_raised() -> None:
    queue = tf.FIFOQueue(2, tf.float32)
    wrong = tf.check_numerics(tf.log(tf.constant(-1.0)), "the numbers")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(wrong)]))
    taken = queue.dequeue()

    def run() -> None:
        with tf.train.MonitoredSession() as session:
            session.run(taken)

    with pytest.raises(tf.errors.InvalidArgumentError, match="the numbers"):
        run()


def test_a_worker_gives_up_waiting_for_the_chief() -> None:
    tf.Variable(1.0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="Variable"):
        tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=0)


# Checkpoints


def train(
    folder: Path, last: int, build: Callable[[], Any] = model, every: int = 2, seed: int | None = 3, **settings: Any
) -> None:
    """Trains up to a step, from the latest checkpoint on."""
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        step = build()
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder),
            save_checkpoint_steps=every,
            hooks=[tf.train.StopAtStepHook(last_step=last)],
            **settings,
        ) as session:
            while not session.should_stop():
                session.run(step)


def test_checkpoints_have_the_names_of_their_steps(tmp_path: Path) -> None:
    train(tmp_path, 5)
    names = [os.path.basename(p) for p in tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths]
    assert names == ["model.ckpt-0", "model.ckpt-2", "model.ckpt-4", "model.ckpt-5"]


def test_training_that_goes_on_ends_as_training_that_was_not_interrupted(tmp_path: Path) -> None:
    train(tmp_path / "one", 7)
    train(tmp_path / "two", 3)
    train(tmp_path / "two", 7)
    one, two = final(tmp_path / "one"), final(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def shuffled() -> Any:
    """A training on a shuffled dataset, with dropout."""
    rows = tf.data.Dataset.from_tensor_slices(np.arange(20, dtype=np.float32)).shuffle(20).repeat()
    x = tf.nn.dropout(rows.batch(3).make_one_shot_iterator().get_next(), rate=0.4)
    total = tf.get_variable("total", [], initializer=tf.random_normal_initializer())
    with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
        return tf.train.get_or_create_global_step().assign_add(1)


def test_training_without_seeds_goes_on_as_it_would_have(tmp_path: Path) -> None:
    train(tmp_path, 9, shuffled, every=4, seed=None)
    expected = final(tmp_path)["total"]
    tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "model.ckpt-4"))
    train(tmp_path, 9, shuffled, every=4, seed=None)
    assert final(tmp_path)["total"] == expected


def test_positions_are_removed_with_their_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, 8, every=1)
    assert sorted(p.name for p in tmp_path.glob("*.positions")) == [f"model.ckpt-{i}.positions" for i in range(4, 9)]


def test_positions_of_equal_trainings_are_equal_files(tmp_path: Path) -> None:
    train(tmp_path / "one", 3)
    train(tmp_path / "two", 3)
    one, two = ((tmp_path / name / "model.ckpt-3.positions").read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_hooks_draw_when_a_session_is_made_does_not_change_the_training(tmp_path: Path) -> None:
    class Draws(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            if session.run(tf.train.get_global_step()):
                session.run([op for op in session.graph.get_operations() if op.type == "RandomStandardNormal"])

    train(tmp_path / "one", 5)
    train(tmp_path / "two", 3)
    train(tmp_path / "two", 5, chief_only_hooks=[Draws()])
    one, two = final(tmp_path / "one"), final(tmp_path / "two")
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def rows_of(*numbers: float) -> Callable[[], Any]:
    """A model that adds the elements of a dataset."""

    def build() -> Any:
        x = tf.data.Dataset.from_tensor_slices(list(numbers)).make_one_shot_iterator().get_next()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        with tf.control_dependencies([total.assign_add(x)]):
            return tf.train.get_or_create_global_step().assign_add(1)

    return build


def test_a_dataset_goes_on(tmp_path: Path) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))
    train(tmp_path, 3, rows_of(1.0, 2.0, 3.0))
    assert final(tmp_path)["total"] == 6.0


def test_a_dataset_that_has_ended_begins_anew(tmp_path: Path) -> None:
    train(tmp_path, 9, rows_of(1.0, 2.0, 3.0))
    train(tmp_path, 9, rows_of(1.0, 2.0, 3.0))
    assert final(tmp_path)["total"] == 12.0


def test_a_dataset_that_has_ended_begins_anew_without_a_block(tmp_path: Path) -> None:
    for expected in (6.0, 12.0):
        with tf.Graph().as_default():
            step = rows_of(1.0, 2.0, 3.0)()
            session = tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=1)
            with pytest.raises(tf.errors.OutOfRangeError):
                _run_for_ever(session, step)
            session.close()
        assert final(tmp_path)["total"] == expected


def _run_for_ever(session: Any, step: Any) -> None:
    while True:
        session.run(step)


def test_a_dataset_of_another_form_begins_at_its_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))

    def batched() -> Any:
        x = tf.data.Dataset.from_tensor_slices([10.0, 20.0]).batch(2).make_one_shot_iterator().get_next()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
            return tf.train.get_or_create_global_step().assign_add(1)

    train(tmp_path, 3, batched)
    assert final(tmp_path)["total"] == 33.0
    assert "its position is of another dataset" in caplog.text


def test_an_evaluation_begins_at_the_start_of_its_dataset(tmp_path: Path) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))
    with tf.Graph().as_default():
        x = tf.data.Dataset.from_tensor_slices([5.0, 6.0]).make_one_shot_iterator().get_next()
        tf.get_variable("total", [])
        tf.train.get_or_create_global_step()
        with tf.train.SingularMonitoredSession(checkpoint_dir=str(tmp_path)) as session:
            assert session.run(x) == 5.0


def test_damaged_positions_are_an_error(tmp_path: Path) -> None:
    train(tmp_path, 3)
    path = tmp_path / "model.ckpt-3.positions"
    path.write_bytes(path.read_bytes()[:-3] + b"abc")
    with pytest.raises(tf.errors.DataLossError, match="positions"):
        train(tmp_path, 5)


def test_an_evaluation_does_without_damaged_positions(tmp_path: Path) -> None:
    train(tmp_path, 3)
    (tmp_path / "model.ckpt-3.positions").write_bytes(b"damaged")
    model()
    with tf.train.SingularMonitoredSession(checkpoint_dir=str(tmp_path)) as session:
        assert session.run(tf.train.get_global_step()) == 3


def test_listeners_are_called_around_each_checkpoint(tmp_path: Path) -> None:
    calls: list[Any] = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self) -> None:
            calls.append("begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            calls.append(("before", global_step_value))

        def after_save(self, session: Any, global_step_value: int) -> bool:
            calls.append(("after", global_step_value))
            return global_step_value == 2

        def end(self, session: Any, global_step_value: int) -> None:
            calls.append(("end", global_step_value))

    step = training()
    saver = tf.train.Saver()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1, saver=saver, listeners=[Listener()])
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            session.run(step)
    saves = [(moment, i) for i in range(3) for moment in ("before", "after")]
    assert calls == ["begin", *saves, ("end", 2)]


# Scaffold and SessionManager


def test_a_scaffold_initializes_by_its_function() -> None:
    x = tf.Variable(1.0)
    double = x.assign(x * 2.0)
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: session.run(double))
    with tf.train.MonitoredTrainingSession(scaffold=scaffold) as session:
        assert session.run(x) == 2.0


def test_a_scaffold_wants_one_saver(graph: Any) -> None:
    tf.Variable(1.0)
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    with pytest.raises(RuntimeError, match=r"'savers' has 2 items; give tf\.train\.Scaffold saver="):
        tf.train.Scaffold().finalize()


def test_local_variables_and_tables_are_initialized() -> None:
    count = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [7]), -1)
    found = table.lookup(tf.constant("a"))
    with tf.train.MonitoredSession() as session:
        assert session.run([count, found]) == [3.0, 7]


def test_a_model_that_is_not_ready_names_its_variables() -> None:
    x = tf.Variable(1.0, name="x")
    tf.Variable(1.0, name="y")
    scaffold = tf.train.Scaffold(init_op=x.initializer)
    with pytest.raises(RuntimeError, match="after init_op and init_fn these variables have no value: y"):
        tf.train.MonitoredTrainingSession(scaffold=scaffold)


def test_a_manager_without_anything_to_initialize_by_says_so() -> None:
    with pytest.raises(RuntimeError, match="neither init_op, init_fn nor local_init_op"):
        tf.train.SessionManager().prepare_session("")


def test_a_checkpoint_that_is_named_and_missing_is_an_error(tmp_path: Path) -> None:
    train(tmp_path, 2)
    for path in tmp_path.glob("model.ckpt-2*"):
        path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match=r"model\.ckpt-2"):
        train(tmp_path, 4)


@pytest.mark.slow
def test_killed_trainings_end_with_the_bits_of_one_that_was_not() -> None:
    script = Path(__file__).with_name("kill_training.py")
    done = subprocess.run([sys.executable, script, "--kills", "4"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every time the result had the same bits" in done.stdout
