"""A linear model that several processes train: a parameter server and workers, each with its part of the rows.

It is a program of TensorFlow 1; each process is started with its job and number:

    python -m timberframe.compat run examples/replicas.py --job_name worker --task_index 0
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", default="localhost:2222")
parser.add_argument("--worker_hosts", default="localhost:2223,localhost:2224")
parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--sync", action="store_true", help="a step is the mean of all workers' gradients")
parser.add_argument("--folder", help="for checkpoints")


def rows(task: int, workers: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the inputs and labels of one worker."""
    inputs = np.random.RandomState(1).standard_normal((64, 4)).astype(np.float32)
    labels = inputs @ np.float32([1, -2, 3, 0.5]) + np.float32(0.25)
    return inputs[task::workers], labels[task::workers]


def main() -> None:
    flags = parser.parse_args()
    tf.disable_eager_execution()
    workers = flags.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
    if flags.job_name == "ps":
        server.join()

    is_chief = flags.task_index == 0
    worker = f"/job:worker/task:{flags.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        inputs, labels = rows(flags.task_index, len(workers))
        step = tf.train.get_or_create_global_step()
        weights = tf.get_variable("weights", [4], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(inputs * weights, 1) + bias - labels))
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        hooks = [tf.train.StopAtStepHook(last_step=flags.steps)]
        if flags.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=len(workers))
            hooks.append(optimizer.make_session_run_hook(is_chief, num_tokens=0))
        train = optimizer.minimize(loss, global_step=step)

    # Without filters a session waits for all workers, also for one that has trained until the last step and has ended.
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=is_chief, checkpoint_dir=flags.folder, hooks=hooks, config=config
    ) as session:
        values = []
        while not session.should_stop():
            values.append(session.run([loss, train])[0])
    print(f"worker {flags.task_index}: {len(values)} runs, loss {values[0]:.4f} at first, {values[-1]:.4f} at last")


if __name__ == "__main__":
    main()
