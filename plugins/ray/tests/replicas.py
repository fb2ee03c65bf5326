"""A synchronous training by two replicas with sessions of their own, dropout and shuffled rows: prints their steps.

``python plugins/ray/tests/replicas.py HOST FOLDER STEPS``: HOST names the cluster, which ends with this process; its
checkpoints are in FOLDER.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import timberframe as tf

REPLICAS, CHECKPOINT_STEPS = 2, 2


class Together(tf.train.SessionRunHook):
    """Has all replicas begin each run together: a quick one else may take the token of a slow one, and its turn."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def before_run(self, run_context: Any) -> None:
        self._barrier.wait(60)


def train(server: tf.train.Server, spec: tf.train.ClusterSpec, task: int, folder: str, steps: int, hook: Any) -> None:
    """One replica, up to a step."""
    setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task}", cluster=spec)
    with tf.Graph().as_default(), tf.device(setter):
        tf.set_random_seed(3)
        step = tf.train.get_or_create_global_step()
        rows = tf.data.Dataset.range(12).shuffle(12, seed=1 + task).repeat().batch(2)
        x = tf.cast(tf.compat.v1.data.make_one_shot_iterator(rows).get_next(), tf.float32)
        w = tf.get_variable("w", initializer=tf.constant([1.0, -1.0]))
        kept = tf.nn.dropout(w * x, keep_prob=0.5)
        loss = tf.reduce_sum(tf.square(kept - 1.0 + tf.random_normal([2])))
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.001), REPLICAS)
        train_op = optimizer.minimize(loss, global_step=step)
        hooks = [
            optimizer.make_session_run_hook(task == 0, num_tokens=0), tf.train.StopAtStepHook(last_step=steps), hook
        ]  # fmt: skip
        with tf.train.MonitoredTrainingSession(
            server.target, is_chief=task == 0, checkpoint_dir=folder, save_checkpoint_steps=CHECKPOINT_STEPS,
            hooks=hooks, config=tf.SessionConfig(plugins=["cpu"]), max_wait_secs=60,
        ) as session:  # fmt: skip
            while not session.should_stop():
                session.run(train_op)
                if task == 0:
                    print("step", flush=True)


def main() -> None:
    host, folder, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    spec = tf.train.ClusterSpec({"ps": [f"{host}:1"], "worker": [f"{host}:{2 + task}" for task in range(REPLICAS)]})
    servers = [tf.train.Server(spec, "ps", 0), *(tf.train.Server(spec, "worker", task) for task in range(REPLICAS))]
    hook = Together(threading.Barrier(REPLICAS))
    threads = [
        threading.Thread(target=train, args=(servers[1 + task], spec, task, folder, steps, hook))
        for task in range(REPLICAS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
