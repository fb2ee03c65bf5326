"""A monitored training with hooks: it logs, saves checkpoints, and goes on where a training before it stopped."""

import tempfile

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, FIRST, LAST = 64, 60, 150

digits = load_digits()
images, labels = (digits.data / 16).astype(np.float32), digits.target


class LossRecorder(tf.train.SessionRunHook):
    """Keeps the loss of each step."""

    def __init__(self, tensor):
        self.tensor, self.values = tensor, []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.tensor)

    def after_run(self, run_context, run_values):
        self.values.append(float(run_values.results))


def train(folder, last_step):
    """Trains until a step: the number of steps that it took, and the losses."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        random = tf.random_uniform([BATCH], 0, len(images), tf.int32, seed=1)
        x, y = tf.gather(tf.constant(images), random), tf.gather(tf.constant(labels), random)
        w1 = tf.get_variable("w1", [64, 48], initializer=tf.glorot_uniform_initializer(seed=2))
        w2 = tf.get_variable("w2", [48, 10], initializer=tf.glorot_uniform_initializer(seed=3))
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        tf.summary.scalar("loss", loss)
        train_op = tf.train.AdamOptimizer(5e-3).minimize(loss, global_step=step)
        recorder = LossRecorder(loss)
        hooks = [
            tf.train.StopAtStepHook(last_step=last_step),
            tf.train.NanTensorHook(loss),
            tf.train.LoggingTensorHook({"loss": loss, "step": step}, every_n_iter=50),
            recorder,
        ]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=30, save_summaries_steps=20
        ) as session:
            start = session.run(step)
            while not session.should_stop():
                session.run(train_op)
        return start, recorder.values


with tempfile.TemporaryDirectory() as folder:
    start, losses = train(folder, FIRST)
    print("from step %d: loss %.4f, then %.4f" % (start, losses[0], losses[-1]))
    saved = tf.train.load_variable(folder, "global_step")
    print("saved at step %d" % saved)
    again, more = train(folder, LAST)
    print("from step %d: %d steps" % (again, len(more) - 1))

assert (start, saved, again) == (0, FIRST, FIRST)
assert np.mean(more[-10:]) < losses[0] / 4
