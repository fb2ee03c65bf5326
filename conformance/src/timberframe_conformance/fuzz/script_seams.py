"""The lines of a script for steps that the host carries out, and for random streams: see `build_seams`."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_conformance.fuzz.build_seams import FUNCTIONS
from timberframe_conformance.fuzz.program import Step
from timberframe_conformance.repro import value_source


def seam_lines(name: str, step: Step, given: Sequence[str]) -> list[str]:
    """Returns the lines that make a list of the step's results."""
    return {"host": _host, "queue": _queue, "table": _table, "random": _random}[step.kind](name, step, given)


def _host(name: str, step: Step, given: Sequence[str]) -> list[str]:
    values = ", ".join(given)
    dtypes = ", ".join([f"{given[0]}.dtype"] * (2 if step.op == "swap" else 1))
    lines = [f"{name} = tf.py_func({FUNCTIONS[step.op][1]}, [{values}], [{dtypes}])"]
    if step.attrs["shaped"]:
        lines += [f"for t, x in zip({name}, [{', '.join(reversed(given))}]):", "    t.set_shape(x.shape)"]
    return lines


def _queue(name: str, step: Step, given: Sequence[str]) -> list[str]:
    shapes = f"[{tuple(step.attrs['shape'])}]" if step.attrs["shaped"] else None
    lines = [f"{name}_queue = tf.{step.op}({len(given)}, {given[0]}.dtype, shapes={shapes})", "last = []"]
    for x in given:
        lines += ["with tf.control_dependencies(last):", f"    last = [{name}_queue.enqueue({x})]"]
    lines.append(f"{name} = []")
    take = f"dequeue_many({len(given)})" if step.attrs["many"] else "dequeue()"
    for _ in range(1 if step.attrs["many"] else len(given)):
        lines += [
            "with tf.control_dependencies(last):",
            f"    {name}.append({name}_queue.{take})",
            f"last = [{name}[-1]]",
        ]
    return [*lines, "with tf.control_dependencies(last):", f"    {name} = [tf.identity(t) for t in {name}]"]


def _table(name: str, step: Step, given: Sequence[str]) -> list[str]:
    keys, values = (value_source(step.attrs[n]) for n in ("keys", "values"))
    entries = f"tf.lookup.KeyValueTensorInitializer(tf.constant({keys}), tf.constant({values}))"
    return [
        f"{name}_table = tf.lookup.StaticHashTable({entries}, {step.attrs['default']})",
        f"variables.append({name}_table)",
        f"{name} = [{name}_table.lookup({given[0]})]",
    ]


def _random(name: str, step: Step, given: Sequence[str]) -> list[str]:
    shape = tuple(step.attrs["shape"])
    attrs = f'{{"dtype": {value_source(step.attrs["dtype"])}, "seed": {step.attrs["seed"]}, "seed2": 1}}'
    return [f"{name} = [apply_op({step.op!r}, [tf.constant({shape}, tf.int32, shape=({len(shape)},))], {attrs})]"]
