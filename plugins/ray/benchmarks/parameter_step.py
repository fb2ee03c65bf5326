"""The program of null_step.py, and TensorFlow's own servers that run it: a process of an environment that has it.

Started with a number of elements, it reads numbers of steps, one a line, and prints their seconds as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any


def program(tf: Any, count: int) -> tuple[Any, Any]:
    """Returns a variable of a parameter server, and a step: a worker reads it, and its gradient is subtracted there."""
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [count], initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:0"):
        gradient = tf.multiply(v, 0.0)
    with tf.device("/job:ps/task:0"):
        return v, v.assign_sub(gradient).op


def seconds(session: Any, step: Any, steps: int) -> list[float]:
    """Returns what each step took."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        session.run(step)
        times.append(time.perf_counter() - start)
    return times


def _serve(job: str, hosts: list[str]) -> Any:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf.train.Server({"ps": hosts[:1], "worker": hosts[1:]}, job_name=job, task_index=0)


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    count, hosts = int(sys.argv[1]), sys.argv[2:4]
    if len(sys.argv) > 4:
        _serve("ps", hosts).join()
    servers = subprocess.Popen([sys.executable, __file__, *sys.argv[1:4], "ps"])
    try:
        server = _serve("worker", hosts)
        v, step = program(tf, count)
        with tf.Session(server.target) as session:
            session.run(v.initializer)
            for line in sys.stdin:
                print(json.dumps(seconds(session, step, int(line))), flush=True)
    finally:
        servers.terminate()
        servers.wait()


if __name__ == "__main__":
    main()
