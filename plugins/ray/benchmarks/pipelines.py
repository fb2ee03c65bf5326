"""Times of pipelines of sleeping stages beside what the bubbles of their schedule allow: prints JSON.

``python plugins/ray/benchmarks/pipelines.py --stages 2 4 --microbatches 8``. bound: (M + S - 1) blocks in a row of
forward and backward work; whole: all S x M of them, as one device would do.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from sleeping import sleep

import timberframe as tf
import timberframe_ray as tfr

FORWARD, BACKWARD = 0.010, 0.020
WIDTH = 4


def stage(number: int) -> Any:
    def run(x: Any) -> Any:
        with tf.variable_scope(f"stage{number}", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [WIDTH], initializer=tf.ones_initializer())
            return sleep(x * w, FORWARD, BACKWARD)

    return run


def measure(stages: int, microbatches: int, schedule: str, repeats: int = 5) -> dict[str, Any]:
    """Returns seconds of the quickest of some steps, beside the bound."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [microbatches, WIDTH])
        loss, pairs = tfr.pipeline(
            tf.train.GradientDescentOptimizer(0.1), [stage(i) for i in range(stages)],
            [f"/device:REFERENCE:{i}" for i in range(stages)], x, x,
            lambda y, labels: tf.reduce_mean(tf.square(y - labels)), microbatches, schedule,
        )  # fmt: skip
        given = np.ones((microbatches, WIDTH), np.float32)
        config = tf.SessionConfig(plugins=["cpu", "reference"], device_count={"REFERENCE": stages})
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            times = []
            for _ in range(repeats + 1):
                start = time.perf_counter()
                session.run([loss, [g for g, _ in pairs]], {x: given})
                times.append(time.perf_counter() - start)
    both = FORWARD + BACKWARD
    return {
        "stages": stages, "microbatches": microbatches, "schedule": schedule, "seconds": round(min(times[1:]), 4),
        "bound": (microbatches + stages - 1) * both, "whole": stages * microbatches * both,
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stages", type=int, nargs="+", default=[2, 4])
    options.add_argument("--microbatches", type=int, nargs="+", default=[8, 16])
    given = options.parse_args()
    for stages in given.stages:
        for microbatches in given.microbatches:
            for schedule in ("gpipe", "1f1b"):
                print(json.dumps(measure(stages, microbatches, schedule)), flush=True)


if __name__ == "__main__":
    main()
